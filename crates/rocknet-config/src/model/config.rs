//! The whole configuration, read from files or built in memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::admin::Admin;
use super::ban::Ban;
use super::browse::Browse;
use super::host_folders::HostFolders;
use super::http3::Http3;
use super::limits::Limits;
use super::listen::Listen;
use super::log::{AccessLog, Log, LogTarget};
use super::server::{Cache, IoBackend, Mode, Server, Workers};
use super::settings::Settings;
use super::site::{DisabledSite, Site};
use super::source_span::SourceSpan;
use super::tls::Tls;
use super::tracing::Tracing;

/// Whole, checked configuration. It owns all its data, so the configuration files are not read again. The default is
/// the configuration of an empty file, which has no site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// Process and threads.
    pub server: Server,
    /// Limits of connections and requests.
    pub limits: Limits,
    /// Error log, and access log of the sites that set none.
    pub log: Log,
    /// File cache.
    pub cache: Cache,
    /// Control API.
    pub admin: Admin,
    /// Traces of requests.
    pub tracing: Tracing,
    /// Bans of clients; `None`: no client is banned for its offences.
    pub ban: Option<Ban>,
    /// TLS settings of all sites that use TLS.
    pub tls: Tls,
    /// Sites in the order of their names, so that equal files give equal configurations.
    pub sites: Vec<Site>,
    /// Roots with `{host}`. Folders below them are sites, which `sites` contains.
    pub host_folders: Vec<HostFolders>,
    /// Sites that are not served, in the order of their names.
    pub disabled_sites: Vec<DisabledSite>,
    /// Paths of the main file and all included files, in reading order; empty if built in memory.
    pub files: Vec<PathBuf>,
}

impl Config {
    /// Returns the configuration of `rocknet serve DIR`: one folder in `dev` mode, with listings for folders without an
    /// index file.
    pub fn for_directory(directory: &Path, listen: Listen) -> Config {
        let settings = Settings {
            root: Some(directory.to_owned()),
            browse: Some(Browse::default()),
            ..Settings::default()
        };
        Config::one_site(Mode::Dev, vec![listen], settings)
    }

    /// Returns the configuration of a new installation: `dev` mode, and one site that has no root and serves the
    /// welcome page.
    pub fn welcome(listen: Listen) -> Config {
        let settings = Settings {
            welcome_page: true,
            ..Settings::default()
        };
        Config::one_site(Mode::Dev, vec![listen], settings)
    }

    /// Returns the configuration of a small server whose responses come only from handlers that the embedding program
    /// mounts: one site without a root, one worker, few connections, and no log.
    pub fn for_handlers(listen: Vec<Listen>) -> Config {
        let mut config = Config::one_site(Mode::Prod, listen, Settings::default());
        config.server.workers = Workers::Count(1);
        config.server.blocking_threads = 1;
        config.server.backend = IoBackend::Epoll;
        config.cache.memory = 0;
        config.log.errors = LogTarget::Off;
        config.limits.connections = Some(64);
        config.limits.shutdown = Duration::from_secs(1);
        config
    }

    /// Returns a configuration with one site, which serves every host name without TLS.
    fn one_site(mode: Mode, listen: Vec<Listen>, settings: Settings) -> Config {
        let limits = Limits::default();
        let name = match &listen[..] {
            [Listen::Tcp { port, .. }] => format!(":{port}"),
            _ => "default".to_owned(),
        };
        let site = Site {
            name,
            names: Vec::new(),
            listen,
            secure: Vec::new(),
            h2c: Vec::new(),
            tls: None,
            http3: Http3::default(),
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
