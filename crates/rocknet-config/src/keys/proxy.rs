//! Keys of the proxy: upstreams, load balancing, health, limits and timeouts.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::upstream::{URL, rendered_servers};
use super::{Key, Kind, Section};
use crate::binding::{Rendered, Scalar, SettingGroup, bound, field};
use crate::choice::Choice;
use crate::model::Balance;
use crate::value::settings;

const DAY_MS: u64 = 86_400_000;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "proxy",
        &[Section::Site, Section::Route],
        Kind::Either(&[Kind::Boolean, URL, Kind::List(&URL), Kind::Table(Section::Proxy)]),
        "Forwards requests to another server, or to one of several: `http://host:port`, `https://` with TLS, `h2c://` \
         in HTTP/2 without TLS (gRPC), or `unix:` and the path of a socket. A table accepts more settings, with the \
         servers in `to`. Path, query and `Host` are forwarded unchanged; `X-Forwarded-For`, `-Proto` and `-Host` \
         name the client. If a site has `proxy` and `root`, the proxy handles its requests. In a route, a `root` or \
         `proxy = false` turns the proxy off.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::proxy,
        render: |settings, _| Rendered::or_off(settings.proxy.as_ref().map(|proxy| rendered_servers(&proxy.to))),
        nested: |settings, rows| {
            if let Some(proxy) = &settings.proxy {
                rows.table(Section::Proxy, "proxy", proxy);
            }
        }
    ))])
    .example("proxy = \"http://127.0.0.1:3000\"")
    .foreign_names(&[
        "proxy_pass",
        "ProxyPass",
        "reverse_proxy",
        "proxy.reverse.url",
        "proxy.server",
    ]),
    Key::new(
        "to",
        &[Section::Proxy],
        Kind::Several(&Kind::Either(&[URL, Kind::Table(Section::Upstream)])),
        "The servers, each in the short form or as a table with a weight. Names are resolved again while the server \
         runs; a name that cannot be resolved at start does not prevent the start.",
    )
    .example("to = [\"http://10.0.0.2:3000\", { url = \"http://10.0.0.3:3000\", weight = 3 }]")
    .foreign_names(&["upstream", "upstreams", "servers"]),
    Key::new(
        "connect",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: 60_000,
        },
        "Timeout for a server to accept a connection. After it, the client gets 504.",
    )
    .sets(&[Target::Proxy(field!(connect))])
    .example("connect = \"1s\"")
    .foreign_names(&["proxy_connect_timeout", "dial_timeout", "connect_timeout"]),
    Key::new(
        "first_byte",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Timeout for the head of the response, from the end of the request. After it, the client gets 504.",
    )
    .sets(&[Target::Proxy(field!(first_byte))])
    .example("first_byte = \"10s\"")
    .foreign_names(&["proxy_read_timeout", "response_header_timeout", "ProxyTimeout"]),
    Key::new(
        "idle",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Timeout for the next bytes of a response, and for the next request on an idle connection. After it, the \
         response is cut off, or the idle connection is closed.",
    )
    .sets(&[Target::Proxy(field!(idle))])
    .example("idle = \"5m\""),
    Key::new(
        "balance",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Choice(Balance::WORDS),
            Kind::Text("\"header:\" and the name of a header field: the same server for the same value of the field"),
        ]),
        "Policy that selects one of several servers for a request. The policies `ip_hash`, `uri` and `header:` hash a \
         value of the request: adding or removing a server moves only the values that this server gains or loses. \
         Requests without the value are balanced by `random_two`.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, kind| match &proxy.balance {
            Balance::Header(name) => Rendered::text(&format!("{}{name}", Balance::HEADER)),
            word => word.render(kind),
        }
    ))])
    .example("balance = \"least_conn\"")
    .foreign_names(&["lb_policy", "lbmethod", "policy", "hash", "load_balance"]),
    Key::new(
        "sticky",
        &[Section::Proxy],
        Kind::Either(&[Kind::Boolean, Kind::Text("name of a cookie")]),
        "Keeps a client with its first server by a cookie; `true` names it `rocknet_server`. If that server is \
         removed or fails, another one takes its place.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::or_off(proxy.sticky.as_deref().map(Rendered::text))
    ))])
    .example("sticky = true")
    .foreign_names(&["stickysession", "cookie"]),
    Key::new(
        "health",
        &[Section::Proxy],
        Kind::Either(&[Kind::Text("path"), Kind::Table(Section::Health)]),
        "Checks each server in the background by requests for `path`. An unhealthy server receives no requests; if \
         all are unhealthy, the response is 503.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| proxy
            .health
            .as_ref()
            .map_or(Rendered::Unset, |health| Rendered::text(&health.path)),
        nested: |proxy, rows| {
            if let Some(health) = &proxy.health {
                rows.table(Section::Health, "health", health);
            }
        }
    ))])
    .example("health = \"/healthz\"")
    .foreign_names(&["health_uri", "health_check", "option httpchk"]),
    Key::new(
        "fails",
        &[Section::Proxy],
        Kind::Integer { min: 0, max: 1000 },
        "Number of failures within `fail_time` after which one of several servers is out of rotation for `fail_time`. \
         A failure is a failed connection, a missing response or one that is not HTTP. After that time, one request \
         tries the server again. If it fails, the time doubles, up to eight times `fail_time`. `0`: never.",
    )
    .sets(&[Target::Proxy(field!(fails))])
    .example("fails = 1")
    .foreign_names(&["max_fails"]),
    Key::new(
        "fail_time",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Time in which `fails` are counted, and for which a server is out of rotation.",
    )
    .sets(&[Target::Proxy(field!(fail_time))])
    .example("fail_time = \"30s\"")
    .foreign_names(&["fail_timeout", "fail_duration"]),
    Key::new(
        "connections",
        &[Section::Proxy],
        Kind::Integer { min: 1, max: 1_000_000 },
        "Maximum number of concurrent requests of one server, from all workers. When every server is at its limit, \
         requests wait for at most `queue`. Waiting requests of high `priority` go first, whichever route they belong \
         to. Requests of low priority leave a quarter of the slots to others. Without the key, a server has at most \
         1,024 requests, and tunnels (WebSocket) are not counted. With the key, tunnels are counted.",
    )
    .sets(&[Target::Proxy(field!(connections))])
    .example("connections = 100")
    .foreign_names(&["max_conns", "maxconn", "max_requests"]),
    Key::new(
        "queue",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 0,
            max_ms: 3_600_000,
        },
        "Timeout of a request that waits until a server is below its limit. After it, the client gets 503.",
    )
    .sets(&[Target::Proxy(field!(queue))])
    .example("queue = \"1s\""),
    Key::new(
        "slow_start",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 0,
            max_ms: 3_600_000,
        },
        "Time in which a server that has recovered reaches its full share of requests, from a tenth of it.",
    )
    .sets(&[Target::Proxy(field!(slow_start))])
    .example("slow_start = \"30s\""),
];
