//! The cache's one owner: everything that changes it passes through this thread, so that no worker waits for a lock.
//!
//! ```text
//! worker ──found by itself: an offer──────▶ owner
//!    │                                       │ ▲
//!    ├──not in memory: look up──────────────▶│ └──what was found──┐
//!    ◀──an entry─────────────────────────────┘ ──job──▶ blocking pool (opens, reads, renders)
//!         many workers asking for one path wait for one job
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

/// Questions that may wait for the owner. It answers one in about a microsecond; a worker that finds the channel full
/// answers 503 instead of waiting.
const MAX_QUERIES: usize = 16 * 1024;
/// Bytes of questions that wait, with their paths and the entries that come with them. A worker that finds no more room
/// answers 503.
const MAX_QUERY_BYTES: u64 = 16 << 20;
/// Below this many places a table is not made smaller.
const MIN_TABLE: usize = 1024;
/// Of the process's descriptors, the part that cached files may hold open: 1/8, most being for connections.
const DESCRIPTOR_SHARE: u64 = 8;
/// Open files at most, however many descriptors there are: as many paths as a worker remembers. One that was closed is
/// opened again when it is asked for, which costs little beside sending it.
const MAX_OPEN_FILES: u64 = 8192;
/// Open files at least, or a page of a few large pictures would be opened anew with every request.
const MIN_OPEN_FILES: u64 = 16;
/// How long offers are gathered before they are looked at.
const INSERT_DELAY: Duration = Duration::from_millis(10);

/// The cache as workers and the server see it.
#[derive(Clone)]
pub struct FileCache {
    messages: SyncSender<Message>,
    inserts: InsertSender,
    /// For questions that wait.
    budget: ByteBudget,
    status: Arc<CacheStatus>,
    lookup_limit: LookupLimit,
    thread: Arc<ThreadHandle>,
}

/// The owner's thread, which ends when the last clone of the cache is dropped.
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

/// What the cache holds.
#[derive(Debug, Default)]
pub struct CacheStatus {
    pub entries: AtomicU64,
    pub bytes: AtomicU64,
    /// Files held open.
    pub files: AtomicU64,
    /// Lookups of workers that did not remember the path.
    pub misses: AtomicU64,
}

impl CacheStatus {
    pub fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}

impl FileCache {
    /// `memory`: bytes of all entries together.
    pub fn start(memory: u64, pool: Pool) -> io::Result<FileCache> {
        FileCache::with_max_files(memory, most_open_files(), pool)
    }

