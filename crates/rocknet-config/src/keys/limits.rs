//! Keys of `[limits]`: what one client may use before the server says no.

use super::target::Target;
use super::{Key, Kind, Section, Word};
use crate::binding::field;

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
        "Longest time from the first byte of a request (or from the connection) to the end of its header section. Then \
         408, or a close when nothing came.",
    )
    .sets(&[Target::Limits(field!(header_timeout))])
    .example("header_timeout = \"5s\"")
    .elsewhere(&[
        "client_header_timeout",
        "RequestReadTimeout",
        "read_header",
        "http1-request-timeout",
    ]),
    Key::new(
        "header_size",
        &[Section::Limits],
        // Below 1 KiB no browser gets through; above 1 MiB a thousand clients hold a gigabyte.
        Kind::Size {
            min: 1024,
            max: 1024 * 1024,
        },
        "Request line and header section together. More: 431.",
    )
    .sets(&[Target::Limits(field!(header_size))])
    .example("header_size = \"32KiB\"")
    .elsewhere(&[
        "large_client_header_buffers",
        "client_header_buffer_size",
        "LimitRequestFieldSize",
    ]),
    Key::new(
        "header_fields",
        &[Section::Limits],
        Kind::Integer { min: 8, max: 10_000 },
        "Header fields in one request. More: 431.",
    )
    .sets(&[Target::Limits(field!(header_fields))])
    .example("header_fields = 64")
    .elsewhere(&["LimitRequestFields"]),
    Key::new(
        "target_size",
        &[Section::Limits],
        Kind::Size {
            min: 64,
            max: 1024 * 1024,
        },
        "Request target: path and query. More: 414. It cannot be larger than `header_size`.",
    )
    .sets(&[Target::Limits(field!(target_size))])
    .example("target_size = \"4KiB\"")
    .elsewhere(&["LimitRequestLine"]),
    Key::new(
        "body_size",
        &[Section::Limits, Section::SiteLimits],
        Kind::Size { min: 0, max: 1 << 50 },
        "Content of one request: uploads, forms. More: 413. Sites and routes may have their own.",
    )
    .sets(&[Target::Limits(field!(body_size)), Target::Settings(field!(body_size))])
    .example("body_size = \"10MiB\"")
    .elsewhere(&[
        "client_max_body_size",
        "LimitRequestBody",
        "limit-request-body",
        "max_size",
        "request_body",
    ]),
    Key::new(
        "body_memory",
        &[Section::Limits, Section::SiteLimits],
        // A thousand uploads of 16 MiB are a bound of their own: `server.spool.memory`.
        Kind::Size {
            min: 0,
            max: 16 * 1024 * 1024,
        },
        "Body of one request that is held in memory while it is received for PHP, CGI, an application, or a proxy with \
         `request_buffering`. A longer one goes to a file in `server.spool.folder`. Sites and routes may have their own.",
    )
    .sets(&[Target::Limits(field!(body_memory)), Target::Settings(field!(body_memory))])
    .example("body_memory = \"256KiB\"")
    .elsewhere(&["client_body_buffer_size", "tune.bufsize"]),
    Key::new(
        "body_idle",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 100,
            max_ms: HOUR_MS,
        },
        "Longest silence while content of a request is awaited. Then 408.",
    )
    .sets(&[Target::Limits(field!(body_idle))])
    .example("body_idle = \"10s\"")
    .elsewhere(&["client_body_timeout", "read_body"]),
    Key::new(
        "body_rate",
        &[Section::Limits],
        Kind::Rate { min: 0, max: 1 << 40 },
        "Slowest average rate at which content of a request may come. Slower: 408. `0` asks for none; `body_idle` \
         still holds.",
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
        "Longest time in which a client takes no byte of its answer, or on average less than `body_rate`. Then the connection \
         is closed.",
    )
    .sets(&[Target::Limits(field!(send_stall))])
    .example("send_stall = \"30s\"")
    .elsewhere(&["send_timeout", "write"]),
    Key::new(
        "answer_timeout",
        &[Section::Limits, Section::SiteLimits],
        Kind::Duration {
            min_ms: 100,
            max_ms: DAY_MS,
        },
        "Longest wait for an answer that is being made (a disk that hangs, a handler that does not end), and for each next \
         piece of one. Then 503, or the connection is cut where the answer had begun.",
    )
    .sets(&[Target::Limits(field!(answer_timeout)), Target::Settings(field!(answer_timeout))])
    .example("answer_timeout = \"30s\"")
    .elsewhere(&["Timeout"]),
    Key::new(
        "keep_alive",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 0,
            max_ms: DAY_MS,
        },
        "Longest time between two requests on a connection. `\"0s\"` closes after each answer.",
    )
    .sets(&[Target::Limits(field!(keep_alive))])
    .example("keep_alive = \"15s\"")
    .elsewhere(&[
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
        "Longest life of a connection: the first answer after it says close.",
    )
    .sets(&[Target::Limits(field!(connection_age))])
    .example("connection_age = \"10m\"")
    .elsewhere(&["keepalive_time"]),
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
        "Connections open at once in the whole server. When they run out, new ones wait to be accepted.",
    )
    .sets(&[Target::Limits(field!(connections))])
    .example("connections = 20000")
    .elsewhere(&["max-connections", "server.max-connections", "MaxClients"]),
    Key::new(
        "shutdown",
        &[Section::Limits],
        Kind::Duration {
            min_ms: 0,
            max_ms: HOUR_MS,
        },
        "Longest time that answers in flight get to finish when the server stops.",
    )
    .sets(&[Target::Limits(field!(shutdown))])
    .example("shutdown = \"30s\"")
    .elsewhere(&["worker_shutdown_timeout", "GracefulShutdownTimeout", "grace_period"]),
];
