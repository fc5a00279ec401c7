//! Handle of a submitted job: a future for its result, which also cancels the job.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

/// Future that resolves to the result of the job, under any executor. Dropping it cancels the job if it has not
/// started. A job that has started runs to its end, and its result is discarded.
#[must_use = "dropping a job before it starts cancels it"]
pub struct Job<R> {
    state: JobState<R>,
    /// Removes the job from the queue. `None` if there is nothing to cancel.
    cancel: Option<Box<dyn FnOnce() + Send>>,
}

enum JobState<R> {
    /// The job was queued, and its result has not been returned yet.
    Accepted(oneshot::Receiver<Result<R, JobError>>),
    /// The job was never queued, or its result has been returned. A poll returns this error.
    Rejected(JobError),
}

/// The reason why a job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobError {
    /// The job panicked, because of a bug in it.
    Panicked,
    /// The queue of its priority was full, or the pool has no threads. The caller may retry later.
    Rejected,
    /// The pool was stopping when the job was submitted, or stopped before the job started.
    Stopped,
}

impl<R> Job<R> {
    /// Creates the handle of a queued job. `cancel` removes the job from the queue.
    pub(super) fn accepted(
        receiver: oneshot::Receiver<Result<R, JobError>>,
        cancel: Box<dyn FnOnce() + Send>,
    ) -> Job<R> {
        Job {
            state: JobState::Accepted(receiver),
            cancel: Some(cancel),
        }
    }

    /// Returns true if the pool rejected the job, which then never starts. Call this function before the job is polled,
    /// because it also returns true after the job has returned its result.
    pub fn is_rejected(&self) -> bool {
        matches!(self.state, JobState::Rejected(_))
    }

    /// Creates the handle of a job that the pool has not queued, for this reason.
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
            // The sender is dropped unused only if the pool drops the queued job.
            JobState::Accepted(receiver) => ready!(Pin::new(receiver).poll(context)).unwrap_or(Err(JobError::Stopped)),
        };
        self.cancel = None;
        // A receiver must not be polled again after its result.
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
            JobError::Rejected => "the job queue is full, or the pool has no threads",
            JobError::Stopped => "the pool has stopped",
        })
    }
}

impl std::error::Error for JobError {}

/// The part of a job that a thread of the pool runs, with its result type erased.
pub(super) type Task = Box<dyn FnOnce() -> TaskOutcome + Send>;

/// Result of running a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskOutcome {
    /// The job returned a result.
    Done,
    /// The job panicked.
    Panicked,
    /// The job was cancelled before it started.
    Cancelled,
}

/// Creates both ends of a job. The receiver is passed to [`Job::accepted`] once the task is queued.
pub(super) fn task<R: Send + 'static>(
    job: impl FnOnce() -> R + Send + 'static,
) -> (Task, oneshot::Receiver<Result<R, JobError>>) {
    let (sender, receiver) = oneshot::channel();
    let task = move || {
        if sender.is_closed() {
            return TaskOutcome::Cancelled;
        }
        // A panic leaves no inconsistent state behind: the job is dropped with everything that it owns.
        match catch_unwind(AssertUnwindSafe(job)) {
            Ok(result) => {
                drop(sender.send(Ok(result)));
                TaskOutcome::Done
            }
            Err(payload) => {
                // The result is sent before the payload is dropped, because dropping the payload may panic too and end
                // the thread.
                drop(sender.send(Err(JobError::Panicked)));
                drop(payload);
                TaskOutcome::Panicked
            }
        }
    };
    (Box::new(task), receiver)
}

/// Creates a task from a job without a result.
pub(super) fn background_task(job: impl FnOnce() + Send + 'static) -> Task {
    Box::new(move || match catch_unwind(AssertUnwindSafe(job)) {
        Ok(()) => TaskOutcome::Done,
        Err(payload) => {
            drop(payload);
            TaskOutcome::Panicked
        }
    })
}
