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
mod tests {
    use std::fs::File;

    use rocknet_limit::bans::{Ban, MAX_BANS};

    use super::super::ban_file::tests::bans;
    use super::super::offence::{Offence, Reason};
    use super::*;

    /// Opens the file of a process that does not take over.
    fn open(folder: &Path) -> (Store, Stored) {
        Store::open(folder, false)
    }

    /// Names another process as the owner of the file in a folder. Returns the text of the file.
    fn change_owner(folder: &Path, process: u32) -> String {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replacen(ban_file::writer(&text), &format!("{process}-0"), 1);
        fs::write(&path, &changed).unwrap();
        changed
    }

    /// ID of a process that always runs.
    const RUNNING: u32 = 1;

    /// Largest ID, which no process has.
    const ENDED: u32 = i32::MAX.unsigned_abs();

    #[test]
    fn a_process_that_was_replaced_writes_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let none = Stored::default();
        let (mut old, loaded) = open(folder.path());
        assert_eq!(loaded, none);
        assert!(old.write(&[], &[], &none) && !folder.path().join(FOLDER).exists());
        assert!(old.write(&all.clients, &[], &none));
        let (mut new, loaded) = open(folder.path());
        assert_eq!(loaded.clients, all.clients);
        assert!(new.write(&all.clients[..1], &[], &none));
        let running = change_owner(folder.path(), RUNNING);
        assert!(old.write(&[], &[], &none));
        assert_eq!(fs::read_to_string(folder.path().join(FILE)).unwrap(), running);
        change_owner(folder.path(), ENDED);
        assert!(old.write(&[], &all.networks, &none));
        assert_eq!(open(folder.path()).1.networks, all.networks);
        // An operator has removed the file.
        fs::remove_file(folder.path().join(FILE)).unwrap();
        assert!(old.write(&all.clients, &[], &none));
        assert_eq!(open(folder.path()).1.clients, all.clients);
    }

    #[test]
    fn the_owner_takes_the_bans_of_old_processes() {
        let folder = tempfile::tempdir().unwrap();
        let (all, none) = (bans(), Stored::default());
        let part = |clients: &[ClientBan], networks: &[AddedNetwork]| Stored {
            clients: clients.to_vec(),
            networks: networks.to_vec(),
        };
        let first = part(&all.clients[..1], &[]);
        let (mut oldest, _) = open(folder.path());
        let (mut old, _) = open(folder.path());
        assert!(old.write(&first.clients, &[], &first));
        let (mut new, loaded) = Store::open(folder.path(), true);
        assert_eq!(loaded, first);
        assert!(new.has_predecessor() && !old.has_predecessor());
        assert_eq!(new.take_passed(), none);
        // Before the upgrade is complete, the old process finds another owner. All stores of this test have the same
        // process ID, so none of them is another owner. The file therefore names process 1.
        let own = fs::read_to_string(folder.path().join(FILE)).unwrap();
        change_owner(folder.path(), RUNNING);
        let second = part(&all.clients[1..2], &all.networks);
        assert!(old.write(&[], &[], &second));
        fs::write(folder.path().join(FILE), own).unwrap();
        old.begin_passing();
        oldest.begin_passing();
        assert!(oldest.write(&[], &[], &part(&all.clients[2..], &[])));
        assert!(old.write(&all.clients, &[], &none));
        // A process that passes bans takes none.
        assert_eq!(old.take_passed(), none);
        let mut expected = second;
        expected.add(&part(&all.clients[2..], &[]));
        assert_eq!(new.take_passed(), expected);
        assert_eq!(new.take_passed(), none);
        // They are in the file, also if the new process is killed now. A process that has passed bans once never
        // becomes the owner again.
        assert!(old.write(&[], &[], &none));
        assert_eq!(open(folder.path()).1, all);
        let files = fs::read_dir(folder.path().join(FOLDER)).unwrap().count();
        assert_eq!(files, 2, "the file and its lock");
    }

    #[test]
    fn passed_bans_outlive_an_owner_that_has_not_taken_them() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let (mut old, _) = open(folder.path());
        assert!(old.write(&all.clients[..1], &[], &Stored::default()));
        old.begin_passing();
        let later = Stored {
            clients: all.clients[1..].to_vec(),
            networks: all.networks.clone(),
        };
        assert!(old.write(&all.clients, &all.networks, &later));
        // Nothing is left to pass after the start of the next process.
        for _ in 0..2 {
            assert_eq!(open(folder.path()).1, all);
            assert!(!folder.path().join(PASSED).exists());
        }
    }

    #[test]
    fn a_write_waits_for_the_lock_of_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let (mut store, _) = open(folder.path());
        assert!(store.write(&all.clients, &[], &Stored::default()));
        let other = FileStorage::new(folder.path());
        let lock = other.lock(FILE).unwrap().unwrap();
        assert!(!store.write(&[], &all.networks, &Stored::default()));
        let is_written = thread::scope(|scope| {
            let writer = scope.spawn(|| store.write(&[], &all.networks, &Stored::default()));
            drop(lock);
            writer.join().unwrap()
        });
        assert!(is_written);
        assert_eq!(open(folder.path()).1.networks, all.networks);
    }

    #[test]
    fn the_lock_is_not_needed_where_none_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let (mut store, _) = open(folder.path());
        // A folder takes the place of the lock file.
        fs::create_dir_all(folder.path().join("bans/bans.lock")).unwrap();
        assert!(store.write(&all.clients, &[], &Stored::default()));
        assert_eq!(open(folder.path()).1.clients, all.clients);
    }

    #[test]
    fn a_failed_write_counts_only_if_a_restart_would_change_bans() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let path = folder.path().join(FILE);
        let name = path.file_name().unwrap().to_string_lossy();
        // A folder takes the place of the temporary file.
        let obstacle = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        fs::create_dir_all(&obstacle).unwrap();
        assert!(!Store::open(folder.path(), true).0.has_failed);
        fs::remove_dir(&obstacle).unwrap();
        let (mut store, _) = open(folder.path());
        assert!(store.write(&all.clients, &[], &Stored::default()));
        assert!(store.write(&[], &[], &Stored::default()));
        fs::create_dir(&obstacle).unwrap();
        assert!(!Store::open(folder.path(), true).0.has_failed, "the file has no bans");
        fs::remove_dir(&obstacle).unwrap();
        assert!(store.write(&all.clients, &[], &Stored::default()));
        fs::create_dir(&obstacle).unwrap();
        // The last ban is lifted.
        assert!(!store.write(&[], &[], &Stored::default()));
        assert!(store.has_failed);
    }

    #[test]
    fn all_bans_that_are_permitted_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let ban = || Ban {
            since: 1_764_000_000,
            until: 1_764_000_000 + 604_800,
            count: 7,
            reason: Reason::Offence(Offence::Login),
        };
        let clients: Vec<_> = (0..MAX_BANS as u128)
            .map(|at| ((0x2001_0db8 << 96) | (at << 64), ban()))
            .collect();
        let (mut store, _) = open(folder.path());
        assert!(store.write(&clients, &[], &Stored::default()));
        assert!(store.write(&clients[1..], &[], &Stored::default()));
        assert_eq!(open(folder.path()).1.clients.len(), MAX_BANS - 1);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_kept_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bans")).unwrap();
        let file = File::create(folder.path().join(FILE)).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let (mut store, none) = open(folder.path());
        assert_eq!(none, Stored::default());
        assert!(store.write(&bans().clients, &[], &Stored::default()));
        assert_eq!(open(folder.path()).1.clients, bans().clients);
        assert!(folder.path().join("bans/bans.unreadable").exists());
    }
}
