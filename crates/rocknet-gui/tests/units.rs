//! A server that a unit of systemd runs: started, restarted and stopped by the worker, with the real server and a
//! `systemctl` that is played by a script.

#[path = "machine/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod machine;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use machine::WorkerLink;
use rocknet_gui::job::{Absence, Job, Report};
use rocknet_gui::ways::{Obstacle, Starter, UnitKind, Ways};
use rocknet_gui::worker::Options;

/// Plays systemd: `start` runs the server until `stop`, and a file `refuse` stands for a cancelled question for the
/// password.
const SYSTEMCTL: &str = r#"
if [ "$1" = --user ]; then
    exit 1
fi
ended() {
    ! [ -d "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}
start() {
    "$PROGRAM" run --config "$FOLDER/rocknet.toml" </dev/null >"$FOLDER/output" 2>&1 &
    echo $! >"$FOLDER/pid"
    until [ -S "$FOLDER/state/admin/control.sock" ]; do
        if ended "$!"; then
            echo 'Job for rocknet.service failed.' >&2
            exit 1
        fi
        sleep 0.05
    done
}
stop() {
    kill "$(cat "$FOLDER/pid")"
    until ended "$(cat "$FOLDER/pid")"; do
        sleep 0.05
    done
    rm -f "$FOLDER/pid" "$FOLDER/state/admin/control.sock"
}
if [ "$1" = show ]; then
    echo LoadState=loaded
    echo Group=
    if [ -f "$FOLDER/pid" ]; then
        echo ActiveState=active
        echo "MainPID=$(cat "$FOLDER/pid")"
    else
        echo ActiveState=inactive
        echo MainPID=0
    fi
    exit 0
fi
echo "$@" >>"$FOLDER/log"
if [ -f "$FOLDER/refuse" ]; then
    echo "Failed to $1 $2: Access denied" >&2
    exit 4
fi
case "$1" in
    start) start ;;
    stop) stop ;;
    restart) stop; start ;;
esac
"#;

/// A worker, and the folder of its server.
struct Machine {
    folder: tempfile::TempDir,
    worker: WorkerLink,
}

impl Machine {
    /// Returns `None`, and records a skip, if the server is not built.
    fn start() -> Option<Machine> {
        let program = machine::program()?;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("site")).unwrap();
        fs::create_dir(path("bin")).unwrap();
        let listen = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listen.local_addr().unwrap().port();
        drop(listen);
        let text = format!("[server]\nmode = \"dev\"\nstate = \"state\"\n\n[site.\":{port}\"]\nroot = \"site\"\n");
        fs::write(path("rocknet.toml"), text).unwrap();
        let variables = format!("PROGRAM='{}'\nFOLDER='{}'", program.display(), folder.path().display());
        script(&path("bin/systemctl"), &format!("{variables}{SYSTEMCTL}"));
        script(&path("bin/id"), "echo 'uid=1000(ann) gid=1000(ann) groups=1000(ann)'");
        script(&path("bin/pkcheck"), "");
        let mut search_path = OsString::from(path("bin"));
        search_path.push(":/usr/bin:/bin");
        let options = Options {
            config: Some(path("rocknet.toml")),
            program: Some(PathBuf::from("/bin/false")),
            search_path: Some(search_path),
            ..Options::default()
        };
        let worker = WorkerLink::start(options);
        Some(Machine { folder, worker })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wait<T>(&self, what: &str, take: impl FnMut(&Report) -> Option<T>) -> T {
        self.worker.wait(what, take)
    }

    fn ways(&self, what: &str, wanted: impl Fn(&Ways) -> bool) -> Ways {
        self.wait(what, |report| match report {
            Report::Ways(ways) if wanted(ways) => Some(ways.clone()),
            _ => None,
        })
    }

