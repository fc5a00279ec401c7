//! Messages to the owner of the cache.

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
        /// Room that it takes while it waits.
        bytes: u64,
        /// What the worker has found by itself.
        insert: Option<Arc<Entry>>,
        reply: oneshot::Sender<LookupResult>,
    },
    /// There are offers.
    InsertsPending,
    /// Somebody wants to know when all that came before is done.
    Flush {
        done: oneshot::Sender<()>,
    },
    Revalidate {
        tree: Arc<Tree>,
        path: Arc<str>,
    },
    Loaded {
        key: Key,
        /// Which job found it.
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
    /// The thread ends.
    Stop,
}

/// The result of a job of the pool.
pub(super) enum LoadOutcome {
    New(Arc<Entry>),
    /// As it was, seen at that time in milliseconds of uptime.
    Unchanged {
        at_ms: u64,
    },
    /// The job was dropped or panicked.
    Lost,
}
