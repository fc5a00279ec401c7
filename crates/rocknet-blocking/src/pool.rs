//! Threads that run jobs by priority and count the results. A thread that dies is restarted.
//!
//! A pool with several threads has additional threads for jobs of low priority. These threads run at low scheduling
//! priority. A started job cannot be preempted, so without these threads long jobs of low priority would delay jobs of
//! high priority.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rocknet_config::model::Priority;

use super::clock::{Clock, SystemClock};
use super::job::{Job, JobError, Task, TaskOutcome, background_task, task};
use super::queue::{LEVELS, PRIORITIES, Queue, Ticket, level};
use rocknet_io::thread_priority;

/// A handle of the pool; clones refer to the same pool. When the last handle is dropped, the threads finish the queue
/// and end.
#[derive(Clone)]
pub struct Pool {
    handle: Arc<PoolHandle>,
}

/// State and counters of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// Number of threads requested, at most [`MAX_THREADS`], without the additional threads for low priority.
    pub threads: usize,
    /// Number of running threads, including the additional threads for low priority.
    pub alive: usize,
    /// Number of threads that died and were restarted.
    pub restarts: u64,
    /// Counters of the high, normal and low priority, in this order.
    pub by_priority: [PriorityCounts; LEVELS],
}

/// Counters of one priority. `queued` and `running` are current values, the others totals since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PriorityCounts {
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that returned a result.
    pub done: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// Jobs rejected because the queue was full or the pool had no threads.
    pub rejected: u64,
    /// Jobs cancelled before they started.
    pub cancelled: u64,
}

/// Result of stopping the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopReport {
    /// Jobs that never started; they resolve to [`JobError::Stopped`].
    pub dropped: usize,
    /// Jobs that were still running at the end of the grace period and continue.
    pub abandoned: usize,
}

impl Pool {
    /// Starts the threads `rn-block-0`, `rn-block-1` and so on, at most [`MAX_THREADS`]. A pool without threads rejects
    /// every job; it is meant for configurations in which nothing blocks. If the system cannot create a thread,
    /// submitting the next job tries again; see [`PoolStats::alive`].
    pub fn new(threads: usize) -> Pool {
        Pool::with_clock(threads, SystemClock::new())
    }

    /// Starts a pool like [`Pool::new`], with a clock by which waiting jobs age.
    pub fn with_clock(threads: usize, clock: impl Clock) -> Pool {
        let threads = threads.min(MAX_THREADS);
        let state = PoolState {
            queue: Queue::new(),
            counts: [PriorityCounts::default(); LEVELS],
            phase: Phase::Open,
            missing: (0..threads).collect(),
            has_low_threads: false,
            alive: 0,
            restarts: 0,
        };
        let shared = Shared {
            state: Mutex::new(state),
            ready: Condvar::new(),
            ready_low: Condvar::new(),
            ended: Condvar::new(),
            clock: Box::new(clock),
            threads,
        };
        let shared = Arc::new(shared);
        drop(shared.start_missing(shared.lock()));
        Pool {
            handle: Arc::new(PoolHandle { shared }),
        }
    }

