//! Places where a server may be found: the control socket of the configuration, and that of the system.

use std::path::{Path, PathBuf};

use rocknet_config::environment::ProcessEnvironment;
use rocknet_config::model::ControlSocket;
use rocknet_config::{CONTROL_SOCKET, SYSTEM_STATE_FOLDER, user_state_folder};
use rocknet_control::{Client, ClientError, ServerAddress};

use super::options::Options;
use crate::job::Absence;
use crate::model::Settings;

/// Environment variable with the path of the control socket, for servers and their clients.
const SOCKET_VARIABLE: &str = "ROCKNET_SOCKET";

/// Configuration of a server that systemd starts.
const SYSTEM_CONFIG: &str = "/etc/rocknet/rocknet.toml";

/// Places where a server may be found.
pub struct Places {
    /// Socket that the user has named.
    named: Option<PathBuf>,
    config: Option<PathBuf>,
    connected: Option<ServerAddress>,
}

impl Places {
    /// Creates the places of the options.
    pub fn new(options: &Options) -> Places {
        let variable = std::env::var_os(SOCKET_VARIABLE).filter(|value| !value.is_empty() && value != "off");
        Places {
            named: options.socket.clone().or_else(|| variable.map(Into::into)),
            config: options
                .config
                .clone()
                .or_else(|| Some(Settings::folder()?.join("rocknet.toml"))),
            connected: None,
        }
    }

    /// Returns the same places, for attempts that do not change the last connection.
    pub fn again(&self) -> Places {
        Places {
            named: self.named.clone(),
            config: self.config.clone(),
            connected: None,
        }
    }

    /// Returns the configuration file of a server that this program starts; `None` without a home folder.
    pub fn config(&self) -> Option<PathBuf> {
        self.config.clone()
    }

    /// Returns true if the user has named the socket.
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Returns the address of the last connection.
    pub fn connected(&self) -> Option<&ServerAddress> {
        self.connected.as_ref()
    }

    /// Connects to the first server that is found.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no server. A socket without access counts more than a missing one.
    pub fn connect(&mut self) -> Result<(PathBuf, Client), Absence> {
        let has_config = self.config.as_ref().is_some_and(|file| file.exists());
        let mut absence = Absence::Stopped(has_config || Path::new(SYSTEM_CONFIG).exists());
        for socket in self.sockets() {
            match Client::connect(&socket) {
                Ok(client) => {
                    self.connected = Some(ServerAddress::Socket(socket.clone()));
                    return Ok((socket, client));
                }
                Err(ClientError::NotRunning(_)) => {}
                Err(ClientError::NoAccess(socket)) => {
                    // The folder of a server of the system is closed to others, whether a server runs or not.
                    if self.named.is_some() {
                        absence = Absence::NoAccess(socket);
                    }
                }
                Err(error) => absence = Absence::Failed(error.to_string()),
            }
        }
        Err(absence)
    }

    fn sockets(&self) -> Vec<PathBuf> {
        if let Some(named) = &self.named {
            return vec![named.clone()];
        }
        let mut sockets = Vec::new();
        if let Some(socket) = self.config.as_deref().and_then(socket_of) {
            return vec![socket];
        }
        sockets.extend(user_state_folder().map(|state| state.join(CONTROL_SOCKET)));
        sockets.extend(socket_of(Path::new(SYSTEM_CONFIG)));
        sockets.push(Path::new(SYSTEM_STATE_FOLDER).join(CONTROL_SOCKET));
        sockets
    }
}

/// Returns the control socket that a configuration file names, itself or by its state folder.
fn socket_of(file: &Path) -> Option<PathBuf> {
    if !file.exists() {
        return None;
    }
    let config = rocknet_config::load_despite_errors(file, &ProcessEnvironment).ok()?;
    match (&config.admin.socket, &config.server.state) {
        (ControlSocket::File(path), _) => Some(path.clone()),
        (_, Some(state)) => Some(state.join(CONTROL_SOCKET)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_names_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rocknet.toml");
        assert_eq!(socket_of(&file), None);
        for (text, expected) in [
            (
                "[admin]\nsocket = \"/run/rocknet/control.sock\"\n",
                Some("/run/rocknet/control.sock"),
            ),
            (
                "[server]\nstate = \"/var/lib/rocknet\"\n",
                Some("/var/lib/rocknet/admin/control.sock"),
            ),
            ("[server]\nmode = \"dev\"\n", None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(socket_of(&file).as_deref(), expected.map(Path::new), "{text}");
        }
    }
}
