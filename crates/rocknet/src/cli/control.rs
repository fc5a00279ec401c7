//! Control API of the program: further servers in the same process, one for each address of the API. Their only
//! handler passes requests to the main loop.
//!
//! They share nothing with the server of the sites. Each has its own worker and limits, so it responds even if all
//! connections of that server are in use. Requests of the API are in no counter or log of the sites.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aws_lc_rs::rand;
use rocknet::certificates::storage::{Access, FileStorage, Storage};
use rocknet::certificates::{SYSTEM_STATE_FOLDER, state_folder};
use rocknet::log::{FollowedLog, Logger};
use rocknet::server::{Server, StartError, StartHooks};
use rocknet::snapshot::{Mount, addresses};
use rocknet::takeover::AdoptedSockets;
use rocknet_admin::{AdminHandler, AllowedHosts, Control, Dashboard, ReplyFuture, TcpAccess, Tokens};
use rocknet_config::model::{Admin, CertificateSource, ControlSocket, Listen, Pattern, SiteTls, Tls};
use rocknet_config::{CONTROL_SOCKET, Config};
use rocknet_control::api::{ApiError, Request};
use rocknet_control::logs::{LogFilter, LogKind};
use rocknet_handler::response::Stream;
use rocknet_io::privileges::User;
use tokio::sync::mpsc;

use super::Failure;
use super::event::{ControlRequest, Event};
use super::log_feed::{FollowerCount, LogFeed};

/// Environment variable with the path of the socket, for servers and for commands. `off`: no socket.
pub(super) const SOCKET_VARIABLE: &str = "ROCKNET_SOCKET";

/// Maximum number of further attempts to lock a token if the first one fails. With [`LOCK_PAUSE`], they take a second.
/// Another server with the same state folder may hold the lock, but only while it writes the token.
const LOCK_ATTEMPTS: u32 = 50;

/// Pause between two attempts to lock a token.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Time between two attempts to serve the API at an address that could not be used.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Number of random bytes in a token. Each is written as two hexadecimal digits.
const TOKEN_BYTES: usize = 32;

/// Returns the path of the control socket, or `None` if it is switched off. `state`: folder of the server's state.
pub fn socket(config: &Config, state: &Path) -> Option<PathBuf> {
    if let Some(path) = socket_of_environment() {
        return path;
    }
    match &config.admin.socket {
        ControlSocket::Off => None,
        ControlSocket::Auto => Some(state.join(CONTROL_SOCKET)),
        ControlSocket::File(path) => Some(path.clone()),
    }
}

/// Returns the sockets at which the server of a configuration may listen, the most likely first.
///
/// # Errors
///
/// Fails if the socket is switched off.
pub fn sockets(config: &Config) -> Result<Vec<PathBuf>, Failure> {
    let own = state_folder(config);
    let Some(first) = socket(config, &own) else {
        let message = "the control socket is switched off: `admin.socket` or ROCKNET_SOCKET is \"off\"";
        return Err(Failure::Failed(message.to_owned()));
    };
    let is_default = first == own.join(CONTROL_SOCKET) && config.server.state.is_none();
    // A server that another account has started may use the state folder of the system.
    let system = is_default.then(|| Path::new(SYSTEM_STATE_FOLDER).join(CONTROL_SOCKET));
    let system = system.filter(|system| *system != first);
    Ok(std::iter::once(first).chain(system).collect())
}

/// Returns the value of the environment variable if it is set. The inner `None` switches the socket off.
pub fn socket_of_environment() -> Option<Option<PathBuf>> {
    let value = std::env::var_os(SOCKET_VARIABLE).filter(|value| !value.is_empty())?;
    Some((value != "off").then(|| value.into()))
}

/// Passes requests to the main loop.
#[derive(Clone)]
pub struct MainLoopControl {
    /// Queue of the main loop.
    pub events: mpsc::Sender<Event>,
    /// Logs that clients may follow.
    pub logger: Logger,
    /// Number of clients that follow them.
    pub followers: FollowerCount,
}

