//! Databases and PHP of this computer: sockets, listening ports, units of systemd, and programs.
//!
//! No connection is opened to a database: MySQL counts connections without a login as errors of the host, and logs
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::units::property;
use crate::job::{Database, DatabaseKind, DatabaseReport, DatabaseState, Trouble, UnitAction};

/// Sockets at which MariaDB and MySQL listen on Debian, Fedora, and after a build from source.
const MYSQL_SOCKETS: [&str; 3] = ["run/mysqld/mysqld.sock", "var/lib/mysql/mysql.sock", "tmp/mysql.sock"];

/// Folders with the sockets of PostgreSQL.
const POSTGRES_FOLDERS: [&str; 2] = ["run/postgresql", "tmp"];

/// Beginning of the name of a socket of PostgreSQL, before its port.
const POSTGRES_SOCKET: &str = ".s.PGSQL.";

/// Units of MariaDB, MySQL and PostgreSQL. `mysql.service` of Debian is another name of `mariadb.service`.
const UNITS: [&str; 4] = [
    "mariadb.service",
    "mysql.service",
    "mysqld.service",
    "postgresql.service",
];

/// Default ports.
const MYSQL_PORT: u16 = 3306;
const POSTGRES_PORT: u16 = 5432;

/// Maximum number of versions of PostgreSQL, and of clusters of each version, that are looked at.
const MAX_CLUSTERS: usize = 32;

/// Folders of programs in which PHP is looked for.
const PROGRAM_FOLDERS: [&str; 4] = ["usr/sbin", "usr/bin", "usr/local/sbin", "usr/local/bin"];

/// This computer.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Folder of the file system: `/`, except in tests.
    root: PathBuf,
    systemctl: PathBuf,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            root: "/".into(),
            systemctl: "systemctl".into(),
        }
    }
}

/// Addresses in `/proc/net/tcp` that connections from this computer reach: all addresses, and 127.0.0.1.
const LOCAL_V4: [&str; 2] = ["00000000", "0100007F"];

/// The same for IPv6 in `/proc/net/tcp6`: all addresses, and `::1`.
const LOCAL_V6: [&str; 2] = ["00000000000000000000000000000000", "00000000000000000000000001000000"];

/// Unit of systemd.
#[derive(Debug, PartialEq, Eq)]
struct Unit {
    name: String,
    state: DatabaseState,
    description: String,
}

impl Machine {
    /// Returns the databases of this computer, including stopped databases.
    pub fn databases(&self) -> DatabaseReport {
        let clusters = self.postgres_clusters();
        let units = self.units(&clusters);
        let ports = self.listening_ports();
        let mut databases = Vec::new();
        self.add_mysql(units.as_deref().unwrap_or_default(), &ports, &mut databases);
        self.add_postgres(units.as_deref().unwrap_or_default(), &clusters, &ports, &mut databases);
        databases.sort_by(|one: &Database, two| (one.kind, &one.unit).cmp(&(two.kind, &two.unit)));
        DatabaseReport {
            databases,
            has_systemd: units.is_some(),
        }
    }

