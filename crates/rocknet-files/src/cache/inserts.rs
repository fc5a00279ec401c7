//! What workers have found by themselves, on its way to the cache's owner. It is in no hurry: the owner is woken once for many,
//! where a wake for each cost more than the finding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::key::Key;
use super::weight::weight;
use crate::entry::Entry;
use rocknet_io::byte_budget::ByteBudget;

/// InsertSender that may wait for the owner. Who finds no room asks it.
const MAX_INSERTS: usize = 1024;
/// Bytes of offers that wait: 160 of the largest files that are kept in memory by default.
const MAX_INSERT_BYTES: u64 = 8 << 20;

pub(super) struct Insert {
    pub key: Key,
    pub entry: Arc<Entry>,
    /// As counted when it was put in: forms may be added to an entry meanwhile.
    bytes: u64,
}

#[derive(Clone)]
pub(super) struct InsertSender {
    sender: SyncSender<Insert>,
    budget: ByteBudget,
    /// The owner has been told that there are some.
    is_notified: Arc<AtomicBool>,
}

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
    /// Gives it back if there is no room. `notify`: false if the owner could not be told, so that the next tries.
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

    /// From now on the owner wants to be told again. To be called before the last that is known of are taken.
    pub fn rearm(&self) {
        self.is_notified.store(false, Ordering::Release);
    }
}
