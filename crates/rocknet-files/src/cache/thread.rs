//! The cache thread, which makes all changes of the shared cache, so that no worker waits for a lock.
//!
//! ```text
//! worker ──loaded without blocking: insert──▶ cache thread
//!    │                                         │ ▲
//!    ├──not in memory: query──────────────────▶│ └──outcome──┐
//!    ◀──entry──────────────────────────────────┘ ──job──▶ blocking pool (opens, reads, renders)
//!         concurrent queries for one path wait for one job
//! ```

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rocknet_io::descriptors;
use tokio::sync::oneshot;

use super::eviction::{Bound, EvictionQueues, Positions};
use super::eviction_queue::QueuedEntry;
use super::inserts::{self, InsertReceiver, InsertSender};
use super::job_report::JobReport;
use super::key::{Key, LookupResult, THREAD_NAME};
use super::message::{LoadOutcome, Message};
use super::non_blocking::{self, LookupLimit, is_transient};
use super::weight::ENTRY_BYTES;
use crate::disk_lookup::DiskLookup;
use crate::entry::{Entry, STALE_AFTER_MS};
use crate::load::load;
use crate::tree::Tree;
use rocknet_blocking::{Job, Pool};
use rocknet_handler::clock::uptime_ms;
use rocknet_io::byte_budget::ByteBudget;
use rocknet_io::owned_thread::OwnedThread;

/// Maximum number of queued queries. The cache thread processes one in about a microsecond. A worker that finds the
/// channel full responds with 503 instead of waiting.
const MAX_QUERIES: usize = 16 * 1024;
/// Maximum number of bytes of queued queries, with their paths and entries. Beyond it, workers respond with 503.
const MAX_QUERY_BYTES: u64 = 16 << 20;
/// Minimum number of entries that a shrunk table has room for, so that small tables are never shrunk.
const MIN_TABLE: usize = 1024;
/// Divisor of the process's descriptor limit: cached files use at most 1/8, because most descriptors are for
/// connections.
const DESCRIPTOR_SHARE: u64 = 8;
/// Maximum number of open files regardless of the descriptor limit, equal to the number of paths that a worker caches.
/// Opening a file again costs little compared to sending it.
const MAX_OPEN_FILES: u64 = 8192;
/// Minimum number of open files. With fewer, each request for a page with a few large pictures would open the pictures
/// again.
const MIN_OPEN_FILES: u64 = 16;
/// Maximum wait for a purge. The thread handles a full queue of messages in a fraction of a second.
const PURGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which inserts are collected before they are processed.
const INSERT_DELAY: Duration = Duration::from_millis(10);

/// Handle to the shared cache, for workers and the server.
#[derive(Clone)]
pub struct FileCache {
    messages: SyncSender<Message>,
    inserts: InsertSender,
    /// Bytes of queued queries.
    budget: ByteBudget,
    status: Arc<CacheStatus>,
    lookup_limit: LookupLimit,
    thread: Arc<ThreadHandle>,
}

/// Handle of the cache thread. Stops the thread when the last clone of the cache is dropped.
struct ThreadHandle {
    messages: SyncSender<Message>,
    /// Taken by [`FileCache::stop`].
    running: Mutex<Option<OwnedThread>>,
}

impl ThreadHandle {
    fn running(&self) -> MutexGuard<'_, Option<OwnedThread>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ThreadHandle {
    fn drop(&mut self) {
        if self.running().is_some() {
            let _ = self.messages.send(Message::Stop);
        }
    }
}

/// Statistics of the cache.
#[derive(Debug, Default)]
pub struct CacheStatus {
    /// Number of entries.
    pub entries: AtomicU64,
    /// Bytes of all entries, with their paths and tables.
    pub bytes: AtomicU64,
    /// Number of open files.
    pub files: AtomicU64,
    /// Number of lookups that the first level of a worker could not serve.
    pub misses: AtomicU64,
}

impl CacheStatus {
    /// Counts a lookup that the first level could not serve.
    pub fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}

