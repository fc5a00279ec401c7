//! The folder of the log: segments, a file that describes them, and a lock that one process holds.
//!
//! All files are opened relative to the open folder and without following links. The folder and its files are open to
//! the account of the server only.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::key;

/// File that one process holds a lock on.
const LOCK: &str = "lock";
/// File that describes the segments.
const STATE: &str = "state";
/// Name of the next version of the state file.
const NEW_STATE: &str = "state.new";
/// Version of the format of the files.
const VERSION: u32 = 2;
/// Maximum size of the state file in bytes.
const MAX_STATE: u64 = 4096;
/// End of the names of segments.
const SUFFIX: &str = ".log";

/// An open folder. Its lock is held until [`Folder::unlock`] is called or the value is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    folder: OwnedFd,
    lock: File,
}

/// Contents of the state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// Seed of the hashes.
    pub seed: u64,
    /// ID of the boot of the system in which the segments were written; empty if it is not known.
    pub boot: String,
    /// True if the last process has closed the log, so that all of it is on disk.
    pub is_closed: bool,
}

/// Returns the ID of the current boot; empty if the system has none.
pub(super) fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Returns the first line of the state file: the version of the file format, and the version of the rules by which keys
/// are made. Responses that were stored under other rules are not used.
fn format() -> String {
    format!("rocknet-responses {VERSION} keys {}", key::RULES)
}

impl State {
    /// Returns the state of a new log.
    pub fn new() -> State {
        State {
            // The standard library gives each `RandomState` random keys.
            seed: RandomState::new().hash_one(0),
            boot: boot_id(),
            is_closed: false,
        }
    }

    /// Returns true if each write of the last process is in the segments. After a crash of the system, a purge may be
    /// missing that was not on disk yet.
    pub fn is_complete(&self) -> bool {
        self.is_closed || !self.boot.is_empty() && self.boot == boot_id()
    }

    fn render(&self) -> String {
        let end = if self.is_closed { "closed" } else { "open" };
        format!("{}\n{:016x}\n{}\n{end}\n", format(), self.seed, self.boot)
    }

    fn parse(text: &str) -> Option<State> {
        let mut lines = text.lines();
        if lines.next()? != format() {
            return None;
        }
        let seed = u64::from_str_radix(lines.next()?, 16).ok()?;
        let boot = lines.next()?.to_owned();
        let is_closed = match lines.next()? {
            "closed" => true,
            "open" => false,
            _ => return None,
        };
        Some(State { seed, boot, is_closed })
    }
}

