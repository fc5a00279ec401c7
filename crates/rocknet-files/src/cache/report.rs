//! What a job of the pool found, on its way to the cache's owner.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;

use super::key::{Key, THREAD_NAME};
use super::message::{Message, Outcome};

/// Brings the outcome to the owner however the job ends: done, panicked, or dropped before it began.
pub(super) struct Report {
    owner: SyncSender<Message>,
    key: Key,
    /// Which job it is of.
    job: u64,
    /// Taken when it is sent.
    outcome: Option<Outcome>,
}

impl Report {
    pub fn new(owner: SyncSender<Message>, key: Key, job: u64) -> Report {
        Report {
            owner,
            key,
            job,
            outcome: Some(Outcome::Lost),
        }
    }

    pub fn send(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    pub fn path(&self) -> &str {
        &self.key.1
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let Some(outcome) = self.outcome.take() else { return };
        let message = Message::Loaded {
            key: std::mem::take(&mut self.key),
            job: self.job,
            outcome,
        };
        match self.owner.try_send(message) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            // On a thread of the pool, waiting is allowed; on the owner's own (a refused job) it would be for ever.
            Err(TrySendError::Full(message)) if thread::current().name() != Some(THREAD_NAME) => {
                let _ = self.owner.send(message);
            }
            Err(TrySendError::Full(_)) => {}
        }
    }
}
