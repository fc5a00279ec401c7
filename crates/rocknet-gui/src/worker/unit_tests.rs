//! Units of systemd, played by scripts.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::fake_programs::script;
use super::units::{Systemd, UnitFailure, UnitVerb};
use crate::job::StartFailure;
use crate::ways::{Obstacle, UnitKind, UnitState};

/// Output of `systemctl show` for an active unit with the process 4711.
const SHOWN: &str = "echo LoadState=loaded; echo ActiveState=active; echo MainPID=4711; echo Group=rocknet";

const ANN: &str = "echo 'uid=1000(ann) gid=1000(ann) groups=1000(ann)'";

const MEMBER: &str = "echo 'uid=1000(ann) gid=1000(ann) groups=1000(ann),998(rocknet)'";

fn search_path(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":/bin:/usr/bin");
    path
}

/// Returns the unit of the system with these programs, and the process of its server.
fn system_unit(programs: &[(&str, &str)]) -> Option<(UnitState, u32)> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in programs {
        script(folder.path(), name, text);
    }
    // Only the scripts are found, not the programs of this machine.
    let mut found = Systemd::new(Some(folder.path().into())).units().into_iter();
    found.find(|(unit, _)| unit.kind == UnitKind::System)
}

#[test]
fn obstacles_are_found_before_they_are_met() {
    let no_member = Obstacle::NoMember {
        account: "ann".to_owned(),
        group: "rocknet".to_owned(),
    };
    for (programs, expected) in [
        (&[("systemctl", SHOWN), ("id", ANN)][..], Some(no_member)),
        (&[("systemctl", SHOWN), ("id", MEMBER)], Some(Obstacle::NoPolkit)),
        (&[("systemctl", SHOWN), ("id", MEMBER), ("pkcheck", "")], None),
        (
            &[
                ("systemctl", SHOWN),
                ("id", "echo 'uid=0(root) gid=0(root) groups=0(root)'"),
            ],
            None,
        ),
    ] {
        let (unit, process) = system_unit(programs).unwrap();
        assert_eq!(
            (unit.obstacle, unit.is_active, process),
            (expected, true, 4711),
            "{programs:?}"
        );
    }
    let (unit, _) = system_unit(&[("systemctl", &SHOWN.replace("=active", "=failed")), ("id", MEMBER)]).unwrap();
    assert!(!unit.is_active && unit.may_ask);
}

#[test]
fn a_machine_without_the_unit_has_none() {
    assert_eq!(system_unit(&[]), None);
    assert_eq!(system_unit(&[("systemctl", "echo LoadState=not-found")]), None);
    assert_eq!(system_unit(&[("systemctl", "echo LoadState=masked")]), None);
    // systemd is installed, but is not the first process.
    assert_eq!(system_unit(&[("systemctl", "exit 1")]), None);
}

#[test]
fn instructions_concern_the_one_unit() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    script(folder.path(), "systemctl", &format!("echo \"$@\" >> {}", log.display()));
    let systemd = Systemd::new(Some(search_path(folder.path())));
    systemd.instruct(UnitKind::System, UnitVerb::Start).unwrap();
    systemd.instruct(UnitKind::System, UnitVerb::Restart).unwrap();
    systemd.instruct(UnitKind::User, UnitVerb::Stop).unwrap();
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(
        text,
        "start rocknet.service\nrestart rocknet.service\n--user stop rocknet.service\n"
    );
}

#[test]
fn failures_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let systemd = Systemd::new(Some(search_path(folder.path())));
    let refused = "echo 'Failed to stop rocknet.service: Interactive authentication required.' >&2; exit 1";
    script(folder.path(), "systemctl", refused);
    assert_eq!(
        systemd.instruct(UnitKind::System, UnitVerb::Stop),
        Err(UnitFailure::Refused("sudo systemctl stop rocknet".to_owned()))
    );
    // Root's rights do not help with a unit of the account.
    let of_user = systemd.instruct(UnitKind::User, UnitVerb::Stop);
    assert!(
        matches!(&of_user, Err(UnitFailure::Failed(failure)) if failure.reason.message().contains("authentication")),
        "{of_user:?}"
    );
    script(
        folder.path(),
        "systemctl",
        "echo 'Job for rocknet.service failed.' >&2; echo 'See the journal.' >&2; exit 1",
    );
    script(
        folder.path(),
        "journalctl",
        "echo 'error: unknown key `rot`'; echo \"$@\"",
    );
    let arguments = "--unit rocknet.service --lines=30 --output=cat --no-pager --quiet";
    assert_eq!(
        systemd.instruct(UnitKind::System, UnitVerb::Start),
        Err(UnitFailure::Failed(StartFailure {
            reason: "Job for rocknet.service failed.".to_owned().into(),
            lines: vec!["error: unknown key `rot`".to_owned(), arguments.to_owned()],
            port: None,
        }))
    );
    // The program at a port is named, even if systemd has added many lines.
    script(
        folder.path(),
        "journalctl",
        "echo 'error: old'; echo 'error: cannot start: port 80 is in use by nginx (pid 7)'; for line in 1 2 3 4 5 6; \
         do echo $line; done",
    );
    let Err(UnitFailure::Failed(failure)) = systemd.instruct(UnitKind::System, UnitVerb::Start) else {
        panic!("no failure");
    };
    assert_eq!(
        failure.reason.message(),
        "cannot start: port 80 is in use by nginx (pid 7)"
    );
    assert_eq!(failure.lines, ["2", "3", "4", "5", "6"]);
}
