//! State of the log, shared by the workers, the threads that read responses, and the thread of the log.

mod changes;
mod lookup;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;

use super::entry::{Entry, Mark};
use super::folder::Folder;
use super::index::Index;
use super::log::{Log, Phase};
use super::names::{Hashes, NameLists};
use super::position::Position;
use super::purge_list::PurgeList;
use super::record::{self, Header, Kind};
use super::stats::Stats;
use crate::key;
use crate::policy::Moment;
use crate::stored::StoredResponse;
use crate::vary::Variation;

pub(super) use self::lookup::read_record;

/// Minimum time in milliseconds for which a response must be fresh to be written to disk. Others would soon be useless.
const MIN_FRESH_MS: u64 = 10_000;

/// State of the log.
pub(super) struct Shared {
    pub path: PathBuf,
    /// Maximum size of all segments in bytes.
    pub capacity: AtomicU64,
    pub index: Index,
    pub stats: Stats,
    log: Mutex<Log>,
    /// Signalled when a record waits, and when the log is closed.
    wake: Condvar,
    /// Signalled when records were written.
    flushed: Condvar,
    /// True while the index is complete, so that responses may be read.
    pub is_ready: AtomicBool,
    is_closing: AtomicBool,
    /// Time at which the thread closes the log.
    closes_at: Mutex<Option<Instant>>,
    /// True if all responses are to be removed at the end.
    pub is_discarded: AtomicBool,
    /// End of the records that were written, as a number.
    written: AtomicU64,
    folder: ArcSwapOption<Folder>,
    hashes: ArcSwapOption<Hashes>,
    names: RwLock<NameLists>,
    purge_list: RwLock<PurgeList>,
}

impl Shared {
    pub fn new(path: PathBuf, capacity: u64) -> Shared {
        Shared {
            path,
            capacity: AtomicU64::new(capacity),
            index: Index::default(),
            stats: Stats::default(),
            log: Mutex::new(Log::new()),
            wake: Condvar::new(),
            flushed: Condvar::new(),
            is_ready: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            closes_at: Mutex::default(),
            is_discarded: AtomicBool::new(false),
            written: AtomicU64::new(0),
            folder: ArcSwapOption::empty(),
            hashes: ArcSwapOption::empty(),
            names: RwLock::default(),
            purge_list: RwLock::default(),
        }
    }

    // A panic leaves the state of these locks consistent enough: an entry without a record is not found on disk.

    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn purge_list(&self) -> RwLockWriteGuard<'_, PurgeList> {
        self.purge_list.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn current_purge_list(&self) -> RwLockReadGuard<'_, PurgeList> {
        self.purge_list.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn folder(&self) -> Option<Arc<Folder>> {
        self.folder.load_full()
    }

