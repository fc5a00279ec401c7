//! Keys of the proxy: which servers requests are passed on to, and how long these may take.

use super::{Key, Kind, Scope};

const DAY_MS: u64 = 86_400_000;

const URL: Kind = Kind::Text("\"http://host:port\" or \"unix:/path\"");

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "proxy",
        &[Scope::Site, Scope::Route],
        Kind::Either(&[Kind::Boolean, URL, Kind::List(&URL), Kind::Table(Scope::Proxy)]),
        "Passes requests on to another server, or to one of several: `http://host:port`, or `unix:` and the path of a \
         socket. A table says more, with the servers in `to`. The path, the query and `Host` go there as they came; \
         `X-Forwarded-For`, `-Proto` and `-Host` tell of the client. Where a site has `proxy` and `root`, the proxy \
         answers; a route with a `root` of its own has files again, and so has one with `proxy = false`.",
    )
    .default("false")
    .example("proxy = \"http://127.0.0.1:3000\"")
    .elsewhere(&["proxy_pass", "ProxyPass", "reverse_proxy", "proxy.reverse.url", "proxy.server"]),
    Key::new(
        "to",
        &[Scope::Proxy],
        Kind::Several(&URL),
        "The servers, each as in the short form. A name is looked up again while the server runs; one that is not known \
         yet does not keep it from starting.",
    )
    .example("to = [\"http://10.0.0.2:3000\", \"http://10.0.0.3:3000\"]")
    .elsewhere(&["upstream", "upstreams", "servers"]),
    Key::new(
        "connect",
        &[Scope::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: 60_000,
        },
        "Longest time until a server has taken a connection. Then 504.",
    )
    .default("\"3s\"")
    .example("connect = \"1s\"")
    .elsewhere(&["proxy_connect_timeout", "dial_timeout", "connect_timeout"]),
    Key::new(
        "first_byte",
        &[Scope::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Longest time from the last of a request to the head of its answer. Then 504.",
    )
    .default("\"60s\"")
    .example("first_byte = \"10s\"")
    .elsewhere(&["proxy_read_timeout", "response_header_timeout", "ProxyTimeout"]),
    Key::new(
        "idle",
        &[Scope::Proxy],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Longest silence of a server within an answer, and longest rest of a connection that is kept open for the next \
         request. An answer is cut then.",
    )
    .default("\"60s\"")
    .example("idle = \"5m\""),
];
