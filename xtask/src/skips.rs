//! Counts the tests that this machine could not run, and formats their reasons for the summary.

use crate::{Failure, repository};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

/// File to which the tests of one run append their skips.
pub struct Skips {
    record: PathBuf,
}

impl Skips {
    /// Starts an empty record. `name` is the name of the run, so that two runs do not share a record.
    pub fn begin(name: &str) -> Result<Skips, Failure> {
        let record = repository::target().join(format!("skips-{name}.txt"));
        match fs::remove_file(&record) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(Skips { record }),
        }
    }

    /// Makes the tests that `command` runs append to this record.
    pub fn of(&self, command: &mut Command) {
        command.env(rocknet_testing::RECORD, &self.record);
    }

    /// Returns the summary's text about the skips, or `None` if no test was skipped.
    pub fn remark(&self) -> Result<Option<String>, Failure> {
        match fs::read_to_string(&self.record) {
            Ok(lines) => Ok(remark(&lines)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Formats `lines`, each with a test, the missing requirement and a reason, separated by tabs.
fn remark(lines: &str) -> Option<String> {
    let mut tests = BTreeSet::new();
    let mut needs = BTreeMap::<_, (BTreeSet<_>, _)>::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, '\t');
        let test = parts.next().unwrap_or_default();
        let need = parts.next().unwrap_or("(unknown)");
        let reason = parts.next().unwrap_or_default();
        tests.insert(test);
        needs.entry(need).or_insert((BTreeSet::new(), reason)).0.insert(test);
    }
    if tests.is_empty() {
        return None;
    }
    let reasons: Vec<_> = needs
        .iter()
        .map(|(need, (tests, reason))| match tests.len() {
            1 => format!("no {need}: {reason}"),
            count => format!("no {need}: {reason} ({count} tests)"),
        })
        .collect();
    let noun = if tests.len() == 1 { "test" } else { "tests" };
    Some(format!("skipped {} {noun}: {}", tests.len(), reasons.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_counts_tests_and_groups_them_by_requirement() {
        let rows = [
            ("", None),
            ("a\troot\tuid 1000\n", Some("skipped 1 test: no root: uid 1000")),
            // A test that skips two of its parts is one test.
            (
                "a\troot\tuid 1000\na\troot\tuid 1000\n",
                Some("skipped 1 test: no root: uid 1000"),
            ),
            (
                "a\troot\tuid 1000\nb\tio_uring\tthe kernel has none\nc\troot\tuid 1000\n",
                Some("skipped 3 tests: no io_uring: the kernel has none; no root: uid 1000 (2 tests)"),
            ),
            // A malformed line is shown instead of being dropped.
            ("a", Some("skipped 1 test: no (unknown): ")),
        ];
        for (lines, expected) in rows {
            assert_eq!(remark(lines).as_deref(), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_record_starts_empty_and_tests_append_to_it() {
        let skips = Skips::begin("of-a-test").unwrap();
        assert_eq!(skips.remark().unwrap(), None);
        let mut command = Command::new("true");
        skips.of(&mut command);
        let named = command.get_envs().find(|(name, _)| *name == rocknet_testing::RECORD);
        fs::write(named.and_then(|(_, value)| value).unwrap(), "a\troot\tuid 1000\n").unwrap();
        assert!(skips.remark().unwrap().is_some());
        let skips = Skips::begin("of-a-test").unwrap();
        assert_eq!(skips.remark().unwrap(), None);
    }
}
