//! Result of a load job in the pool, on its way to the cache thread.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;

use super::key::{Key, THREAD_NAME};
use super::message::{LoadOutcome, Message};

/// Sends the outcome to the cache thread however the job ends: finished, panicked, or dropped before it began.
pub(super) struct JobReport {
    messages: SyncSender<Message>,
    key: Key,
    /// Number of the job.
    job: u64,
    /// Taken when it is sent.
    outcome: Option<LoadOutcome>,
}

impl JobReport {
    pub fn new(messages: SyncSender<Message>, key: Key, job: u64) -> JobReport {
        JobReport {
            messages,
            key,
            job,
            outcome: Some(LoadOutcome::Lost),
        }
    }

    pub fn send(mut self, outcome: LoadOutcome) {
        self.outcome = Some(outcome);
    }

    pub fn path(&self) -> &str {
        &self.key.1
    }
}

impl Drop for JobReport {
    fn drop(&mut self) {
        let Some(outcome) = self.outcome.take() else { return };
        let message = Message::Loaded {
            key: std::mem::take(&mut self.key),
            job: self.job,
            outcome,
        };
        match self.messages.try_send(message) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            // A thread of the pool may wait. The cache thread itself, which drops a refused job, would wait forever.
            Err(TrySendError::Full(message)) if thread::current().name() != Some(THREAD_NAME) => {
                let _ = self.messages.send(message);
            }
            Err(TrySendError::Full(_)) => {}
        }
    }
}
