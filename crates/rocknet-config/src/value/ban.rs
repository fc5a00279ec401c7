//! Parses `[ban]`: the offences after which clients are banned, and the lists of banned addresses.

use std::time::Duration;

use crate::binding::{self, Section, WrittenKey};
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Ban, OffenceRate};
use crate::units::{self, UnitError};
use crate::value::{access, path, typed};

/// Maximum number of offences in a rate. A larger number is surely a mistake.
const MAX_COUNT: u64 = 1_000_000;

/// Longest time of a rate. A longer one is surely a mistake.
const MAX_WINDOW: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Maximum number of list files. Each is looked up on its own.
const MAX_FILES: usize = 16;

/// Maximum number of login paths. Each POST request is compared with all of them.
const MAX_LOGIN_PATHS: usize = 32;

/// Reads `ban`; `None` if it is missing, off or invalid. A table turns bans on.
pub(crate) fn build(check: &mut Check<'_>, root: &Table) -> Option<Ban> {
    let node = root.node("ban")?;
    let mut ban = Ban::default();
    match &node.value {
        Value::Boolean(true) => {}
        Value::Table(table) => {
            binding::read(check, Section::Ban, Some(table), &mut ban);
            if ban.max_time < ban.time {
                // The default of `max_time` is raised to `time` without an error.
                if let Some(written) = table.node("max_time") {
                    let message = "`max_time` is shorter than `time`";
                    check.error(
                        Code::BadValue,
                        written.span,
                        message,
                        "write a longer time, or the same",
                    );
                }
                ban.max_time = ban.time;
            }
        }
        _ => return None,
    }
    Some(ban)
}

/// Reads a rate of offences into `rate`; `false` switches it off.
pub(crate) fn rate(check: &mut Check<'_>, written: &WrittenKey<'_>, rate: &mut Option<OffenceRate>) {
    let node = &written.entry.node;
    match &node.value {
        Value::Boolean(false) => *rate = None,
        Value::Boolean(true) => {
            let help = "write a number of offences and a time: \"10/10m\"";
            check.error(Code::BadValue, node.span, "`true` names no rate of offences", help);
        }
        _ => {
            if let Some(read) = offence_rate(check, node) {
                *rate = Some(read);
            }
        }
    }
}

/// Reads a number of offences and a time; `None` after an error.
fn offence_rate(check: &mut Check<'_>, node: &Node) -> Option<OffenceRate> {
    let written = node.written()?;
    match parse(&written.value) {
        Ok(rate) => Some(rate),
        Err(UnitError(help)) => {
            let message = format!("\"{}\" is not a rate of offences", short(written.as_written()));
            check.bad_text(written, node.span, message, help);
            None
        }
    }
}

/// Parses a rate such as `10/10m`. A unit without a number, as in `10/m`, stands for one unit.
fn parse(text: &str) -> Result<OffenceRate, UnitError> {
    let general = || UnitError("write a number of offences and a time: \"10/10m\"".to_owned());
    let (count, window) = text.split_once('/').ok_or_else(general)?;
    let count: u64 = count.trim().parse().map_err(|_| general())?;
    let window = window.trim();
    let window = match window.starts_with(|c: char| c.is_ascii_digit()) {
        true => units::duration(window)?,
        false => units::duration(&format!("1{window}")).map_err(|_| general())?,
    };
    if !(1..=MAX_COUNT).contains(&count) {
        return Err(UnitError(format!("write a number from 1 to {MAX_COUNT}")));
    }
    if window < Duration::from_secs(1) || window > MAX_WINDOW {
        return Err(UnitError("write a time from 1 s to 7 days: \"10/10m\"".to_owned()));
    }
    Ok(OffenceRate {
        count: u32::try_from(count).unwrap_or(u32::MAX),
        window,
    })
}

/// Reads `login_paths`. Invalid paths are reported and left out.
pub(crate) fn login_paths(check: &mut Check<'_>, written: &WrittenKey<'_>, ban: &mut Ban) {
    let node = &written.entry.node;
    let mut paths = Vec::new();
    for (element, span) in typed::texts(node) {
        let text = element.value.as_str();
        let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_path && !text.contains(['?', '#', '*']) {
            paths.push(text.to_owned());
        } else {
            let message = format!("\"{}\" is not the path of a login page", short(element.as_written()));
            let help = "write the whole path without a query: login_paths = [\"/login\"]";
            check.bad_text(element, span, message, help);
        }
    }
    if paths.len() > MAX_LOGIN_PATHS {
        let message = format!("`login_paths` has more than {MAX_LOGIN_PATHS} paths");
        check.error(Code::BadValue, node.span, message, "remove some of them");
        paths.truncate(MAX_LOGIN_PATHS);
    }
    ban.login_paths = paths;
}

/// Reads `exempt`.
pub(crate) fn exempt(check: &mut Check<'_>, written: &WrittenKey<'_>, ban: &mut Ban) {
    ban.exempt = access::ranges(check, "exempt", &written.entry.node);
}

/// Reads `files`. A missing file is not an error: the server reads the files again when they change, and reports those
/// that it cannot read.
pub(crate) fn files(check: &mut Check<'_>, written: &WrittenKey<'_>, ban: &mut Ban) {
    let node = &written.entry.node;
    ban.files = path::list(check, "files", node);
    if ban.files.len() > MAX_FILES {
        let message = format!("`files` has more than {MAX_FILES} files");
        check.error(Code::BadValue, node.span, message, "join some of the files");
        ban.files.truncate(MAX_FILES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_and_written() {
        for (text, count, seconds, written) in [
            ("10/10m", 10, 600, "10/10m"),
            (" 5 / 1m30s ", 5, 90, "5/90s"),
            ("60/m", 60, 60, "60/60s"),
            ("1/h", 1, 3_600, "1/1h"),
        ] {
            let rate = parse(text).unwrap();
            assert_eq!((rate.count, rate.window.as_secs()), (count, seconds), "{text}");
            assert_eq!(rate.to_string(), written);
        }
        for text in [
            "",
            "10",
            "/m",
            "0/1m",
            "5/0s",
            "5/100ms",
            "5/8d",
            "x/1m",
            "5/1x",
            "5/",
            "99999999/1m",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
