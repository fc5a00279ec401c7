//! Handle to the shared cache: sends queries, inserts and changes to the cache thread, and waits for its replies.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rocknet_blocking::Pool;
use rocknet_io::byte_budget::ByteBudget;
use rocknet_io::descriptors;
use rocknet_io::owned_thread::OwnedThread;
use tokio::sync::oneshot;

use super::eviction::EvictionQueues;
use super::inserts::{self, InsertSender};
use super::key::{LookupResult, THREAD_NAME};
use super::message::Message;
use super::non_blocking::{self, LookupLimit, is_transient};
use super::status::CacheStatus;
use super::thread::{CacheThread, Channels, STATE_BYTES};
use crate::entry::Entry;
use crate::tree::Tree;

/// Maximum number of queued queries. The cache thread processes one in about a microsecond. A worker that finds the
/// channel full responds with 503 instead of waiting.
pub(super) const MAX_QUERIES: usize = 16 * 1024;
/// Maximum number of bytes of queued queries, with their paths and entries. Beyond it, workers respond with 503.
pub(super) const MAX_QUERY_BYTES: u64 = 16 << 20;
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

    /// Returns the handle, and the state and message queue of the cache thread, which the caller starts.
    pub(super) fn with_thread(memory: u64, files: u64, pool: Pool) -> (FileCache, CacheThread, Receiver<Message>) {
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
        let thread = CacheThread::new(
            EvictionQueues::new(memory, files),
            Channels {
                budget,
                inserts,
                messages: sender,
                status: Arc::clone(&cache.status),
            },
            pool,
        );
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
            // The query waits for the reply, so that all workers use one entry.
            Some(entry) if entry.needs_sharing() => Some(entry),
            Some(entry) => match self.insert(tree, path, &entry) {
                Ok(()) => return Some(entry),
                // The channel for inserts is full, so the entry is sent with the query.
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
        const OVERHEAD: usize = size_of::<Message>() + STATE_BYTES;
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

    /// Records that an entry has grown by `bytes`, because an encoded variant was added. `tree` is the number of the
    /// tree. If the channel is full, the growth is not recorded.
    pub fn entry_grew(&self, tree: u32, path: &Arc<str>, bytes: u64) {
        let _ = self.messages.try_send(Message::EntryGrew {
            key: (tree, Arc::clone(path)),
            bytes,
        });
    }

    /// Removes the entries of all trees except `trees`, and sets the maximum size of all entries to `memory` bytes.
    pub fn retain_trees(&self, trees: HashSet<u32>, memory: u64) {
        let _ = self.messages.send(Message::SetMemory { bytes: memory });
        let _ = self.messages.send(Message::RetainTrees { trees });
    }

    /// Removes all entries, and waits until that is done. A file that is being loaded is not stored, although the
    /// requests that wait for it get its contents. Returns false if the thread has ended or was busy for five
    /// seconds; a busy thread removes the entries later.
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

    /// Stops the thread and drops all entries. Returns true if the thread ended before `deadline`, or if this method
    /// was called before. Later queries of the shared cache return `None`.
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
