//! Settings of the process, its threads, its event loops and its file cache.

use std::path::PathBuf;
use std::time::Duration;

use super::http3::Http3;
use super::network::Network;
use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// Purpose of the machine that the server runs on.
    #[derive(Copy)]
    pub enum Mode {
        Prod = "prod", "a public server";
        Dev = "dev", "a developer's machine: sites without `listen` use ports 8080 and 8443, and each request is printed";
    }
    default Prod
}

choice! {
    /// Number of workers per listening port.
    #[derive(Copy)]
    pub enum Workers {
        Auto = "auto", "one per core, fewer if there are many ports";
    }
    with {
        /// This number, at least 1.
        Count(u16),
    }
    default Auto
}

choice! {
    /// I/O back end: the kernel interface that drives sockets.
    #[derive(Copy)]
    pub enum IoBackend {
        Auto = "auto", "epoll at present, the fastest over all loads; the log states whether io_uring is available too";
        Epoll = "epoll", "readiness notification, on any Linux";
        IoUring = "io_uring", "completion notification, on Linux 6.1 and newer where the kernel and the container allow it";
    }
    default Auto
}

choice! {
    /// Header field in which trusted proxies name the client.
    #[derive(Copy)]
    pub enum TrustedField {
        XForwardedFor = "x-forwarded-for", "`X-Forwarded-For`, with `X-Forwarded-Proto` and `-Host`";
        Forwarded = "forwarded", "`Forwarded` (RFC 7239)";
    }
    default XForwardedFor
}

choice! {
    /// Limits of the process and the programs that it starts, beyond those of their accounts.
    #[derive(Copy)]
    pub enum Sandbox {
        Off = "off", "none";
        Auto = "auto", "in `prod` mode, programs are limited if RockNet was started as root, or if its unit has `NoNewPrivileges`";
        Strict = "strict", "programs and RockNet itself are limited, and files can be changed in listed folders only; set-user-ID files such as `sudo` have no effect, and a start without kernel support fails";
    }
    default Auto
}

impl Mode {
    /// Returns the default ports of a site, first without TLS, then with TLS. In `prod` they are the well-known ports,
    /// in `dev` unprivileged ports.
    pub(crate) fn ports(self) -> (u16, u16) {
        match self {
            Mode::Prod => (80, 443),
            Mode::Dev => (8080, 8443),
        }
    }
}

with_defaults! {
    /// Settings of `[server]`.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Server {
        /// Purpose of the machine, which selects defaults.
        pub mode: Mode = Mode::default(),
        /// Folder for certificates and other files that the server creates; `None`: the default folder of the system.
        pub state: Option<PathBuf> = None,
        /// Folder for traces of QUIC connections; `None`: no traces are written.
        pub qlog: Option<PathBuf> = None,
        /// Number of workers per listening port.
        pub workers: Workers = Workers::default(),
        /// I/O back end.
        pub backend: IoBackend = IoBackend::default(),
        /// HTTP/3 of the sites that do not set it.
        pub http3: Http3 = Http3::default(),
        /// Accepts HTTP/2 without TLS by prior knowledge (RFC 9113 §3.3).
        pub h2c: bool = false,
        /// Accepts HTTP/2 without TLS by `Upgrade: h2c` (RFC 7540 §3.2).
        pub h2c_upgrade: bool = false,
        /// User that the server switches to after opening its ports, if it was started as root. `None`: `rocknet` if
        /// the system has that user and a configuration file was read; otherwise the server stays root.
        pub user: Option<String> = None,
        /// User that runs scripts of sites that set no `user`, if the server was started as root; `None`: the first
        /// existing account of a fixed list, such as `www-data`.
        pub script_user: Option<String> = None,
        /// Limits of the process and of the programs that it starts.
        pub sandbox: Sandbox = Sandbox::default(),
        /// Folders that may be changed in the strict sandbox, beyond those that the configuration names elsewhere.
        pub sandbox_write: Vec<PathBuf> = Vec::new(),
        /// Proxies that are trusted to name the client of a request.
        pub trusted_proxies: Vec<Network> = Vec::new(),
        /// Header field in which trusted proxies name the client.
        pub trusted_field: TrustedField = TrustedField::default(),
        /// Peers whose connections begin with a header of the PROXY protocol.
        pub proxy_protocol: Vec<Network> = Vec::new(),
        /// Number of threads for blocking work.
        pub blocking_threads: usize = 4,
        /// Event loop of each worker.
        pub events: Events = Events::default(),
        /// Storage of buffered request bodies.
        pub spool: Spool = Spool::default(),
    }
}

with_defaults! {
    /// Event loop of each worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Events {
        /// Maximum number of events per call to the kernel.
        pub batch: usize = 1024,
        /// Maximum time between two checks of deadlines and the clock.
        pub wait: Duration = Duration::from_secs(1),
        /// Number of connection slots that each worker reserves at start.
        pub connections: usize = 1024,
    }
}

with_defaults! {
    /// Storage of request bodies that are buffered whole before a handler runs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Spool {
        /// Folder for bodies that are too large for memory; `None`: the system's folder for large temporary files.
        pub folder: Option<PathBuf> = None,
        /// Maximum size of all bodies in memory together, in bytes. Above it, bodies go to disk.
        pub memory: u64 = 64 << 20,
        /// Maximum size of all bodies on disk together, in bytes, at least the largest `body_size`. Beyond it, requests
        /// get 507.
        pub disk: u64 = 10 << 30,
    }
}

with_defaults! {
    /// File cache, and the size of the response cache.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Cache {
        /// Maximum size of a file that is cached in memory, in bytes.
        pub max_file: u64 = 50 * 1024,
        /// Maximum size of the file cache, in bytes; 0: no file content is cached.
        pub memory: u64 = 256 * 1024 * 1024,
        /// Maximum size of all stored responses (`cache` of sites and routes), in bytes; 0: no response is stored.
        pub responses: u64 = 256 * 1024 * 1024,
        /// Maximum size of all stored responses on disk, in bytes; 0: no response is written to disk.
        pub responses_disk: u64 = 0,
        /// Folder of the stored responses on disk; `None`: the state folder.
        pub responses_folder: Option<PathBuf> = None,
    }
}
