//! What holds where nothing is written, and whole configurations made without a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::{
    AccessLog, Acme, AcmeCa, Backend, Cache, Challenge, Config, Events, Fallback, Level, Limits, Listen, Log,
    LogTarget, Mode, Place, Priority, Rotate, RunOn, Server, Settings, Site, Spool, Symlinks, Tls, TlsVersion,
    TrustedField, Workers,
};

/// Ports of a site that says nothing else, in the clear and under TLS: the web's own in `prod`, those that a plain user
/// may open in `dev`.
pub(crate) fn ports(mode: Mode) -> (u16, u16) {
    match mode {
        Mode::Prod => (80, 443),
        Mode::Dev => (8080, 8443),
    }
}

/// The directory of Let's Encrypt.
pub(crate) const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// What is served for a folder where nobody says it.
pub(crate) fn index(php: bool) -> Vec<String> {
    let script = php.then_some("index.php");
    let names = script.into_iter().chain(["index.html", "index.htm"]);
    names.map(str::to_owned).collect()
}

// Each number below stands in the table of keys too, as text; a test holds the two together.

impl Default for Server {
    fn default() -> Server {
        Server {
            mode: Mode::Prod,
            state: None,
            workers: Workers::Auto,
            backend: Backend::Auto,
            h2c: false,
            h2c_upgrade: false,
            user: None,
            script_user: None,
            trusted_proxies: Vec::new(),
            trusted_field: TrustedField::XForwardedFor,
            proxy_protocol: Vec::new(),
            blocking_threads: 4,
            events: Events::default(),
            spool: Spool::default(),
        }
    }
}

impl Default for Events {
    fn default() -> Events {
        Events {
            batch: 1024,
            wait: Duration::from_secs(1),
            connections: 1024,
        }
    }
}

impl Default for Spool {
    fn default() -> Spool {
        Spool {
            folder: None,
            memory: 64 << 20,
            disk: 10 << 30,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            header_timeout: Duration::from_secs(10),
            header_size: 16 * 1024,
            header_fields: 100,
            target_size: 8 * 1024,
            body_size: 100 * 1024 * 1024,
            body_memory: 64 * 1024,
            body_idle: Duration::from_secs(30),
            body_rate: 500,
            send_stall: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(65),
            connection_age: Duration::from_secs(3600),
            connections: None,
            shutdown: Duration::from_secs(10),
        }
    }
}

impl Default for Log {
    fn default() -> Log {
        Log {
            level: Level::Info,
            errors: LogTarget::Stderr,
            access: AccessLog::default(),
            rotate: Rotate::default(),
        }
    }
}

impl Default for Rotate {
    fn default() -> Rotate {
        Rotate {
            size: Some(100_000_000),
            age: None,
            keep: 10,
        }
    }
}

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            max_file: 50 * 1024,
            memory: 256 * 1024 * 1024,
        }
    }
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            min: TlsVersion::V12,
            redirect: true,
            // Long enough to close the gap between two visits, short enough to be forgiven.
            hsts: Duration::from_secs(30 * 86_400),
            acme: Acme::default(),
        }
    }
}

impl Default for Acme {
    fn default() -> Acme {
        Acme {
            email: None,
            cas: vec![AcmeCa {
                url: LETS_ENCRYPT.to_owned(),
                binding: None,
            }],
            ca_root: None,
            challenges: vec![Challenge::Http, Challenge::TlsAlpn],
            dns: None,
            ask: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            root: None,
            default_page: false,
            index: index(false),
            browse: false,
            fallback: Fallback::Usual,
            try_paths: Vec::new(),
            symlinks: Symlinks::Inside,
            php: None,
            user: None,
            proxy: None,
            application: None,
            controller: None,
            run_on: RunOn::Worker,
            isolate: false,
            cgi: None,
            internal: false,
            compress: true,
            headers: BTreeMap::new(),
            errors: BTreeMap::new(),
            redirects: Vec::new(),
            push: BTreeMap::new(),
            priority: Priority::Normal,
            body_size: Limits::default().body_size,
            body_memory: Limits::default().body_memory,
            answer_timeout: Limits::default().answer_timeout,
            places: BTreeMap::new(),
        }
    }
}

impl Default for Config {
    /// An empty file: every default, and no site.
    fn default() -> Config {
        Config {
            server: Server::default(),
            limits: Limits::default(),
            log: Log::default(),
            cache: Cache::default(),
            tls: Tls::default(),
            sites: Vec::new(),
            files: Vec::new(),
        }
    }
}

impl Config {
    /// What `rocknet serve DIR` means: one folder in `dev` mode, its `index.html` where there is one, else a list.
    pub fn for_directory(directory: &Path, listen: Listen) -> Config {
        let settings = Settings {
            root: Some(directory.to_owned()),
            browse: true,
            ..Settings::default()
        };
        Config::one_site(Mode::Dev, listen, settings)
    }

    /// What a fresh install serves: one site without a root, which answers with the default page.
    pub fn welcome(listen: Listen) -> Config {
        let settings = Settings {
            default_page: true,
            ..Settings::default()
        };
        Config::one_site(Mode::Dev, listen, settings)
    }

    fn one_site(mode: Mode, listen: Listen, settings: Settings) -> Config {
        let limits = Limits::default();
        let name = match &listen {
            Listen::Tcp { port, .. } => format!(":{port}"),
            Listen::Unix(_) => "default".to_owned(),
        };
        let site = Site {
            name,
            names: Vec::new(),
            listen: vec![listen],
            secure: Vec::new(),
            tls: None,
            listen_given: true,
            access: AccessLog::default(),
            settings,
            routes: Vec::new(),
            rules: Vec::new(),
            place: Place {
                file: PathBuf::new(),
                line: 0,
            },
        };
        let server = Server {
            mode,
            ..Server::default()
        };
        Config {
            server,
            limits,
            sites: vec![site],
            ..Config::default()
        }
    }
}
