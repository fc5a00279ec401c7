//! Messages to the owner of the cache.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::key::{Key, Lookup};
use crate::entry::Entry;
use crate::tree::Tree;

pub(super) enum Message {
    LookUp {
        tree: Arc<Tree>,
        path: Arc<str>,
        /// Room that it takes while it waits.
        bytes: u64,
        /// What the worker has found by itself.
        offer: Option<Arc<Entry>>,
        reply: oneshot::Sender<Lookup>,
    },
    /// There are offers.
    Offered,
    /// Somebody wants to know when all that came before is done.
    Settle {
        done: oneshot::Sender<()>,
    },
    Refresh {
        tree: Arc<Tree>,
        path: Arc<str>,
    },
    Loaded {
        key: Key,
        /// Which job found it.
        job: u64,
        outcome: Outcome,
    },
    Grew {
        key: Key,
        bytes: u64,
    },
    Retain {
        trees: HashSet<u32>,
    },
    Limit {
        bytes: u64,
    },
    /// The thread ends.
    Stop,
}

/// The result of a job of the pool.
pub(super) enum Outcome {
    New(Arc<Entry>),
    /// As it was, seen at that time in milliseconds of uptime.
    Unchanged {
        at_ms: u64,
    },
    /// The job was dropped or panicked.
    Lost,
}