impl FileCache {
    /// Starts the cache thread. `memory` is the maximum size of all entries in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn start(memory: u64, pool: Pool) -> io::Result<FileCache> {
        FileCache::with_max_files(memory, most_open_files(), pool)
    }

    /// Like [`FileCache::start`], with `files` as the maximum number of open files.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn with_max_files(memory: u64, files: u64, pool: Pool) -> io::Result<FileCache> {
        let (cache, cache_thread, messages) = FileCache::with_thread(memory, files, pool);
        let thread = OwnedThread::start(THREAD_NAME, move || cache_thread.run(&messages))?;
        *cache.thread.running() = Some(thread);
        Ok(cache)
    }

    fn with_thread(memory: u64, files: u64, pool: Pool) -> (FileCache, CacheThread, Receiver<Message>) {
        let (sender, receiver) = sync_channel(MAX_QUERIES);
        let (insert_sender, inserts) = inserts::channel();
        let budget = ByteBudget::new(MAX_QUERY_BYTES);
        let cache = FileCache {
            messages: sender.clone(),
            inserts: insert_sender,
            budget: budget.clone(),
            status: Arc::default(),
            lookup_limit: LookupLimit::default(),
            thread: Arc::new(ThreadHandle {
                messages: sender.clone(),
                running: Mutex::default(),
            }),
        };
        let thread = CacheThread {
            entries: HashMap::new(),
            queues: EvictionQueues::new(memory, files),
            budget,
            jobs: 0,
            inserts,
            oldest_tree: 0,
            purged_ms: None,
            pool,
            messages: sender,
            status: Arc::clone(&cache.status),
        };
        (cache, thread, receiver)
    }

    /// Looks up a path for a worker. Tries a non-blocking lookup first, and then queries the shared cache, which loads
    /// the entry if it is missing or stale. Returns `None` if the server is overloaded.
    pub async fn look_up(&self, tree: &Arc<Tree>, path: &Arc<str>) -> LookupResult {
        let insert = match non_blocking::look_up(&self.lookup_limit, tree, path).await {
            // `EMFILE` in this worker says nothing about the shared entry, so the cache thread is queried.
            Some(entry) if is_transient(&entry) => None,
            // The entry is retired, so that the first level of the worker does not cache it either.
            Some(entry) if !entry.kind().caches_path_of(path.len()) => {
                entry.retire();
                return Some(entry);
            }
            Some(entry) if entry.needs_sharing() => Some(entry),
            Some(entry) => match self.insert(tree, path, &entry) {
                Ok(()) => return Some(entry),
                Err(entry) => Some(entry),
            },
            None => None,
        };
        self.query(tree, path, insert).await
    }

    /// Queries only the shared cache, for paths that the first level of the worker does not cache: the shared cache
    /// most likely contains them. Returns `None` if the server is overloaded.
    pub async fn look_up_shared(&self, tree: &Arc<Tree>, path: &Arc<str>) -> LookupResult {
        self.query(tree, path, None).await
    }

    async fn query(&self, tree: &Arc<Tree>, path: &Arc<str>, insert: Option<Arc<Entry>>) -> LookupResult {
        const OVERHEAD: usize = size_of::<Message>() + size_of::<EntryState>();
        let bytes = (OVERHEAD + path.len()) as u64 + insert.as_ref().map_or(0, |entry| entry.size());
        if !self.budget.try_reserve(bytes) {
            return None;
        }
        let (reply, entry) = oneshot::channel();
        let message = Message::LookUp {
            tree: Arc::clone(tree),
            path: Arc::clone(path),
            bytes,
            insert,
            reply,
        };
        if self.messages.try_send(message).is_err() {
            self.budget.release(bytes);
            return None;
        }
        entry.await.ok()?
    }

    fn insert(&self, tree: &Tree, path: &Arc<str>, entry: &Arc<Entry>) -> Result<(), Arc<Entry>> {
        self.inserts.send((tree.id, Arc::clone(path)), Arc::clone(entry), || {
            self.messages.try_send(Message::InsertsPending).is_ok()
        })
    }

    /// Revalidates the entry of a path in the background.
    pub fn revalidate(&self, tree: &Arc<Tree>, path: &Arc<str>) {
        // If the channel is full, the entry is revalidated by the first lookup after it has become stale.
        let _ = self.messages.try_send(Message::Revalidate {
            tree: Arc::clone(tree),
            path: Arc::clone(path),
        });
    }

    /// Records that an entry has grown by `bytes`, because an encoded variant was added. Lost if the channel is full.
    pub fn entry_grew(&self, tree: u32, path: &Arc<str>, bytes: u64) {
        let _ = self.messages.try_send(Message::EntryGrew {
            key: (tree, Arc::clone(path)),
            bytes,
        });
    }

    /// Removes all entries except those of these trees, and sets the maximum size in bytes.
    pub fn retain_trees(&self, trees: HashSet<u32>, memory: u64) {
        let _ = self.messages.send(Message::SetMemory { bytes: memory });
        let _ = self.messages.send(Message::RetainTrees { trees });
    }

    /// Removes all entries, and waits until that is done. A file that is being loaded is not stored, although the
    /// requests that wait for it get its contents. Returns false if the thread was busy for five seconds; the
    /// entries are then removed later.
    pub fn purge(&self) -> bool {
        let (done, purged) = sync_channel(1);
        self.messages.send(Message::Purge { done }).is_ok() && purged.recv_timeout(PURGE_TIMEOUT).is_ok()
    }

    /// Waits until all earlier inserts and messages are processed.
    pub async fn flush(&self) {
        let (done, processed) = oneshot::channel();
        if self.messages.send(Message::Flush { done }).is_ok() {
            let _ = processed.await;
        }
    }

    /// Stops the thread and drops all entries. Returns true if the thread ended before `deadline`. Later queries of the
    /// shared cache return `None`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let running = self.thread.running().take();
        running.is_none_or(|running| {
            let _ = self.messages.send(Message::Stop);
            running.join(deadline)
        })
    }

    /// Returns the statistics.
    pub fn status(&self) -> &CacheStatus {
        &self.status
    }
}

