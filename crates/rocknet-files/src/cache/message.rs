//! Messages to the cache thread.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use tokio::sync::oneshot;

use super::key::{Key, LookupResult};
use crate::entry::Entry;
use crate::tree::Tree;

pub(super) enum Message {
    /// Requests the entry of a path.
    LookUp {
        tree: Arc<Tree>,
        path: Arc<str>,
        /// Bytes of the budget that the message reserves while it is queued.
        bytes: u64,
        /// Entry that the worker has loaded itself.
        insert: Option<Arc<Entry>>,
        reply: oneshot::Sender<LookupResult>,
    },
    /// Inserts are pending.
    InsertsPending,
    /// Requests a reply once all earlier messages are processed.
    Flush { done: oneshot::Sender<()> },
    /// Requests a check of whether the entry of a path is unchanged.
    Revalidate { tree: Arc<Tree>, path: Arc<str> },
    /// A load job has ended.
    Loaded {
        key: Key,
        /// Number of the job.
        job: u64,
        outcome: LoadOutcome,
    },
    /// An encoded variant of this size was added to an entry.
    EntryGrew { key: Key, bytes: u64 },
    /// Removes the entries of all trees except `trees`.
    RetainTrees { trees: HashSet<u32> },
    /// Removes all entries, including those that are being loaded. Sends a reply when that is done.
    Purge { done: SyncSender<()> },
    /// Sets the maximum size of all entries.
    SetMemory { bytes: u64 },
    /// Stops the thread.
    Stop,
}

/// Result of a load job.
pub(super) enum LoadOutcome {
    /// A new entry.
    New(Arc<Entry>),
    /// The stored entry was unchanged at this time, in milliseconds of uptime.
    Unchanged { at_ms: u64 },
    /// The job was dropped or panicked.
    Lost,
}
