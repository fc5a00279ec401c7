//! Control API of the program: a second server in the same process, whose only handler passes requests to the main
//! loop.
//!
//! It shares nothing with the server that it controls: it has its own worker and limits, so it responds even if all
//! connections of the other server are in use, and its requests are in no counter or log of the sites.

use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aws_lc_rs::rand;
use rocknet::certificates::storage::{Access, FileStorage, Storage};
use rocknet::certificates::{SYSTEM_STATE_FOLDER, state_folder};
use rocknet::log::Logger;
use rocknet::server::{Server, StartError, StartHooks};
use rocknet::snapshot::{Mount, addresses};
use rocknet::takeover::InheritedSockets;
use rocknet_admin::{AdminHandler, Control, ReplyFuture, Tokens};
use rocknet_config::Config;
use rocknet_config::model::{ControlSocket, Listen, Pattern};
use rocknet_control::api::{ApiError, Request};
use rocknet_control::logs::LogFilter;
use rocknet_handler::response::Stream;
use rocknet_io::privileges::User;
use tokio::sync::mpsc;

use super::Failure;
use super::event::{ControlRequest, Event};
use super::log_feed::LogFeed;

/// Name of the socket in the state folder.
const SOCKET_NAME: &str = "admin/control.sock";

/// Environment variable with the path of the socket, for servers and for commands. `off`: no socket.
const SOCKET_VARIABLE: &str = "ROCKNET_SOCKET";

/// Attempts to lock a token, and the pause between them. The other server holds the lock for one write.
const LOCK_ATTEMPTS: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Random bytes of a token, which is written in hexadecimal digits.
const TOKEN_BYTES: usize = 32;

/// Returns the path of the control socket, or `None` if it is switched off. `state`: folder of the server's state.
pub fn socket(config: &Config, state: &Path) -> Option<PathBuf> {
    if let Some(path) = socket_of_environment() {
        return path;
    }
    match &config.admin.socket {
        ControlSocket::Off => None,
        ControlSocket::Auto => Some(state.join(SOCKET_NAME)),
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
    let is_default = first == own.join(SOCKET_NAME) && config.server.state.is_none();
    // A server that was started by another account uses the folder of the system, or of that account.
    let system = is_default.then(|| Path::new(SYSTEM_STATE_FOLDER).join(SOCKET_NAME));
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

    fn follow_logs(&self, filter: LogFilter) -> Box<dyn Stream> {
        Box::new(LogFeed::new(self.logger.follow(), filter))
    }
}

/// Addresses of the API.
pub struct ControlAddresses {
    socket: Option<PathBuf>,
    listen: Option<SocketAddr>,
    /// Folder of the server's state, which contains the tokens.
    state: PathBuf,
}

impl ControlAddresses {
    /// Returns the addresses of the configuration. `state`: folder of the server's state.
    pub fn new(config: &Config, state: &Path) -> ControlAddresses {
        ControlAddresses {
            socket: socket(config, state),
            listen: config.admin.listen,
            state: state.to_owned(),
        }
    }

    /// Returns the address of a server without a configuration. Only the environment can name its socket, because
    /// several such servers may run at a time.
    pub fn of_environment(state: &Path) -> ControlAddresses {
        ControlAddresses {
            socket: socket_of_environment().flatten(),
            listen: None,
            state: state.to_owned(),
        }
    }
}

/// Starts the API at each of the addresses that can be used. An address that another server uses, or that cannot be
/// created, is logged as a warning. The folder of the socket and the tokens are created if they do not exist.
///
/// `inherited`: sockets of a previous process, which are adopted.
pub fn start(addresses: &ControlAddresses, control: &MainLoopControl, inherited: InheritedSockets) -> Vec<Server> {
    let mut adoption = Adoption(inherited);
    let socket = addresses.socket.as_ref().map(|socket| {
        (
            socket.display().to_string(),
            start_socket(socket, control, &mut adoption),
        )
    });
    let listen = addresses.listen.map(|address| {
        let started = start_tcp(address, &addresses.state, control, &mut adoption);
        (address.to_string(), started)
    });
    let mut servers = Vec::new();
    for (address, started) in socket.into_iter().chain(listen) {
        match started {
            Ok(server) => servers.push(server),
            Err(error) => tracing::warn!("the control API is not available at {address}: {error}"),
        }
    }
    adoption.0.close_rest();
    servers
}

/// Sockets of a previous process that are left for the next server of the API.
struct Adoption(InheritedSockets);

/// Start of one server of the API, which adopts the socket of its address.
struct ServerAdoption(InheritedSockets);

impl StartHooks for ServerAdoption {
    fn inherited(&mut self) -> InheritedSockets {
        std::mem::take(&mut self.0)
    }
}

fn start_socket(socket: &Path, control: &MainLoopControl, adoption: &mut Adoption) -> Result<Server, StartError> {
    create_folder(socket).map_err(StartError::Io)?;
    start_at(Listen::Unix(socket.to_owned()), None, control, adoption)
}

fn start_tcp(
    address: SocketAddr,
    state: &Path,
    control: &MainLoopControl,
    adoption: &mut Adoption,
) -> Result<Server, StartError> {
    let tokens = Tokens {
        full: token(state, "admin/token").map_err(StartError::Io)?,
        read: token(state, "admin/read-token").map_err(StartError::Io)?,
    };
    let listen = Listen::Tcp {
        address: Some(address.ip()),
        port: address.port(),
    };
    let server = start_at(listen, Some(tokens), control, adoption)?;
    for (_, address, _) in server.listeners() {
        tracing::info!("the control API listens at http://{address}/");
    }
    Ok(server)
}

fn start_at(
    listen: Listen,
    tokens: Option<Tokens>,
    control: &MainLoopControl,
    adoption: &mut Adoption,
) -> Result<Server, StartError> {
    let config = Config::for_handlers(vec![listen]);
    let mount = Mount {
        site: config.sites[0].name.clone(),
        pattern: Pattern::Prefix("/".to_owned()),
        handler: Arc::new(AdminHandler::new(control.clone(), tokens)),
    };
    let own = adoption.0.split(&addresses(&config));
    Server::start(config, vec![mount], &mut ServerAdoption(own))
}

/// Reads a token from the state folder, and creates it first if it does not exist.
fn token(state: &Path, name: &str) -> io::Result<String> {
    let storage = FileStorage::new(state);
    // Another server with the same state folder may create the token at the same time.
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
    rand::fill(&mut bytes).map_err(|_| io::Error::other("the system provides no random numbers"))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    storage.write(name, format!("{token}\n").as_bytes(), Access::Owner)?;
    Ok(token)
}

/// Creates the folder of the socket if it does not exist. In the state folder, it is for the server's user only;
/// elsewhere, its group may enter too.
fn create_folder(socket: &Path) -> io::Result<()> {
    match socket.parent() {
        Some(folder) if !folder.exists() => {
            let mode = if socket.ends_with(SOCKET_NAME) { 0o700 } else { 0o750 };
            DirBuilder::new().recursive(true).mode(mode).create(folder)
        }
        _ => Ok(()),
    }
}

/// Creates the folder of a socket that the configuration names, and gives it to the account that the server becomes. To
/// be called as root. An error is reported later, when the socket is bound.
pub fn prepare_folder(config: &Config, user: &User) {
    if let ControlSocket::File(socket) = &config.admin.socket
        && let Some(folder) = socket.parent()
        && !folder.exists()
        && create_folder(socket).is_ok()
    {
        let _ = chown(folder, Some(user.uid), Some(user.gid));
    }
}