    /// Submits a job. The [`Job`] resolves to the result or to a [`JobError`]; callers respond to
    /// [`JobError::Rejected`] with 503.
    pub fn spawn<R: Send + 'static>(&self, priority: Priority, job: impl FnOnce() -> R + Send + 'static) -> Job<R> {
        let (task, receiver) = task(job);
        let ticket = match self.submit(priority, task) {
            Ok(ticket) => ticket,
            Err(rejection) => return Job::rejected(rejection),
        };
        let shared = Arc::clone(&self.handle.shared);
        let cancel = move || {
            let mut state = shared.lock();
            let task = state.queue.cancel(ticket);
            state.counts[level(priority)].cancelled += u64::from(task.is_some());
            // The task is dropped without the lock, because the destructors of the job may use the pool.
            drop(state);
            drop(task);
        };
        Job::accepted(receiver, Box::new(cancel))
    }

    /// Submits a job whose result is not needed. It cannot be cancelled.
    ///
    /// # Errors
    ///
    /// Returns the reason why the pool has not accepted the job, which is dropped.
    pub fn run_in_background(&self, priority: Priority, job: impl FnOnce() + Send + 'static) -> Result<(), JobError> {
        self.submit(priority, background_task(job)).map(drop)
    }

    /// Queues a task.
    ///
    /// # Errors
    ///
    /// Returns the reason why the pool has not accepted the task, which is dropped.
    fn submit(&self, priority: Priority, task: Task) -> Result<Ticket, JobError> {
        let shared = &self.handle.shared;
        let now = shared.clock.now();
        let mut state = shared.lock();
        if priority == Priority::Low && !state.has_low_threads {
            state.has_low_threads = true;
            state
                .missing
                .extend(shared.threads..shared.threads + shared.low_threads());
        }
        if !state.missing.is_empty() && state.phase == Phase::Open {
            state = shared.start_missing(state);
        }
        let (task, rejection) = if state.phase != Phase::Open {
            (task, JobError::Stopped)
        } else if state.alive == 0 {
            state.counts[level(priority)].rejected += 1;
            (task, JobError::Rejected)
        } else {
            match state.queue.push(priority, task, now) {
                Ok(ticket) => {
                    drop(state);
                    shared.ready_for(priority).notify_one();
                    return Ok(ticket);
                }
                Err(task) => {
                    state.counts[level(priority)].rejected += 1;
                    (task, JobError::Rejected)
                }
            }
        };
        // The task is dropped without the lock, because the destructors of the job may use the pool.
        drop(state);
        drop(task);
        Err(rejection)
    }

    /// Returns the state and counters of the pool.
    pub fn stats(&self) -> PoolStats {
        let shared = &self.handle.shared;
        let state = shared.lock();
        let mut by_priority = state.counts;
        for priority in PRIORITIES {
            by_priority[level(priority)].queued = state.queue.waiting(priority);
        }
        PoolStats {
            threads: shared.threads,
            alive: state.alive,
            restarts: state.restarts,
            by_priority,
        }
    }

    /// Accepts no more jobs, finishes the queued ones, and returns when all jobs are done or after `grace`. Jobs that
    /// are still queued after `grace` are dropped, and running ones continue. The call blocks, so it is for the thread
    /// that shuts the server down, not for an event loop.
    pub fn stop(&self, grace: Duration) -> StopReport {
        let shared = &self.handle.shared;
        let state = shared.close();
        let ended = shared.ended.wait_timeout_while(state, grace, |state| state.alive > 0);
        let (mut state, _) = ended.unwrap_or_else(PoisonError::into_inner);
        state.phase = Phase::Stopped;
        let dropped: Vec<_> = state.queue.drain().collect();
        let abandoned = state.counts.iter().map(|counts| counts.running).sum();
        drop(state);
        shared.wake_all();
        StopReport {
            dropped: dropped.len(),
            abandoned,
        }
    }
}

/// Shared part of all clones of a [`Pool`]. When it is dropped, the pool closes, because no more jobs can be submitted.
struct PoolHandle {
    shared: Arc<Shared>,
}

impl Drop for PoolHandle {
    fn drop(&mut self) {
        let mut state = self.shared.close();
        let stranded = state.take_stranded();
        drop(state);
        drop(stranded);
    }
}

/// State shared by the handles and the threads of a pool.
struct Shared {
    state: Mutex<PoolState>,
    /// Signalled when a job is queued or the phase changes.
    ready: Condvar,
    /// Signalled like `ready`, but for jobs of low priority, if they have separate threads.
    ready_low: Condvar,
    /// Signalled when a thread ends.
    ended: Condvar,
    clock: Box<dyn Clock>,
    /// Number of threads without the additional threads for low priority.
    threads: usize,
}

/// State protected by the lock. No code that can panic runs while it is locked, so the state of a poisoned lock is
/// valid.
struct PoolState {
    queue: Queue<Task>,
    counts: [PriorityCounts; LEVELS],
    phase: Phase,
    /// Numbers of the threads that should run but do not.
    missing: Vec<usize>,
    /// True once the threads for low priority have been requested.
    has_low_threads: bool,
    /// Number of threads that run or are being started.
    alive: usize,
    restarts: u64,
}

impl PoolState {
    /// Counts a job that has ended.
    fn count(&mut self, priority: Priority, outcome: TaskOutcome) {
        let counts = &mut self.counts[level(priority)];
        counts.running -= 1;
        match outcome {
            TaskOutcome::Done => counts.done += 1,
            TaskOutcome::Panicked => counts.panicked += 1,
            TaskOutcome::Cancelled => counts.cancelled += 1,
        }
    }

    /// Takes the queued tasks if no thread will ever run them. The caller drops them after releasing the lock, which
    /// resolves their jobs.
    fn take_stranded(&mut self) -> Vec<Task> {
        if self.alive == 0 && self.phase != Phase::Open {
            self.queue.drain().collect()
        } else {
            Vec::new()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Jobs are accepted.
    Open,
    /// Queued jobs are finished, and new ones rejected.
    Closing,
    /// No more jobs are started.
    Stopped,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the phase from open to closing.
    fn close(&self) -> MutexGuard<'_, PoolState> {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
        }
        self.wake_all();
        state
    }

