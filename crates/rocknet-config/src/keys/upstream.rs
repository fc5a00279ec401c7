//! Keys of the servers of a proxy: their shares, their checks, and the server that gets copies of requests.

use std::collections::BTreeMap;

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{HasKeys, Rendered, Scalar, SettingRows, bound, field, list, quoted};
use crate::model::{UpstreamRole, WeightedUpstream};

/// Most bytes that a request may hold: a disk is the place for more.
pub(super) const MAX_BUFFERED: u64 = 64 << 20;

pub(super) const URL: Kind = Kind::Text("\"http://host:port\" or \"unix:/path\"");

pub(super) const KEYS: &[Key] = &[
    Key::new("path", &[Section::Health], Kind::Text("path"), "What is asked for, by GET.")
    .example("path = \"/healthz\""),
    Key::new(
        "status",
        &[Section::Health],
        Kind::Integer { min: 200, max: 599 },
        "What a server that is well answers. Without it, anything from 200 to 399.",
    )
    .sets(&[Target::Health(field!(status))])
    .example("status = 204"),
    Key::new(
        "interval",
        &[Section::Health],
        Kind::Duration { min_ms: 100, max_ms: 3_600_000 },
        "Time between two checks.",
    )
    .sets(&[Target::Health(field!(interval))])
    .example("interval = \"2s\""),
    Key::new(
        "timeout",
        &[Section::Health],
        Kind::Duration { min_ms: 10, max_ms: 60_000 },
        "Longest time for a check, connection and answer together.",
    )
    .sets(&[Target::Health(field!(timeout))])
    .example("timeout = \"500ms\""),
    Key::new(
        "rise",
        &[Section::Health],
        Kind::Integer { min: 1, max: 100 },
        "Good checks in a row after which a sick server is well.",
    )
    .sets(&[Target::Health(field!(rise))])
    .example("rise = 1"),
    Key::new(
        "fall",
        &[Section::Health],
        Kind::Integer { min: 1, max: 100 },
        "Bad checks in a row after which a server is sick; the very first decides alone.",
    )
    .sets(&[Target::Health(field!(fall))])
    .example("fall = 2"),
    Key::new(
        "headers",
        &[Section::Health],
        Kind::Map {
            name: "field name",
            value: &Kind::Text("field value"),
        },
        "Header fields that checks have beside or in place of those of `headers` of the proxy, which they have too. Without \
         `Host` in either, checks call a server by its address.",
    )
    .sets(&[Target::Health(bound!(render |health, _| Rendered::names(&health.headers)))])
    .example("headers = { \"Host\" = \"www.example.com\" }"),
    Key::new("url", &[Section::Upstream], URL, "Where the server listens.")
    .example("url = \"http://10.0.0.2:3000\""),
    Key::new(
        "weight",
        &[Section::Upstream],
        Kind::Integer { min: 1, max: 1000 },
        "Its share of requests beside the others'.",
    )
    .sets(&[Target::WeightedUpstream(field!(weight))])
    .example("weight = 3"),
    Key::new(
        "drain",
        &[Section::Upstream],
        Kind::Boolean,
        "Whether the server is about to go: it gets no requests but those of clients whom the cookie of `sticky` keeps with it. \
         What it is answering goes on.",
    )
    .sets(&[Target::WeightedUpstream(bound!(render |server, kind| (server.role == UpstreamRole::Drain).render(kind)))])
    .example("drain = true")
    .elsewhere(&["down"]),
    Key::new(
        "backup",
        &[Section::Upstream],
        Kind::Boolean,
        "Whether the server gets requests only while no other can be asked: all others failed, or `health` found them sick, or \
         the only one there is has just not been reached. Where they are but full, requests wait for them. Those whom the \
         cookie of `sticky` keeps with a backup stay there.",
    )
    .sets(&[Target::WeightedUpstream(bound!(render |server, kind| (server.role == UpstreamRole::Backup).render(kind)))])
    .example("backup = true"),
    Key::new("to", &[Section::Mirror], URL, "The server that gets the copies.")
    .example("to = \"http://10.0.0.9:3000\""),
    Key::new(
        "share",
        &[Section::Mirror],
        Kind::Text("a part of all requests, as in \"10%\""),
        "How many of the requests are copied, drawn at random.",
    )
    .sets(&[Target::Mirror(bound!(render |mirror, _| Rendered::text(&percent(mirror.share))))])
    .example("share = \"0.5%\""),
    Key::new(
        "content",
        &[Section::Mirror],
        Kind::Size {
            min: 0,
            max: MAX_BUFFERED,
        },
        "Most content of a request that is copied; those with more are left out.",
    )
    .sets(&[Target::Mirror(field!(content))])
    .example("content = \"1MiB\""),
];

/// Writes the servers of a proxy, each with the keys of its table that are not at their defaults.
pub(super) fn rendered_servers(all: &[WeightedUpstream]) -> Rendered {
    let server = |server: &WeightedUpstream| {
        let url = quoted(&server.upstream.to_string());
        let spans = BTreeMap::new();
        let mut rows = SettingRows::new(&spans);
        rows.show_defaults = false;
        let defaults = WeightedUpstream::defaults();
        WeightedUpstream::keys(Section::Upstream).for_each(|key| rows.key(&key, server, defaults.as_ref()));
        let rows = rows.into_settings();
        if rows.is_empty() {
            return url;
        }
        let more = rows.iter().map(|row| format!("{} = {}", row.key, row.value));
        format!("{{ url = {url}, {} }}", more.collect::<Vec<_>>().join(", "))
    };
    Rendered::Value(list(all.iter().map(server)))
}

/// Writes a part of all, as in `"0.5%"`.
fn percent(share: u32) -> String {
    let (whole, part) = (share / 100, share % 100);
    match part {
        0 => format!("{whole}%"),
        _ => format!("{whole}.{}%", format!("{part:02}").trim_end_matches('0')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mirror;

    #[test]
    fn shares_are_written_as_they_are_read() {
        for (share, text) in [
            (1000, "10%"),
            (Mirror::ALL, "100%"),
            (50, "0.5%"),
            (1, "0.01%"),
            (1250, "12.5%"),
        ] {
            assert_eq!(percent(share), text);
        }
    }
}
