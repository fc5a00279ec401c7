//! Keys of the proxy: which servers requests are passed on to, and how long these may take.

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
        "Passes requests on to another server, or to one of several: `http://host:port`, `https://` under TLS, `h2c://` in \
         HTTP/2 (gRPC), or `unix:` and the path of a socket. A table says more, with the servers in `to`. The path, the query and `Host` go there as they came; \
         `X-Forwarded-For`, `-Proto` and `-Host` tell of the client. Where a site has `proxy` and `root`, the proxy \
         answers; a route with a `root` of its own has files again, and so has one with `proxy = false`.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read settings::proxy,
        render |settings, _| Rendered::or_off(settings.proxy.as_ref().map(|proxy| rendered_servers(&proxy.to))),
        nested |settings, rows| {
            if let Some(proxy) = &settings.proxy {
                rows.table(Section::Proxy, "proxy", proxy);
            }
        }
    ))])
    .example("proxy = \"http://127.0.0.1:3000\"")
    .elsewhere(&["proxy_pass", "ProxyPass", "reverse_proxy", "proxy.reverse.url", "proxy.server"]),
    Key::new(
        "to",
        &[Section::Proxy],
        Kind::Several(&Kind::Either(&[URL, Kind::Table(Section::Upstream)])),
        "The servers, each as in the short form or as a table with a weight. A name is looked up again while the server runs; one that is not known \
         yet does not keep it from starting.",
    )
    .example("to = [\"http://10.0.0.2:3000\", { url = \"http://10.0.0.3:3000\", weight = 3 }]")
    .elsewhere(&["upstream", "upstreams", "servers"]),
    Key::new(
        "connect",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: 60_000,
        },
        "Longest time until a server has taken a connection. Then 504.",
    )
    .sets(&[Target::Proxy(field!(connect))])
    .example("connect = \"1s\"")
    .elsewhere(&["proxy_connect_timeout", "dial_timeout", "connect_timeout"]),
    Key::new(
        "first_byte",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Longest time from the last of a request to the head of its answer. Then 504.",
    )
    .sets(&[Target::Proxy(field!(first_byte))])
    .example("first_byte = \"10s\"")
    .elsewhere(&["proxy_read_timeout", "response_header_timeout", "ProxyTimeout"]),
    Key::new(
        "idle",
        &[Section::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Longest silence of a server within an answer, and longest rest of a connection that is kept open for the next \
         request. An answer is cut then.",
    )
    .sets(&[Target::Proxy(field!(idle))])
    .example("idle = \"5m\""),
    Key::new(
        "balance",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Choice(Balance::WORDS),
            Kind::Text("\"header:\" and the name of a field: the same for the same value"),
        ]),
        "Which of several servers a request goes to. Where the same key leads to the same server, one that comes or goes \
         changes nothing for the keys of the others; requests without the key go by `random_two`.",
    )
    .sets(&[Target::Proxy(bound!(render |proxy, kind| match &proxy.balance {
        Balance::Header(name) => Rendered::text(&format!("{}{name}", Balance::HEADER)),
        word => word.render(kind),
    }))])
    .example("balance = \"least_conn\"")
    .elsewhere(&["lb_policy", "lbmethod", "policy", "hash", "load_balance"]),
    Key::new(
        "sticky",
        &[Section::Proxy],
        Kind::Either(&[Kind::Boolean, Kind::Text("name of a cookie")]),
        "Keeps a client with the server it had first, by a cookie: `true` calls it `rocknet_server`. Should that server be \
         gone, another one takes its place.",
    )
    .sets(&[Target::Proxy(bound!(
        render |proxy, _| Rendered::or_off(proxy.sticky.as_deref().map(Rendered::text))
    ))])
    .example("sticky = true")
    .elsewhere(&["stickysession", "cookie"]),
    Key::new(
        "health",
        &[Section::Proxy],
        Kind::Either(&[Kind::Text("path"), Kind::Table(Section::Health)]),
        "Checks each server in the background: what `path` answers there. One that is sick is asked nothing; where all are, \
         the answer is 503.",
    )
    .sets(&[Target::Proxy(bound!(
        render |proxy, _| proxy.health.as_ref().map_or(Rendered::Unset, |health| Rendered::text(&health.path)),
        nested |proxy, rows| {
            if let Some(health) = &proxy.health {
                rows.table(Section::Health, "health", health);
            }
        }
    ))])
    .example("health = \"/healthz\"")
    .elsewhere(&["health_uri", "health_check", "option httpchk"]),
    Key::new(
        "fails",
        &[Section::Proxy],
        Kind::Integer { min: 0, max: 1000 },
        "Failures (no connection, no answer, one that is no HTTP) within `fail_time` after which a server among several is \
         left alone for `fail_time`. Then one request tries it: answered, it is back; else it rests twice as long, and so on \
         up to eight times. `0`: never.",
    )
    .sets(&[Target::Proxy(field!(fails))])
    .example("fails = 1")
    .elsewhere(&["max_fails"]),
    Key::new(
        "fail_time",
        &[Section::Proxy],
        Kind::Duration { min_ms: 100, max_ms: DAY_MS },
        "In which `fails` are counted, and for which a server is left alone.",
    )
    .sets(&[Target::Proxy(field!(fail_time))])
    .example("fail_time = \"30s\"")
    .elsewhere(&["fail_timeout", "fail_duration"]),
    Key::new(
        "connections",
        &[Section::Proxy],
        Kind::Integer { min: 1, max: 1_000_000 },
        "Requests that one server has at once, from all workers. When all servers have that many, the next wait, those of \
         high `priority` in front, whichever route they came by; those of low leave others a quarter of the places. Where it \
         is not set, a server has 1,024 requests, and tunnels (WebSocket) do not count; where it is, they do.",
    )
    .sets(&[Target::Proxy(field!(connections))])
    .example("connections = 100")
    .elsewhere(&["max_conns", "maxconn", "max_requests"]),
    Key::new(
        "queue",
        &[Section::Proxy],
        Kind::Duration { min_ms: 0, max_ms: 3_600_000 },
        "Longest time for which a request waits for a server with room. Then 503.",
    )
    .sets(&[Target::Proxy(field!(queue))])
    .example("queue = \"1s\""),
    Key::new(
        "slow_start",
        &[Section::Proxy],
        Kind::Duration { min_ms: 0, max_ms: 3_600_000 },
        "Time in which a server that has come back gets its full share again, from a tenth of it.",
    )
    .sets(&[Target::Proxy(field!(slow_start))])
    .example("slow_start = \"30s\""),
];
