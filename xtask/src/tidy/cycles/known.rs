//! The import cycles that are left. The lists only shrink: a new member fails, and so does one that is in no cycle any more.

/// Members of one cycle.
pub struct Known {
    /// The folder of the crate.
    pub folder: &'static str,
    /// Names of modules, or paths of files below `src`.
    pub members: &'static [&'static str],
}

/// Cycles of modules at the top of a crate.
pub const KNOWN_MODULES: &[Known] = &[Known {
    folder: "crates/rocknet",
    members: &[
        "cache",
        "endpoint",
        "filter",
        "handler",
        "handlers",
        "php",
        "pipeline",
        "prepared",
        "protocol",
        "registries",
        "report",
        "site",
        "snapshot",
        "transport",
        "worker",
    ],
}];

/// Cycles of files.
pub const KNOWN_FILES: &[Known] = &[
    Known {
        folder: "crates/rocknet",
        members: &[
            "cache/offers.rs",
            "cache/order.rs",
            "cache/orders.rs",
            "cache/owner.rs",
            "cache/report.rs",
            "handler/application/cure.rs",
            "handler/application/group.rs",
            "handler/application/mod.rs",
            "handler/application/request.rs",
            "handler/cgi/mod.rs",
            "handler/cgi/places.rs",
            "handler/cgi/process.rs",
            "handler/cgi/script.rs",
            "handler/controller/body.rs",
            "handler/controller/isolated/body.rs",
            "handler/controller/isolated/conversation.rs",
            "handler/controller/isolated/mod.rs",
            "handler/controller/isolated/process.rs",
            "handler/controller/isolated/supervisor.rs",
            "handler/controller/isolated/supervisors.rs",
            "handler/controller/mod.rs",
            "handler/gateway/answer.rs",
            "handler/gateway/backend.rs",
            "handler/gateway/conversation.rs",
            "handler/gateway/socket.rs",
            "handler/proxy/ahead.rs",
            "handler/proxy/answer.rs",
            "handler/proxy/connect.rs",
            "handler/proxy/conversation.rs",
            "handler/proxy/group.rs",
            "handler/proxy/http2/call.rs",
            "handler/proxy/http2/head.rs",
            "handler/proxy/http2/mod.rs",
            "handler/proxy/http2/sessions.rs",
            "handler/proxy/http2/upload.rs",
            "handler/proxy/incoming.rs",
            "handler/proxy/mirror.rs",
            "handler/proxy/mod.rs",
            "handler/proxy/pool.rs",
            "handler/proxy/request.rs",
            "handler/proxy/switch.rs",
            "handler/proxy/upstreams.rs",
        ],
    },
    Known {
        folder: "crates/rocknet",
        members: &[
            "protocol/h2/answer.rs",
            "protocol/h2/answering.rs",
            "protocol/h2/connection.rs",
            "protocol/h2/feeding.rs",
            "protocol/h2/pushing.rs",
            "protocol/h2/reply.rs",
            "protocol/h2/send_ahead.rs",
            "protocol/h2/tunnelling.rs",
            "protocol/h2/waiting.rs",
        ],
    },
    Known {
        folder: "crates/rocknet",
        members: &[
            "protocol/h1/answering.rs",
            "protocol/h1/connection.rs",
            "protocol/h1/tunnelling.rs",
        ],
    },
];