impl Folder {
    /// Opens a folder, and creates it if it does not exist. Returns `None` while another process holds the lock.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system, or an error for a folder that another account could change.
    pub fn open(path: &Path) -> io::Result<Option<Folder>> {
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::empty())?;
        let found = File::from(folder.try_clone()?).metadata()?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(format!(
                "it belongs to another account (uid {})",
                found.uid()
            )));
        }
        if found.mode() & 0o077 != 0 {
            return Err(io::Error::other(format!(
                "other accounts have access to it (mode {:o}, but it must be 700)",
                found.mode() & 0o777
            )));
        }
        let lock = File::from(rustix::fs::openat(
            &folder,
            LOCK,
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::from_raw_mode(0o600),
        )?);
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Folder { folder, lock })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets another process take the lock, even if a read in progress still uses the folder.
    pub fn unlock(&self) {
        // The end of the process releases the lock in any case.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }

    /// Returns the state file; `None` if it does not exist, or if it has another format.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn state(&self) -> io::Result<Option<State>> {
        let file = match self.open_file(STATE, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MAX_STATE).read_to_end(&mut bytes)?;
        Ok(std::str::from_utf8(&bytes).ok().and_then(State::parse))
    }

    /// Replaces the state file. It is on disk when the call returns.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn set_state(&self, state: &State) -> io::Result<()> {
        self.remove(NEW_STATE)?;
        let mut file = self.open_file(NEW_STATE, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        file.write_all(state.render().as_bytes())?;
        file.sync_all()?;
        rustix::fs::renameat(&self.folder, NEW_STATE, &self.folder, STATE)?;
        rustix::fs::fsync(&self.folder)?;
        Ok(())
    }

    /// Returns number and size of all segments, in their order.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn segments(&self) -> io::Result<Vec<(u32, u64)>> {
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.folder)? {
            let entry = entry?;
            let Some(number) = entry.file_name().to_str().ok().and_then(number_of) else {
                continue;
            };
            let about = rustix::fs::statat(&self.folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            found.push((number, u64::try_from(about.st_size).unwrap_or_default()));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Creates a segment.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system, also if the segment exists.
    pub fn create_segment(&self, number: u32) -> io::Result<File> {
        self.open_file(&name_of(number), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a segment for reading.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn open_segment(&self, number: u32) -> io::Result<File> {
        self.open_file(&name_of(number), OFlags::RDONLY)
    }

    /// Shortens a segment.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn truncate_segment(&self, number: u32, size: u64) -> io::Result<()> {
        self.open_file(&name_of(number), OFlags::WRONLY)?.set_len(size)
    }

    /// Removes a segment, if it exists.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system.
    pub fn remove_segment(&self, number: u32) -> io::Result<()> {
        self.remove(&name_of(number))
    }

    /// Removes all segments.
    ///
    /// # Errors
    ///
    /// Returns the first error of the file system. The other segments are removed nevertheless.
    pub fn remove_all(&self) -> io::Result<()> {
        let mut result = Ok(());
        for (number, _) in self.segments()? {
            result = result.and(self.remove_segment(number));
        }
        result
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // Opening a pipe or a device in place of a file must not wait.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::from_raw_mode(0o600))?;
        let file = File::from(file);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a file")),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn name_of(segment: u32) -> String {
    format!("{segment:08x}{SUFFIX}")
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 8)?;
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|number| name_of(*number) == name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_process_holds_a_private_folder() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("a/responses");
        let folder = Folder::open(&path).expect("a folder").expect("the lock");
        assert_eq!(path.metadata().expect("metadata").mode() & 0o777, 0o700);
        assert!(Folder::open(&path).expect("a folder").is_none());
        assert_eq!(folder.state().expect("a state"), None);
        let state = State {
            is_closed: true,
            ..State::new()
        };
        folder.set_state(&state).expect("a state");
        assert_eq!(folder.state().expect("a state"), Some(state));
        folder.create_segment(0x2a).expect("a segment");
        folder.create_segment(7).expect("a segment");
        assert!(folder.create_segment(7).is_err());
        let mode = path.join("0000002a.log").metadata().expect("metadata").mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(path.join("1.log"), "").expect("a file");
        assert_eq!(folder.segments().expect("segments"), [(7, 0), (0x2a, 0)]);
        folder.remove_all().expect("removed");
        assert!(folder.segments().expect("segments").is_empty());
        folder.unlock();
        assert!(Folder::open(&path).expect("a folder").is_some());
    }

    #[test]
    fn links_and_shared_folders_are_refused() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("responses");
        let folder = Folder::open(&path).expect("a folder").expect("the lock");
        let victim = parent.path().join("victim");
        fs::write(&victim, "x").expect("a file");
        std::os::unix::fs::symlink(&victim, path.join("00000001.log")).expect("a link");
        assert!(folder.create_segment(1).is_err() && folder.open_segment(1).is_err());
        drop(folder);
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(Folder::open(&link).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("permissions");
        let error = Folder::open(&path).expect_err("a shared folder");
        assert!(error.to_string().contains("other accounts"), "{error}");
        assert_eq!(fs::read_to_string(victim).expect("a file"), "x");
    }

    #[test]
    fn a_log_is_complete_after_its_end_or_in_the_same_boot() {
        let state = State::new();
        assert_eq!(state.is_complete(), !state.boot.is_empty());
        let closed = |is_closed| State {
            boot: "another".to_owned(),
            is_closed,
            ..State::new()
        };
        assert!(closed(true).is_complete() && !closed(false).is_complete());
        for text in [
            "",
            "rocknet-responses 1\n0\n\nopen\n",
            &format!("rocknet-responses {VERSION} keys {}\n0\n\nopen\n", key::RULES + 1),
            &format!("rocknet-responses 1 keys {}\n0\n\nopen\n", key::RULES),
            &format!("{}\nx\n\nopen\n", format()),
        ] {
            assert_eq!(State::parse(text), None, "{text}");
        }
        assert_eq!(State::parse(&state.render()), Some(state));
    }
}
