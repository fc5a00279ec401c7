//! The channel for entries that workers load themselves and insert into the shared cache. The cache thread is woken
//! once for many inserts, because a wake-up for each insert would cost more than loading the entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::key::Key;
use super::weight::weight;
use crate::entry::Entry;
use rocknet_io::byte_budget::ByteBudget;

/// Maximum number of pending inserts. If the channel is full, the worker queries the cache thread instead.
const MAX_INSERTS: usize = 1024;
/// Maximum number of bytes of pending inserts: room for 160 files of the largest size that is cached in memory by
/// default.
const MAX_INSERT_BYTES: u64 = 8 << 20;

/// An entry that a worker has loaded for the shared cache.
pub(super) struct Insert {
    pub key: Key,
    pub entry: Arc<Entry>,
    /// Size when the insert was sent. The entry can grow afterwards, when encoded variants are added.
    bytes: u64,
}

/// End of the channel in the workers.
#[derive(Clone)]
pub(super) struct InsertSender {
    sender: SyncSender<Insert>,
    budget: ByteBudget,
    /// True if the cache thread has been notified of pending inserts.
    is_notified: Arc<AtomicBool>,
}

/// End of the channel in the cache thread.
pub(super) struct InsertReceiver {
    receiver: Receiver<Insert>,
    budget: ByteBudget,
    is_notified: Arc<AtomicBool>,
}

pub(super) fn channel() -> (InsertSender, InsertReceiver) {
    let (sender, receiver) = sync_channel(MAX_INSERTS);
    let (is_notified, budget) = (Arc::<AtomicBool>::default(), ByteBudget::new(MAX_INSERT_BYTES));
    let sender_half = InsertSender {
        sender,
        budget: budget.clone(),
        is_notified: Arc::clone(&is_notified),
    };
    (
        sender_half,
        InsertReceiver {
            receiver,
            budget,
            is_notified,
        },
    )
}

impl InsertSender {
    /// Sends an entry, or returns it if the channel is full. `notify` wakes the cache thread, and returns false if that
    /// failed. The next insert then tries again.
    pub fn send(&self, key: Key, entry: Arc<Entry>, notify: impl FnOnce() -> bool) -> Result<(), Arc<Entry>> {
        let bytes = weight(&key.1, &entry);
        if !self.budget.try_reserve(bytes) {
            return Err(entry);
        }
        self.sender.try_send(Insert { key, entry, bytes }).map_err(|error| {
            self.budget.release(bytes);
            match error {
                TrySendError::Full(insert) | TrySendError::Disconnected(insert) => insert.entry,
            }
        })?;
        if !self.is_notified.swap(true, Ordering::AcqRel) && !notify() {
            self.is_notified.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl InsertReceiver {
    pub fn try_recv(&self) -> Option<Insert> {
        let insert = self.receiver.try_recv().ok()?;
        self.budget.release(insert.bytes);
        Some(insert)
    }

    /// Requests a new notification. Must be called before the pending inserts are taken, so that no insert is missed.
    pub fn rearm(&self) {
        self.is_notified.store(false, Ordering::Release);
    }
}
