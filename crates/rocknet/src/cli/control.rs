//! Control API of the program: a second server in the same process, whose only handler passes requests to the main
//! loop.
//!
//! It shares nothing with the server that it controls: it has its own worker and limits, so it responds even if all
//! connections of the other server are in use, and its requests are in no counter or log of the sites.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocknet::server::{Server, StartError};
use rocknet::snapshot::Mount;
use rocknet_admin::{AdminHandler, Control, ReplyFuture};
use rocknet_config::Config;
use rocknet_config::model::{ControlSocket, Listen, Pattern};
use rocknet_control::api::{ApiError, Request};
use tokio::sync::mpsc;

use super::event::{ControlRequest, Event};

/// Name of the socket in the state folder.
const SOCKET_NAME: &str = "control.sock";

/// Environment variable with the path of the socket, for servers and for commands. `off`: no socket.
const SOCKET_VARIABLE: &str = "ROCKNET_SOCKET";

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

/// Starts the API at a socket. The folder of the socket is created if it does not exist.
///
/// # Errors
///
/// Fails if another server uses the socket, or if it cannot be created.
pub fn start(socket: &Path, events: mpsc::Sender<Event>) -> Result<Server, StartError> {
    create_folder(socket).map_err(StartError::Io)?;
    let config = Config::for_handlers(Listen::Unix(socket.to_owned()));
    let mount = Mount {
        site: config.sites[0].name.clone(),
        pattern: Pattern::Prefix("/".to_owned()),
        handler: Arc::new(AdminHandler::new(MainLoopControl(events))),
    };
    Server::start(config, vec![mount], &mut ())
}

fn create_folder(socket: &Path) -> io::Result<()> {
    match socket.parent() {
        Some(folder) if !folder.exists() => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        _ => Ok(()),
    }
}