impl Control for MainLoopControl {
    fn execute(&self, request: Request) -> ReplyFuture {
        let events = self.events.clone();
        Box::pin(async move {
            let (event, replied) = ControlRequest::event(request);
            let is_sent = events.send(event).await.is_ok();
            let ended = || ApiError::new(503, "the server has stopped");
            if !is_sent {
                return Err(ended());
            }
            replied.await.unwrap_or_else(|_| Err(ended()))
        })
    }

    fn follow_logs(&self, filter: LogFilter) -> Result<Box<dyn Stream>, ApiError> {
        // Without `follow`, the stream ends after the recent lines.
        let place = match filter.follow {
            true => Some(self.followers.take_place()?),
            false => None,
        };
        let only = filter.kind.map(|kind| match kind {
            LogKind::Error => FollowedLog::Error,
            LogKind::Access => FollowedLog::Access,
        });
        Ok(Box::new(LogFeed::new(self.logger.follow(only), filter, place)))
    }
}

/// Addresses of the API.
pub struct ControlAddresses {
    /// Path of the Unix socket; `None` if it is switched off.
    socket: Option<PathBuf>,
    /// Section `[admin]` of the configuration, whose key `listen` is the TCP address, if there is one.
    admin: Admin,
    /// Folder of the server's state, which contains the tokens.
    state: PathBuf,
}

impl ControlAddresses {
    /// Returns the addresses of the configuration. `state`: folder of the server's state.
    pub fn new(config: &Config, state: &Path) -> ControlAddresses {
        ControlAddresses {
            socket: socket(config, state),
            admin: config.admin.clone(),
            state: state.to_owned(),
        }
    }

    /// Returns the address of a server without a configuration. Only the environment can name its socket, because
    /// several such servers may run at a time.
    pub fn of_environment(state: &Path) -> ControlAddresses {
        ControlAddresses {
            socket: socket_of_environment().flatten(),
            admin: Admin::default(),
            state: state.to_owned(),
        }
    }
}

/// Servers of the control API.
pub struct ControlServers {
    addresses: ControlAddresses,
    control: MainLoopControl,
    /// Server at the Unix socket; `None` while the socket cannot be used, or if it is switched off.
    socket: Option<Server>,
    /// Server at the TCP address; `None` while the address cannot be used, or if none is configured.
    listen: Option<Server>,
    /// Dashboard, which is served at the TCP address alone. Requests at the socket only create links to it.
    dashboard: Arc<Dashboard>,
    /// Sockets of a previous process that no server of the API has taken yet.
    adopted: AdoptedSockets,
}

/// Start hooks of one server of the API. They pass the inherited sockets of its address to the server.
struct ServerAdoption(AdoptedSockets);

impl StartHooks for ServerAdoption {
    fn adopted_sockets(&mut self) -> AdoptedSockets {
        std::mem::take(&mut self.0)
    }
}

impl ControlServers {
    /// Starts the API at each of the addresses that can be used. An address that another server uses, or at which no
    /// socket can be created, is logged as a warning, and tried again by [`ControlServers::retry`]. The folder of the
    /// socket and the tokens are created if they do not exist.
    ///
    /// `adopted`: sockets of a previous process. Those of other addresses are closed.
    pub fn start(addresses: ControlAddresses, control: MainLoopControl, adopted: AdoptedSockets) -> ControlServers {
        let mut servers = ControlServers {
            addresses,
            control,
            socket: None,
            listen: None,
            dashboard: Dashboard::new(),
            adopted,
        };
        for (address, error) in servers.start_missing() {
            let seconds = RETRY_INTERVAL.as_secs();
            tracing::warn!("the control API is not available at {address}: {error}; tried again every {seconds} s");
        }
        std::mem::take(&mut servers.adopted).close_rest();
        servers
    }

    /// Returns true if the API is served at each of its addresses.
    pub fn is_complete(&self) -> bool {
        self.addresses.socket.is_some() == self.socket.is_some()
            && self.addresses.admin.listen.is_some() == self.listen.is_some()
    }

