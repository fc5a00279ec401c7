//! Rotates log files: renames `access.log` to `access.log.1`, `access.log.1` to `access.log.2`, and so on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Renames `path` and shifts the older files. If `keep` old files exist, the oldest is replaced. Each step is one
/// rename, so that the lines are in a file with one of these names at every moment, even after a failure.
pub(super) fn set_aside(path: &Path, keep: usize) -> io::Result<()> {
    // Even if `keep` is 0, one old file exists until the next file is open.
    let keep = keep.max(1);
    // The first gap (a file removed by hand, or an interrupted rotation) is filled, and files after it are not shifted.
    let last = (1..=keep)
        .find(|&number| !exists(&numbered(path, number)))
        .unwrap_or(keep);
    for number in (1..last).rev() {
        fs::rename(numbered(path, number), numbered(path, number + 1))?;
    }
    fs::rename(path, numbered(path, 1))
}

/// Removes all old files except the `keep` youngest, up to the first gap in their numbers. More than `keep` old files
/// exist after `keep` was reduced.
pub(super) fn prune(path: &Path, keep: usize) {
    let mut number = keep + 1;
    while fs::remove_file(numbered(path, number)).is_ok() {
        number += 1;
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rotates a log and checks the names and contents of the files: 0 is the log itself, and `n` is the file
    /// `a.log.n`.
    fn check(before: &[(usize, &str)], keep: usize, after: &[(usize, &str)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("a.log");
        let name = |number: usize| {
            if number == 0 {
                log.clone()
            } else {
                numbered(&log, number)
            }
        };
        for (number, content) in before {
            fs::write(name(*number), content).expect("writes");
        }
        set_aside(&log, keep).expect("rotates");
        prune(&log, keep);
        let found: Vec<(usize, String)> = (0..10)
            .filter_map(|number| Some((number, fs::read_to_string(name(number)).ok()?)))
            .collect();
        let found: Vec<(usize, &str)> = found
            .iter()
            .map(|(number, content)| (*number, content.as_str()))
            .collect();
        assert_eq!(found, after, "{before:?} keep {keep}");
    }

    #[test]
    fn old_files_are_shifted_and_removed() {
        check(&[(0, "a")], 3, &[(1, "a")]);
        check(&[(0, "b"), (1, "a")], 3, &[(1, "b"), (2, "a")]);
        check(
            &[(0, "d"), (1, "c"), (2, "b"), (3, "a")],
            3,
            &[(1, "d"), (2, "c"), (3, "b")],
        );
        check(&[(0, "b"), (1, "a")], 1, &[(1, "b")]);
        check(&[(0, "a")], 0, &[]);
        check(&[(0, "c"), (1, "b"), (3, "a")], 3, &[(1, "c"), (2, "b"), (3, "a")]);
        check(&[(0, "d"), (2, "b"), (3, "a")], 3, &[(1, "d"), (2, "b"), (3, "a")]);
        check(
            &[(0, "e"), (1, "d"), (2, "c"), (3, "b"), (4, "a")],
            2,
            &[(1, "e"), (2, "d")],
        );
    }

    #[test]
    fn a_missing_log_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        for keep in [0, 2] {
            assert!(set_aside(&folder.path().join("none"), keep).is_err());
        }
    }
}
