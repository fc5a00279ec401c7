//! Messages to the cache thread.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::key::{Key, LookupResult};
use crate::entry::Entry;
use crate::tree::Tree;

pub(super) enum Message {
    LookUp {
        tree: Arc<Tree>,
        path: Arc<str>,
        /// Bytes charged while the message is queued.
        bytes: u64,
        /// Entry that the worker has loaded itself.
        insert: Option<Arc<Entry>>,
        reply: oneshot::Sender<LookupResult>,
    },
    /// There are pending inserts.
    InsertsPending,
    /// Requests a reply when all earlier messages are processed.
    Flush {
        done: oneshot::Sender<()>,
    },
    Revalidate {
        tree: Arc<Tree>,
        path: Arc<str>,
    },
    Loaded {
        key: Key,
        /// Number of the job.
        job: u64,
        outcome: LoadOutcome,
    },
    EntryGrew {
        key: Key,
        bytes: u64,
    },
    RetainTrees {
        trees: HashSet<u32>,
    },
    SetMemory {
        bytes: u64,
    },
    /// Ends the thread.
    Stop,
}

/// Result of a load job.
pub(super) enum LoadOutcome {
    New(Arc<Entry>),
    /// The entry is unchanged as of this time, in milliseconds of uptime.
    Unchanged {
        at_ms: u64,
    },
    /// The job was dropped or panicked.
    Lost,
}
