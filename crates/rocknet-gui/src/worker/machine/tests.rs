//! Databases of a folder in place of `/`, with a program in place of `systemctl`.

use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// Head of `/proc/net/tcp`, which is no connection.
const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n";

/// Creates a computer with these files, whose `systemctl` prints `units` and writes its arguments to a file.
fn machine(files: &[(&str, &str)], units: &str) -> (TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(folder.path().join("units"), units).unwrap();
    let systemctl = folder.path().join("systemctl");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {0}/called\ncase $1 in\nshow) cat {0}/units ;;\nstart) exit 0 ;;\n*) echo 'Access \
         denied' >&2; exit 1 ;;\nesac\n",
        folder.path().display()
    );
    fs::write(&systemctl, script).unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let machine = Machine { root, systemctl };
    (folder, machine)
}

fn unit(id: &str, load: &str, active: &str, description: &str) -> String {
    format!("Id={id}\nLoadState={load}\nActiveState={active}\nDescription={description}\n\n")
}

#[test]
fn units_sockets_and_ports_describe_a_database() {
    let units = [
        unit("mariadb.service", "loaded", "active", "MariaDB 10.11 database server"),
        // The same unit under its other name, and one that does not exist.
        unit("mariadb.service", "loaded", "active", "MariaDB 10.11 database server"),
        unit("mysqld.service", "not-found", "inactive", "mysqld.service"),
        unit("postgresql.service", "loaded", "active", "PostgreSQL RDBMS"),
        unit(
            "postgresql@15-main.service",
            "loaded",
            "failed",
            "PostgreSQL Cluster 15-main",
        ),
        unit(
            "postgresql@16-shop.service",
            "loaded",
            "active",
            "PostgreSQL Cluster 16-shop",
        ),
    ];
    let line = |port: u16, state: &str| format!("   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000\n");
    let tcp = format!("{HEAD}{}{}", line(3306, "0A"), line(5432, "01"));
    let tcp6 = format!("{HEAD}   0: 00000000000000000000000001000000:1539 0:0000 0A 0:0\n");
    let bound = "Num RefCount Protocol Flags Type St Inode Path\n\
                 0: 00000002 00000000 00010000 0001 01 1 /var/run/mysqld/mysqld.sock\n\
                 0: 00000002 00000000 00010000 0001 01 2 /run/postgresql/.s.PGSQL.5433\n";
    let (folder, machine) = machine(
        &[
            ("run/mysqld/mysqld.sock", ""),
            // Left behind by a program that was killed.
            ("run/postgresql/.s.PGSQL.5432", ""),
            ("run/postgresql/.s.PGSQL.5433", ""),
            ("run/postgresql/.s.PGSQL.5433.lock", ""),
            (
                "etc/postgresql/15/main/postgresql.conf",
                "#port = 1\nport = 5432\t\t# (change requires restart)\n",
            ),
            (
                "etc/postgresql/16/shop/postgresql.conf",
                "max_connections = 100\nport=5433\n",
            ),
            ("proc/net/tcp", &tcp),
            ("proc/net/tcp6", &tcp6),
            ("proc/net/unix", bound),
        ],
        &units.concat(),
    );
    let report = machine.databases();
    assert!(report.has_systemd);
    let database = |kind, unit: &str, state, socket: Option<&str>, port| Database {
        kind,
        unit: unit.to_owned(),
        state,
        socket: socket.map(Into::into),
        port,
    };
    assert_eq!(
        report.databases,
        [
            database(
                DatabaseKind::MariaDb,
                "mariadb.service",
                DatabaseState::Running,
                Some("/run/mysqld/mysqld.sock"),
                Some(3306)
            ),
            database(
                DatabaseKind::PostgreSql,
                "postgresql@15-main.service",
                DatabaseState::Failed,
                None,
                None
            ),
            database(
                DatabaseKind::PostgreSql,
                "postgresql@16-shop.service",
                DatabaseState::Running,
                Some("/run/postgresql/.s.PGSQL.5433"),
                Some(5433)
            ),
        ]
    );
    let called = fs::read_to_string(folder.path().join("called")).unwrap();
    assert!(
        called.contains("postgresql@15-main.service postgresql@16-shop.service"),
        "{called}"
    );
}

#[test]
fn databases_without_a_unit_are_found_by_what_they_listen_at() {
    let tcp = format!("{HEAD}   0: 00000000:0CEA 0:0 0A 0:0\n   1: 00000000:1538 0:0 0A 0:0\n");
    let (_folder, mut machine) = machine(&[("proc/net/tcp", &tcp), ("tmp/.s.PGSQL.5499", "")], "");
    machine.systemctl = "/nonexistent/systemctl".into();
    let report = machine.databases();
    assert!(!report.has_systemd);
    let found: Vec<_> = report
        .databases
        .iter()
        .map(|database| (database.kind, database.port, database.socket.is_some(), &*database.unit))
        .collect();
    assert_eq!(
        found,
        [
            (DatabaseKind::MySql, Some(3306), false, ""),
            (DatabaseKind::PostgreSql, Some(5432), false, ""),
            (DatabaseKind::PostgreSql, None, true, ""),
        ]
    );
}

#[test]
fn a_computer_without_databases_has_none() {
    let missing = ["mariadb.service", "postgresql.service"].map(|id| unit(id, "not-found", "inactive", id));
    let (_folder, machine) = machine(&[], &missing.concat());
    assert_eq!(
        machine.databases(),
        DatabaseReport {
            databases: Vec::new(),
            has_systemd: true
        }
    );
}

#[test]
fn units_are_started_and_refusals_reported() {
    let (folder, machine) = machine(&[], "");
    assert_eq!(machine.control("mariadb.service", UnitAction::Start), Ok(()));
    let refused = machine.control("mariadb.service", UnitAction::Stop);
    assert_eq!(refused, Err("Access denied".to_owned().into()));
    let called = fs::read_to_string(folder.path().join("called")).unwrap();
    assert_eq!(called, "start -- mariadb.service\nstop -- mariadb.service\n");
}

#[test]
fn versions_of_php_are_those_of_its_programs() {
    let (_folder, machine) = machine(
        &[
            ("usr/sbin/php-fpm8.2", ""),
            ("usr/bin/php-cgi8.2", ""),
            ("usr/bin/php-cgi8.10", ""),
            ("usr/bin/php8.4", ""),
            ("usr/bin/phpize", ""),
        ],
        "",
    );
    assert_eq!(machine.php_versions(), ["8.10", "8.2"]);
}

#[test]
fn servers_of_this_computer_are_found_over_both_protocols() {
    let line = |address: &str, state: &str| format!("   0: {address} 00000000:0000 {state} 00000000:00000000\n");
    let any_v6 = "0".repeat(32);
    let tcp = [
        HEAD.to_owned(),
        line("0100007F:0BB8", "0A"),
        line("00000000:1F40", "0A"),
        // A connection, and a server that listens at another address.
        line("0100007F:1770", "01"),
        line("0200A8C0:1771", "0A"),
    ];
    let tcp6 = [
        HEAD.to_owned(),
        line("00000000000000000000000001000000:1435", "0A"),
        line(&format!("{any_v6}:1F40"), "0A"),
    ];
    let (_folder, machine) = machine(
        &[("proc/net/tcp", &tcp.concat()), ("proc/net/tcp6", &tcp6.concat())],
        "",
    );
    let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let expected = [(3000, v4), (5173, IpAddr::V6(Ipv6Addr::LOCALHOST)), (8000, v4)];
    assert_eq!(machine.local_servers(), BTreeMap::from(expected));
}