    fn pid(&self) -> String {
        fs::read_to_string(self.path("pid")).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let pid = self.pid();
        if !pid.is_empty() {
            let _ = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

/// Writes a script. Its writer has ended, because a file that any process could still write is not executed.
fn script(file: &Path, text: &str) {
    let write = format!(
        "printf '#!/bin/sh\\n%s\\n' \"$1\" > {0} && chmod 755 {0}",
        file.display()
    );
    let spawned: std::io::Result<Child> = Command::new("/bin/sh").args(["-c", &write, "sh", text]).spawn();
    assert!(spawned.unwrap().wait().unwrap().success());
}

fn is_online(report: &Report) -> Option<()> {
    matches!(report, Report::Started(None)).then_some(())
}

#[test]
fn a_unit_is_started_restarted_and_stopped() {
    let Some(machine) = Machine::start() else { return };
    let stopped = machine.ways("the unit is found", |ways| !ways.units.is_empty());
    assert!(stopped.has_own_config && !stopped.units[0].is_active && stopped.units[0].obstacle.is_none());
    machine.worker.send(Job::Start(Starter::Unit(UnitKind::System)));
    let running = machine.ways("the unit runs", |ways| ways.running_unit.is_some());
    assert_eq!(running.running_unit, Some(UnitKind::System));
    assert!(running.serves_own_config && running.no_restart().is_none());
    machine.wait("the start is reported", is_online);

    let first = machine.pid();
    machine.worker.send(Job::Restart);
    machine.wait("the restart is reported", is_online);
    assert_ne!(machine.pid(), first);

    // Without the password, the server goes on.
    fs::write(machine.path("refuse"), "").unwrap();
    machine.worker.send(Job::Stop);
    machine.wait("the window is connected again", |report| {
        matches!(report, Report::Connected(_)).then_some(())
    });
    let command = machine.wait("the refusal is reported", |report| match report {
        Report::Refused(command) => Some(command.clone()),
        _ => None,
    });
    assert_eq!(command, "sudo systemctl stop rocknet");
    fs::remove_file(machine.path("refuse")).unwrap();

    machine.worker.send(Job::Stop);
    machine.wait("the server is stopped", |report| {
        (*report == Report::Absent(Absence::Stopped(true))).then_some(())
    });
    let log = fs::read_to_string(machine.path("log")).unwrap();
    let verbs: Vec<_> = log.lines().collect();
    let expected = ["start", "restart", "stop", "stop"].map(|verb| format!("{verb} rocknet.service"));
    assert_eq!(verbs, expected);
}

#[test]
fn without_polkit_the_server_is_stopped_by_the_api() {
    let Some(machine) = Machine::start() else { return };
    fs::remove_file(machine.path("bin/pkcheck")).unwrap();
    // The machine of the test may have polkit.
    let is_installed = ["/usr/bin/pkcheck", "/bin/pkcheck"]
        .iter()
        .any(|file| Path::new(file).exists());
    machine.worker.send(Job::Start(Starter::Unit(UnitKind::System)));
    let running = machine.ways("the unit runs", |ways| ways.running_unit.is_some());
    if !is_installed {
        assert_eq!(running.units[0].obstacle, Some(Obstacle::NoPolkit));
    }
    machine.wait("the start is reported", is_online);
    machine.worker.send(Job::Stop);
    machine.wait("the server is stopped", |report| {
        (*report == Report::Absent(Absence::Stopped(true))).then_some(())
    });
    let log = fs::read_to_string(machine.path("log")).unwrap();
    assert_eq!(log.contains("stop"), is_installed, "{log}");
}

#[test]
fn a_refused_start_names_the_command() {
    let Some(machine) = Machine::start() else { return };
    fs::write(machine.path("refuse"), "").unwrap();
    machine.worker.send(Job::Start(Starter::Unit(UnitKind::System)));
    let command = machine.wait("the refusal is reported", |report| match report {
        Report::Refused(command) => Some(command.clone()),
        _ => None,
    });
    assert_eq!(command, "sudo systemctl start rocknet");
}