    /// Wakes all threads that wait for jobs.
    fn wake_all(&self) {
        self.ready.notify_all();
        self.ready_low.notify_all();
    }

    /// Number of additional threads for low priority: half of the others (docs/decisions/0012-low-priority.md), and 0
    /// if one thread serves all priorities.
    fn low_threads(&self) -> usize {
        self.threads / 2
    }

    /// Returns the condition variable on which the threads for this priority wait.
    fn ready_for(&self, priority: Priority) -> &Condvar {
        match priority {
            Priority::Low if self.low_threads() > 0 => &self.ready_low,
            _ => &self.ready,
        }
    }

    /// Returns the priorities that the thread with this number serves.
    fn priorities_of(&self, number: usize) -> &'static [Priority] {
        match number < self.threads {
            true if self.low_threads() > 0 => &[Priority::High, Priority::Normal],
            true => &PRIORITIES,
            false => &[Priority::Low],
        }
    }

    /// Starts the missing threads, as far as the system can create them.
    fn start_missing<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, PoolState>) -> MutexGuard<'a, PoolState> {
        let missing = std::mem::take(&mut state.missing);
        state.alive += missing.len();
        drop(state);
        for number in missing {
            self.start(number);
        }
        self.lock()
    }

    /// Starts a thread that is already counted as alive; if that fails, the count is corrected.
    fn start(self: &Arc<Self>, number: usize) {
        let slot = ThreadSlot {
            shared: Arc::clone(self),
            number,
            stage: ThreadStage::NotStarted,
        };
        // On failure the slot is dropped with the closure, which marks the thread as missing.
        drop(
            thread::Builder::new()
                .name(format!("{THREAD_NAME}{number}"))
                .spawn(move || slot.work()),
        );
    }

    /// Waits for a job of these priorities. Returns `None` once there will be no more.
    fn next(&self, priorities: &[Priority]) -> Option<(Priority, Task)> {
        let ready = priorities.first().map_or(&self.ready, |first| self.ready_for(*first));
        let mut state = self.lock();
        while state.phase != Phase::Stopped {
            if let Some((priority, task)) = state.queue.pop_of(priorities, self.clock.now()) {
                state.counts[level(priority)].running += 1;
                return Some((priority, task));
            }
            if state.phase == Phase::Closing {
                break;
            }
            state = ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// The slot of a thread in the pool. Dropping it corrects the counters, however the thread ends, and replaces a thread
/// that died. Panics of jobs are caught, but a thread dies if dropping the payload of such a panic panics too.
struct ThreadSlot {
    shared: Arc<Shared>,
    number: usize,
    stage: ThreadStage,
}

#[derive(Debug, Clone, Copy)]
enum ThreadStage {
    /// The thread has not started.
    NotStarted,
    /// The thread waits for a job.
    Waiting,
    /// The thread runs a job of this priority.
    Running(Priority),
    /// The thread has nothing left to do.
    Finished,
}

impl ThreadSlot {
    /// Runs jobs until there are no more and the pool has closed.
    fn work(mut self) {
        self.stage = ThreadStage::Waiting;
        let priorities = self.shared.priorities_of(self.number);
        if priorities == [Priority::Low] {
            thread_priority::lower();
        }
        while let Some((priority, task)) = self.shared.next(priorities) {
            self.stage = ThreadStage::Running(priority);
            let outcome = task();
            self.shared.lock().count(priority, outcome);
            self.stage = ThreadStage::Waiting;
        }
        self.stage = ThreadStage::Finished;
    }
}

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let died = match self.stage {
            ThreadStage::Running(priority) => {
                state.count(priority, TaskOutcome::Panicked);
                true
            }
            // Not expected, because nothing panics between two jobs.
            ThreadStage::Waiting => true,
            ThreadStage::NotStarted | ThreadStage::Finished => false,
        };
        if died && state.phase != Phase::Stopped {
            state.restarts += 1;
            drop(state);
            self.shared.start(self.number);
            return;
        }
        state.alive -= 1;
        if !matches!(self.stage, ThreadStage::Finished) {
            state.missing.push(self.number);
        }
        let stranded = state.take_stranded();
        drop(state);
        drop(stranded);
        self.shared.ended.notify_all();
    }
}

/// Prefix of thread names. With the number, a name fits into the 15 bytes of a thread name on Linux.
const THREAD_NAME: &str = "rn-block-";

/// Maximum number of threads: far more than disks serve concurrently, so more threads would only cost memory. The limit
/// also keeps thread names within 15 bytes, including those of the additional threads for low priority.
pub const MAX_THREADS: usize = 512;

#[cfg(test)]
mod tests;
