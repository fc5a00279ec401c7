//! Records the tests, and the parts of tests, that this machine cannot run. Used by tests alone.
//!
//! The test harness of Rust counts a test that returns early as passed and hides what it prints. So that such a test is seen,
//! [`skip`] appends a line to the file named by [`RECORD`]; `cargo xtask test` sets that variable, and counts and shows the
//! lines in its summary. In continuous integration (`CI=true`) a skip is a failure, unless a [`Need`] may be missing there.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// The environment variable with the path of the file that skips are appended to.
pub const RECORD: &str = "ROCKNET_TEST_SKIPS";

/// Something that a test needs and that a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<'a> {
    /// The rights of root.
    Root,
    /// io_uring with all that the server uses of it.
    IoUring,
    /// A program that `xtask/src/packages.rs` lists, or one that comes with the toolchain.
    Program(&'a str),
    /// A file system that drops file contents from memory on request: tmpfs does not, and continuous integration may test on one.
    EvictableFiles,
}

impl Need<'_> {
    /// Whether every machine of continuous integration has it: the tests run there as root on Debian, with io_uring enabled and
    /// all programs installed.
    fn is_had_by_ci(self) -> bool {
        match self {
            Need::Root | Need::IoUring | Need::Program(_) => true,
            Need::EvictableFiles => false,
        }
    }

    fn name(self) -> String {
        match self {
            Need::Root => "root".to_owned(),
            Need::IoUring => "io_uring".to_owned(),
            Need::Program(program) => program.to_owned(),
            Need::EvictableFiles => "evictable files".to_owned(),
        }
    }
}

/// Whether this is a run of continuous integration.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Records that the running test, or a part of it, is skipped because this machine lacks `need`; `reason` gives details.
///
/// # Panics
///
/// In continuous integration, where the machine is known to have `need`; and if the record cannot be written.
#[track_caller]
pub fn skip(need: Need<'_>, reason: &str) {
    let thread = thread::current();
    let record = env::var_os(RECORD);
    let skipped = record_skip(thread.name(), need, reason, is_ci(), record.as_deref().map(Path::new));
    if let Err(why) = skipped {
        panic!("{why}");
    }
}

fn record_skip(
    test: Option<&str>,
    need: Need<'_>,
    reason: &str,
    is_ci: bool,
    record: Option<&Path>,
) -> Result<(), String> {
    let name = need.name();
    if is_ci && need.is_had_by_ci() {
        return Err(format!(
            "continuous integration has to have {name}, and this machine does not: {reason}"
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

/// Test programs run one after another, but the threads of one write at the same time: a line is one write.
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
            "a skip is lost"
        );
        assert_eq!(record_skip(None, Need::Root, "", false, None), Ok(()));
    }

    #[test]
    fn ci_may_lack_nothing_but_what_depends_on_its_disk() {
        for (need, may_skip) in [
            (Need::Root, false),
            (Need::IoUring, false),
            (Need::Program("gcc"), false),
            (Need::EvictableFiles, true),
        ] {
            let skipped = record_skip(Some("a"), need, "why", true, None);
            assert_eq!(skipped.is_ok(), may_skip, "{need:?}");
        }
    }
}
