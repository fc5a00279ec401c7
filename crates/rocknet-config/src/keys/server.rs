//! Keys of the whole server: the top of the file and `[server]`.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Scalar, bound, field};
use crate::choice::Choice;
use crate::file::{Node, Value};
use crate::model::{IoBackend, Mode, TrustedField, Workers};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "include",
        &[Section::Top],
        Kind::Several(&Kind::Text("file name or pattern")),
        "Files read as if they stood here. Names are relative to the file they are written in; `*` and `?` stand for any \
         characters of a name, and a pattern may match nothing. Included files may include others, up to 8 deep; none \
         twice, and none itself. Tables of all files become one; a value or a site written in two files is an error \
         that names both places.",
    )
    .example("include = [\"sites/*.toml\"]"),
    Key::new("server", &[Section::Top], Kind::Table(Section::Server), "The process and its threads."),
    Key::new("limits", &[Section::Top], Kind::Table(Section::Limits), "What one client may use."),
    Key::new("log", &[Section::Top], Kind::Table(Section::Log), "Error log and access log."),
    Key::new("cache", &[Section::Top], Kind::Table(Section::Cache), "Files kept in memory."),
    Key::new(
        "site",
        &[Section::Top],
        Kind::Tables { name: "site", section: Section::Site },
        "The websites, each a table under its name.",
    ),
    Key::new(
        "mode",
        &[Section::Server],
        Kind::Choice(Mode::WORDS),
        "One switch for the defaults that differ between a developer's machine and a server.",
    )
    .sets(&[Target::Server(field!(mode))])
    .example("mode = \"dev\""),
    Key::new(
        "state",
        &[Section::Server],
        Kind::Text("folder"),
        "Where certificates, the keys of this machine's own CA and other things that RockNet makes are kept. Without the \
         key: /var/lib/rocknet for root, else `rocknet` below $XDG_STATE_HOME or ~/.local/state.",
    )
    .example("state = \"/var/lib/rocknet\"")
    .elsewhere(&["storage", "data_dir"]),
    Key::new(
        "workers",
        &[Section::Server],
        Kind::Either(&[
            Kind::Choice(Workers::WORDS),
            // Past this, threads only take memory from each other; the largest machines have fewer cores to give one port.
            Kind::Integer { min: 1, max: 512 },
        ]),
        "Kernel threads for each listening port. The threads of a port serve that port alone, so that one busy site \
         cannot stall another.",
    )
    .sets(&[Target::Server(bound!(
        read |_, written, server| {
            if let Some(workers) = workers(written.kind, &written.entry.node) {
                server.workers = workers;
            }
        },
        render |server, kind| match server.workers {
            Workers::Count(count) => count.render(kind),
            word => word.render(kind),
        }
    ))])
    .example("workers = 4")
    .elsewhere(&["worker_processes", "num-threads", "threads", "server.max-worker", "MaxRequestWorkers"]),
    Key::new(
        "backend",
        &[Section::Server],
        Kind::Choice(IoBackend::WORDS),
        "How sockets are driven. The environment variable ROCKNET_BACKEND overrides it.",
    )
    .sets(&[Target::Server(field!(backend))])
    .example("backend = \"epoll\""),
    Key::new(
        "user",
        &[Section::Server],
        Kind::Text("user name"),
        "The account that the server becomes once its ports are open, when it is started as root. It owns the private keys, so \
         give it to nothing else. Without the key: `rocknet`, where the system has that account; else RockNet stays root.",
    )
    .example("user = \"rocknet\"")
    .elsewhere(&["User", "server.username", "run-as"]),
    Key::new(
        "script_user",
        &[Section::Server],
        Kind::Text("user name"),
        "The account that scripts run as where their site names no `user`: PHP that RockNet runs itself, and CGI programs. It \
         acts when RockNet is started as root. Without the key: the first of `www-data`, `nginx`, `apache`, `http` and \
         `nobody` that the system has and that is not the server's own.",
    )
    .example("script_user = \"www-data\""),
    Key::new(
        "h2c",
        &[Section::Server],
        Kind::Boolean,
        "HTTP/2 without TLS, for clients that begin with it (prior knowledge): proxies and tools. Browsers do not.",
    )
    .sets(&[Target::Server(field!(h2c))])
    .example("h2c = true"),
    Key::new(
        "h2c_upgrade",
        &[Section::Server],
        Kind::Boolean,
        "HTTP/2 without TLS for clients that ask for it by `Upgrade: h2c` in their first request, when that comes whole and \
         without content. RFC 9113 has given this up, and a proxy in front that passes `Upgrade` on unread lets its clients \
         past its own rules by it: only for old clients that know no other way.",
    )
    .sets(&[Target::Server(field!(h2c_upgrade))])
    .example("h2c_upgrade = true"),
    Key::new(
        "trusted_proxies",
        &[Section::Server],
        Kind::List(&Kind::Text("address, or network as in \"10.0.0.0/8\", or \"unix\"")),
        "Proxies in front of this server that may tell whom a request is from, in the fields that `trusted_field` says. The \
         client that they name is the client: in access logs, for PHP, CGI and controllers, for `balance = \"ip_hash\"`, and in \
         what upstreams are told. Their list is read from its end, up to the first address that is not of a trusted proxy. What \
         anybody else says there is dropped. `\"unix\"` stands for whoever comes through a Unix socket.",
    )
    .empty()
    .example("trusted_proxies = [\"10.0.0.0/8\", \"192.0.2.7\"]")
    .elsewhere(&["set_real_ip_from", "RemoteIPTrustedProxy", "RemoteIPInternalProxy"]),
    Key::new(
        "trusted_field",
        &[Section::Server],
        Kind::Choice(TrustedField::WORDS),
        "Where `trusted_proxies` tell whom a request is from. The other field is not looked at: a proxy that does not write it \
         passes it on as its client made it up.",
    )
    .sets(&[Target::Server(field!(trusted_field))])
    .example("trusted_field = \"forwarded\"")
    .elsewhere(&["real_ip_header", "RemoteIPHeader", "client_ip_headers"]),
    Key::new(
        "proxy_protocol",
        &[Section::Server],
        Kind::List(&Kind::Text("address, or network as in \"10.0.0.0/8\", or \"unix\"")),
        "Balancers whose connections begin with a header of the PROXY protocol, version 1 or 2: the client that it names \
         is the client. Connections of theirs without one are closed; a header from anybody else is a bad request. \
         `\"unix\"` stands for whoever comes through a Unix socket.",
    )
    .empty()
    .example("proxy_protocol = [\"10.0.0.2\", \"10.0.1.0/24\"]")
    .elsewhere(&["RemoteIPProxyProtocol", "accept-proxy", "proxy_protocol_timeout"]),
    Key::new(
        "blocking_threads",
        &[Section::Server],
        // As many as the pool starts; disks answer no faster to more.
        Kind::Integer { min: 0, max: 512 },
        "Threads for work that waits: disks, compression of large answers, programs. They serve high before \
         normal priority; work of low priority has half as many threads more, which give way to all others. There is \
         always one, for files.",
    )
    .sets(&[Target::Server(field!(blocking_threads))])
    .example("blocking_threads = 8")
    .elsewhere(&["thread_pool"]),
    Key::new(
        "events",
        &[Section::Server],
        Kind::Table(Section::Events),
        "The event loop of each worker. The defaults are right unless a measurement says otherwise.",
    )
    .example("events = { batch = 1024, wait = \"1s\", connections = 1024 }")
    .elsewhere(&["worker_connections"]),
    Key::new(
        "batch",
        &[Section::Events],
        Kind::Integer { min: 1, max: 65_536 },
        "Most events taken from the kernel at once.",
    )
    .sets(&[Target::Events(field!(batch))]),
    Key::new(
        "wait",
        &[Section::Events],
        // Deadlines and the Date field are looked at once per wait: a longer one would make both late.
        Kind::Duration { min_ms: 10, max_ms: 1_000 },
        "Longest time between two looks at deadlines and the clock.",
    )
    .sets(&[Target::Events(field!(wait))]),
    Key::new(
        "connections",
        &[Section::Events],
        Kind::Integer { min: 0, max: 1_048_576 },
        "Connection slots reserved at start, for each worker. More connections than that are served too; their slots \
         are made when they come.",
    )
    .sets(&[Target::Events(field!(connections))]),
    Key::new(
        "spool",
        &[Section::Server],
        Kind::Table(Section::Spool),
        "Where request bodies are kept until they are complete: those for PHP, CGI and applications, and for proxies with \
         `request_buffering`.",
    )
    .example("spool = { folder = \"/var/spool/rocknet\", memory = \"64MiB\", disk = \"50GiB\" }"),
    Key::new(
        "folder",
        &[Section::Spool],
        Kind::Text("folder"),
        "Folder for bodies above `limits.body_memory`. They are files without a name, which the system removes when they are \
         closed. It must exist, and the server's user must be able to write to it. Without the key: $TMPDIR, else /var/tmp.",
    )
    .example("folder = \"/var/spool/rocknet\"")
    .elsewhere(&["client_body_temp_path", "server.upload-dirs", "TempDir"]),
    Key::new(
        "memory",
        &[Section::Spool],
        Kind::Size { min: 0, max: 1 << 44 },
        "Bodies of all requests in memory together. Beyond it, bodies go to files from their first byte.",
    )
    .sets(&[Target::Spool(field!(memory))]),
    Key::new(
        "disk",
        &[Section::Spool],
        Kind::Size { min: 0, max: 1 << 50 },
        "Bodies of all requests on disk together. More: 507. It cannot be less than the largest `body_size`, which it is without \
         the key if that is more than 10 GiB.",
    )
    .sets(&[Target::Spool(field!(disk))]),
];

fn workers(kind: &Kind, node: &Node) -> Option<Workers> {
    match node.value {
        Value::Integer(_) => u16::read(kind, node).map(Workers::Count),
        _ => Workers::read(kind, node),
    }
}
