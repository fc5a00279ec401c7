//! Responses on disk, which survive a restart.
//!
//! ```text
//! worker ── put, remove, purge ─▶ log.rs: positions, waiting records ─▶ thread.rs: writes segments, drops the oldest
//!   │                              │ same lock                              │ at start
//!   └─ find ─▶ index.rs ◀──────────┘                     recovery.rs: reads segments
//!        └─ readers ─▶ shared.rs: reads a record, checks it, and compares it with purge_list.rs
//! ```
//! The log consists of segments, to which records are appended (record.rs). The oldest segment is dropped when the log
//! is full; the responses in it that were used are appended again (eviction.rs). A change of a resource appends a
//! removal or a purge, so that it also applies after a restart.

mod ages;
mod entry;
mod eviction;
mod folder;
mod format;
mod index;
mod log;
mod names;
mod position;
mod purge_list;
mod record;
mod recovery;
mod shared;
mod sites;
mod stats;
mod thread;
mod time;
mod url_positions;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocknet_config::model::Priority;
use rocknet_handler::services::{Job, Pool, Services};
use rocknet_io::owned_thread::OwnedThread;
use rocknet_proto::fields::Fields;

use self::entry::Entry;
use self::shared::Shared;
use crate::policy::Moment;
use crate::purge::Purge;
use crate::stored::StoredResponse;

pub(crate) use self::record::decode_any;
pub use self::sites::SiteDiskUsage;

/// Number of threads that read. They are separate from the pool for files, so that a slow disk does not stop that pool.
const READERS: usize = 8;

/// Maximum number of reads that wait or are in progress. More reads are not started, so that the queue cannot grow
/// without limit while the disk does not respond.
const MAX_READS: usize = 256;

/// Responses on disk.
pub struct DiskStore {
    shared: Arc<Shared>,
    reads: Arc<AtomicUsize>,
    readers: Pool,
    thread: Mutex<Option<OwnedThread>>,
}

/// Counters and sizes of the responses on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskUsage {
    /// Number of responses.
    pub objects: u64,
    /// Size of the responses in bytes.
    pub bytes: u64,
    /// Size of all files in bytes.
    pub size: u64,
    /// Memory of the index in bytes.
    pub index: u64,
    /// Responses that were read.
    pub hits: u64,
    /// Responses that were written.
    pub written: u64,
    /// Stored responses that were not written, for instance because they are fresh only for a short time or are too
    /// large, or because too many responses wait to be written.
    pub skipped: u64,
    /// Responses that were dropped because their site has exceeded its quota.
    pub trimmed: u64,
    /// Reads that were not started or were given up, because the disk was busy or no memory was free.
    pub busy: u64,
    /// Failed reads and writes, and damaged records.
    pub errors: u64,
}

/// Returns the current times.
pub(crate) fn moment(services: &Services) -> Moment {
    Moment {
        uptime_ms: services.clock.uptime_ms(),
        unix_ms: services.clock.unix_ms(),
    }
}

/// A read in progress: the response, with the reservation of its memory.
pub(crate) type ReadJob<M> = Job<Option<(Arc<StoredResponse>, M)>>;

/// Permit to read. Counts as one of the [`MAX_READS`] reads until it is dropped.
struct ReadPermit(Arc<AtomicUsize>);

