//! The configuration as meant: what the server acts on, every default filled in, every reference resolved.

mod acme;
mod application;
mod cgi;
mod controller;
mod php;
mod proxy;
mod rule;
mod with_defaults;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::keys::log::{AccessFormat, Level, LogTarget};
pub use crate::keys::server::{Backend, Mode, Workers};
pub use crate::keys::site::{Priority, Symlinks};
pub use crate::keys::tls::TlsVersion;
pub use acme::{Acme, AcmeCa, Challenge, Dns, DnsZone, Secret, SharedKey};
pub use application::{Application, Protocol};
pub use cgi::{Cgi, MAX_PROGRAMS};
pub use controller::{Controller, RunOn};
pub use php::{Php, PhpVersion};
pub use proxy::{
    Balance, Duty, Forwarded, Health, Host, Mirror, Network, Proxy, ProxyProtocol, RequestBuffering, Resolve,
    TrustedField, Upstream, UpstreamTls, Weighted,
};
pub use rule::{Conditions, Rule, RuleAction};

use crate::defaults;
use with_defaults::with_defaults;

/// A whole, checked configuration. Nothing in it needs a further look at the file it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub server: Server,
    pub limits: Limits,
    pub log: Log,
    pub cache: Cache,
    pub tls: Tls,
    /// In the order of their names, so that two equal files give two equal configurations.
    pub sites: Vec<Site>,
    /// The file it was read from and all files it includes, in reading order; empty when built in memory.
    pub files: Vec<PathBuf>,
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Server {
        pub mode: Mode = Mode::default(),
        /// Where things that the server makes are kept; `None`: where such things are kept on this system.
        pub state: Option<PathBuf> = None,
        pub workers: Workers = Workers::default(),
        pub backend: Backend = Backend::default(),
        /// HTTP/2 by prior knowledge in the clear.
        pub h2c: bool = false,
        /// HTTP/2 in the clear for who asks for it by `Upgrade: h2c`.
        pub h2c_upgrade: bool = false,
        /// The user whose rights the server keeps after binding, when started as root.
        pub user: Option<String> = None,
        /// The account of scripts whose site names none, where the server can start programs as others.
        pub script_user: Option<String> = None,
        /// Whose word on a request's origin is taken.
        pub trusted_proxies: Vec<Network> = Vec::new(),
        /// Where they tell it.
        pub trusted_field: TrustedField = TrustedField::default(),
        /// Those whose connections begin with a header of the PROXY protocol.
        pub proxy_protocol: Vec<Network> = Vec::new(),
        pub blocking_threads: usize = 4,
        pub events: Events = Events::default(),
        /// Where request bodies are kept until they are complete.
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
    /// Room for request bodies that are received whole before somebody is asked.
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
    /// Bounds on what one client may use; each has a status or a close of its own.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Limits {
        /// From the first byte of a request (or the accept) to the end of its header section: 408 or close.
        pub header_timeout: Duration = Duration::from_secs(10),
        /// Request line and header section together, in bytes: 431.
        pub header_size: usize = 16 * 1024,
        /// Header fields in one request: 431.
        pub header_fields: usize = 100,
        /// Request target, in bytes: 414.
        pub target_size: usize = 8 * 1024,
        /// Request content, in bytes: 413. Sites and routes may have their own.
        pub body_size: u64 = 100 * 1024 * 1024,
        /// Body of one request that is held in memory while it is received whole, in bytes. Sites and routes may have
        /// their own.
        pub body_memory: u64 = 64 * 1024,
        /// Longest silence while request content is awaited: 408.
        pub body_idle: Duration = Duration::from_secs(30),
        /// Slowest average rate of request content, in bytes a second: 408.
        pub body_rate: u64 = 500,
        /// Longest time without the client taking a byte of the answer: close.
        pub send_stall: Duration = Duration::from_secs(60),
        /// Longest wait for an answer that is being made, or for its next piece: 503, or a cut. Sites and routes may
        /// have their own.
        pub answer_timeout: Duration = Duration::from_secs(60),
        /// Longest time between two requests on a connection.
        pub keep_alive: Duration = Duration::from_secs(65),
        /// Longest life of a connection; after it the next answer says close.
        pub connection_age: Duration = Duration::from_secs(3600),
        /// Connections open at once in the whole server; `None`: as many as descriptors allow.
        pub connections: Option<usize> = None,
        /// Longest time that answers in flight get to finish when the server stops.
        pub shutdown: Duration = Duration::from_secs(10),
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Log {
        pub level: Level = Level::default(),
        /// Where the error log goes.
        pub errors: LogTarget = LogTarget::Stderr,
        /// Where the access log of sites without one of their own goes.
        pub access: AccessLog = AccessLog::default(),
        pub rotate: Rotate = Rotate::default(),
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AccessLog {
        pub target: LogTarget = LogTarget::Off,
        pub format: AccessFormat = AccessFormat::default(),
    }
}

with_defaults! {
    /// When a log file is set aside, and how many old ones are kept.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Rotate {
        pub size: Option<u64> = Some(100_000_000),
        pub age: Option<Duration> = None,
        pub keep: usize = 10,
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Cache {
        /// Largest file kept in memory, in bytes.
        pub max_file: u64 = 50 * 1024,
        /// All cached content together, in bytes; 0 keeps no content.
        pub memory: u64 = 256 * 1024 * 1024,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// As written: `example.com`, `*.example.com`, `:8081`, `10.0.0.1`, `default`.
    pub name: String,
    /// Names it answers to, lower case, without port: the name itself (unless port-based) and its aliases.
    /// Empty for a port-based site: it answers to every name on its listeners.
    pub names: Vec<HostPattern>,
    pub listen: Vec<Listen>,
    /// Those of `listen` that speak TLS.
    pub secure: Vec<Listen>,
    /// Whether the listeners were written, or are the default for its kind.
    pub listen_given: bool,
    /// `None`: in the clear.
    pub tls: Option<SiteTls>,
    pub access: AccessLog,
    /// What applies where no route says otherwise.
    pub settings: Settings,
    pub routes: Vec<Route>,
    /// In the order they were written.
    pub rules: Vec<Rule>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    Exact(String),
    /// `*.example.com` holds `example.com`: any name with at least one more label before it.
    Wildcard(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Listen {
    /// No address: every IPv4 and IPv6 address of the machine.
    Tcp {
        address: Option<IpAddr>,
        port: u16,
    },
    Unix(PathBuf),
}

with_defaults! {
    /// Encryption, for all sites that have it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        pub min: TlsVersion = TlsVersion::default(),
        /// Whether requests in the clear are sent to https://.
        pub redirect: bool = true,
        /// How long browsers are to use https:// alone; zero: nothing is said. The default is long enough to close the
        /// gap between two visits, and short enough to be forgiven.
        pub hsts: Duration = Duration::from_secs(30 * 86_400),
        /// Where certificates come from that are had by themselves.
        pub acme: Acme = Acme::default(),
    }
}

/// Encryption of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteTls {
    pub source: CertificateSource,
    pub min: TlsVersion,
    pub client: Option<ClientAuth>,
    pub redirect: bool,
    /// As it is said: what the mode and the issuer make of it is in here.
    pub hsts: Duration,
}

/// Where a site's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// A public CA, or the machine's own: what the name asks for.
    Auto,
    /// The machine's own CA.
    Local,
    /// One for each kind of key.
    Files(Vec<CertificateFiles>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    pub cert: PathBuf,
    /// The same as `cert` where both stand in one file.
    pub key: PathBuf,
    pub ocsp: Option<PathBuf>,
}

/// What a client has to prove.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientAuth {
    pub ca: Vec<PathBuf>,
    pub required: bool,
}

/// Where in the files something was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
}

