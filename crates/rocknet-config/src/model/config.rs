//! A whole configuration, read from files or made without one.

use std::path::{Path, PathBuf};

use super::limits::Limits;
use super::log::{AccessLog, Log};
use super::server::{Cache, Mode, Server};
use super::settings::Settings;
use super::site::{Listen, Site};
use super::source_span::SourceSpan;
use super::tls::Tls;

/// A whole, checked configuration. Nothing in it needs a further look at the file it came from. The default is that of an
/// empty file, without a site.
#[derive(Debug, Clone, PartialEq, Default)]
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

impl Config {
    /// Returns the configuration of `rocknet serve DIR`: one folder in `dev` mode, with its `index.html` where there is one,
    /// else a list.
    pub fn for_directory(directory: &Path, listen: Listen) -> Config {
        let settings = Settings {
            root: Some(directory.to_owned()),
            browse: true,
            ..Settings::default()
        };
        Config::one_site(Mode::Dev, listen, settings)
    }

    /// Returns the configuration of a fresh install: one site without a root, which answers with the default page.
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
            span: SourceSpan {
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
