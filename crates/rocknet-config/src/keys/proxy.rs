//! Keys of the proxy: which servers requests are passed on to, and how long these may take.

use std::time::Duration;

use super::target::Target;
use super::upstream::{MAX_BUFFERED, URL, servers};
use super::{Key, Kind, Scope};
use crate::binding::{Field, Group, Shown, bound, field};
use crate::choice::Choice;
use crate::model::{Balance, Forwarded, Host, ProxyProtocol, RequestBuffering, Resolve};
use crate::units;
use crate::value::settings;

const DAY_MS: u64 = 86_400_000;

const BUFFERED: Kind = Kind::Size {
    min: 1024,
    max: MAX_BUFFERED,
};

const FILE: Kind = Kind::Text("PEM file");

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "proxy",
        &[Scope::Site, Scope::Route],
        Kind::Either(&[Kind::Boolean, URL, Kind::List(&URL), Kind::Table(Scope::Proxy)]),
        "Passes requests on to another server, or to one of several: `http://host:port`, `https://` under TLS, `h2c://` in \
         HTTP/2 (gRPC), or `unix:` and the path of a socket. A table says more, with the servers in `to`. The path, the query and `Host` go there as they came; \
         `X-Forwarded-For`, `-Proto` and `-Host` tell of the client. Where a site has `proxy` and `root`, the proxy \
         answers; a route with a `root` of its own has files again, and so has one with `proxy = false`.",
    )
    .group(Group::Handler)
    .sets(&[Target::Settings(bound!(
        read settings::proxy,
        show |settings, _| Shown::or_off(settings.proxy.as_ref().map(|proxy| servers(&proxy.to))),
        inside |settings, rows| {
            if let Some(proxy) = &settings.proxy {
                rows.of(Scope::Proxy, "proxy", proxy);
            }
        }
    ))])
    .example("proxy = \"http://127.0.0.1:3000\"")
    .elsewhere(&["proxy_pass", "ProxyPass", "reverse_proxy", "proxy.reverse.url", "proxy.server"]),
    Key::new(
        "to",
        &[Scope::Proxy],
        Kind::Several(&Kind::Either(&[URL, Kind::Table(Scope::Upstream)])),
        "The servers, each as in the short form or as a table with a weight. A name is looked up again while the server runs; one that is not known \
         yet does not keep it from starting.",
    )
    .example("to = [\"http://10.0.0.2:3000\", { url = \"http://10.0.0.3:3000\", weight = 3 }]")
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
    .sets(&[Target::Proxy(field!(connect))])
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
    .sets(&[Target::Proxy(field!(first_byte))])
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
    .sets(&[Target::Proxy(field!(idle))])
    .example("idle = \"5m\""),
    Key::new(
        "balance",
        &[Scope::Proxy],
        Kind::Either(&[
            Kind::Choice(Balance::WORDS),
            Kind::Text("\"header:\" and the name of a field: the same for the same value"),
        ]),
        "Which of several servers a request goes to. Where the same key leads to the same server, one that comes or goes \
         changes nothing for the keys of the others; requests without the key go by `random_two`.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, kind| match &proxy.balance {
        Balance::Header(name) => Shown::text(&format!("{}{name}", Balance::HEADER)),
        word => word.show(kind),
    }))])
    .example("balance = \"least_conn\"")
    .elsewhere(&["lb_policy", "lbmethod", "policy", "hash", "load_balance"]),
    Key::new(
        "sticky",
        &[Scope::Proxy],
        Kind::Either(&[Kind::Boolean, Kind::Text("name of a cookie")]),
        "Keeps a client with the server it had first, by a cookie: `true` calls it `rocknet_server`. Should that server be \
         gone, another one takes its place.",
    )
    .sets(&[Target::Proxy(bound!(
        show |proxy, _| Shown::or_off(proxy.sticky.as_deref().map(Shown::text))
    ))])
    .example("sticky = true")
    .elsewhere(&["stickysession", "cookie"]),
    Key::new(
        "health",
        &[Scope::Proxy],
        Kind::Either(&[Kind::Text("path"), Kind::Table(Scope::Health)]),
        "Checks each server in the background: what `path` answers there. One that is sick is asked nothing; where all are, \
         the answer is 503.",
    )
    .sets(&[Target::Proxy(bound!(
        show |proxy, _| proxy.health.as_ref().map_or(Shown::Nothing, |health| Shown::text(&health.path)),
        inside |proxy, rows| {
            if let Some(health) = &proxy.health {
                rows.of(Scope::Health, "health", health);
            }
        }
    ))])
    .example("health = \"/healthz\"")
    .elsewhere(&["health_uri", "health_check", "option httpchk"]),
    Key::new(
        "fails",
        &[Scope::Proxy],
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
        &[Scope::Proxy],
        Kind::Duration { min_ms: 100, max_ms: DAY_MS },
        "In which `fails` are counted, and for which a server is left alone.",
    )
    .sets(&[Target::Proxy(field!(fail_time))])
    .example("fail_time = \"30s\"")
    .elsewhere(&["fail_timeout", "fail_duration"]),
    Key::new(
        "connections",
        &[Scope::Proxy],
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
        &[Scope::Proxy],
        Kind::Duration { min_ms: 0, max_ms: 3_600_000 },
        "Longest time for which a request waits for a server with room. Then 503.",
    )
    .sets(&[Target::Proxy(field!(queue))])
    .example("queue = \"1s\""),
    Key::new(
        "slow_start",
        &[Scope::Proxy],
        Kind::Duration { min_ms: 0, max_ms: 3_600_000 },
        "Time in which a server that has come back gets its full share again, from a tenth of it.",
    )
    .sets(&[Target::Proxy(field!(slow_start))])
    .example("slow_start = \"30s\""),
    Key::new(
        "headers",
        &[Scope::Proxy],
        Kind::Map {
            name: "field name",
            value: &Kind::Text("field value"),
        },
        "Header fields that requests get on their way, in place of the client's; an empty value removes a field. `Host` is \
         what the server is asked by, instead of the client's. Answers get theirs by `headers` of the site or route.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, _| Shown::names(&proxy.headers)))])
    .example("headers = { \"Host\" = \"app.internal\", \"X-Api-Key\" = \"4711\", \"Cookie\" = \"\" }")
    .elsewhere(&["proxy_set_header", "header_up", "RequestHeader"]),
    Key::new(
        "forwarded",
        &[Scope::Proxy],
        Kind::Either(&[
            Kind::Choice(Forwarded::WORDS),
            Kind::Boolean,
        ]),
        "How servers are told whom a request is from; `false`: not at all. What clients say of themselves in these fields is \
         dropped in any case, unless they are `trusted_proxies`.",
    )
    .sets(&[Target::Proxy(bound!(
        show |proxy, _| Shown::or_off(proxy.forwarded.written().map(Shown::text))
    ))])
    .example("forwarded = \"both\""),
    Key::new(
        "proxy_protocol",
        &[Scope::Proxy],
        Kind::Choice(ProxyProtocol::WORDS),
        "Begins connections with a header of the PROXY protocol, which names the client to servers that cannot read it in a \
         field. Each request then has a connection of its own.",
    )
    .sets(&[Target::Proxy(bound!(
        show |proxy, kind| proxy.to.first().and_then(|server| server.upstream.announce).show(kind)
    ))])
    .example("proxy_protocol = \"v2\"")
    .elsewhere(&["send-proxy", "send-proxy-v2", "ProxyProtocol"]),
    Key::new(
        "send_files",
        &[Scope::Proxy],
        Kind::Boolean,
        "Sends the file that an answer names by `X-Accel-Redirect` (a path of the site) or `X-Sendfile` (a path on disk) in \
         its place, from inside the roots of the site. Only for servers that may read all files there.",
    )
    .sets(&[Target::Proxy(field!(send_files))])
    .example("send_files = true")
    .elsewhere(&["XSendFile", "x-sendfile", "proxy_ignore_headers"]),
    Key::new(
        "intercept",
        &[Scope::Proxy],
        Kind::Boolean,
        "Gives errors of servers (400 to 599) the page that `errors` of the site or route has for them.",
    )
    .sets(&[Target::Proxy(field!(intercept))])
    .example("intercept = true")
    .elsewhere(&["proxy_intercept_errors", "ProxyErrorOverride", "handle_response"]),
    Key::new(
        "buffering",
        &[Scope::Proxy],
        Kind::Either(&[Kind::Boolean, BUFFERED]),
        "Bytes of an answer that are received ahead of a client that takes it slowly, in memory: a server whose answer is no \
         longer than that is free as soon as it has said it. `true`: 64 KiB. What has come is sent at once, with or without.",
    )
    .sets(&[Target::Proxy(bound!(
        show |proxy, _| Shown::or_off((proxy.buffering > 0).then(|| size(proxy.buffering)))
    ))])
    .example("buffering = \"256KiB\"")
    .elsewhere(&["proxy_buffering", "proxy_buffers", "proxy_buffer_size", "flush_interval"]),
    Key::new(
        "request_buffering",
        &[Scope::Proxy],
        Kind::Either(&[Kind::Boolean, BUFFERED]),
        "Receives request bodies before a server is asked, so that no server waits for a slow client, and a request can be sent \
         to another server. `true`: the whole body, in memory or on disk (`limits.body_memory`, `server.spool`); gRPC is \
         streamed all the same. A size: so many bytes, in memory; a longer body is then sent on as it comes.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, kind| match proxy.request_buffering {
        RequestBuffering::None => false.show(kind),
        RequestBuffering::First(bytes) => size(bytes),
        RequestBuffering::Whole => true.show(kind),
    }))])
    .example("request_buffering = true")
    .elsewhere(&["proxy_request_buffering", "request_buffers"]),
    Key::new(
        "mirror",
        &[Scope::Proxy],
        Kind::Either(&[URL, Kind::Table(Scope::Mirror)]),
        "Sends copies of requests to another server as well, whose answers are thrown away. Nobody waits for them: where it is \
         slow, copies are left out.",
    )
    .sets(&[Target::Proxy(bound!(
        show |proxy, _| proxy.mirror.as_ref().map_or(Shown::Nothing, |mirror| Shown::text(&mirror.to.to_string())),
        inside |proxy, rows| {
            if let Some(mirror) = &proxy.mirror {
                rows.of(Scope::Mirror, "mirror", mirror);
            }
        }
    ))])
    .example("mirror = { to = \"http://10.0.0.9:3000\", share = \"10%\" }")
    .elsewhere(&["mirror_request_body", "proxy.mirror"]),
    Key::new(
        "resolve",
        &[Scope::Proxy],
        Kind::Either(&[
            Kind::Choice(Resolve::WORDS),
            Kind::Duration {
                min_ms: 100,
                max_ms: DAY_MS,
            },
        ]),
        "When the name of a server is looked up again. With `\"ttl\"` as soon as the answer of the DNS is over, 1 second to 5 \
         minutes; where that cannot be known, because the name is in `/etc/hosts` for one, every 10 seconds.",
    )
    .sets(&[Target::Proxy(bound!(
        read |_, written, proxy| {
            let (kind, node) = (written.kind, &written.entry.node);
            let every = || Duration::read(kind, node).map(Resolve::Every);
            if let Some(resolve) = Resolve::read(kind, node).or_else(every) {
                proxy.resolve = resolve;
            }
        },
        show |proxy, kind| match proxy.resolve {
            Resolve::Every(time) => time.show(kind),
            word => word.show(kind),
        }
    ))])
    .example("resolve = \"30s\"")
    .elsewhere(&["resolver", "dynamic", "resolvers"]),
    Key::new(
        "strip",
        &[Scope::Proxy],
        Kind::Text("path below the site"),
        "What paths begin with that is not passed on: with `\"/api\"` the server is asked for `/users` where the client asks \
         for `/api/users`.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, kind| proxy.strip.show(kind)))])
    .example("strip = \"/api\"")
    .elsewhere(&["strip_prefix", "uri strip_prefix", "handle_path"]),
    Key::new(
        "http2",
        &[Scope::Proxy],
        Kind::Boolean,
        "Asks servers under `https://` and at sockets in HTTP/2, as gRPC needs it. Behind `h2c://` it is spoken anyway. A \
         server that does not speak it is no server: nothing is asked in HTTP/1.1 instead.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, kind| {
        let without_word = |host: &Host, is_secure| is_secure || matches!(host, Host::Unix(_));
        let mut servers = proxy.to.iter().map(|server| &server.upstream);
        servers.any(|it| it.http2 && without_word(&it.host, it.is_secure)).show(kind)
    }))])
    .example("to = \"https://grpc.internal\"\nhttp2 = true")
    .elsewhere(&["proxy_http_version", "versions", "grpc_pass"]),
    Key::new(
        "ca",
        &[Scope::Proxy],
        Kind::Several(&FILE),
        "The authorities whose certificates servers under `https://` may show, in place of those that the system trusts. Read \
         at the start and at a reload.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, _| Shown::some_paths(&proxy.tls.ca)))])
    .example("ca = \"internal-ca.pem\"")
    .elsewhere(&["proxy_ssl_trusted_certificate", "tls_trust_pool", "ca-file", "SSLProxyCACertificateFile"]),
    Key::new(
        "server_name",
        &[Scope::Proxy],
        Kind::Text("name or address"),
        "The name that servers under `https://` are asked for in the handshake (SNI), and that their certificates have to be \
         for. Without it, the host of each URL.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, kind| proxy.tls.server_name.show(kind)))])
    .example("server_name = \"app.internal\"")
    .elsewhere(&["proxy_ssl_name", "tls_server_name", "sni"]),
    Key::new(
        "verify",
        &[Scope::Proxy],
        Kind::Boolean,
        "Whether certificates of servers under `https://` are checked. `false` is dangerous: whoever is in between can read \
         and change everything.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, kind| proxy.tls.verify.show(kind)))])
    .example("verify = false")
    .elsewhere(&["proxy_ssl_verify", "tls_insecure_skip_verify", "SSLProxyVerify"]),
    Key::new(
        "cert",
        &[Scope::Proxy],
        FILE,
        "The certificate, with its chain, that servers under `https://` are shown when they ask for one.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, _| Shown::some_paths(proxy.tls.client.iter().map(|it| &it.0))))])
    .example("cert = \"rocknet.pem\"")
    .elsewhere(&["proxy_ssl_certificate", "tls_client_auth", "SSLProxyMachineCertificateFile"]),
    Key::new(
        "key",
        &[Scope::Proxy],
        FILE,
        "The private key of `cert`. Without it the key is looked for in the file of the certificate.",
    )
    .sets(&[Target::Proxy(bound!(show |proxy, _| Shown::some_paths(proxy.tls.client.iter().map(|it| &it.1))))])
    .example("cert = \"rocknet.pem\"\nkey = \"rocknet.key\"")
    .elsewhere(&["proxy_ssl_certificate_key"]),
];

fn size(bytes: usize) -> Shown {
    Shown::text(&units::show_size(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_take_the_policies_that_need_no_request() {
        let words: Vec<_> = Balance::KEYLESS.iter().map(|word| word.text).collect();
        assert_eq!(words, ["random_two", "round_robin", "least_conn"]);
    }
}
