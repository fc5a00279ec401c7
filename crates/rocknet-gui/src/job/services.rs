//! Jobs and reports about services beside the server: upstreams, PHP, trust stores and databases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rocknet_control::ban::NewBan;
use rocknet_control::response_purge::ResponsePurge;
use rocknet_control::{PhpPoolSummary, UpstreamSummary};

/// Instruction about a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceJob {
    /// Drains the upstream with this address if true, and enables it again if false.
    Drain(String, bool),
    /// Bans a client or network.
    Ban(NewBan),
    /// Lifts the ban of the client or network with this address.
    LiftBan(String),
    /// Drops stored responses.
    DropResponses(ResponsePurge),
    /// Starts new processes in the pool of PHP with this name.
    RestartPhp(String),
    /// Starts the pool with this name.
    StartPhp(String),
    /// Stops the pool with this name.
    StopPhp(String),
    /// Starts or stops the unit of a database.
    Database(String, UnitAction),
}

/// Action on a unit of systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitAction {
    Start,
    Stop,
}

impl UnitAction {
    /// Returns the verb of `systemctl`.
    pub fn verb(self) -> &'static str {
        match self {
            UnitAction::Start => "start",
            UnitAction::Stop => "stop",
        }
    }
}

/// Response times of one address since the start of the server.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResponseTimes {
    /// Number of responses.
    pub count: u64,
    /// Sum of the response times in seconds.
    pub seconds: f64,
}

/// Servers that requests are forwarded to, at a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UpstreamReport {
    /// Time since the start of the program.
    pub at: Duration,
    pub list: Vec<UpstreamSummary>,
    /// Response times by address.
    pub times: BTreeMap<String, ResponseTimes>,
}

/// PHP of the server and of this computer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PhpReport {
    pub pools: Vec<PhpPoolSummary>,
    /// Versions that the programs on this computer have, the newest first.
    pub installed: Vec<String>,
    /// Findings of the check-up about versions that are missing, each with its remedy; `None` if only the pools were
    /// queried, because the check-up takes longer.
    pub missing: Option<Vec<String>>,
}

/// Use of PHP or of other servers by a website or one of its routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteUse {
    /// Name of the website.
    pub site: String,
    /// Pattern of the route; empty for the website itself.
    pub route: String,
    /// Version of PHP, or the address of a PHP that the server does not run.
    pub php: Option<String>,
    /// Account of the scripts.
    pub user: Option<String>,
    /// Addresses of the servers that requests are forwarded to.
    pub servers: Vec<String>,
}

/// State of the local CA in a trust store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    Trusted,
    NotYet,
    #[default]
    Unknown,
}

/// Trust store of this account or of the system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustStore {
    /// Program that reads it: `system`, `Chromium` or `Firefox`.
    pub reader: String,
    pub path: PathBuf,
    pub trust: Trust,
    /// Reason why the state is not known; may be empty.
    pub trouble: String,
}

impl TrustStore {
    /// Returns true for the store of the system, which only root can change.
    pub fn is_of_system(&self) -> bool {
        self.reader == "system"
    }
}

/// Kind of a database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseKind {
    MariaDb,
    MySql,
    PostgreSql,
}

impl DatabaseKind {
    /// Returns the name of the product.
    pub fn name(self) -> &'static str {
        match self {
            DatabaseKind::MariaDb => "MariaDB",
            DatabaseKind::MySql => "MySQL",
            DatabaseKind::PostgreSql => "PostgreSQL",
        }
    }
}

/// State of a database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseState {
    Running,
    /// A start or a stop is in progress.
    Changing,
    Stopped,
    Failed,
}

/// Database server of this computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    pub kind: DatabaseKind,
    /// Unit of systemd that starts it; empty if no unit does.
    pub unit: String,
    pub state: DatabaseState,
    /// Socket at which it listens.
    pub socket: Option<PathBuf>,
    /// TCP port at which it listens.
    pub port: Option<u16>,
}

impl Database {
    /// Returns a text that identifies the database.
    pub fn key(&self) -> String {
        match (&self.socket, self.port) {
            _ if !self.unit.is_empty() => self.unit.clone(),
            (Some(socket), _) => socket.to_string_lossy().into_owned(),
            (None, Some(port)) => format!("{} {port}", self.kind.name()),
            (None, None) => self.kind.name().to_owned(),
        }
    }

    /// Returns a URL for programs, with placeholders for user and database, and without a password. `None` if the
    /// database listens nowhere.
    pub fn connection(&self) -> Option<String> {
        let scheme = match self.kind {
            DatabaseKind::MariaDb | DatabaseKind::MySql => "mysql",
            DatabaseKind::PostgreSql => "postgresql",
        };
        match (self.port, &self.socket, self.kind) {
            (Some(port), ..) => Some(format!("{scheme}://USER@127.0.0.1:{port}/DATABASE")),
            (None, Some(socket), DatabaseKind::PostgreSql) => {
                // libpq takes the folder of the socket as the host.
                let folder = socket.parent()?.to_string_lossy();
                Some(format!("{scheme}://USER@/DATABASE?host={folder}"))
            }
            (None, Some(socket), _) => {
                let socket = socket.to_string_lossy();
                Some(format!("{scheme}://USER@localhost/DATABASE?socket={socket}"))
            }
            (None, None, _) => None,
        }
    }
}

/// Databases of this computer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatabaseReport {
    pub databases: Vec<Database>,
    /// False if this computer has no systemd, so that databases cannot be started here.
    pub has_systemd: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_no_password() {
        let database = |kind, socket: Option<&str>, port| Database {
            kind,
            unit: String::new(),
            state: DatabaseState::Running,
            socket: socket.map(Into::into),
            port,
        };
        for (database, key, expected) in [
            (
                database(DatabaseKind::MariaDb, Some("/run/mysqld/mysqld.sock"), Some(3306)),
                "/run/mysqld/mysqld.sock",
                Some("mysql://USER@127.0.0.1:3306/DATABASE"),
            ),
            (
                database(DatabaseKind::MySql, Some("/s"), None),
                "/s",
                Some("mysql://USER@localhost/DATABASE?socket=/s"),
            ),
            (
                database(DatabaseKind::PostgreSql, Some("/run/postgresql/.s.PGSQL.5432"), None),
                "/run/postgresql/.s.PGSQL.5432",
                Some("postgresql://USER@/DATABASE?host=/run/postgresql"),
            ),
            (
                database(DatabaseKind::PostgreSql, None, Some(5433)),
                "PostgreSQL 5433",
                Some("postgresql://USER@127.0.0.1:5433/DATABASE"),
            ),
            (database(DatabaseKind::PostgreSql, None, None), "PostgreSQL", None),
        ] {
            assert_eq!(database.connection().as_deref(), expected);
            assert_eq!(database.key(), key);
        }
    }
}