    /// As [`FileCache::start`], with a bound of its own for the files held open.
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
            pool,
            messages: sender,
            status: Arc::clone(&cache.status),
        };
        (cache, thread, receiver)
    }

    /// The entry for a path, looked up anew if what is known of it is old. To be called on a worker, which takes a look by
    /// itself first.
    pub async fn look_up(&self, tree: &Arc<Tree>, path: &Arc<str>) -> LookupResult {
        let insert = match non_blocking::look_up(&self.lookup_limit, tree, path).await {
            // Of a shortage here the cache may know nothing.
            Some(entry) if is_transient(&entry) => None,
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

    /// As [`FileCache::look_up`], for those who remember no entry: it is most likely known to the cache already.
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

    /// Asks for a new look in the background.
    pub fn revalidate(&self, tree: &Arc<Tree>, path: &Arc<str>) {
        // If the owner has no time now, the next request asks again.
        let _ = self.messages.try_send(Message::Revalidate {
            tree: Arc::clone(tree),
            path: Arc::clone(path),
        });
    }

    /// Tells that an encoded form was added to an entry.
    pub fn entry_grew(&self, tree: u32, path: &Arc<str>, bytes: u64) {
        let _ = self.messages.try_send(Message::EntryGrew {
            key: (tree, Arc::clone(path)),
            bytes,
        });
    }

    /// Forgets everything but the entries of these trees.
    pub fn retain_trees(&self, trees: HashSet<u32>, memory: u64) {
        let _ = self.messages.send(Message::SetMemory { bytes: memory });
        let _ = self.messages.send(Message::RetainTrees { trees });
    }

    /// Ends when all that was found or told so far has been seen to.
    pub async fn flush(&self) {
        let (done, settled) = oneshot::channel();
        if self.messages.send(Message::Flush { done }).is_ok() {
            let _ = settled.await;
        }
    }

    /// Ends the thread, with all that the cache holds. Returns whether it had ended at `deadline`. DiskLookup-ups from now on find
    /// nothing.
    pub fn stop(&self, deadline: Instant) -> bool {
        let running = self.thread.running().take();
        running.is_none_or(|running| {
            let _ = self.messages.send(Message::Stop);
            running.join(deadline)
        })
    }

    pub fn status(&self) -> &CacheStatus {
        &self.status
    }
}

/// How many files the cache holds open at most, by the limits of the process as they are now.
pub fn most_open_files() -> u64 {
    (descriptors::limit() / DESCRIPTOR_SHARE).clamp(MIN_OPEN_FILES, MAX_OPEN_FILES)
}

struct CacheThread {
    entries: HashMap<Key, EntryState>,
    queues: EvictionQueues,
    budget: ByteBudget,
    /// Jobs started so far.
    jobs: u64,
    inserts: InsertReceiver,
    /// Trees with lower numbers belong to configurations that are gone: numbers only grow.
    oldest_tree: u32,
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
    loading: Option<(u64, Job<()>)>,
    waiters: Vec<oneshot::Sender<LookupResult>>,
}

/// An entry with its places in the orders.
struct StoredEntry {
    entry: Arc<Entry>,
    positions: Positions,
}

impl CacheThread {
    fn run(mut self, messages: &Receiver<Message>) {
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
                // Never: the owner holds a sender itself, for looks.
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
        // They were made before.
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
                // What a refused job left behind says nothing of the one that was started since.
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
                // What is being loaded for a tree that is gone is answered, and then not kept.
                self.oldest_tree = trees.iter().min().copied().unwrap_or(self.oldest_tree);
                let gone: Vec<Key> = self
                    .entries
                    .iter()
                    .filter(|((tree, _), state)| !trees.contains(tree) && state.loading.is_none())
                    .map(|(key, _)| key.clone())
                    .collect();
                gone.iter().for_each(|key| self.remove(key));
            }
            Message::SetMemory { bytes } => {
                self.queues.set_memory(bytes);
                self.evict();
            }
        }
    }

    fn look_up(&mut self, tree: &Arc<Tree>, path: Arc<str>, reply: oneshot::Sender<LookupResult>) {
        let key = (tree.id, path);
        let state = self.entries.entry(key.clone()).or_default();
        if let Some(stored) = &state.stored
            && stored.entry.age_ms(uptime_ms()) < STALE_AFTER_MS
        {
            let _ = reply.send(Some(Arc::clone(&stored.entry)));
            return;
        }
        // On a disk that hangs those who wait give up, and others come: the list is to hold no more than wait now.
        if state.waiters.len() == state.waiters.capacity() {
            state.waiters.retain(|waiters| !waiters.is_closed());
            // Room for as many again, or a list of the living would be looked through with every one that comes.
            state.waiters.reserve(state.waiters.len().max(1));
        }
        state.waiters.push(reply);
        if state.loading.is_none() {
            self.load(tree, &key);
        }
    }

    /// Keeps what a worker has found; gives back what is to be used, which is what was known before if that is the same.
    fn insert(&mut self, key: &Key, entry: Arc<Entry>) -> Arc<Entry> {
        let state = self.entries.entry(key.clone()).or_default();
        let known = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        match known {
            // What was found later counts, in whatever order it comes.
            Some(known) if known.is_same(&entry) || known.checked_ms() > entry.checked_ms() => {
                entry.replace_with(&known);
                if known.is_same(&entry) {
                    let at_ms = entry.checked_ms();
                    self.finish_load(key, LoadOutcome::Unchanged { at_ms });
                }
                known
            }
            _ => {
                self.finish_load(key, LoadOutcome::New(Arc::clone(&entry)));
                entry
            }
        }
    }

    /// Starts a job; what it finds comes back as a message, even if that is that it was lost.
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
            // Its report may have found the channel full; nobody shall wait for ever.
            self.finish_load(key, LoadOutcome::Lost);
        } else {
            state.loading = Some((self.jobs, job));
        }
    }

    fn finish_load(&mut self, key: &Key, outcome: LoadOutcome) {
        let Some(state) = self.entries.get_mut(key) else { return };
        state.loading = None;
        let waiters = std::mem::take(&mut state.waiters);
        let known = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        let answer = match outcome {
            // A missing file, say: all workers may go on with what they have.
            LoadOutcome::New(entry) if known.as_ref().is_some_and(|known| known.is_same(&entry)) => {
                if let Some(known) = &known {
                    known.mark_checked(entry.checked_ms());
                }
                known
            }
            LoadOutcome::New(entry) => {
                self.remove(key);
                if is_transient(&entry) || !entry.kind().caches_path_of(key.1.len()) {
                    entry.retire();
                } else {
                    self.store(key, &entry);
                }
                Some(entry)
            }
            LoadOutcome::Unchanged { at_ms } => {
                if let Some(entry) = &known {
                    entry.mark_checked(at_ms);
                }
                known
            }
            LoadOutcome::Lost => None,
        };
        let is_empty = self.entries.get(key).is_some_and(|state| state.stored.is_none());
        if is_empty || key.0 < self.oldest_tree {
            self.remove(key);
        }
        for reply in waiters {
            let _ = reply.send(answer.clone());
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
        // Shrinks the table after a flood. Twice the needed size is left, so that this happens seldom.
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

    /// Second chance: the oldest of those that count goes, unless it was used since it was put into the order.
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
            // It keeps a place, even if nobody has chances left: what has none could never be evicted.
            let number = self.queues.of_mut(bound).push(key, uptime_ms(), share);
            stored.positions[bound as usize] = Some(number);
            if chances == 0 {
                return;
            }
            chances -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