/// A route's settings are whole: the site's, with what the route writes merged over them.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    pub pattern: Pattern,
    pub settings: Settings,
    pub place: Place,
}

/// Ranked by specificity: exact, then longest prefix, then pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// `/hello`
    Exact(String),
    /// `/api/*` holds `/api/`: that and everything below; `/*` holds `/`.
    Prefix(String),
    /// A `*` elsewhere (`/users/*/photo`, `*.zip`): each stands for any run of characters without `/`.
    Glob(String),
}

with_defaults! {
    /// Actions and filters, as they apply at one place.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        pub root: Option<PathBuf> = None,
        /// Answers `/` with the default page where nothing else answers: set only where there is no configuration file.
        pub default_page: bool = false,
        pub index: Vec<String> = defaults::index(false),
        pub browse: bool = false,
        pub fallback: Fallback = Fallback::default(),
        /// Tried in order; `{path}` is the request's path. Empty: the path itself.
        pub try_paths: Vec<String> = Vec::new(),
        pub symlinks: Symlinks = Symlinks::default(),
        /// `None`: scripts are files as any other.
        pub php: Option<Php> = None,
        /// Whom scripts run as; `None`: whom they run as everywhere.
        pub user: Option<String> = None,
        /// Who answers in this server's place.
        pub proxy: Option<Proxy> = None,
        /// An application that answers in place of files.
        pub application: Option<Application> = None,
        /// Answers in place of files.
        pub controller: Option<Controller> = None,
        pub run_on: RunOn = RunOn::default(),
        /// The controller runs in a process of its own.
        pub isolate: bool = false,
        pub compress: bool = true,
        /// Programs that are run by CGI.
        pub cgi: Option<Cgi> = None,
        /// Sent only where an application names it.
        pub internal: bool = false,
        /// Added to every answer; an empty value removes the field.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Status to a path within the site, or a file.
        pub errors: BTreeMap<u16, String> = BTreeMap::new(),
        pub redirects: Vec<Redirect> = Vec::new(),
        /// What is sent along with a page: decoded paths.
        pub push: BTreeMap<Pattern, Vec<String>> = BTreeMap::new(),
        pub priority: Priority = Priority::default(),
        /// Largest request content, in bytes.
        pub body_size: u64 = Limits::default().body_size,
        /// Request body that is held in memory while it is received whole, in bytes.
        pub body_memory: u64 = Limits::default().body_memory,
        /// Longest wait for an answer.
        pub answer_timeout: Duration = Limits::default().answer_timeout,
        /// Where each of them was written, for `explain`: `root`, `headers.X-A`, `redirects./old`.
        pub places: BTreeMap<String, Place> = BTreeMap::new(),
    }
}

/// What is served when nothing else matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fallback {
    /// The front controller where scripts are run, elsewhere nothing.
    #[default]
    Usual,
    /// Nothing, scripts or not.
    Nothing,
    Path(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub from: Pattern,
    /// Path, or absolute URL; `{*}` stands for what the `*` matched.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}
