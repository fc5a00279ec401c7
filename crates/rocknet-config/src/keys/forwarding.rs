//! Keys of the proxy that change, buffer or copy requests and responses.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::upstream::{MAX_BUFFERED, URL};
use super::{Key, Kind, Section};
use crate::binding::{Rendered, Scalar, bound, field};
use crate::choice::Choice;
use crate::model::{Forwarded, ProxyProtocol, RequestBuffering};
use crate::units;

/// Size of a buffer for a request body or response body.
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
        "Header fields that are set in forwarded requests, in place of the client's. An empty value removes a field. \
         `Host` replaces the client's `Host`. Values can have placeholders, such as `{client.ip}`, which \
         docs/placeholders.md lists. For fields of responses use `headers` of the site or route.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::names(&proxy.headers)
    ))])
    .example("headers = { \"Host\" = \"app.internal\", \"X-Api-Key\" = \"4711\", \"Cookie\" = \"\" }")
    .foreign_names(&["proxy_set_header", "header_up", "RequestHeader"]),
    Key::new(
        "forwarded",
        &[Section::Proxy],
        Kind::Either(&[Kind::Choice(Forwarded::WORDS), Kind::Boolean]),
        "Header fields that name the client to upstreams. `false`: none. Values of these fields that clients send are \
         removed, unless the client is one of `trusted_proxies`.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::or_off(proxy.forwarded.written().map(Rendered::text))
    ))])
    .example("forwarded = \"both\""),
    Key::new(
        "proxy_protocol",
        &[Section::Proxy],
        Kind::Choice(ProxyProtocol::WORDS),
        "Sends a header of the PROXY protocol at the beginning of connections, for upstreams that cannot read the \
         client's address from a header field. Each request then uses a connection of its own.",
    )
    .sets(&[Target::Proxy(bound!(
        // All upstreams of a proxy have the same value.
        render: |proxy, kind| proxy
            .to
            .first()
            .and_then(|server| server.upstream.proxy_protocol)
            .render(kind)
    ))])
    .example("proxy_protocol = \"v2\"")
    .foreign_names(&["send-proxy", "send-proxy-v2", "ProxyProtocol"]),
    Key::new(
        "send_files",
        &[Section::Proxy],
        Kind::Boolean,
        "Sends the file that a response names by `X-Accel-Redirect` (a path of the site) or `X-Sendfile` (a path on \
         disk) in place of the response body. The file must be inside the roots of the site. Use it only with \
         upstreams that may read every file there.",
    )
    .sets(&[Target::Proxy(field!(send_files))])
    .example("send_files = true")
    .foreign_names(&["XSendFile", "x-sendfile", "proxy_ignore_headers"]),
    Key::new(
        "intercept",
        &[Section::Proxy],
        Kind::Boolean,
        "Replaces error responses of upstreams (400 to 599) with the pages of `errors`.",
    )
    .sets(&[Target::Proxy(field!(intercept))])
    .example("intercept = true")
    .foreign_names(&["proxy_intercept_errors", "ProxyErrorOverride", "handle_response"]),
    Key::new(
        "buffering",
        &[Section::Proxy],
        Kind::Either(&[Kind::Boolean, BUFFERED]),
        "Buffers responses in memory for slow clients, up to this size, so that the upstream is free earlier. `true`: \
         64 KiB. Received data is sent immediately, with or without buffering.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| Rendered::or_off((proxy.buffering > 0).then(|| size(proxy.buffering)))
    ))])
    .example("buffering = \"256KiB\"")
    .foreign_names(&[
        "proxy_buffering",
        "proxy_buffers",
        "proxy_buffer_size",
        "flush_interval",
    ]),
    Key::new(
        "request_buffering",
        &[Section::Proxy],
        Kind::Either(&[Kind::Boolean, BUFFERED]),
        "Receives request bodies before the request is forwarded, so that slow clients do not occupy upstreams and a \
         request can be retried with another upstream. `true`: the whole body, in memory or on disk \
         (`limits.body_memory`, `server.spool`), except for gRPC, which is streamed. A size: up to that many bytes in \
         memory; the rest of a longer body is streamed.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, kind| match proxy.request_buffering {
            RequestBuffering::None => false.render(kind),
            RequestBuffering::First(bytes) => size(bytes),
            RequestBuffering::Whole => true.render(kind),
        }
    ))])
    .example("request_buffering = true")
    .foreign_names(&["proxy_request_buffering", "request_buffers"]),
    Key::new(
        "mirror",
        &[Section::Proxy],
        Kind::Either(&[URL, Kind::Table(Section::Mirror)]),
        "Sends copies of requests to another server, whose responses are discarded. Clients do not wait for that \
         server: while it is slow, requests are not copied.",
    )
    .sets(&[Target::Proxy(bound!(
        render: |proxy, _| proxy
            .mirror
            .as_ref()
            .map_or(Rendered::Unset, |mirror| Rendered::text(&mirror.to.to_string())),
        nested: |proxy, rows| {
            if let Some(mirror) = &proxy.mirror {
                rows.table(Section::Mirror, "mirror", mirror);
            }
        }
    ))])
    .example("mirror = { to = \"http://10.0.0.9:3000\", share = \"10%\" }")
    .foreign_names(&["mirror_request_body", "proxy.mirror"]),
];

/// Renders a size.
fn size(bytes: usize) -> Rendered {
    Rendered::text(&units::format_size(bytes as u64))
}
