//! What workers have found by themselves, on its way to the cache's owner. It is in no hurry: the owner is woken once for many,
//! where a wake for each cost more than the finding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::entry::Entry;
use super::owner::Key;

/// Offers that may wait for the owner. Who finds no room asks it.
const MAX_OFFERS: usize = 1024;

pub(super) type Offer = (Key, Arc<Entry>);

#[derive(Clone)]
pub(super) struct Offers {
    sender: SyncSender<Offer>,
    /// The owner has been told that there are some.
    told: Arc<AtomicBool>,
}

pub(super) struct Offered {
    receiver: Receiver<Offer>,
    told: Arc<AtomicBool>,
}

pub(super) fn offers() -> (Offers, Offered) {
    let (sender, receiver) = sync_channel(MAX_OFFERS);
    let told = Arc::<AtomicBool>::default();
    let offers = Offers {
        sender,
        told: Arc::clone(&told),
    };
    (offers, Offered { receiver, told })
}

impl Offers {
    /// Gives it back if there is no room. `tell`: false if the owner could not be told, so that the next tries.
    pub fn put(&self, key: Key, entry: Arc<Entry>, tell: impl FnOnce() -> bool) -> Result<(), Arc<Entry>> {
        self.sender.try_send((key, entry)).map_err(|error| match error {
            TrySendError::Full((_, entry)) | TrySendError::Disconnected((_, entry)) => entry,
        })?;
        if !self.told.swap(true, Ordering::AcqRel) && !tell() {
            self.told.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl Offered {
    pub fn take(&self) -> Option<Offer> {
        self.receiver.try_recv().ok()
    }

    /// From now on the owner wants to be told again. To be called before the last that is known of are taken.
    pub fn listen(&self) {
        self.told.store(false, Ordering::Release);
    }
}
