//! The cache thread, which makes all changes of the shared cache, so that no worker waits for a lock.
//!
//! ```text
//! worker ──loaded without blocking: insert──▶ cache thread
//!    │                                         │ ▲
//!    ├──not in memory: query──────────────────▶│ └──outcome──┐
//!    ◀──entry──────────────────────────────────┘ ──job──▶ blocking pool (opens, reads, renders)
//!         concurrent queries for one path wait for one job
//! ```

mod loading;
mod storage;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use rocknet_blocking::{Job, Pool};
use rocknet_handler::clock::uptime_ms;
use rocknet_io::byte_budget::ByteBudget;
use tokio::sync::oneshot;

use super::eviction::{Bound, EvictionQueues, Positions};
use super::inserts::InsertReceiver;
use super::key::{Key, LookupResult};
use super::message::Message;
use super::status::CacheStatus;
use super::weight::ENTRY_BYTES;
use crate::entry::Entry;

/// Time for which inserts are collected before they are processed, so that the thread wakes up once for many of them.
const INSERT_DELAY: Duration = Duration::from_millis(10);

/// The state of the cache thread.
pub struct CacheThread {
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
    /// Number of the last job that was started before the last purge. Later queries do not wait for such a job.
    purged_jobs: u64,
    pool: Pool,
    messages: SyncSender<Message>,
    status: Arc<CacheStatus>,
}

const _: () = assert!(
    size_of::<(Key, EntryState)>() == ENTRY_BYTES,
    "ENTRY_BYTES is not the size of an entry"
);

/// Size of the state of an entry in bytes, without its key.
pub const STATE_BYTES: usize = size_of::<EntryState>();

/// A path in the cache: its entry, the load job, and the queries that wait for it.
#[derive(Default)]
struct EntryState {
    /// `None` while the first load job is in progress.
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

/// The cache thread's ends of the channels to the workers.
pub struct Channels {
    /// Bytes of queued queries.
    pub budget: ByteBudget,
    /// Entries that workers have loaded.
    pub inserts: InsertReceiver,
    /// Sender of messages to the thread itself, for its load jobs.
    pub messages: SyncSender<Message>,
    /// Statistics that the thread publishes.
    pub status: Arc<CacheStatus>,
}

impl CacheThread {
    /// Creates the state of a thread without entries.
    pub fn new(queues: EvictionQueues, channels: Channels, pool: Pool) -> CacheThread {
        CacheThread {
            entries: HashMap::new(),
            queues,
            budget: channels.budget,
            jobs: 0,
            inserts: channels.inserts,
            oldest_tree: 0,
            purged_ms: None,
            purged_jobs: 0,
            pool,
            messages: channels.messages,
            status: channels.status,
        }
    }

    /// Processes messages until [`Message::Stop`].
    pub fn run(mut self, messages: &Receiver<Message>) {
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

    /// Processes one message, after the inserts that were sent before it.
    pub fn handle(&mut self, message: Message) {
        if let Message::InsertsPending = message {
            self.inserts.rearm();
        }
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
                // Only the report of the current job counts. An earlier job of the same path, such as one that was
                // replaced after a purge, may still send its report.
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

    /// Removes all entries. An entry that a job is loading again is only retired, so that later lookups do not find it.
    /// The job may report that its file is unchanged. `finish_load` then sends the entry to the queries that wait for
    /// the job, and removes it.
    fn purge(&mut self) {
        self.purged_ms = Some(uptime_ms());
        self.purged_jobs = self.jobs;
        let mut removed = Vec::new();
        for (key, state) in &self.entries {
            match &state.stored {
                Some(stored) if state.loading.is_some() => stored.entry.retire(),
                // The first load. `finish_load` does not store the result if the lookup began before the purge.
                None if state.loading.is_some() => {}
                _ => removed.push(key.clone()),
            }
        }
        removed.iter().for_each(|key| self.remove(key));
    }
}

#[cfg(test)]
mod tests;
