//! Tests that failed beside all others, run once more by themselves.
//!
//! The suite uses real processes, sockets and short deadlines, and a shared machine may stand still for seconds. What fails
//! there is told as `unsteady` when it passes alone, and fails the run when it does not.

use crate::Failure;
use crate::command::shown;
use std::io::{self, BufRead, BufReader, Write, pipe};
use std::process::Command;

/// More failures than this have a cause that is not the machine.
const MOST: usize = 4;

/// What a run of tests printed, as far as it matters here.
#[derive(Debug, Default, PartialEq)]
struct Report {
    failed: Vec<String>,
    /// How many passed, in programs where none failed.
    passed: usize,
    /// A program of tests died, or did not come to its end.
    died: bool,
    /// The names after the last line `failures:`, of which the last such list of a program counts.
    listed: Option<Vec<String>>,
}

impl Report {
    fn line(&mut self, line: &str) {
        if line == "failures:" {
            self.listed = Some(Vec::new());
        } else if line.starts_with("test result: FAILED.") {
            // Without a list it is not known what to run again.
            match self.listed.take() {
                Some(names) if !names.is_empty() => self.failed.extend(names),
                _ => self.died = true,
            }
        } else if line.contains("process didn't exit successfully") {
            self.died = true;
        } else if let Some(counts) = line.strip_prefix("test result: ok. ") {
            // Not the line of each test: what a program of its own prints may stand in the middle of that.
            let passed = counts.split(' ').next().and_then(|count| count.parse().ok());
            self.passed += passed.unwrap_or(0);
        } else if let (Some(names), Some(name)) = (&mut self.listed, line.strip_prefix("    ")) {
            names.push(name.to_owned());
        }
    }
}

/// Runs the tests of `command`, which is `cargo test` with its options, and what failed once more. Returns a remark on
/// tests that passed only then.
pub fn run(command: impl Fn() -> Command) -> Result<Option<String>, Failure> {
    run_showing(&mut io::stdout().lock(), command)
}

/// Shows there what the tests print. Not on the output of a test of this very module: whoever runs that would take it for news.
fn run_showing(shown_on: &mut impl Write, command: impl Fn() -> Command) -> Result<Option<String>, Failure> {
    let mut all = command();
    all.arg("--no-fail-fast");
    let name = shown(&all);
    let (first, succeeded) = watched(shown_on, all)?;
    if succeeded {
        return Ok(None);
    }
    if first.died || first.failed.is_empty() || first.failed.len() > MOST {
        return Err(format!("`{name}` failed").into());
    }
    let names = first.failed.join(", ");
    writeln!(shown_on, "\n== again, one at a time: {names}")?;
    let mut alone = command();
    alone.args(["--no-fail-fast", "--", "--exact", "--test-threads=1"]);
    alone.args(&first.failed);
    let (second, succeeded) = watched(shown_on, alone)?;
    if succeeded && second.passed >= first.failed.len() {
        Ok(Some(format!("unsteady, passed when alone: {names}")))
    } else {
        Err(format!("`{name}` failed: {names}").into())
    }
}

/// Runs `command` with its output shown as it comes; returns what it said, and whether it succeeded.
fn watched(shown_on: &mut impl Write, mut command: Command) -> Result<(Report, bool), Failure> {
    let (reader, writer) = pipe()?;
    let name = shown(&command);
    let mut child = command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    // It holds the other ends of the pipe, which would never end.
    drop(command);
    let mut report = Report::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        shown_on.write_all(&line)?;
        shown_on.write_all(b"\n")?;
        report.line(&String::from_utf8_lossy(&line));
    }
    shown_on.flush()?;
    Ok((report, child.wait()?.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quietly(command: impl Fn() -> Command) -> Result<Option<String>, Failure> {
        run_showing(&mut io::sink(), command)
    }

    fn report(text: &str) -> Report {
        let mut report = Report::default();
        text.lines().for_each(|line| report.line(line));
        report
    }

    #[test]
    fn the_names_of_what_failed_are_found_in_what_cargo_prints() {
        let report = report(
            "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n\n---- a::c stdout ----\n    not a name\n\
             failures:\n    a::c\n    src/lib.rs - d (line 3)\n\ntest result: FAILED. 1 passed; 2 failed;\n",
        );
        assert_eq!(report.failed, ["a::c", "src/lib.rs - d (line 3)"]);
        assert!(!report.died);
    }

    #[test]
    fn what_passed_is_counted_over_all_programs() {
        let report = report(
            "test a ... what it printed\nok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n\n\
             test result: ok. 0 passed; 0 failed; 0 ignored\n\ntest result: ok. 12 passed; 0 failed; 0 ignored\n",
        );
        assert_eq!(report.passed, 13);
    }

    #[test]
    fn a_program_that_dies_is_no_test_that_fails() {
        assert!(report("  process didn't exit successfully: `x` (signal: 11, SIGSEGV)").died);
        assert!(report("test result: FAILED. 1 passed; 2 failed;").died);
    }

    /// A stand-in for cargo that fails as `$FIRST`, and then as `$SECOND`, says.
    fn stand_in(first: &'static str, second: &'static str) -> impl Fn() -> Command {
        move || {
            let mut command = Command::new("sh");
            let script = "case \"$*\" in *--exact*) eval \"$SECOND\";; *) eval \"$FIRST\";; esac";
            command
                .args(["-c", script, "cargo"])
                .env("FIRST", first)
                .env("SECOND", second);
            command
        }
    }

    const FAILS: &str = "printf 'failures:\\n    x\\n\\ntest result: FAILED. 0 passed\\n'; exit 101";

    #[test]
    fn what_passes_alone_is_told() {
        let remark = quietly(stand_in(FAILS, "echo 'test result: ok. 1 passed; 0 failed'")).expect("no failure");
        assert_eq!(remark.as_deref(), Some("unsteady, passed when alone: x"));
        assert_eq!(quietly(stand_in("true", "false")).expect("no failure"), None);
    }

    #[test]
    fn what_fails_twice_or_does_not_run_again_fails() {
        assert!(quietly(stand_in(FAILS, FAILS)).is_err());
        assert!(
            quietly(stand_in(FAILS, "echo 'test result: ok. 0 passed; 0 failed'")).is_err(),
            "it did not run"
        );
        assert!(
            quietly(stand_in("false", "echo 'test result: ok. 1 passed; 0 failed'")).is_err(),
            "nothing is known to have failed"
        );
    }
}
