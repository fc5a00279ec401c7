//! The caller's end of a job: a future for its result, and the power to take it back.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

/// Resolves to what the job returned, under any executor. Dropping it takes the job back if it has not begun; one that has
/// begun runs to its end, and its result is dropped.
#[must_use = "a job that is dropped before it begins is taken back"]
pub struct Job<R> {
    state: JobState<R>,
    /// Takes the job out of the queue.
    cancel: Option<Box<dyn FnOnce() + Send>>,
}

enum JobState<R> {
    Accepted(oneshot::Receiver<Result<R, JobError>>),
    Rejected(JobError),
}

/// Why a job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobError {
    /// It panicked: our mistake, or its author's.
    Panicked,
    /// Too many jobs of its priority waited, or the pool has no threads; it may be tried again later.
    Rejected,
    /// The pool stopped before the job began.
    Stopped,
}

impl<R> Job<R> {
    pub(super) fn accepted(
        receiver: oneshot::Receiver<Result<R, JobError>>,
        cancel: Box<dyn FnOnce() + Send>,
    ) -> Job<R> {
        Job {
            state: JobState::Accepted(receiver),
            cancel: Some(cancel),
        }
    }

    /// Whether the pool turned it away: then it never begins.
    pub fn is_rejected(&self) -> bool {
        matches!(self.state, JobState::Rejected(_))
    }

    /// Runs the job although nothing waits for its result.
    pub fn detach(mut self) {
        self.cancel = None;
    }

    pub(super) fn rejected(error: JobError) -> Job<R> {
        Job {
            state: JobState::Rejected(error),
            cancel: None,
        }
    }
}

impl<R> Future for Job<R> {
    type Output = Result<R, JobError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R, JobError>> {
        let result = match &mut self.state {
            JobState::Rejected(error) => Err(*error),
            // The sending end goes away unused only if the job is dropped with the queue.
            JobState::Accepted(receiver) => ready!(Pin::new(receiver).poll(context)).unwrap_or(Err(JobError::Stopped)),
        };
        self.cancel = None;
        self.state = JobState::Rejected(JobError::Stopped);
        Poll::Ready(result)
    }
}

impl<R> Drop for Job<R> {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel();
        }
    }
}

impl<R> fmt::Debug for Job<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            JobState::Accepted(_) => f.write_str("Job(accepted)"),
            JobState::Rejected(error) => write!(f, "Job({error:?})"),
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobError::Panicked => "the job panicked",
            JobError::Rejected => "no room for another job",
            JobError::Stopped => "the pool has stopped",
        })
    }
}

impl std::error::Error for JobError {}

/// The threads' end of a job, its result type forgotten.
pub(super) type Task = Box<dyn FnOnce() -> TaskOutcome + Send>;

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskOutcome {
    Done,
    Panicked,
    /// Nobody waited for it any more when its turn came.
    Cancelled,
}

/// Both ends of a job; the receiver goes into [`Job::accepted`] once the task is in the queue.
pub(super) fn task<R: Send + 'static>(
    job: impl FnOnce() -> R + Send + 'static,
) -> (Task, oneshot::Receiver<Result<R, JobError>>) {
    let (sender, receiver) = oneshot::channel();
    let task = move || {
        if sender.is_closed() {
            return TaskOutcome::Cancelled;
        }
        // Whatever the job has left half done is dropped with it: nothing of ours is reachable from inside.
        match catch_unwind(AssertUnwindSafe(job)) {
            Ok(result) => {
                drop(sender.send(Ok(result)));
                TaskOutcome::Done
            }
            Err(payload) => {
                // Told before the payload is dropped, for that may panic too and take the thread with it.
                drop(sender.send(Err(JobError::Panicked)));
                drop(payload);
                TaskOutcome::Panicked
            }
        }
    };
    (Box::new(task), receiver)
}
