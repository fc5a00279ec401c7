//! What workers have found by themselves, on its way to the cache's owner. It is in no hurry: the owner is woken once for many,
//! where a wake for each cost more than the finding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::key::Key;
use super::weight::weight;
use crate::entry::Entry;
use rocknet_io::byte_budget::ByteBudget;

/// Offers that may wait for the owner. Who finds no room asks it.
const MAX_OFFERS: usize = 1024;
/// Bytes of offers that wait: 160 of the largest files that are kept in memory by default.
const MAX_OFFERED_BYTES: u64 = 8 << 20;

pub(super) struct Offer {
    pub key: Key,
    pub entry: Arc<Entry>,
    /// As counted when it was put in: forms may be added to an entry meanwhile.
    bytes: u64,
}

#[derive(Clone)]
pub(super) struct Offers {
    sender: SyncSender<Offer>,
    room: ByteBudget,
    /// The owner has been told that there are some.
    told: Arc<AtomicBool>,
}

pub(super) struct Offered {
    receiver: Receiver<Offer>,
    room: ByteBudget,
    told: Arc<AtomicBool>,
}

pub(super) fn offers() -> (Offers, Offered) {
    let (sender, receiver) = sync_channel(MAX_OFFERS);
    let (told, room) = (Arc::<AtomicBool>::default(), ByteBudget::new(MAX_OFFERED_BYTES));
    let offers = Offers {
        sender,
        room: room.clone(),
        told: Arc::clone(&told),
    };
    (offers, Offered { receiver, room, told })
}

impl Offers {
    /// Gives it back if there is no room. `tell`: false if the owner could not be told, so that the next tries.
    pub fn put(&self, key: Key, entry: Arc<Entry>, tell: impl FnOnce() -> bool) -> Result<(), Arc<Entry>> {
        let bytes = weight(&key.1, &entry);
        if !self.room.try_reserve(bytes) {
            return Err(entry);
        }
        self.sender.try_send(Offer { key, entry, bytes }).map_err(|error| {
            self.room.release(bytes);
            match error {
                TrySendError::Full(offer) | TrySendError::Disconnected(offer) => offer.entry,
            }
        })?;
        if !self.told.swap(true, Ordering::AcqRel) && !tell() {
            self.told.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl Offered {
    pub fn take(&self) -> Option<Offer> {
        let offer = self.receiver.try_recv().ok()?;
        self.room.release(offer.bytes);
        Some(offer)
    }

    /// From now on the owner wants to be told again. To be called before the last that is known of are taken.
    pub fn listen(&self) {
        self.told.store(false, Ordering::Release);
    }
}
