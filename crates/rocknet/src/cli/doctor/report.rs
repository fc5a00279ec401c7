//! Output of the checks, as text and as JSON.

use std::fmt::Write as _;

use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_io::terminal::{StandardStream, is_terminal, shows_colour};
use rustix::termios::tcgetwinsize;
use serde_json::json;

use super::super::print;
use super::super::terminal_text::printable;
use super::verdict::Check;

/// Prints the checks as text.
pub(super) fn print_text(checks: &[Check]) {
    let columns = is_terminal(StandardStream::Output)
        .then(|| tcgetwinsize(std::io::stdout()).ok())
        .flatten()
        .map(|size| usize::from(size.ws_col));
    print(text(checks, shows_colour(StandardStream::Output), columns));
}

/// Prints the checks as JSON. `repairs`: results of `--fix`.
pub(super) fn print_json(checks: &[Check], repairs: Option<&[super::fix::Repair]>) {
    let checks: Vec<DoctorCheck> = checks.iter().map(DoctorCheck::from).collect();
    let mut output = json!({ "checks": checks });
    if let Some(repairs) = repairs {
        output["repairs"] = repairs.iter().map(super::fix::Repair::json).collect();
    }
    print(format_args!("{output:#}\n"));
}

/// Columns before the description of a check.
const INDENT: usize = 21;

/// Minimum width of a description that is wrapped, so that a narrow terminal does not get a column of single words.
const MIN_WRAPPED: usize = 40;

/// Splits a text at spaces into lines of at most `width` characters. A longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let Some(last) = lines.last_mut() else { break };
        let has_room = last.is_empty() || last.chars().count() + 1 + word.chars().count() <= width;
        if !has_room {
            lines.push(word.to_owned());
            continue;
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines
}

/// Returns the text: a line for each check, a line for the command of a finding, and a summary. `columns`: width of the
/// terminal, at which descriptions are wrapped; `None` for one line each, for programs.
fn text(checks: &[Check], colour: bool, columns: Option<usize>) -> String {
    let width = columns.map(|columns| columns.saturating_sub(INDENT));
    let width = width.filter(|width| *width >= MIN_WRAPPED).unwrap_or(usize::MAX);
    let mut out = String::new();
    for check in checks {
        let (on, off) = match check.verdict {
            _ if !colour => ("", ""),
            DoctorVerdict::Good => ("\x1b[32m", "\x1b[0m"),
            DoctorVerdict::Fair => ("\x1b[33m", "\x1b[0m"),
            DoctorVerdict::Bad => ("\x1b[1;31m", "\x1b[0m"),
            DoctorVerdict::Skipped | DoctorVerdict::Other => ("\x1b[2m", "\x1b[0m"),
        };
        // The word `skipped` is longer than the column.
        let word = match check.verdict {
            DoctorVerdict::Skipped => "skip",
            verdict => verdict.name(),
        };
        let found = wrapped(&printable(&check.found), width).join(&format!("\n{:INDENT$}", ""));
        let _ = writeln!(out, "{on}{word:4}{off}  {:14} {found}", check.subject);
        if !check.code.is_empty() {
            let command = check
                .command
                .as_deref()
                .map(|command| format!("  $ {}", printable(command)));
            let _ = writeln!(out, "      {:14} [{}]{}", "", check.code, command.unwrap_or_default());
        }
    }
    let count = |wanted| checks.iter().filter(|check| check.verdict == wanted).count();
    let _ = write!(
        out,
        "\n{} broken, {} to look at, {} good",
        count(DoctorVerdict::Bad),
        count(DoctorVerdict::Fair),
        count(DoctorVerdict::Good)
    );
    let skipped = count(DoctorVerdict::Skipped);
    if skipped > 0 {
        let _ = write!(out, ", {skipped} not checked");
    }
    out.push('\n');
    let repairable = checks.iter().filter(|check| check.fix.is_some()).count();
    if repairable > 0 {
        let _ = writeln!(out, "`rocknet doctor --fix` can repair {repairable} of them.");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_a_code_and_a_command_and_are_counted() {
        let checks = [
            Check::good("port", "80 can be bound"),
            Check::fair("clock", "clock-not-synchronized", "not synchronized").command("timedatectl"),
            Check::bad("state", "state-not-writable", "/s").fix("repair it", || Ok(String::new())),
            Check::skipped("folders", "needs-root", "needs\u{1b}[2J\nroot").command("\u{9b}x"),
        ];
        let expected = "\
good  port           80 can be bound
fair  clock          not synchronized
                     [clock-not-synchronized]  $ timedatectl
bad   state          /s
                     [state-not-writable]
skip  folders        needs\u{fffd}[2J root
                     [needs-root]  $ \u{fffd}x

1 broken, 1 to look at, 1 good, 1 not checked
`rocknet doctor --fix` can repair 1 of them.
";
        assert_eq!(text(&checks, false, None), expected);
        assert!(text(&checks, true, Some(80)).starts_with("\x1b[32mgood\x1b[0m  port"));
    }

    #[test]
    fn descriptions_are_wrapped_at_the_width_of_a_terminal() {
        let checks = [Check::good("port", "word ".repeat(20) + "end")];
        let lines = |columns| -> Vec<String> {
            let shown = text(&checks, false, columns);
            shown
                .lines()
                .take_while(|line| !line.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let shown = lines(Some(80));
        assert_eq!(shown.len(), 2);
        assert!(shown.iter().all(|line| line.len() <= 80), "{shown:?}");
        assert!(shown[1].starts_with(&format!("{:INDENT$}word", "")), "{shown:?}");
        for columns in [None, Some(0), Some(60)] {
            assert_eq!(lines(columns).len(), 1, "{columns:?}");
        }
        assert_eq!(wrapped("a longer word", 3), ["a", "longer", "word"]);
    }
}
