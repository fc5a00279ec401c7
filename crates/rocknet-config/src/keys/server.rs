//! Keys of the top of the file and of `[server]`.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Scalar, bound, field};
use crate::choice::Choice;
use crate::file::{Node, Value};
use crate::model::{IoBackend, Mode, Sandbox, TrustedField, Workers};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "include",
        &[Section::Top],
        Kind::Several(&Kind::Text("file name or pattern")),
        "Files that are read as if their content were here. Names are relative to the file that includes them. `*` \
         stands for any characters of a name, and `?` for one character. A pattern may match no file. Included files \
         may include others, up to 8 deep, but no file twice. Tables of all files are merged; a value or a site in \
         two files is an error that names both positions.",
    )
    .example("include = [\"sites/*.toml\"]"),
    Key::new(
        "server",
        &[Section::Top],
        Kind::Table(Section::Server),
        "The process and its threads.",
    ),
    Key::new(
        "limits",
        &[Section::Top],
        Kind::Table(Section::Limits),
        "Limits of connections and requests.",
    ),
    Key::new(
        "log",
        &[Section::Top],
        Kind::Table(Section::Log),
        "Error log and access log.",
    ),
    Key::new("cache", &[Section::Top], Kind::Table(Section::Cache), "File cache."),
    Key::new(
        "site",
        &[Section::Top],
        Kind::Tables {
            name: "site",
            section: Section::Site,
        },
        "The websites, each a table under its name.",
    ),
    Key::new(
        "mode",
        &[Section::Server],
        Kind::Choice(Mode::WORDS),
        "Selects the defaults for a public server or a developer's machine.",
    )
    .sets(&[Target::Server(field!(mode))])
    .example("mode = \"dev\""),
    Key::new(
        "state",
        &[Section::Server],
        Kind::Text("folder"),
        "Folder for certificates, the keys of this machine's own CA and other files that RockNet creates. \
         Default: /var/lib/rocknet for root, else `rocknet` in $XDG_STATE_HOME or ~/.local/state.",
    )
    .example("state = \"/var/lib/rocknet\"")
    .foreign_names(&["storage", "data_dir"]),
    Key::new(
        "qlog",
        &[Section::Server],
        Kind::Text("folder"),
        "Folder for traces of QUIC connections in the qlog format, one file for each connection, to debug HTTP/3. The \
         folder must exist and be writable by the server's user. A trace lists the packets that were sent, received \
         and lost, without their content. At most 256 connections are traced at once, each up to 64 MiB, and 10,000 until \
         the next start. The files are not deleted.",
    )
    .example("qlog = \"/var/tmp/qlog\"")
    .foreign_names(&["quic_qlog", "qlog_dir", "qlog_path"]),
    Key::new(
        "workers",
        &[Section::Server],
        Kind::Either(&[
            Kind::Choice(Workers::WORDS),
            // The word `auto` starts at most 128 threads for a port, so more than 512 are surely a mistake.
            Kind::Integer { min: 1, max: 512 },
        ]),
        "Number of worker threads per listening port. They serve only that port, so that a busy port does not delay \
         the others.",
    )
    .sets(&[Target::Server(bound!(
        read: |_, written, server| {
            if let Some(workers) = workers(written.kind, &written.entry.node) {
                server.workers = workers;
            }
        },
        render: |server, kind| match server.workers {
            Workers::Count(count) => count.render(kind),
            word => word.render(kind),
        }
    ))])
    .example("workers = 4")
    .foreign_names(&[
        "worker_processes",
        "num-threads",
        "threads",
        "server.max-worker",
        "MaxRequestWorkers",
    ]),
    Key::new(
        "backend",
        &[Section::Server],
        Kind::Choice(IoBackend::WORDS),
        "Kernel interface for sockets. The environment variable ROCKNET_BACKEND overrides it.",
    )
    .sets(&[Target::Server(field!(backend))])
    .example("backend = \"epoll\""),
    Key::new(
        "user",
        &[Section::Server],
        Kind::Text("user name"),
        "User that the server switches to after opening its ports, if it is started as root. It owns the private \
         keys, so use it for nothing else. Default: `rocknet` if the system has that user; else RockNet stays root.",
    )
    .example("user = \"rocknet\"")
    .foreign_names(&["User", "server.username", "run-as"]),
    Key::new(
        "script_user",
        &[Section::Server],
        Kind::Text("user name"),
        "User that runs scripts of sites without `user`: PHP that RockNet starts, and CGI programs. It has an effect \
         only if RockNet is started as root. Without the key: the first of `www-data`, `nginx`, `apache`, `http` and \
         `nobody` that exists and is not the server's own user.",
    )
    .example("script_user = \"www-data\""),
    Key::new(
        "sandbox",
        &[Section::Server],
        Kind::Choice(Sandbox::WORDS),
        "Restricts the programs that RockNet starts more than the rights of their users do (only on Linux). These are \
         PHP, CGI programs and isolated controllers. System calls that they do not need fail: mounting, namespaces, \
         reading or tracing other processes, io_uring, kernel modules, keys and more. With `strict`, files can be \
         changed only below the folders of state, logs, sockets, the configuration file and the spool, below roots of \
         sites with programs, /tmp, /var/tmp, and `sandbox_write`. A change takes effect after a restart.",
    )
    .sets(&[Target::Server(field!(sandbox))])
    .example("sandbox = \"strict\""),
    Key::new(
        "sandbox_write",
        &[Section::Server],
        Kind::List(&Kind::Text("folder")),
        "Further folders below which files may be changed with `sandbox = \"strict\"`, such as the data folder of an \
         application outside of its root. They must exist. A change takes effect after a restart.",
    )
    .empty_by_default()
    .example("sandbox_write = [\"/var/lib/shop\"]"),
    Key::new(
        "h2c",
        &[Section::Server],
        Kind::Boolean,
        "Accepts HTTP/2 without TLS from clients that begin with it (prior knowledge), such as proxies and tools. \
         Browsers do not use it.",
    )
    .sets(&[Target::Server(field!(h2c))])
    .example("h2c = true"),
    Key::new(
        "h2c_upgrade",
        &[Section::Server],
        Kind::Boolean,
        "Accepts HTTP/2 without TLS from clients that request it by `Upgrade: h2c` in their first request, if that \
         request has no body. RFC 9113 removed this upgrade. Clients can use it to bypass the rules of a proxy in \
         front that forwards `Upgrade` unchecked. Use it only for old clients.",
    )
    .sets(&[Target::Server(field!(h2c_upgrade))])
    .example("h2c_upgrade = true"),
    Key::new(
        "trusted_proxies",
        &[Section::Server],
        Kind::List(&Kind::Text("address, network such as \"10.0.0.0/8\", or \"unix\"")),
        "Proxies in front of this server that are trusted to name the client, in the header field of `trusted_field`. \
         That client is used everywhere: in access logs, for PHP, CGI and controllers, for `allow`, `deny` and \
         `balance = \"ip_hash\"`, and in header fields to upstreams. The list in the field is read from its end, up \
         to the first address that is not a trusted proxy. From all other peers, the field is ignored. `\"unix\"` \
         stands for every client of a Unix socket.",
    )
    .empty_by_default()
    .example("trusted_proxies = [\"10.0.0.0/8\", \"192.0.2.7\"]")
    .foreign_names(&["set_real_ip_from", "RemoteIPTrustedProxy", "RemoteIPInternalProxy"]),
    Key::new(
        "trusted_field",
        &[Section::Server],
        Kind::Choice(TrustedField::WORDS),
        "Header field in which `trusted_proxies` name the client. The other field is ignored, because a proxy that \
         does not set it forwards it as the client sent it.",
    )
    .sets(&[Target::Server(field!(trusted_field))])
    .example("trusted_field = \"forwarded\"")
    .foreign_names(&["real_ip_header", "RemoteIPHeader", "client_ip_headers"]),
    Key::new(
        "proxy_protocol",
        &[Section::Server],
        Kind::List(&Kind::Text("address, network such as \"10.0.0.0/8\", or \"unix\"")),
        "Load balancers whose connections begin with a header of the PROXY protocol, version 1 or 2, which names the \
         client. Their connections without the header are closed; the header from any other peer is a bad request. \
         `\"unix\"` stands for every client of a Unix socket.",
    )
    .empty_by_default()
    .example("proxy_protocol = [\"10.0.0.2\", \"10.0.1.0/24\"]")
    .foreign_names(&["RemoteIPProxyProtocol", "accept-proxy", "proxy_protocol_timeout"]),
    Key::new(
        "blocking_threads",
        &[Section::Server],
        // Maximum number of threads of the pool (`rocknet_blocking::pool::MAX_THREADS`): far more than disks serve
        // concurrently.
        Kind::Integer { min: 0, max: 512 },
        "Number of threads for blocking work: disks, compression of large responses, programs. They do work of high \
         priority before normal priority. Work of low priority has half as many threads of its own, which yield to \
         all others. With `0`, one thread remains, for files.",
    )
    .sets(&[Target::Server(field!(blocking_threads))])
    .example("blocking_threads = 8")
    .foreign_names(&["thread_pool"]),
    Key::new(
        "events",
        &[Section::Server],
        Kind::Table(Section::Events),
        "Event loop of each worker. Change the defaults only if a measurement shows a benefit.",
    )
    .example("events = { batch = 1024, wait = \"1s\", connections = 1024 }")
    .foreign_names(&["worker_connections"]),
    Key::new(
        "batch",
        &[Section::Events],
        Kind::Integer { min: 1, max: 65_536 },
        "Maximum number of events per call to the kernel.",
    )
    .sets(&[Target::Events(field!(batch))]),
    Key::new(
        "wait",
        &[Section::Events],
        // Deadlines and the Date field are updated once per wait, so a longer wait would make both late.
        Kind::Duration {
            min_ms: 10,
            max_ms: 1_000,
        },
        "Maximum time between two checks of deadlines and the clock.",
    )
    .sets(&[Target::Events(field!(wait))]),
    Key::new(
        "connections",
        &[Section::Events],
        Kind::Integer { min: 0, max: 1_048_576 },
        "Number of connection slots that each worker reserves at start. Slots for further connections are allocated \
         as needed.",
    )
    .sets(&[Target::Events(field!(connections))]),
    Key::new(
        "spool",
        &[Section::Server],
        Kind::Table(Section::Spool),
        "Storage of request bodies that are buffered whole: for PHP, CGI and applications, and for proxies with \
         `request_buffering`.",
    )
    .example("spool = { folder = \"/var/spool/rocknet\", memory = \"64MiB\", disk = \"50GiB\" }"),
    Key::new(
        "folder",
        &[Section::Spool],
        Kind::Text("folder"),
        "Folder for bodies larger than `limits.body_memory`, as unnamed files, which the system removes when they are \
         closed. It must exist and be writable by the server's user. Without the key: $TMPDIR, else /var/tmp.",
    )
    .example("folder = \"/var/spool/rocknet\"")
    .foreign_names(&["client_body_temp_path", "server.upload-dirs", "TempDir"]),
    Key::new(
        "memory",
        &[Section::Spool],
        Kind::Size { min: 0, max: 1 << 44 },
        "Maximum size of all bodies in memory together. Above it, bodies go to disk from their first byte.",
    )
    .sets(&[Target::Spool(field!(memory))]),
    Key::new(
        "disk",
        &[Section::Spool],
        Kind::Size { min: 0, max: 1 << 50 },
        "Maximum size of all bodies on disk together. Beyond it, requests get 507. It must be at least the largest \
         `body_size`; the default is raised to that size.",
    )
    .sets(&[Target::Spool(field!(disk))]),
];

/// Reads `workers`: a number of threads, or a word.
fn workers(kind: &Kind, node: &Node) -> Option<Workers> {
    match node.value {
        Value::Integer(_) => u16::read(kind, node).map(Workers::Count),
        _ => Workers::read(kind, node),
    }
}
