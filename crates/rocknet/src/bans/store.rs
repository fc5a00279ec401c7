//! File in the state folder that keeps bans across restarts and upgrades.
//!
//! It names the process that has written it last, its owner. After an upgrade, the old process does not replace the
//! bans of the new one: a process does not write if another running process has become the owner since this process has
//! read or written the file. It passes its later bans to its successor instead ([`passed`]).

use std::fs;
use std::path::{Path, PathBuf};

use rocknet_limit::bans::Ban;

use super::ban_file::{self, MAX_FILE_BYTES, Stored};
use super::networks::AddedNetwork;
use super::offence::Reason;
use super::passed::{self, ClientBan, PassedBans};
use crate::certificates::storage::{Access, FileStorage, Storage};

/// Name of the file.
const FILE: &str = "bans/bans";

/// Time in seconds before the last write from which on bans are passed to a successor. The successor can have read the
/// file shortly before that write. It ignores bans that it has already.
const OVERLAP_S: u64 = 60;

/// The file.
pub struct Store {
    storage: FileStorage,
    /// Name of this process in the file.
    own_name: String,
    /// Owner of the file when this process has read or written it last; empty if there was no file.
    known: String,
    /// Process from which this process takes over; `None` once it has ended.
    predecessor: Option<u32>,
    /// Bans that the predecessor passes; `None` once it has ended.
    passed: Option<PassedBans>,
    /// Names of files with passed bans that the next write makes superfluous.
    complete: Vec<String>,
    /// Unix time in seconds of the last write.
    written_s: u64,
    /// True if this process has passed bans to a successor.
    has_passed: bool,
    /// True after another running process was found to be the owner, until a write succeeds. It is logged once.
    was_replaced: bool,
    /// True after an error was logged, until a write succeeds.
    has_failed: bool,
}

impl Store {
    /// Opens the file in a state folder, and reads it, with the bans that processes have passed to no successor. A file
    /// that cannot be read is logged, and counts as empty. `predecessor`: ID of the process from which this process
    /// takes over.
    pub fn open(folder: &Path, predecessor: Option<u32>) -> (Store, Stored) {
        let mut store = Store {
            storage: FileStorage::new(folder),
            own_name: ban_file::own_name(),
            known: String::new(),
            predecessor,
            passed: None,
            complete: Vec::new(),
            written_s: 0,
            has_passed: false,
            was_replaced: false,
            has_failed: false,
        };
        let mut stored = match ban_file::read(&store.path(), MAX_FILE_BYTES) {
            Ok(text) => {
                ban_file::writer(&text).clone_into(&mut store.known);
                ban_file::parse(&text)
            }
            Err(error) => {
                // The next write would replace it.
                let kept = store.path().with_extension("unreadable");
                let renamed = match fs::rename(store.path(), &kept) {
                    Ok(()) => format!("it was renamed to {}", kept.display()),
                    Err(error) => format!("it will be replaced, because it cannot be renamed: {error}"),
                };
                store.fail(&format!("cannot be read: {error}; {renamed}"));
                Stored::default()
            }
        };
        let abandoned = passed::read_abandoned(&store.storage);
        stored.clients.extend(abandoned.bans);
        store.complete = abandoned.complete;
        store.passed = predecessor.map(|process| PassedBans::new(process, &stored.clients));
        (store, stored)
    }

    fn path(&self) -> PathBuf {
        self.storage.path().join(FILE)
    }

    /// Returns true if the file has to be written although no ban has changed: to become its owner in place of a
    /// predecessor, or because passed bans are not in it.
    pub fn needs_write(&self) -> bool {
        let is_owner = self.known == self.own_name;
        self.predecessor.is_some() && !is_owner || !self.complete.is_empty()
    }

    /// Returns true while a predecessor can pass bans.
    pub fn has_predecessor(&self) -> bool {
        self.passed.is_some()
    }

    /// Returns the bans that the predecessor has passed since the last call.
    pub fn take_passed(&mut self) -> Vec<ClientBan> {
        let Some(passed) = &mut self.passed else {
            return Vec::new();
        };
        // Examined first, so that everything that a process has written before its end is read below.
        let continues = passed.continues();
        let new = passed.read(&self.storage);
        if !continues {
            self.complete.extend(new.complete);
            (self.passed, self.predecessor) = (None, None);
        }
        new.bans
    }

    /// Writes all bans. If another process owns the file now, the later ones are passed to it. `now`: Unix time in
    /// seconds.
    pub fn write(&mut self, clients: &[ClientBan], networks: &[AddedNetwork], now: u64) {
        /// Maximum length of the first line in bytes.
        const MAX_FIRST_LINE: u64 = 256;
        // A file that cannot be read is replaced.
        let current = ban_file::read(&self.path(), MAX_FIRST_LINE).unwrap_or_default();
        let current = ban_file::writer(&current);
        if current.is_empty() && clients.is_empty() && networks.is_empty() && !self.needs_write() {
            // A server without bans needs no file.
            return;
        }
        if current != self.known && self.is_other_running(current) {
            if !std::mem::replace(&mut self.was_replaced, true) {
                tracing::info!("another process of the server keeps the bans from now on");
            }
            return self.pass(clients);
        }
        let text = ban_file::render(&self.own_name, clients, networks);
        match self.storage.write(FILE, text.as_bytes(), Access::Owner) {
            Ok(()) => {
                self.known.clone_from(&self.own_name);
                self.written_s = now;
                (self.was_replaced, self.has_failed) = (false, false);
                // Without effect on the bans: at worst, a later process gets some that it has already.
                self.complete
                    .drain(..)
                    .for_each(|name| drop(self.storage.remove(&name)));
                if std::mem::take(&mut self.has_passed) {
                    passed::remove(&self.storage, &self.own_name);
                }
            }
            Err(error) => self.fail(&format!("cannot be written, so a restart lifts the bans: {error}")),
        }
    }

