//! Units of systemd that run a server: the unit of the system, and the unit of the account.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::output::ERROR;
use super::ports;
use crate::job::{EndingCause, StartFailure, Trouble};
use crate::ways::{Obstacle, UnitKind, UnitState};

/// Name of the unit, which packages and `rocknet service install` use.
const UNIT: &str = "rocknet.service";

/// Properties of the unit that are queried.
const PROPERTIES: &str = "--property=LoadState,ActiveState,MainPID,Group";

/// Properties that name the end of the server of a unit.
const END_PROPERTIES: &str = "--property=MainPID,Result,ExecMainCode,ExecMainStatus";

/// Values of `ExecMainCode`, as in `waitid`.
const CLD_EXITED: i32 = 1;
const CLD_KILLED: i32 = 2;
const CLD_DUMPED: i32 = 3;

/// Program of polkit that shows that it is installed.
const POLKIT: &str = "pkcheck";

/// Number of lines of the journal that a failure shows.
const LINES_SHOWN: usize = 5;

/// Number of lines of the journal in which the error of the server is searched. systemd adds lines of its own.
const LINES_SEARCHED: usize = 30;

/// Parts of the messages by which `systemctl` reports that polkit has refused. Two lack the first letter, which is a
/// capital or a small one.
const REFUSALS: [&str; 4] = [
    "Access denied",
    "uthentication required",
    "uthorization",
    "Permission denied",
];

/// Instruction to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitVerb {
    Start,
    Stop,
    Restart,
}

impl UnitVerb {
    fn name(self) -> &'static str {
        match self {
            UnitVerb::Start => "start",
            UnitVerb::Stop => "stop",
            UnitVerb::Restart => "restart",
        }
    }
}

/// Failed instruction to a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitFailure {
    /// The account may not do this. The command does it with root's rights.
    Refused(String),
    Failed(StartFailure),
}

/// End of the server of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitEnd {
    /// systemd has not noticed an end.
    Running,
    /// The server was stopped, or has ended without an error.
    Orderly,
    Ended(EndingCause),
}

/// A unit that is installed, and the id of its main process; 0 if none runs.
pub type FoundUnit = (UnitState, u32);

/// Account of this process, as `id` prints it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    is_root: bool,
    name: String,
    groups: Vec<String>,
}

/// Programs that query and instruct systemd.
#[derive(Default)]
pub struct Systemd {
    /// Search path of the programs; `None`: the search path of this process.
    path: Option<OsString>,
}

impl Systemd {
    /// Creates the value. `path`: search path of the programs.
    pub fn new(path: Option<OsString>) -> Systemd {
        Systemd { path }
    }

    /// Returns the units that are installed; an empty list on a system without systemd.
    pub fn units(&self) -> Vec<FoundUnit> {
        let kinds = [UnitKind::System, UnitKind::User];
        kinds.into_iter().filter_map(|kind| self.unit(kind)).collect()
    }

    fn unit(&self, kind: UnitKind) -> Option<FoundUnit> {
        let text = printed(self.systemctl(kind).args(["show", UNIT, PROPERTIES]))?;
        let property = |name: &str| property(&text, name);
        if property("LoadState") != "loaded" {
            return None;
        }
        let is_active = matches!(property("ActiveState"), "active" | "activating" | "reloading");
        let account = match kind {
            UnitKind::System => account(&printed(&mut self.command("id")).unwrap_or_default()),
            UnitKind::User => Account::default(),
        };
        // Only root, the account of the unit and members of its group have access to the control socket.
        let group = property("Group");
        let obstacle = if kind == UnitKind::User || account.is_root {
            None
        } else if !group.is_empty() && !account.groups.iter().any(|member| member == group) {
            Some(Obstacle::NoMember {
                account: account.name,
                group: group.to_owned(),
            })
        } else if self.find(POLKIT).is_none() {
            Some(Obstacle::NoPolkit)
        } else {
            None
        };
        let state = UnitState {
            kind,
            is_active,
            may_ask: kind == UnitKind::System && !account.is_root,
            obstacle,
        };
        Some((state, property("MainPID").parse().unwrap_or_default()))
    }