impl Drop for ReadPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl DiskStore {
    /// Starts the thread that opens a folder and writes to it. `capacity`: maximum size in bytes. `is_in_memory`:
    /// returns true for keys that are stored in memory, whose responses count as used.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot create a thread.
    pub(crate) fn start(
        folder: PathBuf,
        capacity: u64,
        is_in_memory: impl Fn(&[u8]) -> bool + Send + 'static,
    ) -> std::io::Result<DiskStore> {
        let shared = Arc::new(Shared::new(folder, capacity));
        let thread = {
            let shared = Arc::clone(&shared);
            OwnedThread::start("rn-responses", move || thread::run(&shared, &is_in_memory))?
        };
        Ok(DiskStore {
            shared,
            reads: Arc::default(),
            readers: Pool::new(READERS),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.shared.path
    }

    /// Changes the maximum size.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        self.shared.capacity.store(capacity, Ordering::Relaxed);
        self.shared.wake();
    }

    /// Sets the quotas of sites, in bytes. Other sites have no quota. The oldest responses of a site that
    /// exceeds its quota are dropped.
    pub(crate) fn set_quotas<'s>(&self, quotas: impl Iterator<Item = (&'s str, u64)>) {
        let quotas: HashMap<_, _> = quotas
            .map(|(site, quota)| (Box::from(site.as_bytes()), quota))
            .collect();
        self.shared.set_quotas(quotas);
    }

    /// Returns the sites with a quota, and the size of their responses.
    pub fn limited_sites(&self) -> Vec<SiteDiskUsage> {
        self.shared.index.sites.limited()
    }

    /// Writes a response in the background. `is_current` returns false if the resource was changed after the response
    /// was requested.
    pub(crate) fn put(&self, key: &[u8], stored: &StoredResponse, now: Moment, is_current: impl FnOnce() -> bool) {
        self.shared.put(key, stored, now, is_current);
    }

    /// Drops the responses for a key.
    pub(crate) fn remove(&self, key: &[u8]) {
        self.shared.remove(key);
    }

    /// Drops the responses to a URL of a site whose keys are made by a template. `url`: host and path, as
    /// [`url`](crate::key::url) returns them.
    pub(crate) fn change_url(&self, site: &str, url: &[u8]) {
        self.shared.change_url(site.as_bytes(), url);
    }

    /// Drops the responses that some purges select.
    pub(crate) fn purge(&self, purges: &[Purge]) {
        self.shared.purge(purges);
    }

    /// Waits until all changes so far were written. Returns false if that takes longer than `time`.
    pub fn flush(&self, time: Duration) -> bool {
        self.shared.flush(time)
    }

    /// Returns true once responses can be read.
    pub fn is_ready(&self) -> bool {
        self.shared.is_ready.load(Ordering::Acquire)
    }

    /// Starts to read the response that a request with these fields selects. `changes`: value for
    /// [`StoredResponse::changes`]. `reserve`: reserves memory of a size in bytes. Returns `None` if no response was
    /// found, if too many reads wait, or if no memory can be reserved.
    pub(crate) fn start_read<M: Send + 'static>(
        &self,
        key: &[u8],
        request: &Fields<'_>,
        now: Moment,
        changes: u64,
        reserve: impl FnOnce(u64) -> Option<M>,
    ) -> Option<ReadJob<M>> {
        let entry = self.find(key, request, now.unix_ms / 1000)?;
        let Some((permit, reserved)) = self.permit().zip(reserve(u64::from(entry.length))) else {
            self.count_busy();
            return None;
        };
        let (shared, key) = (Arc::clone(&self.shared), Box::<[u8]>::from(key));
        Some(self.readers.spawn(Priority::Normal, move || {
            // Released when the read has ended, also if it is not waited for any longer.
            let _permit = permit;
            let mut stored = shared.read(&entry, &key, now)?;
            stored.changes = changes;
            Some((Arc::new(stored), reserved))
        }))
    }

    /// Counts a response that was read.
    pub(crate) fn count_hit(&self) {
        self.shared.stats.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read that was not started or was given up.
    pub(crate) fn count_busy(&self) {
        self.shared.stats.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the entry of the response that a request with these fields selects.
    fn find(&self, key: &[u8], request: &Fields<'_>, now_unix: u64) -> Option<Entry> {
        self.shared.find(key, request, now_unix)
    }

    /// Returns a permit to read; `None` if the disk is busy.
    fn permit(&self) -> Option<ReadPermit> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= MAX_READS {
            self.reads.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(ReadPermit(Arc::clone(&self.reads)))
    }

    /// Returns counters and sizes.
    pub fn usage(&self) -> DiskUsage {
        let (index, stats) = (&self.shared.index, &self.shared.stats);
        DiskUsage {
            objects: index.len() as u64,
            bytes: index.bytes(),
            size: stats.size.load(Ordering::Relaxed),
            index: index.memory_size() as u64,
            hits: stats.hits.load(Ordering::Relaxed),
            written: stats.written.load(Ordering::Relaxed),
            skipped: stats.skipped.load(Ordering::Relaxed),
            trimmed: stats.trimmed.load(Ordering::Relaxed),
            busy: stats.busy.load(Ordering::Relaxed),
            errors: stats.errors.load(Ordering::Relaxed),
        }
    }

    /// Ends reading, and signals the thread, which writes the waiting records and then lets another process use the
    /// folder. Returns at once.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Calls [`DiskStore::close`] after some time.
    pub(crate) fn close_after(&self, time: Duration) {
        self.shared.close_at(Instant::now() + time);
    }

    /// Removes all responses, and lets another process use the folder.
    pub(crate) fn discard(&self) {
        self.shared.is_discarded.store(true, Ordering::SeqCst);
        self.shared.close();
    }

    /// Ends the thread and the readers. Returns true if all have ended by `deadline`.
    pub(crate) fn stop(&self, deadline: Instant) -> bool {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let has_ended = thread.is_none_or(|thread| thread.join(deadline));
        let report = self.readers.stop(deadline.saturating_duration_since(Instant::now()));
        has_ended && report.abandoned == 0
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
