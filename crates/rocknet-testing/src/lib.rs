//! Records tests, and parts of tests, that are skipped because the machine cannot run them. Only tests use this crate.
//!
//! Rust's test harness counts a test that returns early as passed, and hides its output. To make such tests visible,
//! [`skip`] appends a line to the file named by the environment variable [`RECORD`]. `cargo xtask test` sets this
//! variable, and counts and prints the lines in its summary. In continuous integration (`CI=true`), a skip is a
//! failure, unless the [`Need`] may be missing there.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// Environment variable with the path of the file to which skips are appended.
pub const RECORD: &str = "ROCKNET_TEST_SKIPS";

/// A requirement of a test that a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<'a> {
    /// Root privileges of the test process.
    Root,
    /// Support for io_uring with all features that the server uses.
    IoUring,
    /// A program that is listed in `xtask/src/packages.rs` or is part of the toolchain.
    Program(&'a str),
    /// A file system that evicts file contents from the page cache on request. tmpfs cannot evict them, and continuous
    /// integration may use tmpfs.
    EvictableFiles,
    /// IPv6 addresses, which containers often lack.
    Ipv6,
}

impl Need<'_> {
    /// Returns true if every machine of continuous integration meets the requirement. Continuous integration runs the
    /// tests as root on Debian, with io_uring enabled and all programs installed.
    fn is_required_in_ci(self) -> bool {
        match self {
            Need::Root | Need::IoUring | Need::Program(_) => true,
            Need::EvictableFiles | Need::Ipv6 => false,
        }
    }

    /// Returns the name of the requirement in messages and in the record.
    fn name(self) -> String {
        match self {
            Need::Root => "root".to_owned(),
            Need::IoUring => "io_uring".to_owned(),
            Need::Program(program) => program.to_owned(),
            Need::EvictableFiles => "evictable files".to_owned(),
            Need::Ipv6 => "IPv6".to_owned(),
        }
    }
}

/// Returns true if the tests run in continuous integration: `CI` is set and neither empty, `false` nor `0`.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Records that the running test, or a part of it, is skipped because this machine does not meet `need`. `reason`
/// describes how the machine fails to meet it.
///
/// # Panics
///
/// Panics if the record cannot be written. Also panics in continuous integration if every machine there must meet
/// `need`.
#[track_caller]
pub fn skip(need: Need<'_>, reason: &str) {
    let thread = thread::current();
    let record = env::var_os(RECORD);
    let skipped = record_skip(thread.name(), need, reason, is_ci(), record.as_deref().map(Path::new));
    if let Err(error) = skipped {
        panic!("{error}");
    }
}

/// Records a skip like [`skip`], but takes the environment as arguments and returns an error instead of panicking.
/// `record` is the file to append to, if there is one.
fn record_skip(
    test: Option<&str>,
    need: Need<'_>,
    reason: &str,
    is_ci: bool,
    record: Option<&Path>,
) -> Result<(), String> {
    let name = need.name();
    if is_ci && need.is_required_in_ci() {
        return Err(format!(
            "continuous integration requires {name}, which this machine lacks: {reason}"
        ));
    }
    let test = test.unwrap_or("a test");
    println!("skipped {test}: no {name}: {reason}");
    let Some(record) = record else { return Ok(()) };
    append(
        record,
        &format!("{test}\t{name}\t{}\n", reason.replace(['\t', '\n'], " ")),
    )
    .map_err(|error| format!("cannot record a skip in {}: {error}", record.display()))
}

/// Appends the line with one write, because threads and test programs append to the file concurrently.
fn append(record: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(record)?;
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_appended_to_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("skips");
        for (test, need, reason) in [
            (Some("a::b"), Need::Root, "uid 1000"),
            (Some("c"), Need::Program("php-fpm8.2"), "two\nlines"),
            (None, Need::EvictableFiles, "tmpfs"),
        ] {
            record_skip(test, need, reason, false, Some(&record)).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&record).unwrap(),
            "a::b\troot\tuid 1000\nc\tphp-fpm8.2\ttwo lines\na test\tevictable files\ttmpfs\n"
        );
        assert!(
            record_skip(None, Need::Root, "", false, Some(folder.path())).is_err(),
            "an error is returned if the skip cannot be recorded"
        );
        assert_eq!(record_skip(None, Need::Root, "", false, None), Ok(()));
    }

    #[test]
    fn ci_may_lack_evictable_files_but_not_root_io_uring_or_programs() {
        for (need, may_skip) in [
            (Need::Root, false),
            (Need::IoUring, false),
            (Need::Program("gcc"), false),
            (Need::EvictableFiles, true),
        ] {
            let skipped = record_skip(Some("a"), need, "details", true, None);
            assert_eq!(skipped.is_ok(), may_skip, "{need:?}");
        }
    }
}
