//! File in the state folder that keeps bans across restarts and upgrades.
//!
//! It names the process that has written it last, its owner. In an upgrade, the new process becomes the owner before it
//! serves. From then on, the old process writes its new bans to a second file, from which the owner takes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::ban_file::{self, ClientBan, MAX_FILE_BYTES, Stored};
use super::networks::AddedNetwork;
use crate::certificates::storage::{Access, FileStorage, Lock, Storage};

/// Folder of the files in the state folder.
const FOLDER: &str = "bans";

/// Name of the file, and of the lock under which processes change it.
const FILE: &str = "bans/bans";

/// Name of the file with the bans that old processes pass to the owner.
const PASSED: &str = "bans/passed";

/// Time after an upgrade in which the new process often looks for bans of the old one: the default of
/// `limits.upgrade_drain`. Afterwards it looks for them once a minute.
const PASSING_TIME: Duration = Duration::from_secs(3600);

/// Maximum time to wait for the lock, which another process holds while it writes the file.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Time between two attempts to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The file.
pub struct Store {
    storage: FileStorage,
    /// Name of this process in the file.
    own_name: String,
    /// Owner of the file when this process has read or written it last; empty if there was no file.
    known: String,
    /// True once another process has taken over for good, so that this process passes its bans to it.
    has_successor: bool,
    /// End of [`PASSING_TIME`]; `None` in a process that does not take over from another one.
    passing_until: Option<Instant>,
    /// True after the change of the owner was logged, until this process writes the file again.
    was_replaced: bool,
    /// True after an error was logged, until a write succeeds.
    has_failed: bool,
}

impl Store {
    /// Opens the file in a state folder, and reads it, with the bans that old processes have passed. A file that cannot
    /// be read is logged, and counts as empty. `takes_over`: true if this process takes over from another one, and so
    /// becomes the owner of the file.
    pub fn open(folder: &Path, takes_over: bool) -> (Store, Stored) {
        let mut store = Store {
            storage: FileStorage::new(folder),
            own_name: ban_file::own_name(),
            known: String::new(),
            has_successor: false,
            passing_until: takes_over.then(|| Instant::now() + PASSING_TIME),
            was_replaced: false,
            has_failed: false,
        };
        // A server without bans needs no folder for the lock.
        let is_needed = takes_over || store.storage.path().join(FOLDER).exists();
        // If another process holds the lock for too long, the files are used without it.
        let _lock = is_needed.then(|| store.lock().ok());
        let mut stored = match ban_file::read(&store.path(), MAX_FILE_BYTES) {
            Ok(text) => {
                ban_file::writer(&text).clone_into(&mut store.known);
                ban_file::parse(&text)
            }
            Err(error) => {
                // The next write would replace the unreadable file, so it gets another name.
                let kept = store.path().with_extension("unreadable");
                let renamed = match fs::rename(store.path(), &kept) {
                    Ok(()) => format!("it was renamed to {}", kept.display()),
                    Err(error) => format!("it will be replaced, because it cannot be renamed: {error}"),
                };
                store.fail(FILE, &format!("cannot be read: {error}; {renamed}"));
                Stored::default()
            }
        };
        let passed = store.read_passed();
        stored.add(&passed);
        if (takes_over || !passed.is_empty()) && store.write_as_owner(&stored.clients, &stored.networks) {
            store.remove_passed();
        }
        (store, stored)
    }

    fn path(&self) -> PathBuf {
        self.storage.path().join(FILE)
    }

    /// Makes this process pass its bans to its successor from now on. The process never owns the file again.
    pub fn begin_passing(&mut self) {
        self.has_successor = true;
    }

    /// Returns true if an old process has probably not ended, so that [`Store::take_passed`] has to be called often.
    pub fn has_predecessor(&self) -> bool {
        self.passing_until.is_some_and(|end| Instant::now() < end)
    }

    /// Moves the bans that old processes have passed into the file, and returns them.
    pub fn take_passed(&mut self) -> Stored {
        if self.has_successor || !self.storage.path().join(PASSED).exists() {
            return Stored::default();
        }
        let Ok(_lock) = self.lock() else {
            return Stored::default();
        };
        let Ok(text) = ban_file::read(&self.path(), MAX_FILE_BYTES) else {
            return Stored::default();
        };
        if self.is_owned_by_other(ban_file::writer(&text)) {
            return Stored::default();
        }
        let passed = self.read_passed();
        let mut all = ban_file::parse(&text);
        all.add(&passed);
        match self.write_as_owner(&all.clients, &all.networks) {
            true => {
                self.remove_passed();
                passed
            }
            // The bans are taken once the file can be written.
            false => Stored::default(),
        }
    }

