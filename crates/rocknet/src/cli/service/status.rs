//! `rocknet service status`: shows the state of the service as systemd reports it.

use std::fmt::Write as _;
use std::process::{Command, Output};

use serde_json::json;

use super::super::{ExitStatus, Failure, print};
use super::layout::UNIT_NAME;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Print the state as JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Prints the state. Fails if the service is not active. The caller has checked that systemd runs.
pub fn run(options: &Options) -> Result<(), Failure> {
    let properties = PROPERTIES.join(",");
    let output = Command::new("systemctl")
        .args(["show", UNIT_NAME, "--property", &properties])
        .output()
        .map_err(|error| Failure::Failed(format!("cannot run systemctl: {error}")))?;
    let state = ServiceState::of_output(&output).map_err(Failure::Failed)?;
    if !state.is_loaded {
        let message = "no service is installed: `rocknet service install` installs it";
        return Err(Failure::Failed(message.to_owned()));
    }
    print(if options.json { state.json() } else { state.text() });
    if state.active == "active" {
        Ok(())
    } else {
        Err(Failure::Reported(ExitStatus::Failed))
    }
}

/// Properties of the unit that are queried.
const PROPERTIES: [&str; 7] = [
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "FragmentPath",
    "MainPID",
    "ActiveEnterTimestamp",
];

/// State of the unit.
#[derive(Default, Debug)]
struct ServiceState {
    /// True if systemd has found the unit.
    is_loaded: bool,
    /// State such as `active` or `failed`.
    active: String,
    /// Detailed state, such as `running`: the `SubState` of systemd.
    detail: String,
    /// Start with the system: `enabled` or `disabled`.
    at_boot: String,
    /// Path of the unit file.
    unit: String,
    /// ID of the main process; 0 if none runs.
    process: u32,
    /// Time at which the service became active, as systemd writes it.
    since: String,
}

impl ServiceState {
    /// Returns the state that systemctl has printed. systemctl also succeeds if the unit is not installed.
    ///
    /// # Errors
    ///
    /// Returns the message of systemctl if it has failed, such as without a connection to systemd.
    fn of_output(output: &Output) -> Result<ServiceState, String> {
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(match reason.trim() {
                "" => format!("systemctl cannot query the service ({})", output.status),
                reason => format!("systemctl cannot query the service: {reason}"),
            });
        }
        Ok(ServiceState::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Parses the lines `NAME=VALUE` of systemctl.
    fn parse(text: &str) -> ServiceState {
        let mut state = ServiceState::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let owned = value.to_owned();
            match name {
                "LoadState" => state.is_loaded = value == "loaded",
                "ActiveState" => state.active = owned,
                "SubState" => state.detail = owned,
                "UnitFileState" => state.at_boot = owned,
                "FragmentPath" => state.unit = owned,
                "MainPID" => state.process = value.parse().unwrap_or_default(),
                "ActiveEnterTimestamp" => state.since = owned,
                _ => {}
            }
        }
        state
    }

    fn text(&self) -> String {
        let mut text = format!("{:9} {}, {}\n", "unit", self.unit, self.at_boot);
        let _ = write!(text, "{:9} {} ({})", "state", self.active, self.detail);
        if self.process > 0 {
            let _ = write!(text, ", process {}, since {}", self.process, self.since);
        }
        text.push('\n');
        let _ = writeln!(text, "{:9} journalctl -u {UNIT_NAME}", "log");
        text
    }

    fn json(&self) -> String {
        let process = (self.process > 0).then_some(self.process);
        let value = json!({
            "unit": self.unit,
            "at_boot": self.at_boot,
            "active": self.active,
            "detail": self.detail,
            "process": process,
            "since": self.since,
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_from_properties() {
        let text = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n\
                    FragmentPath=/etc/systemd/system/rocknet.service\nMainPID=31\nActiveEnterTimestamp=Sat\n";
        let state = ServiceState::parse(text);
        assert!(state.is_loaded && state.process == 31, "{state:?}");
        let shown = state.text();
        assert!(shown.contains("active (running), process 31, since Sat"), "{shown}");
        assert!(!ServiceState::parse("LoadState=not-found\nMainPID=0\n").is_loaded);
    }

    #[test]
    fn an_error_of_systemctl_is_reported() {
        for (script, expected) in [
            (
                "echo no bus >&2; exit 1",
                Err("systemctl cannot query the service: no bus"),
            ),
            (
                "echo LoadState=loaded; exit 3",
                Err("systemctl cannot query the service (exit status: 3)"),
            ),
            ("echo LoadState=loaded", Ok(true)),
            ("echo LoadState=not-found", Ok(false)),
        ] {
            let output = Command::new("sh").args(["-c", script]).output().expect("a shell");
            let found = ServiceState::of_output(&output).map(|state| state.is_loaded);
            assert_eq!(found, expected.map_err(str::to_owned), "{script}");
        }
    }
}
