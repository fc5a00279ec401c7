//! Connection to the server, and the places where it may be found: sockets of the configuration and of the system.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rocknet_config::environment::ProcessEnvironment;
use rocknet_config::model::ControlSocket;
use rocknet_config::{CONTROL_SOCKET, SYSTEM_STATE_FOLDER, user_state_folder};
use rocknet_control::api::Request;
use rocknet_control::{Client, ClientError, ServerAddress, SiteSummary, Status};

use super::options::Options;
use crate::home::settings_folder;
use crate::job::Absence;

/// Environment variable with the path of the control socket, for servers and their clients; `off`: no control socket.
const SOCKET_VARIABLE: &str = "ROCKNET_SOCKET";

/// Name of the file with the place of a server elsewhere, in the folder of the settings.
const PLACE_FILE: &str = "server.toml";

/// Configuration of a server that systemd starts.
pub const SYSTEM_CONFIG: &str = "/etc/rocknet/rocknet.toml";

/// Maximum wait for a connection, and for a reply with the state. The server replies in milliseconds, unless it hangs.
pub const STATUS_TIMEOUT: Duration = Duration::from_secs(3);

/// Message in place of a reply if the server has ended since the window sent the job. The window then shows its end.
pub const STOPPED: &str = "the server is stopped";

/// Connection to a server, with its last known state.
pub struct ServerLink {
    pub client: Client,
    pub status: Status,
    pub sites: Vec<SiteSummary>,
    /// Message of the server if it has refused to list the websites.
    pub sites_error: Option<String>,
    /// Time of the last query of the websites, and the number of reloads then.
    pub queried: Option<(Instant, u64)>,
    /// True once the server has refused to compare the files of the configuration, because it is older or has none.
    pub lacks_config_state: bool,
}

impl ServerLink {
    /// Creates the value for a connection.
    pub fn new(client: Client) -> ServerLink {
        ServerLink {
            client,
            status: Status::default(),
            sites: Vec::new(),
            sites_error: None,
            queried: None,
            lacks_config_state: false,
        }
    }

    /// Queries the state, with a short timeout.
    ///
    /// # Errors
    ///
    /// Returns the error of the server or of the connection, which is then unusable.
    pub fn query_status(&mut self) -> Result<Status, ClientError> {
        self.client.set_timeout(STATUS_TIMEOUT)?;
        let status = self.client.call(&Request::Status)?;
        self.client.set_timeout(Client::REPLY_TIMEOUT)?;
        Ok(status)
    }
}

/// Places where a server may be found.
pub struct Places {
    /// Server that the user has named.
    named: Option<ServerAddress>,
    /// Server of this computer that the command line or the environment names. It is used again after one elsewhere.
    own: Option<ServerAddress>,
    /// True if the settings name it, so that it may be on another computer.
    is_elsewhere: bool,
    config: Option<PathBuf>,
    /// File with the place of a server elsewhere; `None` without a home folder.
    place: Option<PathBuf>,
    connected: Option<ServerAddress>,
    /// True if the unit of the system was started, whose server does not use the configuration of the user.
    uses_system: bool,
}

impl Places {
    /// Creates the places of the options.
    pub fn new(options: &Options) -> Places {
        let variable = std::env::var_os(SOCKET_VARIABLE).filter(|value| !value.is_empty() && value != "off");
        let socket = options.socket.clone().or_else(|| variable.map(Into::into));
        let own = socket.map(ServerAddress::Socket);
        Places {
            named: own.clone(),
            own,
            is_elsewhere: false,
            config: options
                .config
                .clone()
                .or_else(|| Some(settings_folder()?.join("rocknet.toml"))),
            place: options
                .place
                .clone()
                .or_else(|| Some(settings_folder()?.join(PLACE_FILE))),
            connected: None,
            uses_system: false,
        }
    }

    /// Returns the same places, for attempts that do not change the last connection.
    pub fn again(&self) -> Places {
        Places {
            named: self.named.clone(),
            own: self.own.clone(),
            is_elsewhere: self.is_elsewhere,
            config: self.config.clone(),
            place: self.place.clone(),
            connected: None,
            uses_system: self.uses_system,
        }
    }

    /// Returns only the place of the last connection.
    pub fn last(&self) -> Places {
        Places {
            named: self.connected.clone().or_else(|| self.named.clone()),
            ..self.again()
        }
    }

    /// Adds the default sockets, such as that of the system, to the socket that the configuration of the user names.
    /// `uses`: false to remove them again.
    pub fn use_system(&mut self, uses: bool) {
        self.uses_system = uses;
    }

