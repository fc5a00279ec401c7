//! Keys of the proxy that change, buffer or copy requests and responses on their way.

use super::target::Target;
use super::upstream::{MAX_BUFFERED, URL};
use super::{Key, Kind, Section};
use crate::binding::{Rendered, Scalar, bound, field};
use crate::choice::Choice;
use crate::model::{Forwarded, ProxyProtocol, RequestBuffering};
use crate::units;

const BUFFERED: Kind = Kind::Size {
    min: 1024,
    max: MAX_BUFFERED,
};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "headers",
        &[Section::Proxy],
        Kind::Map {
            name: "field name",
            value: &Kind::Text("field value"),
        },
        "Header fields that requests get on their way, in place of the client's; an empty value removes a field. `Host` is \
         what the server is asked by, instead of the client's. Answers get theirs by `headers` of the site or route.",
    )
    .sets(&[Target::Proxy(bound!(render |proxy, _| Rendered::names(&proxy.headers)))])
    .example("headers = { \"Host\" = \"app.internal\", \"X-Api-Key\" = \"4711\", \"Cookie\" = \"\" }")
    .elsewhere(&["proxy_set_header", "header_up", "RequestHeader"]),
    Key::new(
        "forwarded",
        &[Section::Proxy],
        Kind::Either(&[
            Kind::Choice(Forwarded::WORDS),
            Kind::Boolean,
        ]),
        "How servers are told whom a request is from; `false`: not at all. What clients say of themselves in these fields is \
         dropped in any case, unless they are `trusted_proxies`.",
    )
    .sets(&[Target::Proxy(bound!(
        render |proxy, _| Rendered::or_off(proxy.forwarded.written().map(Rendered::text))
    ))])
    .example("forwarded = \"both\""),
    Key::new(
        "proxy_protocol",
        &[Section::Proxy],
        Kind::Choice(ProxyProtocol::WORDS),
        "Begins connections with a header of the PROXY protocol, which names the client to servers that cannot read it in a \
         field. Each request then has a connection of its own.",
    )
    .sets(&[Target::Proxy(bound!(
        render |proxy, kind| proxy.to.first().and_then(|server| server.upstream.proxy_protocol).render(kind)
    ))])
    .example("proxy_protocol = \"v2\"")
    .elsewhere(&["send-proxy", "send-proxy-v2", "ProxyProtocol"]),
    Key::new(
        "send_files",
        &[Section::Proxy],
        Kind::Boolean,
        "Sends the file that an answer names by `X-Accel-Redirect` (a path of the site) or `X-Sendfile` (a path on disk) in \
         its place, from inside the roots of the site. Only for servers that may read all files there.",
    )
    .sets(&[Target::Proxy(field!(send_files))])
    .example("send_files = true")
    .elsewhere(&["XSendFile", "x-sendfile", "proxy_ignore_headers"]),
    Key::new(
        "intercept",
        &[Section::Proxy],
        Kind::Boolean,
        "Gives errors of servers (400 to 599) the page that `errors` of the site or route has for them.",
    )
    .sets(&[Target::Proxy(field!(intercept))])
    .example("intercept = true")
    .elsewhere(&["proxy_intercept_errors", "ProxyErrorOverride", "handle_response"]),
    Key::new(
        "buffering",
        &[Section::Proxy],
        Kind::Either(&[Kind::Boolean, BUFFERED]),
        "Bytes of an answer that are received ahead of a client that takes it slowly, in memory: a server whose answer is no \
         longer than that is free as soon as it has said it. `true`: 64 KiB. What has come is sent at once, with or without.",
    )
    .sets(&[Target::Proxy(bound!(
        render |proxy, _| Rendered::or_off((proxy.buffering > 0).then(|| size(proxy.buffering)))
    ))])
    .example("buffering = \"256KiB\"")
    .elsewhere(&["proxy_buffering", "proxy_buffers", "proxy_buffer_size", "flush_interval"]),
    Key::new(
        "request_buffering",
        &[Section::Proxy],
        Kind::Either(&[Kind::Boolean, BUFFERED]),
        "Receives request bodies before a server is asked, so that no server waits for a slow client, and a request can be sent \
         to another server. `true`: the whole body, in memory or on disk (`limits.body_memory`, `server.spool`); gRPC is \
         streamed all the same. A size: so many bytes, in memory; a longer body is then sent on as it comes.",
    )
    .sets(&[Target::Proxy(bound!(render |proxy, kind| match proxy.request_buffering {
        RequestBuffering::None => false.render(kind),
        RequestBuffering::First(bytes) => size(bytes),
        RequestBuffering::Whole => true.render(kind),
    }))])
    .example("request_buffering = true")
    .elsewhere(&["proxy_request_buffering", "request_buffers"]),
    Key::new(
        "mirror",
        &[Section::Proxy],
        Kind::Either(&[URL, Kind::Table(Section::Mirror)]),
        "Sends copies of requests to another server as well, whose answers are thrown away. Nobody waits for them: where it is \
         slow, copies are left out.",
    )
    .sets(&[Target::Proxy(bound!(
        render |proxy, _| proxy.mirror.as_ref().map_or(Rendered::Unset, |mirror| Rendered::text(&mirror.to.to_string())),
        nested |proxy, rows| {
            if let Some(mirror) = &proxy.mirror {
                rows.table(Section::Mirror, "mirror", mirror);
            }
        }
    ))])
    .example("mirror = { to = \"http://10.0.0.9:3000\", share = \"10%\" }")
    .elsewhere(&["mirror_request_body", "proxy.mirror"]),
];

fn size(bytes: usize) -> Rendered {
    Rendered::text(&units::format_size(bytes as u64))
}
