//! Reports the outcome of a load job in the blocking pool to the cache thread.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread;

use super::key::{Key, THREAD_NAME};
use super::message::{LoadOutcome, Message};

/// Sends the outcome to the cache thread when it is dropped, whether the job has finished, has panicked, or was dropped
/// before it began.
pub(super) struct JobReport {
    messages: SyncSender<Message>,
    key: Key,
    /// Number of the job, by which the cache thread ignores a report of an earlier job.
    job: u64,
    /// Outcome to be sent; `Lost` unless the job has finished.
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

    /// Sets the outcome. The drop of `self`, at the end of this method, sends it.
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
            // A thread of the pool can wait for room in the channel. The cache thread, which drops the jobs that the
            // pool refuses, would wait forever, because only it empties the channel.
            Err(TrySendError::Full(message)) if thread::current().name() != Some(THREAD_NAME) => {
                let _ = self.messages.send(message);
            }
            // The cache thread releases the requests that wait for a refused job without this report.
            Err(TrySendError::Full(_)) => {}
        }
    }
}