    /// Starts the API at the addresses that could not be used so far.
    pub fn retry(&mut self) {
        let (had_socket, had_listen) = (self.socket.is_some(), self.listen.is_some());
        for (address, error) in self.start_missing() {
            tracing::debug!("the control API is still not available at {address}: {error}");
        }
        if let (false, Some(_), Some(path)) = (had_socket, &self.socket, &self.addresses.socket) {
            tracing::info!("the control API is available at {}", path.display());
        }
        if let (false, Some(_), Some(address)) = (had_listen, &self.listen, self.addresses.admin.listen) {
            tracing::info!("the control API is available at {address}");
        }
    }

    /// Returns the servers that run.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        [&self.socket, &self.listen].into_iter().flatten()
    }

    /// Takes the servers, to stop them on another thread.
    pub fn take(&mut self) -> Vec<Server> {
        [self.socket.take(), self.listen.take()].into_iter().flatten().collect()
    }

    /// Stops the servers after the requests in progress.
    pub fn stop(mut self) {
        for server in self.take() {
            server.stop();
        }
    }

    /// Starts the servers that do not run, and returns the addresses that cannot be used.
    fn start_missing(&mut self) -> Vec<(String, StartError)> {
        let mut failed = Vec::new();
        let (control, dashboard) = (self.control.clone(), Arc::clone(&self.dashboard));
        let api = move |access| AdminHandler::new(control.clone(), access, Arc::clone(&dashboard));
        // The socket is last, so that it never creates links to a dashboard that is not served yet.
        if let (None, Some(address)) = (&self.listen, self.addresses.admin.listen) {
            match start_tcp(address, &self.addresses, &api, &mut self.adopted) {
                Ok((server, port)) => {
                    self.dashboard.listens_at(port, &allowed_hosts(&self.addresses.admin));
                    self.listen = Some(server);
                }
                Err(error) => failed.push((address.to_string(), error)),
            }
        }
        if let (None, Some(path)) = (&self.socket, &self.addresses.socket) {
            // `None`: requests at the socket need no token.
            match start_socket(path, api(None), &mut self.adopted) {
                Ok(server) => self.socket = Some(server),
                Err(error) => failed.push((path.display().to_string(), error)),
            }
        }
        failed
    }
}

/// Starts the API at the Unix socket. Creates the folder of the socket if it does not exist.
fn start_socket(
    socket: &Path,
    api: AdminHandler<MainLoopControl>,
    adopted: &mut AdoptedSockets,
) -> Result<Server, StartError> {
    create_folder(socket).map_err(StartError::Io)?;
    start_at(Listen::Unix(socket.to_owned()), None, api, adopted)
}

/// Returns the hosts that clients may use to address the server. Every IP address is allowed if other machines can
/// reach the server.
fn allowed_hosts(admin: &Admin) -> AllowedHosts {
    AllowedHosts {
        names: admin.hosts.clone(),
        any_address: admin.listen.is_some_and(|address| !address.ip().is_loopback()),
        is_secure: !admin.certificates.is_empty(),
    }
}

