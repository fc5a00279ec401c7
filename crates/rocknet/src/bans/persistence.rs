//! Keeps the bans of a server in its store: loads and writes them, and passes them on in an upgrade.

use std::path::Path;
use std::sync::atomic::Ordering;

use rocknet_limit::bans::MAX_BANS;

use super::ban_file::Stored;
use super::store::Store;
use super::{Bans, MAX_ADDED, lock, unix_s};

impl Bans {
    /// Loads the bans that an earlier process has stored in the state folder, and stores them there from now on. A
    /// second call does nothing. `takes_over`: true if this process takes over from another one.
    pub fn open_store(&self, folder: &Path, takes_over: bool) {
        let mut store = lock(&self.store);
        if store.is_some() {
            return;
        }
        let now = unix_s();
        let (opened, stored) = Store::open(folder, takes_over);
        // The lock of the store is held, so that nothing is written before the bans of the file are in memory.
        self.insert_stored(stored, now);
        self.clients.forget(now);
        *store = Some(opened);
        drop(store);
        let active = self.clients.active(now) + lock(&self.added).len();
        if active > 0 {
            tracing::info!("{active} bans continue");
        }
        // From now on, the keeper thread looks for bans that a predecessor passes.
        self.wake_keeper();
    }

    /// Adds bans of a file. If a client is banned already, the ban that ends later is kept. If a network is banned
    /// already, its ban is kept, even if it ends earlier. Returns the number of bans added.
    fn insert_stored(&self, stored: Stored, now: u64) -> usize {
        let clients = stored.clients.into_iter();
        let clients = clients
            .filter(|(client, ban)| self.clients.insert_longer(*client, ban.clone(), now))
            .count();
        let mut added = lock(&self.added);
        let before = added.len();
        for network in stored.networks {
            let is_known = added.iter().any(|other| other.network == network.network);
            if network.is_active(now) && !is_known && added.len() < MAX_ADDED {
                added.push(network);
            }
        }
        let networks = added.len() - before;
        drop(added);
        self.rebuild_networks(now);
        clients + networks
    }

    /// Adds the bans that old processes have passed. Returns true while more can follow soon.
    pub(super) fn take_passed(&self, now: u64) -> bool {
        let mut store = lock(&self.store);
        let Some(opened) = &mut *store else { return false };
        let passed = opened.take_passed();
        // The lock of the store is held, so that nothing is written before the bans are in memory.
        let added = match passed.is_empty() {
            true => 0,
            false => self.insert_stored(passed, now),
        };
        if added > 0 {
            tracing::info!("bans of old processes continue: {added}");
        }
        opened.has_predecessor()
    }

    /// Writes the store. An error is only logged, because the bans apply until the server stops in any case.
    pub(super) fn save(&self) {
        let mut store = lock(&self.store);
        let Some(opened) = &mut *store else { return };
        self.is_dirty.store(false, Ordering::Relaxed);
        let unwritten = std::mem::take(&mut *lock(&self.unwritten));
        // A worker that removes ended bans needs the lock of `added`, and must not wait for the disk.
        let added = lock(&self.added).clone();
        if !opened.write(&self.clients.all(), &added, &unwritten) {
            // The next periodic work tries again.
            lock(&self.unwritten).add(&unwritten);
            self.is_dirty.store(true, Ordering::Relaxed);
        }
    }

    /// Writes the store if it lacks the latest bans. Called before the new process of an upgrade reads it.
    pub fn flush(&self) {
        if self.is_dirty.load(Ordering::Relaxed) {
            self.save();
        }
    }

    /// Writes the store again after an upgrade has failed. Until then, the new process owned the file.
    pub fn take_back(&self) {
        self.is_dirty.store(true, Ordering::Relaxed);
        self.wake_keeper();
    }

    /// Begins to pass new bans to the process that has taken over.
    pub fn begin_passing(&self) {
        if let Some(store) = &mut *lock(&self.store) {
            store.begin_passing();
        }
        self.is_dirty.store(true, Ordering::Relaxed);
        self.wake_keeper();
    }

    /// Notes that the store lacks a new ban. `add` adds the ban to the unwritten ones.
    pub(super) fn changed(&self, add: impl FnOnce(&mut Stored)) {
        let mut unwritten = lock(&self.unwritten);
        // The bound matters if there is no store, or if the store cannot be written.
        if unwritten.clients.len() + unwritten.networks.len() < MAX_BANS {
            add(&mut unwritten);
        }
        drop(unwritten);
        self.is_dirty.store(true, Ordering::Relaxed);
        self.wake_keeper();
    }
}