    /// Starts, stops or restarts a unit, and waits until systemd has done so. The desktop asks for a password if polkit
    /// requires one.
    ///
    /// # Errors
    ///
    /// Returns the reason, with the last lines of the journal.
    pub fn instruct(&self, kind: UnitKind, verb: UnitVerb) -> Result<(), UnitFailure> {
        let failed = |reason: Trouble, lines| {
            UnitFailure::Failed(StartFailure {
                reason,
                lines,
                port: None,
            })
        };
        let output = self
            .systemctl(kind)
            .args([verb.name(), UNIT])
            // With a terminal, the password would be requested there instead of in a window of the desktop.
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(Trouble::of(Path::new("systemctl"), &error), Vec::new()))?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        // No command with root's rights starts a unit of the account.
        if kind == UnitKind::System && REFUSALS.iter().any(|refusal| message.contains(refusal)) {
            return Err(UnitFailure::Refused(format!("sudo systemctl {} rocknet", verb.name())));
        }
        let lines = self.journal_lines(kind, LINES_SEARCHED);
        let shown = lines[lines.len().saturating_sub(LINES_SHOWN)..].to_vec();
        // systemd knows only that the job has failed. The last error in the journal names the program at the port.
        let error = lines.iter().rev().find_map(|line| line.strip_prefix(ERROR));
        if let Some(error) = error.filter(|error| ports::taken(error).is_some()) {
            return Err(failed(Trouble::Text(error.to_owned()), shown));
        }
        let reason = message.lines().next().map(|line| Trouble::Text(line.to_owned()));
        let reason = reason.unwrap_or_else(|| Trouble::CommandFailed(format!("systemctl {}", verb.name())));
        Err(failed(reason, shown))
    }

    /// Returns how the last server of a unit has ended.
    pub fn end(&self, kind: UnitKind) -> UnitEnd {
        let shown = printed(self.systemctl(kind).args(["show", UNIT, END_PROPERTIES])).unwrap_or_default();
        let number = |name| property(&shown, name).parse::<i32>();
        // `ActiveState` is `activating` while systemd waits to restart the unit, so the process is looked at instead.
        if !matches!(number("MainPID"), Ok(0)) {
            return UnitEnd::Running;
        }
        UnitEnd::Ended(
            match (
                property(&shown, "Result"),
                number("ExecMainCode"),
                number("ExecMainStatus"),
            ) {
                ("" | "success", ..) => return UnitEnd::Orderly,
                ("oom-kill", ..) => EndingCause::OutOfMemory,
                (_, Ok(CLD_EXITED), Ok(code)) => EndingCause::Code(code),
                (_, Ok(CLD_KILLED | CLD_DUMPED), Ok(signal)) => EndingCause::Signal(signal),
                (result, ..) => EndingCause::Result(result.to_owned()),
            },
        )
    }

    /// Returns the last lines of the unit in the journal, or no lines if the account may not read it.
    pub fn journal(&self, kind: UnitKind) -> Vec<String> {
        self.journal_lines(kind, LINES_SHOWN)
    }

    fn journal_lines(&self, kind: UnitKind, count: usize) -> Vec<String> {
        let unit = match kind {
            UnitKind::System => "--unit",
            UnitKind::User => "--user-unit",
        };
        let mut journal = self.command("journalctl");
        let count = format!("--lines={count}");
        journal.args([unit, UNIT, &count, "--output=cat", "--no-pager", "--quiet"]);
        let text = printed(&mut journal).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn systemctl(&self, kind: UnitKind) -> Command {
        let mut command = self.command("systemctl");
        if kind == UnitKind::User {
            command.arg("--user");
        }
        command
    }

    /// Returns a command whose messages are in English.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        let folders = self.path.clone().or_else(|| std::env::var_os("PATH"))?;
        std::env::split_paths(&folders)
            .map(|folder| folder.join(program))
            .find(|path| Path::is_file(path))
    }
}

/// Returns the value of a property in the output of `systemctl show` for a unit; empty if it is missing.
pub fn property<'t>(shown: &'t str, name: &str) -> &'t str {
    let mut values = shown.lines().filter_map(|line| line.split_once('='));
    values.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

/// Returns the output of a program; `None` if it cannot be started, or has failed.
fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads the output of `id`, such as `uid=1000(ann) gid=1000(ann) groups=1000(ann),27(sudo)`.
fn account(text: &str) -> Account {
    let word = |key: &str| {
        let mut words = text.split_whitespace();
        words.find_map(|word| word.strip_prefix(key)).unwrap_or_default()
    };
    let name = |entry: &str| {
        let name = entry.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        name.unwrap_or_default().to_owned()
    };
    // The names of groups may have spaces. SELinux adds a context after them.
    let groups = text.split_once(" groups=").map_or("", |(_, groups)| groups.trim_end());
    let groups = groups.split_once(" context=").map_or(groups, |(groups, _)| groups);
    Account {
        is_root: word("uid=").starts_with("0("),
        name: name(word("uid=")),
        groups: groups.split(',').map(name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_read_from_the_output_of_id() {
        let ann = account("uid=1000(ann) gid=1000(ann) groups=1000(ann),27(sudo),998(rocknet)\n");
        assert_eq!((ann.is_root, ann.name.as_str()), (false, "ann"));
        assert_eq!(ann.groups, ["ann", "sudo", "rocknet"]);
        assert!(account("uid=0(root) gid=0(root) groups=0(root)").is_root);
        // Groups of a directory service, and the context of SELinux.
        for context in ["", " context=unconfined_u:unconfined_r:unconfined_t:s0"] {
            let text = format!("uid=1000(ann) gid=513(domain users) groups=513(domain users),998(rocknet){context}\n");
            assert_eq!(account(&text).groups, ["domain users", "rocknet"]);
        }
        // An account without a name, and no output at all.
        assert_eq!(account("uid=4711 gid=4711 groups=4711").name, "");
        assert!(!account("").is_root);
    }
}
