//! Runs a server in this process. It is started from TOML and stopped at the end of the test.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rocknet::handler::controller::isolated;
use rocknet::server::{Server, StartError};
use rocknet::snapshot::Mount;
use rocknet_config::model::{Config, Pattern};
use rocknet_config::{ProcessEnvironment, Report, parse};
use rocknet_io::socket::Address;

use super::version::{Http3Access, is_secure};
use super::{Client, DEADLINE, Folder, ReceivedResponse};

/// A running server with its folder. It is stopped when the value is dropped.
pub struct Running {
    /// `None` after the server was stopped.
    server: Option<Server>,
    pub folder: Folder,
    /// `None` if the test runs over HTTP/1.1.
    http3: Option<Http3Access>,
}

/// Prefix of configurations without a `[server]` section: few threads, and short intervals between timer ticks, so that
/// short timeouts end in time.
const SERVER: &str = "[server]\nworkers = 1\nblocking_threads = 2\nevents = { wait = \"20ms\", connections = 16 }\n";
/// Prefix of configurations without a `[log]` section.
const LOG: &str = "[log]\nerrors = \"off\"\n";

impl Running {
    /// Starts a server with one site that serves the folder `www`, with further keys.
    pub fn site(folder: Folder, keys: &str) -> Running {
        Running::start(folder, &site(keys))
    }

    pub fn start(folder: Folder, text: &str) -> Running {
        Running::start_with(folder, text, Vec::new())
    }

    pub fn start_with(folder: Folder, text: &str, mounts: Vec<Mount>) -> Running {
        Running::try_start(folder, text, mounts).unwrap_or_else(|error| panic!("the server did not start: {error}"))
    }

    /// Starts a server. Returns an error if an address is in use.
    pub fn try_start(folder: Folder, text: &str, mounts: Vec<Mount>) -> Result<Running, StartError> {
        let http3 = Http3Access::of_case();
        let config = read(&folder, text, http3.as_ref())
            .unwrap_or_else(|report| panic!("the configuration is invalid:\n{report:?}\n{text}"));
        isolated::set_program(env!("CARGO_BIN_EXE_rocknet"));
        let server = Server::start(config, mounts, &mut ())?;
        Ok(Running {
            server: Some(server),
            folder,
            http3,
        })
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("a server that was not stopped")
    }

    /// Applies a new configuration, as a reload of the changed file does.
    pub fn reload(&self, text: &str) -> Result<(), String> {
        let config = read(&self.folder, text, self.http3.as_ref()).map_err(|report| format!("{report:?}"))?;
        self.server().reload(config).map_err(|error| error.to_string())
    }

    /// Address of the only TCP listener.
    pub fn address(&self) -> SocketAddr {
        let all = self.addresses();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0]
    }

    /// Addresses of all TCP listeners except those added for HTTP/3, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = self.all_addresses();
        all.retain(|address| self.http3.is_none() || !is_secure(address));
        all
    }

    /// Returns the addresses of all TCP listeners, including those added for HTTP/3.
    fn all_addresses(&self) -> Vec<SocketAddr> {
        let bound = self.server().listeners().into_iter().map(|(_, bound, _)| bound);
        bound
            .filter_map(|bound| match bound {
                Address::Tcp { ip: Some(ip), port } => Some(SocketAddr::new(ip, port)),
                Address::Tcp { ip: None, port } => Some(SocketAddr::from(([127, 0, 0, 1], port))),
                Address::Unix(_) => None,
            })
            .collect()
    }

    /// Opens a connection of the HTTP version that the test runs over.
    pub fn connect(&self) -> Client {
        match &self.http3 {
            None => Client::to(self.address()),
            Some(http3) => http3.connect(&self.all_addresses()),
        }
    }

    pub fn connect_unix(&self, name: &str) -> Client {
        Client::over(UnixStream::connect(self.folder.path(name)).expect("a connection to the socket file"))
    }

    /// Waits until the server has closed every connection.
    #[track_caller]
    pub fn wait_until_idle(&self) {
        let started = Instant::now();
        while self.server().status().connections_open > 0 {
            assert!(started.elapsed() < DEADLINE, "a connection is still open");
            std::thread::yield_now();
        }
    }

    /// Sends a request on a new connection.
    pub fn fetch(&self, line: &str, fields: &[&str]) -> ReceivedResponse {
        self.connect().fetch(line, fields)
    }

    pub fn get(&self, path: &str) -> ReceivedResponse {
        self.fetch(&format!("GET {path}"), &[])
    }

    /// Stops the server. Returns true if no response was cut.
    pub fn stop(mut self) -> bool {
        self.server.take().is_some_and(Server::stop)
    }

    /// Returns the server and its folder separately, so that another thread can stop the server.
    pub fn take(mut self) -> (Server, Folder) {
        let server = self.server.take().expect("a server that was not stopped");
        (server, std::mem::replace(&mut self.folder, Folder::with(&[])))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// Returns a configuration with one site that serves every name.
pub fn site(keys: &str) -> String {
    format!("[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{keys}\n")
}

/// Parses a configuration, with default sections for `[server]` and `[log]` and, if the test runs over HTTP/3, with
/// listeners for HTTP/3.
fn read(folder: &Folder, text: &str, http3: Option<&Http3Access>) -> Result<Config, Report> {
    let configured = http3.map(|http3| http3.configure(folder, text));
    let text = configured.as_deref().unwrap_or(text);
    let server = if text.contains("[server]") { "" } else { SERVER };
    let log = if text.contains("[log]") { "" } else { LOG };
    let loaded = parse(
        &format!("{server}{log}{text}"),
        &folder.path("rocknet.toml"),
        &ProcessEnvironment,
    )?;
    let mut config = loaded.config;
    // All servers on the machine would share the default state folder.
    config.server.state.get_or_insert_with(|| folder.path("state"));
    Ok(config)
}

/// Mounts a handler at all paths that begin with `prefix`, in the site `default`.
pub fn mount(prefix: &str, handler: impl rocknet::handler::Handler + 'static) -> Mount {
    Mount {
        site: "default".to_owned(),
        pattern: Pattern::Prefix(prefix.to_owned()),
        handler: std::sync::Arc::new(handler),
    }
}