/// Returns the maximum number of files that the cache keeps open, derived from the current descriptor limit of the
/// process.
pub fn most_open_files() -> u64 {
    (descriptors::limit() / DESCRIPTOR_SHARE).clamp(MIN_OPEN_FILES, MAX_OPEN_FILES)
}

struct CacheThread {
    entries: HashMap<Key, EntryState>,
    queues: EvictionQueues,
    budget: ByteBudget,
    /// Number of jobs started so far.
    jobs: u64,
    inserts: InsertReceiver,
    /// Lowest number of a current tree. Numbers are assigned in ascending order, so trees with lower numbers belong to
    /// old configurations.
    oldest_tree: u32,
    /// Time of the last purge in milliseconds of uptime. Results of earlier lookups are not stored.
    purged_ms: Option<u64>,
    pool: Pool,
    messages: SyncSender<Message>,
    status: Arc<CacheStatus>,
}

const _: () = assert!(
    size_of::<(Key, EntryState)>() == ENTRY_BYTES,
    "ENTRY_BYTES is not the size of an entry"
);

#[derive(Default)]
struct EntryState {
    stored: Option<StoredEntry>,
    /// Number and handle of the load job in progress.
    loading: Option<(u64, Job<()>)>,
    /// Replies to the queries that wait for the load job.
    waiters: Vec<oneshot::Sender<LookupResult>>,
}

/// A stored entry with its positions in the eviction queues.
struct StoredEntry {
    entry: Arc<Entry>,
    positions: Positions,
}

impl CacheThread {
    fn run(mut self, messages: &Receiver<Message>) {
        // Time at which the pending inserts are processed; `None` if no inserts are pending.
        let mut due: Option<Instant> = None;
        loop {
            let message = match due {
                Some(due) => messages.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Stop) => return,
                Ok(Message::InsertsPending) => due = due.or(Some(Instant::now() + INSERT_DELAY)),
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {
                    due = None;
                    self.handle(Message::InsertsPending);
                }
                // Cannot happen, because the thread itself owns a sender for its jobs.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.publish_status();
        }
    }

    fn publish_status(&self) {
        self.status.entries.store(self.entries.len() as u64, Ordering::Relaxed);
        self.status
            .bytes
            .store(self.queues.of(Bound::Total).used(), Ordering::Relaxed);
        self.status
            .files
            .store(self.queues.of(Bound::OpenFiles).used(), Ordering::Relaxed);
    }

