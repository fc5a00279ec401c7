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
    folder: "crates/rocknet-proxy",
    members: &[
        "ahead",
        "answer",
        "connect",
        "conversation",
        "group",
        "http2",
        "incoming",
        "mirror",
        "pool",
        "request",
        "switch",
        "upstreams",
    ],
}];

/// Cycles of files.
pub const KNOWN_FILES: &[Known] = &[
    Known {
        folder: "crates/rocknet-files",
        members: &[
            "cache/offers.rs",
            "cache/order.rs",
            "cache/orders.rs",
            "cache/owner.rs",
            "cache/report.rs",
        ],
    },
    Known {
        folder: "crates/rocknet-gateway",
        members: &[
            "application/cure.rs",
            "application/group.rs",
            "application/mod.rs",
            "application/request.rs",
        ],
    },
    Known {
        folder: "crates/rocknet-gateway",
        members: &["cgi/mod.rs", "cgi/places.rs", "cgi/process.rs", "cgi/script.rs"],
    },
    Known {
        folder: "crates/rocknet-proxy",
        members: &[
            "ahead.rs",
            "answer.rs",
            "connect.rs",
            "conversation.rs",
            "group.rs",
            "http2/call.rs",
            "http2/head.rs",
            "http2/mod.rs",
            "http2/sessions.rs",
            "http2/upload.rs",
            "incoming.rs",
            "mirror.rs",
            "pool.rs",
            "request.rs",
            "switch.rs",
            "upstreams.rs",
        ],
    },
    Known {
        folder: "crates/rocknet",
        members: &[
            "handler/controller/body.rs",
            "handler/controller/isolated/body.rs",
            "handler/controller/isolated/conversation.rs",
            "handler/controller/isolated/mod.rs",
            "handler/controller/isolated/process.rs",
            "handler/controller/isolated/supervisor.rs",
            "handler/controller/isolated/supervisors.rs",
            "handler/controller/mod.rs",
        ],
    },
];