    /// Sets the folder, or removes it. `seed`: seed of the hashes.
    pub fn set_folder(&self, folder: Option<Arc<Folder>>, seed: u64) {
        self.hashes.store(folder.is_some().then(|| Arc::new(Hashes::new(seed))));
        self.folder.store(folder);
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Lets the thread close the log at a time.
    pub fn close_at(&self, time: Instant) {
        // The lock is held so that the thread does not miss the signal between its check of the time and its wait.
        let log = self.log();
        *self.closes_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
        drop(log);
        self.wake.notify_all();
    }

    /// Closes the log if its time has come.
    pub fn close_if_due(&self) {
        if self.closes_in().is_some_and(|left| left.is_zero()) && !self.is_closing() {
            self.close();
        }
    }

    /// Returns the time until the log closes, if one is set. A caller that waits for this time must hold the lock of
    /// the log from this call on, so that it does not miss a signal of [`Shared::close_at`].
    pub fn closes_in(&self) -> Option<Duration> {
        let at = *self.closes_at.lock().unwrap_or_else(PoisonError::into_inner);
        Some(at?.saturating_duration_since(Instant::now()))
    }

    /// Lets the thread write the waiting records, and end.
    pub fn close(&self) {
        let mut log = self.log();
        self.is_closing.store(true, Ordering::SeqCst);
        self.is_ready.store(false, Ordering::SeqCst);
        log.phase = Phase::Closed;
        drop(log);
        self.wake.notify_all();
        self.flushed.notify_all();
    }

    /// Wakes the thread, such as after a change of the capacity.
    pub fn wake(&self) {
        self.wake.notify_all();
    }

    /// Waits on the lock of the log until the thread is woken, at most for `time`.
    pub fn wait<'l>(&self, log: MutexGuard<'l, Log>, time: Duration) -> MutexGuard<'l, Log> {
        let result = self.wake.wait_timeout(log, time);
        result.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for `time`, so that further records are written together with those that wait. Returns earlier if there
    /// are enough for a write, if a change must be written soon, or if the log is closed. Also returns earlier if the
    /// disk is so slow that too many records wait (`is_overrun`): the thread must then empty the log at once.
    pub fn gather<'l>(&self, mut log: MutexGuard<'l, Log>, time: Duration) -> MutexGuard<'l, Log> {
        let until = Instant::now() + time;
        // A signal alone does not end the wait.
        while !log.is_urgent
            && !log.is_overrun
            && !self.is_closing()
            && !log.fills_write()
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            log = self.wait(log, left);
        }
        log
    }

    /// Waits for `time`, or until the log is closed.
    pub fn pause(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut log = self.log();
        while !self.is_closing()
            && let Some(left) = deadline.checked_duration_since(Instant::now())
        {
            log = self.wait(log, left);
        }
    }

    /// Sets the end of the records that were written.
    pub fn set_written(&self, end: Position) {
        self.written.store(end.to_number(), Ordering::Release);
        // The lock is taken so that no waiting thread misses the signal.
        drop(self.log());
        self.flushed.notify_all();
    }

    /// Sets the end of the records of earlier processes. The caller holds the lock of the log.
    pub fn set_first(&self, first: Position) {
        self.written.store(first.to_number(), Ordering::Release);
        self.flushed.notify_all();
    }

    /// Waits until all changes so far were written. Returns false after `time`, and if a change came after the log was
    /// closed.
    pub fn flush(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut log = self.log();
        log.is_urgent = true;
        self.wake.notify_one();
        let mut end = None;
        loop {
            let is_done = match log.phase {
                Phase::Opening => log.early.is_empty(),
                Phase::Closed if self.is_discarded.load(Ordering::SeqCst) => true,
                Phase::Closed if log.is_late || !log.early.is_empty() => return false,
                // Changes before the log was open are appended when it opens.
                Phase::Open | Phase::Closed => {
                    let end = *end.get_or_insert(log.next.to_number());
                    self.written.load(Ordering::Acquire) >= end
                }
            };
            if is_done {
                return true;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return false;
            };
            log = self
                .flushed
                .wait_timeout(log, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Returns the number under which the list of field names of a variation is kept; `None` if there are too many
    /// lists.
    pub fn number_of_name_list(&self, variation: &Variation) -> Option<u16> {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.number(variation)
    }

    /// Returns the number of the site of a key.
    pub fn number_of_site(&self, key: &[u8]) -> Option<u16> {
        self.index.sites.number(key::parts(key)?.site)
    }

    /// Sets the quotas of all sites, in bytes. Sites that are not among them have none.
    pub fn set_quotas(&self, quotas: HashMap<Box<[u8]>, u64>) {
        let mut log = self.log();
        self.index.sites.set_quotas(quotas);
        if log.phase == Phase::Open {
            self.trim_all(&mut log);
            drop(log);
            self.wake.notify_one();
        }
    }

    /// Drops the oldest responses of all sites that exceed their quota. A restart does not restore them.
    pub fn trim_all(&self, log: &mut Log) {
        self.index.sites.numbers().for_each(|site| self.trim(log, site));
    }

    /// Drops the oldest responses of a site if it exceeds its quota, and appends a record of this, so that a restart
    /// does not restore them. They could be outdated by then: a change of a resource is recorded only if the index has
    /// a response for it.
    fn trim(&self, log: &mut Log, site: u16) {
        let Some((name, dropped)) = self.index.trim(site) else {
            return;
        };
        self.stats.trimmed.fetch_add(dropped.count as u64, Ordering::Relaxed);
        let head = record::encode_trim(&name, dropped.before);
        if let Some(header) = Header::new(Kind::Trim, 0, 0, head.len(), 0) {
            log.append(header, head, Bytes::new());
        }
    }

    /// Writes a response in place of that for the same variant. `is_current` returns false if the resource was changed
    /// after the response was requested. No change of the resource falls between this check and the append to the log.
    pub fn put(&self, key: &[u8], stored: &StoredResponse, now: Moment, is_current: impl FnOnce() -> bool) {
        let hashes = self.hashes.load_full();
        let prepared = hashes
            .as_ref()
            .and_then(|hashes| self.prepare(hashes, key, stored, now));
        let mut log = self.log();
        if !is_current() {
            return;
        }
        // The log may have been emptied and opened again, with other hashes.
        let is_open = log.phase == Phase::Open
            && hashes.is_some_and(|hashes| self.hashes.load().as_ref().is_some_and(|now| Arc::ptr_eq(now, &hashes)));
        match prepared {
            Some((header, head, mut entry)) if is_open && log.has_room(header.length()) => {
                let had_none = log.waiting.is_empty();
                entry.position = log.append(header, head, stored.body.clone());
                self.index.insert(entry);
                self.note_url(&entry, stored.url.as_deref());
                self.trim(&mut log, entry.mark.site());
                self.stats.written.fetch_add(1, Ordering::Relaxed);
                // Otherwise the thread is awake, or gathers records.
                let wakes = had_none || log.fills_write();
                drop(log);
                if wakes {
                    self.wake.notify_one();
                }
            }
            // The response in memory is newer than that on disk, which has to be removed.
            _ => {
                self.stats.skipped.fetch_add(1, Ordering::Relaxed);
                self.remove_locked(log, key);
            }
        }
    }

    /// Returns the record of a response; `None` if the response must not be written to disk.
    fn prepare(
        &self,
        hashes: &Hashes,
        key: &[u8],
        stored: &StoredResponse,
        now: Moment,
    ) -> Option<(Header, Vec<u8>, Entry)> {
        let terms = stored.terms.to_persistent(now);
        if terms.fresh_ms() < MIN_FRESH_MS {
            return None;
        }
        let head = record::encode_response(key, stored, now)?;
        let hash = hashes.of_key(key);
        let variant = hashes.of_variation(&stored.variation);
        let header = Header::new(Kind::Response, hash, variant, head.len(), stored.body.len())?;
        let site = self.number_of_site(key)?;
        if header.length() > self.index.sites.quota(site) {
            return None;
        }
        let expires = match stored.has_validator() {
            true => u32::MAX,
            false => u32::try_from(terms.useful_until()).unwrap_or(u32::MAX),
        };
        let entry = Entry {
            hash,
            position: Position::default(),
            length: u32::try_from(header.length()).ok()?,
            variant,
            expires,
            names: self.number_of_name_list(&stored.variation)?,
            mark: Mark::of_site(site),
        };
        Some((header, head, entry))
    }

    /// Returns the hash of a key or URL, if the seed is known.
    pub fn hash_of(&self, key: &[u8]) -> Option<u64> {
        self.hashes.load().as_ref().map(|hashes| hashes.of_key(key))
    }
}