    fn handle(&mut self, message: Message) {
        if let Message::InsertsPending = message {
            self.inserts.rearm();
        }
        // Pending inserts are processed first, because they were sent before this message.
        while let Some(insert) = self.inserts.try_recv() {
            self.insert(&insert.key, insert.entry);
        }
        if let Message::LookUp { bytes, .. } = &message {
            self.budget.release(*bytes);
        }
        match message {
            Message::InsertsPending | Message::Stop => {}
            Message::Flush { done } => {
                self.publish_status();
                let _ = done.send(());
            }
            Message::LookUp {
                tree,
                path,
                insert: Some(entry),
                reply,
                ..
            } => {
                let entry = self.insert(&(tree.id, path), entry);
                let _ = reply.send(Some(entry));
            }
            Message::LookUp {
                tree,
                path,
                insert: None,
                reply,
                ..
            } => self.look_up(&tree, path, reply),
            Message::Revalidate { tree, path } => {
                let key = (tree.id, path);
                if self.entries.get(&key).is_some_and(|state| state.loading.is_none()) {
                    self.load(&tree, &key);
                }
            }
            Message::Loaded { key, job, outcome } => {
                // A late report of a refused job must not end the job that was started since.
                let current = self.entries.get(&key).and_then(|state| state.loading.as_ref());
                if current.is_some_and(|(number, _)| *number == job) {
                    self.finish_load(&key, outcome);
                }
            }
            Message::EntryGrew { key, bytes } => {
                if let Some(stored) = self.entries.get(&key).and_then(|state| state.stored.as_ref()) {
                    self.queues.grow(&stored.positions, bytes);
                    self.evict();
                }
            }
            Message::RetainTrees { trees } => {
                // Entries of a removed tree that are still loading are kept here. `finish_load` returns them to the
                // waiters and then removes them.
                self.oldest_tree = trees.iter().min().copied().unwrap_or(self.oldest_tree);
                let removed: Vec<Key> = self
                    .entries
                    .iter()
                    .filter(|((tree, _), state)| !trees.contains(tree) && state.loading.is_none())
                    .map(|(key, _)| key.clone())
                    .collect();
                removed.iter().for_each(|key| self.remove(key));
            }
            Message::Purge { done } => {
                self.purge();
                self.publish_status();
                let _ = done.try_send(());
            }
            Message::SetMemory { bytes } => {
                self.queues.set_memory(bytes);
                self.evict();
            }
        }
    }

    /// Removes all entries. An entry that a job is loading again is only retired, because the job may report that its
    /// file is unchanged; `finish_load` then removes it.
    fn purge(&mut self) {
        self.purged_ms = Some(uptime_ms());
        let mut removed = Vec::new();
        for (key, state) in &self.entries {
            match &state.stored {
                Some(stored) if state.loading.is_some() => stored.entry.retire(),
                None if state.loading.is_some() => {}
                _ => removed.push(key.clone()),
            }
        }
        removed.iter().for_each(|key| self.remove(key));
    }

    fn look_up(&mut self, tree: &Arc<Tree>, path: Arc<str>, reply: oneshot::Sender<LookupResult>) {
        let key = (tree.id, path);
        let state = self.entries.entry(key.clone()).or_default();
        if let Some(stored) = &state.stored
            && stored.entry.age_ms(uptime_ms()) < STALE_AFTER_MS
            && !stored.entry.is_retired()
        {
            let _ = reply.send(Some(Arc::clone(&stored.entry)));
            return;
        }
        // If a disk hangs, waiting requests time out while new requests arrive. Removing the waiters that have timed
        // out bounds the list.
        if state.waiters.len() == state.waiters.capacity() {
            state.waiters.retain(|waiter| !waiter.is_closed());
            // Doubles the capacity, so that the list is not scanned for each new waiter.
            state.waiters.reserve(state.waiters.len().max(1));
        }
        state.waiters.push(reply);
        if state.loading.is_none() {
            self.load(tree, &key);
        }
    }

    /// Stores an entry that a worker has loaded. Returns the entry to be used: the previously stored entry if it is
    /// equal or newer, otherwise the new entry.
    fn insert(&mut self, key: &Key, entry: Arc<Entry>) -> Arc<Entry> {
        let state = self.entries.entry(key.clone()).or_default();
        let current = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        // A purge may have retired the stored entry while it was being loaded again.
        let current = current.filter(|current| !current.is_retired());
        match current {
            // The later lookup counts, regardless of the order of arrival.
            Some(current) if current.is_same(&entry) || current.checked_ms() > entry.checked_ms() => {
                entry.replace_with(&current);
                if current.is_same(&entry) {
                    let at_ms = entry.checked_ms();
                    self.finish_load(key, LoadOutcome::Unchanged { at_ms });
                }
                current
            }
            _ => {
                self.finish_load(key, LoadOutcome::New(Arc::clone(&entry)));
                entry
            }
        }
    }