    /// Returns true if a process is neither this one nor its predecessor, and runs.
    fn is_other_running(&self, name: &str) -> bool {
        ban_file::process_of(name).is_some_and(|process| {
            process != std::process::id() && Some(process) != self.predecessor && ban_file::is_running(process)
        })
    }

    /// Passes the bans that the successor may not have read to it.
    fn pass(&mut self, clients: &[ClientBan]) {
        let since = self.written_s.saturating_sub(OVERLAP_S);
        let is_later = |(_, ban): &&(u128, Ban<Reason>)| ban.since >= since;
        let later: Vec<_> = clients.iter().filter(is_later).cloned().collect();
        if later.is_empty() {
            return;
        }
        match passed::write(&self.storage, &self.own_name, &later) {
            Ok(()) => self.has_passed = true,
            Err(error) => self.fail(&format!("does not get the bans of this process: {error}")),
        }
    }

    fn fail(&mut self, what: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::warn!("the file {} {what}", self.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rocknet_limit::bans::MAX_BANS;

    use super::super::ban_file::tests::bans;
    use super::super::offence::Offence;
    use super::*;

    /// Opens the file of a process without a predecessor.
    fn open(folder: &Path) -> (Store, Stored) {
        Store::open(folder, None)
    }

    #[test]
    fn a_process_that_was_replaced_writes_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let (mut old, none) = open(folder.path());
        assert_eq!(none, Stored::default());
        old.write(&all.clients, &[], 1_000);
        let (mut new, loaded) = open(folder.path());
        assert_eq!(loaded.clients, all.clients);
        new.write(&all.clients[..1], &[], 1_000);
        let path = folder.path().join(FILE);
        let written = fs::read_to_string(&path).unwrap();
        // Both stores have the process ID of this test, so the ID of the new one is replaced by 1, which always runs.
        let running = written.replacen(&format!("{}-", std::process::id()), "1-", 1);
        fs::write(&path, &running).unwrap();
        old.write(&[], &[], 1_000);
        assert_eq!(fs::read_to_string(&path).unwrap(), running);
        // The new process has ended: no process has the largest number.
        fs::write(&path, running.replacen("1-", &format!("{}-", i32::MAX), 1)).unwrap();
        old.write(&[], &all.networks, 1_000);
        assert_eq!(open(folder.path()).1.networks, all.networks);
        // An operator has removed the file.
        fs::remove_file(&path).unwrap();
        old.write(&all.clients, &[], 1_000);
        assert_eq!(open(folder.path()).1.clients, all.clients);
    }

    #[test]
    fn a_process_passes_its_last_bans_to_its_successor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let [before, early, late] = [900u32, 990, 1_020].map(|since| {
            let mut ban = bans().clients[0].clone();
            // Clients with addresses of IPv4.
            (ban.0, ban.1.since) = (0xffff_0000_0000 | u128::from(since), u64::from(since));
            ban
        });
        let (mut old, _) = open(folder.path());
        old.write(std::slice::from_ref(&before), &[], 1_000);
        let (mut new, loaded) = Store::open(folder.path(), Some(std::process::id()));
        assert_eq!(loaded.clients, [before.clone()]);
        assert!(new.needs_write() && new.has_predecessor());
        // The old process writes once more before the new one becomes the owner.
        old.write(&[before.clone(), early.clone()], &[], 1_000);
        new.write(&loaded.clients, &[], 1_001);
        assert!(!new.needs_write());
        // Both stores have the process ID of this test, so the owner gets the ID 1, which always runs.
        let written = fs::read_to_string(&path).unwrap();
        let running = written.replacen(&format!("{}-", std::process::id()), "1-", 1);
        fs::write(&path, &running).unwrap();
        old.write(&[before.clone(), early.clone(), late.clone()], &[], 1_030);
        assert_eq!(fs::read_to_string(&path).unwrap(), running);
        assert_eq!(new.take_passed(), [early.clone(), late.clone()]);
        assert_eq!(new.take_passed(), []);
        // If the upgrade has failed, the old process is the owner again, and passes nothing.
        fs::write(&path, written.replacen(&format!("{}-", std::process::id()), "x-", 1)).unwrap();
        old.write(&[late.clone()], &[], 1_040);
        let files: Vec<_> = fs::read_dir(folder.path().join("bans")).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(open(folder.path()).1.clients, [late]);
    }

    #[test]
    fn passed_bans_outlive_a_successor_that_has_not_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        let all = bans().clients;
        // No process has the largest number.
        passed::write(&storage, &format!("{}-0", i32::MAX), &all).unwrap();
        let (store, loaded) = open(folder.path());
        assert_eq!(loaded.clients, all);
        assert!(store.needs_write());
        // They are removed only once they are in the file.
        let (mut store, again) = open(folder.path());
        assert_eq!(again.clients, all);
        store.write(&all, &[], 1_000);
        let files: Vec<_> = fs::read_dir(folder.path().join("bans")).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(open(folder.path()).1.clients, all);
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
        store.write(&clients, &[], 1_000);
        store.write(&clients[1..], &[], 1_000);
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
        store.write(&bans().clients, &[], 1_000);
        assert_eq!(open(folder.path()).1.clients, bans().clients);
        assert!(folder.path().join("bans/bans.unreadable").exists());
    }
}
