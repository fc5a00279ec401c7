//! Reason why a server has ended that was not stopped by this program.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Worker;
use super::launch::LINES_SHOWN;
use super::output::{output_path, tail};
use super::units::UnitEnd;
use crate::job::{Ending, EndingCause};

/// Maximum wait until the system knows the exit status of a server whose connection was lost.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two looks at the exit status.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum error of a start time that was computed from an uptime in whole seconds.
const ROUNDING: Duration = Duration::from_secs(2);

/// Number of lines in which the beginning of an orderly stop is searched.
const LINES_SEARCHED: usize = 50;

impl Worker {
    /// Returns the end of the last server, whose connection was lost; `None` if it was stopped in an orderly way, or if
    /// nothing is known.
    pub(super) fn ending(&mut self) -> Option<Ending> {
        if self.places.is_elsewhere() {
            return None;
        }
        let output = self.places.config().map(|config| output_path(&config));
        let deadline = Instant::now() + TIMEOUT;
        if self.launcher.has_child() {
            loop {
                if let Some(cause) = self.launcher.take_exit() {
                    let lines = output.as_deref().map(last_lines).unwrap_or_default();
                    return cause.map(|cause| Ending { cause, lines });
                }
                if Instant::now() >= deadline {
                    return None;
                }
                thread::sleep(PAUSE);
            }
        }
        if let Some(kind) = self.ways.running_unit {
            loop {
                match self.systemd.end(kind) {
                    UnitEnd::Running if Instant::now() < deadline => thread::sleep(PAUSE),
                    UnitEnd::Running | UnitEnd::Orderly => return None,
                    UnitEnd::Ended(cause) => {
                        let lines = self.systemd.journal(kind);
                        return Some(Ending { cause, lines });
                    }
                }
            }
        }
        // An earlier window may have started the server with the same output.
        let text = match (self.ways.serves_own_config, output) {
            // A server that was started in a terminal does not write to the file, which is that of an earlier server.
            (true, Some(output)) if !self.last_start.is_some_and(|start| is_older(&output, start)) => tail(&output),
            _ => String::new(),
        };
        let lines: Vec<&str> = text.lines().collect();
        let searched = lines.len().saturating_sub(LINES_SEARCHED);
        if lines[searched..].iter().any(|line| is_stop(line)) {
            return None;
        }
        Some(Ending {
            cause: EndingCause::Unknown,
            lines: last_of(&lines),
        })
    }
}

/// Returns true if a file was last written before a server has started.
fn is_older(file: &Path, start: SystemTime) -> bool {
    let written = file.metadata().and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written + ROUNDING < start)
}

/// Returns true for the line with which the server begins an orderly stop, as text or in JSON.
fn is_stop(line: &str) -> bool {
    line.ends_with(" stopping") || line.contains("\"stopping\"")
}

/// Returns the last lines of the output that are shown.
fn last_lines(output: &Path) -> Vec<String> {
    let text = tail(output);
    last_of(&text.lines().collect::<Vec<_>>())
}

/// Returns the last lines that are not empty.
fn last_of(lines: &[&str]) -> Vec<String> {
    let filled = lines.iter().rev().filter(|line| !line.trim().is_empty());
    let mut last: Vec<String> = filled.take(LINES_SHOWN).map(|line| (*line).to_owned()).collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests;