    /// Starts a load job. Its outcome arrives as a message, even if the job is lost.
    fn load(&mut self, tree: &Arc<Tree>, key: &Key) {
        let Some(state) = self.entries.get_mut(key) else { return };
        let previous = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        self.jobs += 1;
        let report = JobReport::new(self.messages.clone(), key.clone(), self.jobs);
        let job_tree = Arc::clone(tree);
        let job = self.pool.spawn(tree.route.priority, move || {
            let at_ms = uptime_ms();
            let found = load(&DiskLookup::blocking(), &job_tree, report.path(), previous.as_deref());
            report.send(match found {
                Some(entry) => LoadOutcome::New(Arc::new(entry)),
                None => LoadOutcome::Unchanged { at_ms },
            });
        });
        if job.is_rejected() {
            // The report of the refused job is lost if the channel is full, but the waiters must be released anyway.
            self.finish_load(key, LoadOutcome::Lost);
        } else {
            state.loading = Some((self.jobs, job));
        }
    }

    fn finish_load(&mut self, key: &Key, outcome: LoadOutcome) {
        let Some(state) = self.entries.get_mut(key) else { return };
        state.loading = None;
        let waiters = std::mem::take(&mut state.waiters);
        let current = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        let result = match outcome {
            // If the new entry equals the stored one, for example because a file is still missing, all workers keep the
            // stored entry.
            LoadOutcome::New(entry)
                if current
                    .as_ref()
                    .is_some_and(|current| !current.is_retired() && current.is_same(&entry)) =>
            {
                if let Some(current) = &current {
                    current.mark_checked(entry.checked_ms());
                }
                current
            }
            LoadOutcome::New(entry) => {
                self.remove(key);
                let is_outdated = self.purged_ms.is_some_and(|purged_ms| entry.checked_ms() <= purged_ms);
                if is_outdated || is_transient(&entry) || !entry.kind().caches_path_of(key.1.len()) {
                    entry.retire();
                } else {
                    self.store(key, &entry);
                }
                Some(entry)
            }
            LoadOutcome::Unchanged { at_ms } => {
                if let Some(entry) = &current {
                    entry.mark_checked(at_ms);
                }
                current
            }
            LoadOutcome::Lost => None,
        };
        let stored = self.entries.get(key).and_then(|state| state.stored.as_ref());
        // Workers do not use a retired entry, for example one that was purged during the load.
        let is_usable = stored.is_some_and(|stored| !stored.entry.is_retired());
        if !is_usable || key.0 < self.oldest_tree {
            self.remove(key);
        }
        for reply in waiters {
            let _ = reply.send(result.clone());
        }
        self.evict();
    }

    fn store(&mut self, key: &Key, entry: &Arc<Entry>) {
        let stored = StoredEntry {
            entry: Arc::clone(entry),
            positions: self.queues.push(key, entry, uptime_ms()),
        };
        self.entries.entry(key.clone()).or_default().stored = Some(stored);
    }

    fn remove(&mut self, key: &Key) {
        let state = self.entries.remove(key);
        if let Some(stored) = state.and_then(|state| state.stored) {
            stored.entry.retire();
            self.queues.remove(&stored.positions);
        }
        // Shrinks the table after a flood of requests, to twice the needed size so that shrinking is rare.
        let needed = self.entries.len().max(MIN_TABLE);
        if self.entries.capacity() > 8 * needed {
            self.entries.shrink_to(2 * needed);
        }
    }

    fn evict(&mut self) {
        for bound in Bound::EACH {
            self.evict_from(bound);
        }
    }

    /// Evicts by the second-chance algorithm: the oldest entry is removed unless it was used since it was queued. An
    /// entry that a job is loading again is kept, because removing it would drop the requests that wait for the job.
    fn evict_from(&mut self, bound: Bound) {
        let mut chances = self.queues.of(bound).len();
        while self.queues.of(bound).is_over() {
            let Some(QueuedEntry { key, since, share }) = self.queues.of_mut(bound).pop() else {
                return;
            };
            let state = self.entries.get_mut(&key);
            let Some((stored, is_loading)) =
                state.and_then(|state| Some((state.stored.as_mut()?, state.loading.is_some())))
            else {
                continue;
            };
            let used = stored.entry.used_ms() > since;
            if !is_loading && (!used || chances == 0) {
                self.remove(&key);
                continue;
            }
            // Queues the entry again even if no chances are left, because an entry without a position is never evicted.
            let position = self.queues.of_mut(bound).push(key, uptime_ms(), share);
            stored.positions[bound as usize] = Some(position);
            if chances == 0 {
                return;
            }
            chances -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
