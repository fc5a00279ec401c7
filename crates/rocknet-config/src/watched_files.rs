//! Files that a configuration was read from, with stamps that show later whether any of them has changed.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::environment::{Environment, FileKind, ProcessEnvironment};

/// Minimum age of a file's last change when the file is read. If the change is more recent, the stamp is no proof: a
/// second change right after the reading may leave the same time and size. File systems count time in steps of up to
/// two seconds.
const MIN_AGE: Duration = Duration::from_secs(3);

/// Properties of a file that change whenever its text does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    /// Device, inode number, and time of the last change of the inode (ctime) in seconds and nanoseconds; zeros on
    /// systems without them.
    inode: [u64; 4],
}

impl Stamp {
    /// Returns the stamp of a file; `None` if the file is missing or cannot be examined.
    fn of(file: &Path) -> Option<Stamp> {
        let metadata = std::fs::metadata(file).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            size: metadata.len(),
            inode: inode(&metadata),
        })
    }

    /// Returns true if the last change was long enough ago.
    fn is_settled(&self) -> bool {
        let age = self.modified.and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age >= MIN_AGE)
    }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> [u64; 4] {
    use std::os::unix::fs::MetadataExt;
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    [
        metadata.dev(),
        metadata.ino(),
        seconds.cast_unsigned(),
        nanoseconds.cast_unsigned(),
    ]
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> [u64; 4] {
    [0; 4]
}

/// Environment of the process that records which files were read, which patterns of `include` were looked up, and which
/// folders of sites (`{host}`) were listed.
#[derive(Debug, Default)]
pub struct WatchedFiles {
    /// Files with their stamps; `None` for a missing file.
    stamps: RefCell<Vec<(PathBuf, Option<Stamp>)>>,
    /// True if a file was read less than [`MIN_AGE`] after it was changed.
    has_recent: Cell<bool>,
    /// Patterns of `include` with the files that matched.
    patterns: RefCell<Vec<(PathBuf, Vec<PathBuf>)>>,
    /// Folders with the sorted names of the folders in them.
    folders: RefCell<Vec<(PathBuf, Vec<String>)>>,
}

impl WatchedFiles {
    /// Returns true if no recorded file has changed since it was read, the patterns match the same files, and the
    /// listed folders contain the same folders. A file that was read within three seconds after a change counts as
    /// changed, because its stamp is no proof.
    pub fn are_unchanged(&self) -> bool {
        if self.has_recent.get() {
            return false;
        }
        let same_stamp = |(file, stamp): &(PathBuf, Option<Stamp>)| Stamp::of(file) == *stamp;
        let same_files = |(pattern, files): &(PathBuf, Vec<PathBuf>)| {
            ProcessEnvironment.matching(pattern).is_ok_and(|found| found == *files)
        };
        let same_folders = |(parent, names): &(PathBuf, Vec<String>)| {
            ProcessEnvironment
                .folders(parent)
                .is_ok_and(|found| sorted(found) == *names)
        };
        self.stamps.borrow().iter().all(same_stamp)
            && self.patterns.borrow().iter().all(same_files)
            && self.folders.borrow().iter().all(same_folders)
    }
}

impl Environment for WatchedFiles {
    fn variable(&self, name: &str) -> Option<String> {
        ProcessEnvironment.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        // A change between the two calls makes the stamp older than the text, so the file counts as changed.
        let stamp = Stamp::of(path);
        if stamp.as_ref().is_some_and(|stamp| !stamp.is_settled()) {
            self.has_recent.set(true);
        }
        self.stamps.borrow_mut().push((path.to_owned(), stamp));
        ProcessEnvironment.read(path)
    }

    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let found = ProcessEnvironment.matching(pattern)?;
        self.patterns.borrow_mut().push((pattern.to_owned(), found.clone()));
        Ok(found)
    }

    fn folders(&self, parent: &Path) -> io::Result<Vec<String>> {
        let found = ProcessEnvironment.folders(parent)?;
        self.folders
            .borrow_mut()
            .push((parent.to_owned(), sorted(found.clone())));
        Ok(found)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        ProcessEnvironment.kind(path)
    }

    fn is_hidden(&self, path: &Path) -> bool {
        ProcessEnvironment.is_hidden(path)
    }

    fn current_dir(&self) -> PathBuf {
        ProcessEnvironment.current_dir()
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Writes a file, and sets the time of its last change to a fixed one in the past.
    fn write(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::options()
            .append(true)
            .open(file)
            .unwrap()
            .set_modified(changed)
            .unwrap();
    }

    #[test]
    fn changes_of_each_file_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("rocknet.toml");
        let included = folder.path().join("a.site");
        write(&main, "include = [\"*.site\"]\n");
        write(&included, "[site.\"a.test\"]\nroot = \".\"\n");
        let read = || {
            let watched = WatchedFiles::default();
            assert!(crate::files(&main, &watched).contains(&main));
            watched
        };
        let watched = read();
        assert!(watched.are_unchanged());
        write(&included, "[site.\"b.test\"]\nroot = \".\"\n");
        assert!(
            !watched.are_unchanged(),
            "the same size and time, but another change of the inode"
        );
        let watched = read();
        assert!(watched.are_unchanged());
        write(&folder.path().join("b.site"), "");
        assert!(!watched.are_unchanged(), "a new file");
        let watched = read();
        fs::remove_file(&included).unwrap();
        assert!(!watched.are_unchanged(), "a removed file");
    }

    #[test]
    fn a_new_folder_of_a_site_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b.test")).unwrap();
        let watched = WatchedFiles::default();
        assert_eq!(watched.folders(folder.path()).unwrap(), ["b.test"]);
        assert!(watched.are_unchanged());
        fs::create_dir(folder.path().join("a.test")).unwrap();
        assert!(!watched.are_unchanged());
    }

    #[test]
    fn a_recent_change_is_no_proof() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("rocknet.toml");
        fs::write(&main, "").unwrap();
        let watched = WatchedFiles::default();
        crate::files(&main, &watched);
        assert!(!watched.are_unchanged());
    }

    #[test]
    fn a_missing_file_that_appears_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("rocknet.toml");
        let watched = WatchedFiles::default();
        assert!(crate::files(&main, &watched).is_empty());
        assert!(watched.are_unchanged());
        write(&main, "");
        assert!(!watched.are_unchanged());
    }
}
