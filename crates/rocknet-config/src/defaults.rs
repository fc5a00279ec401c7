//! What holds where nothing is written, and whole configurations made without a file.

use std::path::{Path, PathBuf};

use crate::model::{AccessLog, Cache, Config, Limits, Listen, Log, Mode, Place, Server, Settings, Site, Tls};

/// The status of a redirect that names none.
pub(crate) const REDIRECT: u16 = 308;

/// Ports of a site that says nothing else, in the clear and under TLS: the web's own in `prod`, those that a plain user
/// may open in `dev`.
pub(crate) fn ports(mode: Mode) -> (u16, u16) {
    match mode {
        Mode::Prod => (80, 443),
        Mode::Dev => (8080, 8443),
    }
}

/// What is served for a folder where nobody says it.
pub(crate) fn index(php: bool) -> Vec<String> {
    let script = php.then_some("index.php");
    let names = script.into_iter().chain(["index.html", "index.htm"]);
    names.map(str::to_owned).collect()
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
