//! Control API of the program: a second server in the same process, whose only handler passes requests to the main
//! loop.
//!
//! It shares nothing with the server that it controls: it has its own worker and limits, so it responds even if all
//! connections of the other server are in use, and its requests are in no counter or log of the sites.

use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::rand;
use rocknet::certificates::storage::{Access, FileStorage, Storage};
use rocknet::server::{Server, StartError};
use rocknet::snapshot::Mount;
use rocknet_admin::{AdminHandler, Control, ReplyFuture, Tokens};
use rocknet_config::Config;
use rocknet_config::model::{ControlSocket, Listen, Pattern};
use rocknet_control::api::{ApiError, Request};
use tokio::sync::mpsc;

use super::event::{ControlRequest, Event};

/// Name of the socket in the state folder.
const SOCKET_NAME: &str = "control.sock";

/// Environment variable with the path of the socket, for servers and for commands. `off`: no socket.
const SOCKET_VARIABLE: &str = "ROCKNET_SOCKET";

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

/// Returns the value of the environment variable if it is set. The inner `None` switches the socket off.
pub fn socket_of_environment() -> Option<Option<PathBuf>> {
    let value = std::env::var_os(SOCKET_VARIABLE).filter(|value| !value.is_empty())?;
    Some((value != "off").then(|| value.into()))
}

/// Passes requests to the main loop.
struct MainLoopControl(mpsc::Sender<Event>);

impl Control for MainLoopControl {
    fn execute(&self, request: Request) -> ReplyFuture {
        let events = self.0.clone();
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

impl std::fmt::Display for ControlAddresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let socket = self.socket.as_ref().map(|socket| socket.display().to_string());
        let listen = self.listen.map(|address| address.to_string());
        f.write_str(&socket.into_iter().chain(listen).collect::<Vec<_>>().join(", "))
    }
}

/// Starts the API; `None` if it has no address. The folder of the socket and the tokens are created if they do not
/// exist.
///
/// # Errors
///
/// Fails if another server uses an address, or if the socket or a token cannot be created.
pub fn start(addresses: &ControlAddresses, events: mpsc::Sender<Event>) -> Result<Option<Server>, StartError> {
    let mut listen = Vec::new();
    if let Some(socket) = &addresses.socket {
        create_folder(socket).map_err(StartError::Io)?;
        listen.push(Listen::Unix(socket.clone()));
    }
    let mut tokens = None;
    if let Some(address) = addresses.listen {
        tokens = Some(Tokens {
            full: token(&addresses.state, "admin/token").map_err(StartError::Io)?,
            read: token(&addresses.state, "admin/read-token").map_err(StartError::Io)?,
        });
        listen.push(Listen::Tcp {
            address: Some(address.ip()),
            port: address.port(),
        });
    }
    if listen.is_empty() {
        return Ok(None);
    }
    let config = Config::for_handlers(listen);
    let mount = Mount {
        site: config.sites[0].name.clone(),
        pattern: Pattern::Prefix("/".to_owned()),
        handler: Arc::new(AdminHandler::new(MainLoopControl(events), tokens)),
    };
    let server = Server::start(config, vec![mount], &mut ())?;
    for (_, address, _) in server.listeners() {
        if address.port().is_some() {
            tracing::info!("the control API listens at http://{address}/");
        }
    }
    Ok(Some(server))
}

/// Reads a token from the state folder, and creates it first if it does not exist.
fn token(state: &Path, name: &str) -> io::Result<String> {
    let storage = FileStorage::new(state);
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

fn create_folder(socket: &Path) -> io::Result<()> {
    match socket.parent() {
        Some(folder) if !folder.exists() => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        _ => Ok(()),
    }
}
