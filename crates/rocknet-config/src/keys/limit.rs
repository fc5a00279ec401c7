//! Keys of `limit`: limits of requests by client or by another key.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, list, quoted};
use crate::model::{Amount, BandwidthLimit, Excess, Limit};
use crate::units::format_size;
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

const RATE: Kind = Kind::Text("number of requests per second, minute or hour, such as \"10/s\"");

const ADDRESSES: Kind = Kind::Several(&Kind::Text("address, network, \"private\", \"unix\" or \"all\""));

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "limit",
        BOTH,
        Kind::Either(&[
            Kind::Boolean,
            RATE,
            Kind::Table(Section::Limit),
            Kind::List(&Kind::Either(&[RATE, Kind::Table(Section::Limit)])),
        ]),
        "Number of requests that each client may send: `\"10/s\"`, `\"100/m\"` or `\"1000/h\"`. A request above it gets \
         429 with `Retry-After`. A table has further settings, and a list has several limits, all of which apply. \
         Requests to all routes that inherit the limit of their site count together. The limits of a route replace \
         those of its site, and `limit = false` lifts them (docs/rate-limits.md).",
    )
    .group(SettingGroup::Access)
    .sets(&[Target::Settings(bound!(
        read: settings::limit,
        render: |settings, _| match &settings.limits[..] {
            [] => Rendered::Value("false".to_owned()),
            [one] => Rendered::Value(limit(one)),
            all => Rendered::Value(list(all.iter().map(limit))),
        }
    ))])
    .example("limit = { rate = \"10/s\", burst = 20 }")
    .foreign_names(&["limit_req", "rate_limit", "ratelimit", "rate-limit", "throttle"]),
    Key::new(
        "rate",
        &[Section::Limit],
        RATE,
        "Number of requests per second, minute or hour. They are spread evenly: `\"60/m\"` permits one request per \
         second after the first `burst`.",
    )
    .example("rate = \"100/m\"")
    .foreign_names(&["events"]),
    Key::new(
        "burst",
        &[Section::Limit],
        Kind::Integer { min: 1, max: 1_000_000 },
        "Number of requests that may arrive at once. By default it is the number of `rate`: with `rate = \"10/s\"`, \
         10 requests at once, then 10 per second.",
    )
    .example("burst = 20"),
    Key::new(
        "connections",
        &[Section::Limit],
        Kind::Integer { min: 1, max: 1_000_000 },
        "Number of requests that may be in progress at the same time, in place of `rate`. A request is in progress until \
         its response is sent or its tunnel, such as a WebSocket, is closed. A further request gets 429; if `key` is a \
         text without placeholders, it gets 503.",
    )
    .example("connections = 20")
    .foreign_names(&["limit_conn"]),
    Key::new(
        "bandwidth",
        &[Section::Limit],
        Kind::Rate { min: 1024, max: 1 << 40 },
        "Bytes per second of each response body, in place of `rate`. With `key`, such as \
         `key = \"{client.ip}\"`, all responses to requests with the same key share the bandwidth. By \
         default, the server sends every 250 ms as much as the bandwidth permits (docs/rate-limits.md). Tunnels, such \
         as WebSockets, are not limited.",
    )
    .example("bandwidth = \"1MiB/s\"")
    .foreign_names(&["limit_rate"]),
    Key::new(
        "after",
        &[Section::Limit],
        Kind::Size { min: 0, max: 1 << 50 },
        "Number of bytes at the beginning of a response that `bandwidth` without `key` does not limit.",
    )
    .default(|| quoted("0B"))
    .example("after = \"10MiB\"")
    .foreign_names(&["limit_rate_after"]),
    Key::new(
        "key",
        &[Section::Limit],
        Kind::Text("text with placeholders"),
        "Requests with the same text share the limit; docs/placeholders.md lists the placeholders. \
         The default is the client's address; of an IPv6 address, the first 64 bits count. If the text is empty for a \
         request, because a header field is missing, the client's address counts. A text without placeholders is one \
         limit for all clients together. A client that changes a header field evades a limit with that field in `key`, \
         so add a second limit without `key`. `bandwidth` has no default: without `key`, each response has this \
         bandwidth of its own.",
    )
    .default(|| quoted("{client.ip}"))
    .example("key = \"{request.header.X-Api-Key}\"")
    .foreign_names(&["zone"]),
    Key::new(
        "delay",
        &[Section::Limit],
        Kind::Either(&[Kind::Boolean, Kind::Integer { min: 1, max: 1_000_000 }]),
        "Requests above the rate wait for their turn; only those above `burst` are refused. With a number, that many \
         requests at once do not wait.",
    )
    .default(|| "false".to_owned())
    .example("delay = true"),
    Key::new(
        "exempt",
        &[Section::Limit],
        ADDRESSES,
        "Client addresses that are not limited, written as in `allow`.",
    )
    .empty_by_default()
    .example("exempt = [\"10.0.0.0/8\", \"2001:db8::/32\"]"),
    Key::new(
        "dry_run",
        &[Section::Limit],
        Kind::Boolean,
        "Counts and logs requests above the limit, but refuses and delays none, so that a limit can be tried.",
    )
    .default(|| "false".to_owned())
    .example("dry_run = true")
    .foreign_names(&["limit_req_dry_run"]),
];

/// Renders a limit as a table.
fn limit(limit: &Limit) -> String {
    let (mut words, excess) = match limit.amount {
        Amount::Rate(rate) => {
            let words = vec![
                format!("rate = {}", quoted(&rate.rate.to_string())),
                format!("burst = {}", rate.burst),
            ];
            (words, rate.excess)
        }
        Amount::Connections(max) => (vec![format!("connections = {max}")], Excess::Immediate),
        Amount::Bandwidth(bandwidth) => {
            let mut words = vec![format!(
                "bandwidth = {}",
                quoted(&format!("{}/s", format_size(bandwidth.rate)))
            )];
            if bandwidth.after > 0 {
                words.push(format!("after = {}", quoted(&format_size(bandwidth.after))));
            }
            (words, Excess::Immediate)
        }
    };
    match (&limit.key, limit.amount) {
        (Some(key), _) => words.push(format!("key = {}", quoted(key))),
        (None, Amount::Bandwidth(BandwidthLimit { is_shared: true, .. })) => {
            words.push(format!("key = {}", quoted("{client.ip}")));
        }
        (None, _) => {}
    }
    match excess {
        Excess::Immediate => {}
        Excess::Delayed { after: 1 } => words.push("delay = true".to_owned()),
        Excess::Delayed { after } => words.push(format!("delay = {after}")),
    }
    if !limit.exempt.is_empty() {
        let exempt = limit.exempt.iter().map(|range| quoted(&range.to_string()));
        words.push(format!("exempt = {}", list(exempt)));
    }
    if limit.dry_run {
        words.push("dry_run = true".to_owned());
    }
    format!("{{ {} }}", words.join(", "))
}
