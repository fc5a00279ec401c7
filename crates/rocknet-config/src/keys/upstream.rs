//! Keys of the servers of a proxy, of their health checks, and of the mirror.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use std::collections::BTreeMap;

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{HasKeys, Rendered, Scalar, SettingRows, bound, field, list, quoted};
use crate::model::{UpstreamRole, WeightedUpstream};

/// Maximum for keys that limit the memory that one exchange uses as a buffer: 64 MiB. Larger bodies should go to
/// disk.
pub(super) const MAX_BUFFERED: u64 = 64 << 20;

/// Address of a server of a proxy.
pub(super) const URL: Kind = Kind::Text("\"http://host:port\" or \"unix:/path\"");

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "path",
        &[Section::Health],
        Kind::Text("path"),
        "Path of the requests, which are sent by GET.",
    )
    .example("path = \"/healthz\""),
    Key::new(
        "status",
        &[Section::Health],
        Kind::Integer { min: 200, max: 599 },
        "Status of a healthy server. Without the key, any status from 200 to 399 is healthy.",
    )
    .sets(&[Target::Health(field!(status))])
    .example("status = 204"),
    Key::new(
        "interval",
        &[Section::Health],
        Kind::Duration {
            min_ms: 100,
            max_ms: 3_600_000,
        },
        "Time between two checks.",
    )
    .sets(&[Target::Health(field!(interval))])
    .example("interval = \"2s\""),
    Key::new(
        "timeout",
        &[Section::Health],
        Kind::Duration {
            min_ms: 10,
            max_ms: 60_000,
        },
        "Timeout of a check, connection and response together.",
    )
    .sets(&[Target::Health(field!(timeout))])
    .example("timeout = \"500ms\""),
    Key::new(
        "rise",
        &[Section::Health],
        Kind::Integer { min: 1, max: 100 },
        "Number of passed checks in a row after which an unhealthy server is healthy.",
    )
    .sets(&[Target::Health(field!(rise))])
    .example("rise = 1"),
    Key::new(
        "fall",
        &[Section::Health],
        Kind::Integer { min: 1, max: 100 },
        "Number of failed checks in a row after which a server is unhealthy. The very first check decides immediately.",
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
        "Header fields that are set in checks, in addition to those of `headers` of the proxy, which they override. \
         Without `Host` in either, checks use the address of the server.",
    )
    .sets(&[Target::Health(bound!(
        render: |health, _| Rendered::names(&health.headers)
    ))])
    .example("headers = { \"Host\" = \"www.example.com\" }"),
    Key::new("url", &[Section::Upstream], URL, "Address of the server.").example("url = \"http://10.0.0.2:3000\""),
    Key::new(
        "weight",
        &[Section::Upstream],
        Kind::Integer { min: 1, max: 1000 },
        "Share of requests relative to the other servers.",
    )
    .sets(&[Target::WeightedUpstream(field!(weight))])
    .example("weight = 3"),
    Key::new(
        "drain",
        &[Section::Upstream],
        Kind::Boolean,
        "Takes the server out of rotation for maintenance: it receives only requests of clients that the cookie of \
         `sticky` keeps with it. Requests in flight are completed.",
    )
    .sets(&[Target::WeightedUpstream(bound!(
        render: |server, kind| (server.role == UpstreamRole::Drain).render(kind)
    ))])
    .example("drain = true")
    .foreign_names(&["down"]),
    Key::new(
        "backup",
        &[Section::Upstream],
        Kind::Boolean,
        "Makes the server a backup: it receives requests only while all others are out of rotation after failures, or \
         unhealthy by `health`. A request that failed at the last available server is retried with a backup. If the \
         others are only at their limit, requests wait for them. Clients that the cookie of `sticky` keeps with a \
         backup stay there.",
    )
    .sets(&[Target::WeightedUpstream(bound!(
        render: |server, kind| (server.role == UpstreamRole::Backup).render(kind)
    ))])
    .example("backup = true"),
    Key::new("to", &[Section::Mirror], URL, "The server that receives the copies.")
        .example("to = \"http://10.0.0.9:3000\""),
    Key::new(
        "share",
        &[Section::Mirror],
        Kind::Text("a percentage, such as \"10%\""),
        "Share of requests that are copied, picked at random.",
    )
    .sets(&[Target::Mirror(bound!(
        render: |mirror, _| Rendered::text(&percent(mirror.share))
    ))])
    .example("share = \"0.5%\""),
    Key::new(
        "content",
        &[Section::Mirror],
        Kind::Size {
            min: 0,
            max: MAX_BUFFERED,
        },
        "Maximum size of a request body; requests with a larger body are not copied.",
    )
    .sets(&[Target::Mirror(field!(content))])
    .example("content = \"1MiB\""),
];

/// Renders the servers of a proxy, each with the keys of its table that are not at their defaults.
pub(super) fn rendered_servers(all: &[WeightedUpstream]) -> Rendered {
    let server = |server: &WeightedUpstream| {
        let url = quoted(&server.upstream.to_string());
        // Renders only the keys that differ from their default.
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

/// Renders a share, in hundredths of a percent, as a percentage: `0.5%` for 50.
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
    fn shares_are_rendered_as_percentages() {
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