    /// Writes all bans. If another process owns the file now, the bans in `unwritten` are passed to it. Returns false
    /// if neither was possible. `unwritten`: bans since the last call that returned true.
    pub fn write(&mut self, clients: &[ClientBan], networks: &[AddedNetwork], unwritten: &Stored) -> bool {
        let is_superfluous = match self.has_successor {
            true => unwritten.is_empty(),
            // A server without bans needs no file.
            false => clients.is_empty() && networks.is_empty() && self.owner().is_empty(),
        };
        if is_superfluous {
            return true;
        }
        let Ok(_lock) = self.lock() else {
            self.fail(FILE, "cannot be written, because another process holds its lock");
            return false;
        };
        if self.has_successor || self.is_owned_by_other(&self.owner()) {
            return self.pass(unwritten);
        }
        self.write_as_owner(clients, networks)
    }

    /// Writes bans. The caller holds the lock. Returns false after an error, which is logged
    /// if the next start would not restore these bans.
    fn write_as_owner(&mut self, clients: &[ClientBan], networks: &[AddedNetwork]) -> bool {
        let text = ban_file::render(&self.own_name, clients, networks);
        match self.storage.write(FILE, text.as_bytes(), Access::Owner) {
            Ok(()) => {
                self.known.clone_from(&self.own_name);
                (self.was_replaced, self.has_failed) = (false, false);
                true
            }
            Err(error) => {
                let effect = match clients.is_empty() && networks.is_empty() {
                    false => "a restart lifts the bans",
                    true if self.holds_bans() => "lifted bans apply again after a restart",
                    // Nothing is lost.
                    true => return false,
                };
                self.fail(FILE, &format!("cannot be written, so {effect}: {error}"));
                false
            }
        }
    }

    /// Adds bans to those that the owner takes. The caller holds the lock. Returns false after an error, which is
    /// logged.
    fn pass(&mut self, bans: &Stored) -> bool {
        if !std::mem::replace(&mut self.was_replaced, true) {
            tracing::info!("another process of the server keeps the bans from now on");
        }
        if bans.is_empty() {
            return true;
        }
        let mut all = self.read_passed();
        all.add(bans);
        let text = ban_file::render(&self.own_name, &all.clients, &all.networks);
        let written = self.storage.write(PASSED, text.as_bytes(), Access::Owner);
        match written {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                let what = format!("cannot be written, so the new process does not get all bans: {error}");
                self.fail(PASSED, &what);
                return false;
            }
        }
        true
    }

    /// Returns the passed bans. An unreadable file counts as empty.
    fn read_passed(&self) -> Stored {
        let text = ban_file::read(&self.storage.path().join(PASSED), MAX_FILE_BYTES).unwrap_or_default();
        ban_file::parse(&text)
    }

    /// Returns true if the file contains bans. An unreadable file counts as empty.
    fn holds_bans(&self) -> bool {
        let text = ban_file::read(&self.path(), MAX_FILE_BYTES).unwrap_or_default();
        !ban_file::parse(&text).is_empty()
    }

    fn remove_passed(&self) {
        if let Err(error) = self.storage.remove(PASSED) {
            tracing::warn!("{PASSED} in the state folder cannot be removed: {error}");
        }
    }

    /// Returns the name of the process that owns the file; empty if there is no file.
    fn owner(&self) -> String {
        /// Number of bytes that contain the first line. `read` truncates a longer file to this length.
        const MAX_FIRST_LINE: u64 = 256;
        // A file that cannot be read has no owner, so it is replaced.
        let text = ban_file::read(&self.path(), MAX_FIRST_LINE).unwrap_or_default();
        ban_file::writer(&text).to_owned()
    }

    /// Returns true if a running process has become the owner after this process read or wrote the file.
    fn is_owned_by_other(&self, owner: &str) -> bool {
        let is_running = |process| process != std::process::id() && ban_file::is_running(process);
        owner != self.known && ban_file::process_of(owner).is_some_and(is_running)
    }

    /// Waits for the lock of the file. Returns `None` if the file system has no locks or cannot be written, which the
    /// caller notices when it writes.
    ///
    /// # Errors
    ///
    /// Fails with `WouldBlock` if another process holds the lock for too long.
    fn lock(&self) -> io::Result<Option<Lock>> {
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match self.storage.lock(FILE) {
                Ok(None) if Instant::now() < until => thread::sleep(LOCK_PAUSE),
                Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(lock) => return Ok(lock),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Logs a failure, and no further one until a write succeeds.
    fn fail(&mut self, file: &str, what: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::warn!("the file {} {what}", self.storage.path().join(file).display());
        }
    }
}

#[cfg(test)]
mod tests;