/// Starts the API at an address. Returns the server with the bound port.
fn start_tcp(
    address: SocketAddr,
    addresses: &ControlAddresses,
    api: impl Fn(Option<TcpAccess>) -> AdminHandler<MainLoopControl>,
    adopted: &mut AdoptedSockets,
) -> Result<(Server, u16), StartError> {
    let ControlAddresses { admin, state, .. } = addresses;
    // The token `full` admits every request, and `read` the requests that change nothing.
    let tokens = Tokens {
        full: token(state, "admin/token").map_err(StartError::Io)?,
        read: token(state, "admin/read-token").map_err(StartError::Io)?,
    };
    let listen = Listen::Tcp {
        address: Some(address.ip()),
        port: address.port(),
    };
    // Verified passwords are remembered as fingerprints, which are computed with this key.
    let mut key = [0; 32];
    rand::fill(&mut key).map_err(|_| StartError::Io(no_random()))?;
    let access = TcpAccess::new(tokens, admin.password.clone(), allowed_hosts(admin), key);
    let tls = (!admin.certificates.is_empty()).then(|| SiteTls {
        source: CertificateSource::Files(admin.certificates.clone()),
        min: Tls::default().min,
        client: None,
        redirect: false,
        early_data: false,
        hsts: Duration::ZERO,
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = start_at(listen, tls, api(Some(access)), adopted)?;
    let mut port = address.port();
    // The second part of a listener is the bound address, with the port that the kernel has chosen instead of port 0.
    for (_, address, _) in server.listeners() {
        port = address.port().unwrap_or(port);
        tracing::info!("the control API listens at {scheme}://{address}/, and `rocknet dashboard` opens its pages");
    }
    Ok((server, port))
}

/// Starts a server at one address, whose only handler is `api`. `tls`: TLS settings; `None` to serve without TLS.
fn start_at(
    listen: Listen,
    tls: Option<SiteTls>,
    api: AdminHandler<MainLoopControl>,
    adopted: &mut AdoptedSockets,
) -> Result<Server, StartError> {
    let mut config = Config::for_handlers(vec![listen.clone()]);
    if let Some(tls) = tls {
        let site = &mut config.sites[0];
        site.tls = Some(tls);
        site.secure = vec![listen];
        site.http3.enabled = false;
    }
    let mount = Mount {
        site: config.sites[0].name.clone(),
        pattern: Pattern::Prefix("/".to_owned()),
        handler: Arc::new(api),
    };
    let inherited = adopted.split(&addresses(&config));
    Server::start(config, vec![mount], &mut ServerAdoption(inherited))
}

/// Reads a token from the file `name` in the state folder, and creates the file first if it does not exist.
fn token(state: &Path, name: &str) -> io::Result<String> {
    let storage = FileStorage::new(state);
    // The lock is held until this function returns, because another server with the same state folder may create the
    // token at the same time. If all attempts to lock fail, the token is read or created without the lock.
    let mut lock = storage.lock(name)?;
    for _ in 0..LOCK_ATTEMPTS {
        if lock.is_some() {
            break;
        }
        thread::sleep(LOCK_PAUSE);
        lock = storage.lock(name)?;
    }
    if let Some(found) = storage.read(name)? {
        let token = String::from_utf8_lossy(&found).trim().to_owned();
        if token.len() < 2 * TOKEN_BYTES {
            let file = state.join(name);
            let message = format!("{} is too short for a token: remove it", file.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        return Ok(token);
    }
    let mut bytes = [0; TOKEN_BYTES];
    rand::fill(&mut bytes).map_err(|_| no_random())?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    storage.write(name, format!("{token}\n").as_bytes(), Access::Owner)?;
    Ok(token)
}

fn no_random() -> io::Error {
    io::Error::other("the system provides no random numbers")
}

/// Creates the folder of the socket, and its missing parents, if it does not exist. Only the user of the server may
/// enter the folder of a path that ends in [`CONTROL_SOCKET`], as the default path in the state folder does. Any other
/// folder may also be entered by its group.
fn create_folder(socket: &Path) -> io::Result<()> {
    match socket.parent() {
        Some(folder) if !folder.exists() => {
            let mode = if socket.ends_with(CONTROL_SOCKET) { 0o700 } else { 0o750 };
            DirBuilder::new().recursive(true).mode(mode).create(folder)
        }
        _ => Ok(()),
    }
}

/// Creates the folder of a socket that the configuration names, and gives it to the account that the server
/// switches to. Its missing parents are created too. They remain root's, and every account may enter them, because the
/// server could not reach its socket otherwise. To be called as root. An error is reported later, when the socket is
/// bound.
pub fn prepare_folder(config: &Config, user: &User) {
    let ControlSocket::File(socket) = &config.admin.socket else {
        return;
    };
    let folders = socket.ancestors().skip(1);
    let missing: Vec<&Path> = folders.take_while(|folder| !folder.exists()).collect();
    if let [folder, parents @ ..] = missing.as_slice()
        && create_folder(socket).is_ok()
    {
        for parent in parents {
            let _ = fs::set_permissions(parent, Permissions::from_mode(0o755));
        }
        let _ = chown(folder, Some(user.uid), Some(user.gid));
    }
}

#[cfg(test)]
mod tests;
