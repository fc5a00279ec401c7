//! Keys of `[limits]`.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section, Word};
use crate::binding::field;
use crate::model::MAX_SHUTDOWN;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "header_timeout",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 100,
            max_ms: HOUR_MS,
        },
        "Timeout for the head of a request, from its first byte; for the first request of a connection, from the start \
         of the connection. After it, the client gets 408, or the connection is closed if nothing was received. Over \
         HTTP/2, the connection is closed with GOAWAY; over HTTP/3, the stream of the request is reset.",
    )
    .sets(&[Target::Limits(field!(header_timeout))])
    .example("header_timeout = \"5s\"")
    .foreign_names(&[
        "client_header_timeout",
        "RequestReadTimeout",
        "read_header",
        "http1-request-timeout",
    ]),
    Key::new(
        "header_size",
        &[Section::Limits],
        // Below 1 KiB, requests of browsers would be refused. Above 1 MiB, a thousand clients could occupy a gigabyte.
        Kind::Size {
            min: 1024,
            max: 1024 * 1024,
        },
        "Maximum size of request line and header section together. A request that exceeds it gets 431.",
    )
    .sets(&[Target::Limits(field!(header_size))])
    .example("header_size = \"32KiB\"")
    .foreign_names(&[
        "large_client_header_buffers",
        "client_header_buffer_size",
        "LimitRequestFieldSize",
    ]),
    Key::new(
        "header_fields",
        &[Section::Limits],
        Kind::Integer { min: 8, max: 10_000 },
        "Maximum number of header fields in one request. A request with more gets 431.",
    )
    .sets(&[Target::Limits(field!(header_fields))])
    .example("header_fields = 64")
    .foreign_names(&["LimitRequestFields"]),
    Key::new(
        "target_size",
        &[Section::Limits],
        Kind::Size {
            min: 64,
            max: 1024 * 1024,
        },
        "Maximum size of the request target: path and query. A request with a larger one gets 414. The value cannot \
         be larger than `header_size`.",
    )
    .sets(&[Target::Limits(field!(target_size))])
    .example("target_size = \"4KiB\"")
    .foreign_names(&["LimitRequestLine"]),
    Key::new(
        "body_size",
        &[Section::Limits, Section::SiteLimits],
        Kind::Size { min: 0, max: 1 << 50 },
        "Maximum size of a request body, such as an upload or a form. A larger body gets 413. Sites and routes may \
         override it.",
    )
    .sets(&[Target::Limits(field!(body_size)), Target::Settings(field!(body_size))])
    .example("body_size = \"10MiB\"")
    .foreign_names(&[
        "client_max_body_size",
        "LimitRequestBody",
        "limit-request-body",
        "max_size",
        "request_body",
    ]),
    Key::new(
        "body_memory",
        &[Section::Limits, Section::SiteLimits],
        // `server.spool.memory` bounds all bodies together.
        Kind::Size {
            min: 0,
            max: 16 * 1024 * 1024,
        },
        "Maximum size of a request body that is held in memory while it is buffered for PHP, CGI, an application, or a \
         proxy with `request_buffering`. A larger body goes to a file in `server.spool.folder`. Sites and routes may \
         override it.",
    )
    .sets(&[
        Target::Limits(field!(body_memory)),
        Target::Settings(field!(body_memory)),
    ])
    .example("body_memory = \"256KiB\"")
    .foreign_names(&["client_body_buffer_size", "tune.bufsize"]),
    Key::new(
        "body_idle",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 100,
            max_ms: HOUR_MS,
        },
        "Timeout for the next bytes of a request body. After it, the client gets 408.",
    )
    .sets(&[Target::Limits(field!(body_idle))])
    .example("body_idle = \"10s\"")
    .foreign_names(&["client_body_timeout", "read_body"]),
    Key::new(
        "body_rate",
        &[Section::Limits],
        Kind::Rate { min: 0, max: 1 << 40 },
        "Minimum average rate of a request body, over periods of `body_idle`. A slower client gets 408. `0`: no \
         minimum; `body_idle` still applies.",
    )
    .sets(&[Target::Limits(field!(body_rate))])
    .example("body_rate = \"1KiB/s\""),
    Key::new(
        "send_stall",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 100,
            max_ms: HOUR_MS,
        },
        "Timeout for the client to accept a byte of the response, and period over which it must accept at least \
         `body_rate` on average. Otherwise the connection is closed.",
    )
    .sets(&[Target::Limits(field!(send_stall))])
    .example("send_stall = \"30s\"")
    .foreign_names(&["send_timeout", "write"]),
    Key::new(
        "answer_timeout",
        &[Section::Limits, Section::SiteLimits],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Timeout for a handler to produce a response, and each next part of it. It covers a disk that hangs and a \
         handler that does not return. After it, the client gets 503, or 504 if PHP, a CGI program or an application \
         did not respond. A response that has begun is cut off. It does not apply to proxies, which have \
         `first_byte` and `idle` instead. Sites and routes may override it.",
    )
    .sets(&[
        Target::Limits(field!(answer_timeout)),
        Target::Settings(field!(answer_timeout)),
    ])
    .example("answer_timeout = \"30s\"")
    .foreign_names(&["Timeout"]),
    Key::new(
        "keep_alive",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 0,
            max_ms: DAY_MS,
        },
        "Timeout for the next request on a connection. `\"0s\"` closes the connection after each response.",
    )
    .sets(&[Target::Limits(field!(keep_alive))])
    .example("keep_alive = \"15s\"")
    .foreign_names(&[
        "keepalive_timeout",
        "KeepAliveTimeout",
        "idle",
        "server.max-keep-alive-idle",
    ]),
    Key::new(
        "connection_age",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 1_000,
            max_ms: 365 * DAY_MS,
        },
        "Maximum age of a connection: it is closed after the next response.",
    )
    .sets(&[Target::Limits(field!(connection_age))])
    .example("connection_age = \"10m\"")
    .foreign_names(&["keepalive_time"]),
    Key::new(
        "connections",
        &[Section::Limits],
        Kind::Either(&[
            Kind::Choice(&[Word::new("auto", "as many as file descriptors allow")]),
            Kind::Integer {
                min: 1,
                max: 10_000_000,
            },
        ]),
        "Maximum number of open connections in the whole server. At the limit, new connections wait to be accepted.",
    )
    .sets(&[Target::Limits(field!(connections))])
    .example("connections = 20000")
    .foreign_names(&["max-connections", "server.max-connections", "MaxClients"]),
    Key::new(
        "shutdown",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 0,
            max_ms: MAX_SHUTDOWN.as_secs() * 1_000,
        },
        "Time that exchanges in flight get to finish when the server stops.",
    )
    .sets(&[Target::Limits(field!(shutdown))])
    .example("shutdown = \"30s\"")
    .foreign_names(&["worker_shutdown_timeout", "GracefulShutdownTimeout", "grace_period"]),
    Key::new(
        "upgrade_drain",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 0,
            max_ms: DAY_MS,
        },
        "Time that the connections of the old process get to finish after `rocknet upgrade`, and those of an address \
         that a reload has removed. Downloads and WebSockets continue meanwhile; connections that are still open then \
         are cut.",
    )
    .sets(&[Target::Limits(field!(upgrade_drain))])
    .example("upgrade_drain = \"10m\"")
    .foreign_names(&["hard-stop-after"]),
];