    /// Starts or stops a unit, and waits for the result. systemd asks the user for a password if one is needed.
    ///
    /// # Errors
    ///
    /// Returns the message of `systemctl`.
    pub fn control(&self, unit: &str, action: UnitAction) -> Result<(), Trouble> {
        let output = Command::new(&self.systemctl)
            .args([action.verb(), "--", unit])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Trouble::of(&self.systemctl, &error))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(match errors.trim() {
            "" => Trouble::CommandFailed(format!("systemctl {} {unit}", action.verb())),
            errors => errors.to_owned().into(),
        })
    }

    /// Returns the versions of PHP that programs on this computer have in their names, the newest first.
    pub fn php_versions(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        for folder in PROGRAM_FOLDERS {
            let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
            for entry in entries {
                found.extend(php_version(&entry.file_name().to_string_lossy()));
            }
        }
        let newest_first = found.into_iter().rev();
        newest_first.map(|(major, minor)| format!("{major}.{minor}")).collect()
    }

    fn add_mysql(&self, units: &[Unit], ports: &BTreeSet<u16>, databases: &mut Vec<Database>) {
        let socket = MYSQL_SOCKETS.iter().find(|socket| self.is_bound(socket));
        let socket = socket.map(|socket| Path::new("/").join(socket));
        let port = ports.contains(&MYSQL_PORT).then_some(MYSQL_PORT);
        let of_unit = |unit: &Unit| {
            let is_maria = unit.name == "mariadb.service" || unit.description.contains("MariaDB");
            let kind = if is_maria {
                DatabaseKind::MariaDb
            } else {
                DatabaseKind::MySql
            };
            (kind, unit.name.clone(), unit.state)
        };
        let mut found: Vec<_> = units
            .iter()
            .filter(|unit| !unit.name.starts_with("postgresql"))
            .map(of_unit)
            .collect();
        let runs = |state| matches!(state, DatabaseState::Running | DatabaseState::Changing);
        let is_unmanaged = !found.iter().any(|(.., state)| runs(*state)) && (socket.is_some() || port.is_some());
        if is_unmanaged {
            // The database was not started by systemd: in a container, or by hand.
            found.push((DatabaseKind::MySql, String::new(), DatabaseState::Running));
        }
        databases.extend(found.into_iter().map(|(kind, unit, state)| {
            let listens = state == DatabaseState::Running;
            Database {
                kind,
                unit,
                state,
                socket: socket.clone().filter(|_| listens),
                port: port.filter(|_| listens),
            }
        }));
    }

    fn add_postgres(
        &self,
        units: &[Unit],
        clusters: &BTreeMap<String, u16>,
        ports: &BTreeSet<u16>,
        databases: &mut Vec<Database>,
    ) {
        let mut sockets = self.postgres_sockets();
        let mut found: Vec<&Unit> = units
            .iter()
            .filter(|unit| unit.name.starts_with("postgresql"))
            .collect();
        // On Debian, `postgresql.service` only starts the units of the clusters.
        if found.iter().any(|unit| unit.name.contains('@')) {
            found.retain(|unit| unit.name != "postgresql.service");
        }
        let mut known = BTreeSet::new();
        for unit in found {
            let configured = clusters.get(&unit.name).copied().unwrap_or(POSTGRES_PORT);
            let is_running = unit.state == DatabaseState::Running;
            known.insert(configured);
            databases.push(Database {
                kind: DatabaseKind::PostgreSql,
                unit: unit.name.clone(),
                state: unit.state,
                socket: sockets.remove(&configured).filter(|_| is_running),
                port: Some(configured).filter(|port| is_running && ports.contains(port)),
            });
        }
        if ports.contains(&POSTGRES_PORT) && !known.contains(&POSTGRES_PORT) && !sockets.contains_key(&POSTGRES_PORT) {
            databases.push(unmanaged_postgres(None, Some(POSTGRES_PORT)));
        }
        databases.extend(sockets.into_iter().map(|(port, socket)| {
            let port = Some(port).filter(|port| ports.contains(port));
            unmanaged_postgres(Some(socket), port)
        }));
    }

    /// Returns the unit of each cluster of Debian, with its port. Units of stopped clusters are not loaded, so systemd
    /// does not list them.
    fn postgres_clusters(&self) -> BTreeMap<String, u16> {
        let folders = |path: PathBuf| {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.take(MAX_CLUSTERS).map(|entry| entry.path())
        };
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let mut found = BTreeMap::new();
        for version in folders(self.root.join("etc/postgresql")) {
            for cluster in folders(version.clone()) {
                let settings = fs::read_to_string(cluster.join("postgresql.conf"));
                let (Ok(settings), Some(version), Some(cluster)) = (settings, name(&version), name(&cluster)) else {
                    continue;
                };
                let port = settings.lines().find_map(port_setting).unwrap_or(POSTGRES_PORT);
                found.insert(format!("postgresql@{version}-{cluster}.service"), port);
            }
        }
        found
    }

    /// Returns the units that exist; `None` without systemd.
    fn units(&self, clusters: &BTreeMap<String, u16>) -> Option<Vec<Unit>> {
        let output = Command::new(&self.systemctl)
            .args(["show", "--no-pager", "--property=Id,LoadState,ActiveState,Description"])
            .arg("--")
            .args(UNITS)
            .args(clusters.keys())
            .stdin(Stdio::null())
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| parse_units(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Returns the TCP ports at which programs on this computer listen, over IPv4 or IPv6.
    fn listening_ports(&self) -> BTreeSet<u16> {
        let mut ports = BTreeSet::new();
        for file in ["proc/net/tcp", "proc/net/tcp6"] {
            let text = fs::read_to_string(self.root.join(file)).unwrap_or_default();
            ports.extend(text.lines().skip(1).filter_map(listening_port));
        }
        ports
    }

    /// Returns the TCP ports at which programs on this computer listen for connections from this computer, each with
    /// the address that leads to the program: that of IPv4 if there is one.
    pub fn local_servers(&self) -> BTreeMap<u16, IpAddr> {
        let mut servers = BTreeMap::new();
        let addresses = [
            ("proc/net/tcp6", IpAddr::V6(Ipv6Addr::LOCALHOST), LOCAL_V6),
            ("proc/net/tcp", IpAddr::V4(Ipv4Addr::LOCALHOST), LOCAL_V4),
        ];
        for (file, address, local) in addresses {
            let text = fs::read_to_string(self.root.join(file)).unwrap_or_default();
            let is_local = |line: &&str| {
                let listens_at = line.split_whitespace().nth(1).and_then(|own| own.split(':').next());
                listens_at.is_some_and(|own| local.contains(&own))
            };
            let ports = text.lines().skip(1).filter(is_local).filter_map(listening_port);
            servers.extend(ports.map(|port| (port, address)));
        }
        servers
    }

    /// Returns the sockets of PostgreSQL by port.
    fn postgres_sockets(&self) -> BTreeMap<u16, PathBuf> {
        let mut sockets = BTreeMap::new();
        for folder in POSTGRES_FOLDERS {
            let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
            for entry in entries {
                let name = entry.file_name().to_string_lossy().into_owned();
                let port = name
                    .strip_prefix(POSTGRES_SOCKET)
                    .and_then(|port| port.parse::<u16>().ok());
                let path = Path::new(folder).join(&name);
                if let Some(port) = port.filter(|_| self.is_bound(&path.to_string_lossy())) {
                    sockets.entry(port).or_insert(Path::new("/").join(path));
                }
            }
        }
        sockets
    }

    /// Returns true if a program listens at a socket, which a program that was killed leaves behind.
    fn is_bound(&self, socket: &str) -> bool {
        if !self.root.join(socket).exists() {
            return false;
        }
        // Without the list, such as in a container, the file has to suffice.
        let Ok(bound) = fs::read_to_string(self.root.join("proc/net/unix")) else {
            return true;
        };
        // `/var/run` is a link to `/run`, and a program may have used either name.
        let names = [format!("/{socket}"), format!("/var/{socket}")];
        bound.lines().any(|line| {
            line.split_whitespace()
                .nth(7)
                .is_some_and(|path| names.iter().any(|name| name == path))
        })
    }
}

fn unmanaged_postgres(socket: Option<PathBuf>, port: Option<u16>) -> Database {
    Database {
        kind: DatabaseKind::PostgreSql,
        unit: String::new(),
        state: DatabaseState::Running,
        socket,
        port,
    }
}

/// Returns the port of a line of `postgresql.conf` such as `port = 5433   # comment`.
fn port_setting(line: &str) -> Option<u16> {
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next()?.trim();
    (key.trim() == "port").then(|| value.parse().ok())?
}

/// Returns the local port of a line of `/proc/net/tcp`, if a program listens at it.
fn listening_port(line: &str) -> Option<u16> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    (fields.nth(1)? == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
}

/// Returns the version in the name of a program of PHP, such as `php-fpm8.2` or `php-cgi8.2`.
fn php_version(name: &str) -> Option<(u32, u32)> {
    let version = name.strip_prefix("php-fpm").or_else(|| name.strip_prefix("php-cgi"))?;
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Parses the output of `systemctl show`: a paragraph for each unit. Units under several names are listed once.
fn parse_units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for paragraph in text.split("\n\n") {
        let property = |name: &str| property(paragraph, name);
        let name = property("Id");
        if property("LoadState") != "loaded" || name.is_empty() || units.iter().any(|unit| unit.name == name) {
            continue;
        }
        units.push(Unit {
            name: name.to_owned(),
            state: match property("ActiveState") {
                "active" => DatabaseState::Running,
                "activating" | "deactivating" | "reloading" => DatabaseState::Changing,
                "failed" => DatabaseState::Failed,
                _ => DatabaseState::Stopped,
            },
            description: property("Description").to_owned(),
        });
    }
    units
}

#[cfg(test)]
mod tests;