    /// Returns the configuration file of a server that this program starts; `None` without a home folder.
    pub fn config(&self) -> Option<PathBuf> {
        self.config.clone()
    }

    /// Returns the file with the place of a server elsewhere; `None` without a home folder.
    pub fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// Returns true if the user has named the server: on the command line, in the environment, or in the settings.
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Returns true if the settings name the server.
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Uses the server of the settings from now on; `None`: the server of this computer.
    pub fn use_server(&mut self, server: Option<ServerAddress>) {
        self.is_elsewhere = server.is_some();
        self.named = server.or_else(|| self.own.clone());
        self.connected = None;
    }

    /// Returns the address of the last connection.
    pub fn connected(&self) -> Option<&ServerAddress> {
        self.connected.as_ref()
    }

    /// Connects to the first server that is found.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no server. A socket without access is reported only if the user has named it.
    pub fn connect(&mut self) -> Result<(PathBuf, Client), Absence> {
        let has_config = self.config.as_ref().is_some_and(|file| file.exists());
        let mut absence = Absence::Stopped(has_config || Path::new(SYSTEM_CONFIG).exists());
        for server in self.servers() {
            match Client::open(&server, STATUS_TIMEOUT) {
                // Refused only for a server elsewhere, because one of this computer may have an account of its own.
                Ok(client) if self.is_elsewhere && client.is_foreign() => {
                    absence = Absence::Foreign(server.shown().to_string_lossy().into_owned());
                }
                Err(ClientError::Foreign(address, _)) => absence = Absence::Foreign(address.to_string()),
                Ok(client) => {
                    let shown = server.shown();
                    self.connected = Some(server);
                    return Ok((shown, client));
                }
                Err(ClientError::NotRunning(server)) if self.is_elsewhere => {
                    absence = Absence::Unreachable(server.to_string_lossy().into_owned());
                }
                Err(ClientError::NotRunning(_)) => {}
                Err(ClientError::NoAccess(socket)) => {
                    // The folder of a server of the system is closed to others, whether a server runs or not.
                    if self.named.is_some() {
                        absence = Absence::NoAccess(socket);
                    }
                }
                Err(error) if error.is_timeout() => absence = Absence::NoReply(server.shown()),
                Err(error) => absence = Absence::Failed(error.to_string()),
            }
        }
        Err(absence)
    }

    /// Returns true if a server is found, and replies.
    pub fn reply(&mut self) -> bool {
        let connected = self.connect();
        connected.is_ok_and(|(_, mut client)| client.call::<Status>(&Request::Status).is_ok())
    }

    fn servers(&self) -> Vec<ServerAddress> {
        match &self.named {
            Some(named) => vec![named.clone()],
            None => self.sockets().into_iter().map(ServerAddress::Socket).collect(),
        }
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let mut sockets: Vec<PathBuf> = self.config.as_deref().and_then(socket_of).into_iter().collect();
        if !sockets.is_empty() && !self.uses_system {
            return sockets;
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
    fn the_server_of_the_system_is_found_after_its_unit_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("rocknet.toml");
        std::fs::write(&config, "[admin]\nsocket = \"/run/own.sock\"\n").unwrap();
        let mut places = Places::new(&Options {
            config: Some(config),
            ..Options::default()
        });
        places.named = None;
        let own = PathBuf::from("/run/own.sock");
        let system = Path::new(SYSTEM_STATE_FOLDER).join(CONTROL_SOCKET);
        assert_eq!(places.sockets(), std::slice::from_ref(&own));
        places.use_system(true);
        assert_eq!(
            (places.sockets().first(), places.sockets().last()),
            (Some(&own), Some(&system))
        );
        assert_eq!(places.again().sockets(), places.sockets());
        // The end of a server is waited for at its own socket only.
        places.connected = Some(ServerAddress::Socket(system.clone()));
        assert_eq!(places.last().servers(), [ServerAddress::Socket(system)]);
        places.use_system(false);
        assert_eq!(places.sockets(), [own]);
    }

    #[test]
    fn the_named_socket_is_used_again_after_a_server_elsewhere() {
        let mut places = Places::new(&Options {
            socket: Some("/run/own.sock".into()),
            ..Options::default()
        });
        let own = [ServerAddress::Socket("/run/own.sock".into())];
        let elsewhere = ServerAddress::Socket("/run/elsewhere.sock".into());
        assert_eq!(places.servers(), own);
        places.use_server(Some(elsewhere.clone()));
        assert_eq!(places.servers(), [elsewhere]);
        places.use_server(None);
        assert_eq!(places.servers(), own);
        assert!(places.is_named() && !places.is_elsewhere());
    }

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
