//! The process, its threads, its event loops and its cache of files, as meant.

use std::path::PathBuf;
use std::time::Duration;

use super::network::Network;
use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// The machine that the server runs on.
    #[derive(Copy)]
    pub enum Mode {
        Prod = "prod", "for the public";
        Dev = "dev", "for a developer's own machine: sites listen on 8080 when nothing else is said";
    }
    default Prod
}

choice! {
    /// Kernel threads per listening port.
    #[derive(Copy)]
    pub enum Workers {
        Auto = "auto", "as many as cores, fewer when there are many ports";
    }
    with {
        Count(u16),
    }
    default Auto
}

choice! {
    /// The way sockets are driven.
    #[derive(Copy)]
    pub enum IoBackend {
        Auto = "auto", "the best over all loads: epoll, for now; the log tells it, and whether io_uring would work";
        Epoll = "epoll", "readiness: on any system";
        IoUring = "io_uring", "completion: Linux 6.1 and newer, where the kernel and the container allow it";
    }
    default Auto
}

choice! {
    /// The field in which trusted proxies name the client.
    #[derive(Copy)]
    pub enum TrustedField {
        XForwardedFor = "x-forwarded-for", "`X-Forwarded-For`, with `X-Forwarded-Proto` and `-Host`";
        Forwarded = "forwarded", "`Forwarded` (RFC 7239)";
    }
    default XForwardedFor
}

impl Mode {
    /// Returns the ports of a site that names none, in the clear and under TLS: the web's own in `prod`, those that a plain
    /// user may open in `dev`.
    pub(crate) fn ports(self) -> (u16, u16) {
        match self {
            Mode::Prod => (80, 443),
            Mode::Dev => (8080, 8443),
        }
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Server {
        pub mode: Mode = Mode::default(),
        /// Folder of certificates and other files that the server makes; `None`: the usual place of this system.
        pub state: Option<PathBuf> = None,
        pub workers: Workers = Workers::default(),
        pub backend: IoBackend = IoBackend::default(),
        /// HTTP/2 by prior knowledge in the clear.
        pub h2c: bool = false,
        /// HTTP/2 in the clear for clients that request it by `Upgrade: h2c`.
        pub h2c_upgrade: bool = false,
        /// The user whose rights the server keeps after binding, when started as root.
        pub user: Option<String> = None,
        /// The account of scripts whose site names none, where the server can start programs as others.
        pub script_user: Option<String> = None,
        /// Proxies that are trusted to name the client of a request.
        pub trusted_proxies: Vec<Network> = Vec::new(),
        /// Header field in which trusted proxies name the client.
        pub trusted_field: TrustedField = TrustedField::default(),
        /// Peers whose connections begin with a header of the PROXY protocol.
        pub proxy_protocol: Vec<Network> = Vec::new(),
        pub blocking_threads: usize = 4,
        pub events: Events = Events::default(),
        /// Storage of request bodies that are received whole.
        pub spool: Spool = Spool::default(),
    }
}

with_defaults! {
    /// The event loop of each worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Events {
        /// Most events taken from the kernel at once.
        pub batch: usize = 1024,
        /// Longest time between two looks at deadlines and the clock.
        pub wait: Duration = Duration::from_secs(1),
        /// Connection slots reserved at start, per worker.
        pub connections: usize = 1024,
    }
}

with_defaults! {
    /// Room for request bodies that are received whole before a handler runs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Spool {
        /// Folder for bodies that are too large for memory; `None`: the system's own for large temporary files.
        pub folder: Option<PathBuf> = None,
        /// Bodies of all requests in memory together, in bytes.
        pub memory: u64 = 64 << 20,
        /// Bodies of all requests on disk together, in bytes: 507. At least the largest `body_size`.
        pub disk: u64 = 10 << 30,
    }
}

with_defaults! {
    /// The cache of files.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Cache {
        /// Largest file kept in memory, in bytes.
        pub max_file: u64 = 50 * 1024,
        /// All cached content together, in bytes; 0 keeps no content.
        pub memory: u64 = 256 * 1024 * 1024,
    }
}
