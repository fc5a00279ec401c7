//! The threads that run jobs, started again when they die, and what they count.
//!
//! Where there are several threads, jobs of low priority have threads of their own, to which the system gives time when
//! nobody else wants it: a job that has begun cannot be called back, and those that compute take what a job of high priority
//! would need, however early that one's turn came.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rocknet_config::model::Priority;

use super::clock::{Clock, SystemClock};
use super::job::{Job, JobError, Task, TaskOutcome, task};
use super::queue::{LEVELS, PRIORITIES, Queue, level};
use rocknet_io::thread_priority;

/// A handle to the pool; all clones are one pool. When the last is dropped, the threads finish what waits and end.
#[derive(Clone)]
pub struct Pool {
    handle: Arc<PoolHandle>,
}

/// What the pool has done and is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// Threads asked for, and those there are.
    pub threads: usize,
    pub alive: usize,
    /// Threads that died and were started again.
    pub restarts: u64,
    /// High, normal, low.
    pub by_priority: [PriorityCounts; LEVELS],
}

/// Jobs of one priority. `queued` and `running` are now, the others since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PriorityCounts {
    pub queued: usize,
    pub running: usize,
    pub done: u64,
    pub panicked: u64,
    /// Turned away for want of room or threads.
    pub rejected: u64,
    /// Taken back before they began.
    pub cancelled: u64,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopReport {
    /// Jobs that never began; whoever waits for them is told [`JobError::Stopped`].
    pub dropped: usize,
    /// Jobs that still ran at the deadline and are left to themselves.
    pub abandoned: usize,
}

impl Pool {
    /// Starts the threads `rn-block-0`, `rn-block-1` and so on, [`MAX_THREADS`] at most. With none, every job is rejected,
    /// which is meant for configurations in which nothing blocks. A thread that the system does not give now is asked for
    /// again with the next job; [`PoolStats::alive`] tells.
    pub fn new(threads: usize) -> Pool {
        Pool::with_clock(threads, SystemClock::new())
    }

    /// As [`Pool::new`], with a clock to age waiting jobs by.
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

    /// Hands a job over. The result comes through the [`Job`], as does a refusal: the caller answers
    /// [`JobError::Rejected`] with 503.
    pub fn spawn<R: Send + 'static>(&self, priority: Priority, job: impl FnOnce() -> R + Send + 'static) -> Job<R> {
        let shared = &self.handle.shared;
        let (task, receiver) = task(job);
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
        let rejection = if state.phase != Phase::Open {
            JobError::Stopped
        } else if state.alive == 0 {
            state.counts[level(priority)].rejected += 1;
            JobError::Rejected
        } else {
            match state.queue.push(priority, task, now) {
                Ok(ticket) => {
                    drop(state);
                    shared.ready_for(priority).notify_one();
                    let shared = Arc::clone(shared);
                    let cancel = move || {
                        let mut state = shared.lock();
                        let task = state.queue.cancel(ticket);
                        state.counts[level(priority)].cancelled += u64::from(task.is_some());
                        // What the job holds is dropped without the lock: it may do anything.
                        drop(state);
                        drop(task);
                    };
                    return Job::accepted(receiver, Box::new(cancel));
                }
                Err(task) => {
                    state.counts[level(priority)].rejected += 1;
                    drop(state);
                    drop(task);
                    JobError::Rejected
                }
            }
        };
        Job::rejected(rejection)
    }

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

    /// Takes no more jobs, finishes those that wait, and returns when all is done or `grace` is over, whichever comes
    /// first. It blocks, so it is for the thread that takes the server down, not for an event loop.
    pub fn stop(&self, grace: Duration) -> StopReport {
        let shared = &self.handle.shared;
        let state = shared.close();
        let ended = shared.ended.wait_timeout_while(state, grace, |state| state.alive > 0);
        let (mut state, _) = ended.unwrap_or_else(PoisonError::into_inner);
        state.phase = Phase::Stopped;
        let left: Vec<_> = state.queue.drain().collect();
        let abandoned = state.counts.iter().map(|counts| counts.running).sum();
        drop(state);
        shared.wake_all();
        StopReport {
            dropped: left.len(),
            abandoned,
        }
    }
}

/// What clones of the pool share: when it goes, nobody can spawn any more.
struct PoolHandle {
    shared: Arc<Shared>,
}

impl Drop for PoolHandle {
    fn drop(&mut self) {
        let mut state = self.shared.close();
        let left = state.take_stranded();
        drop(state);
        drop(left);
    }
}

struct Shared {
    state: Mutex<PoolState>,
    /// A job has come, or the phase has changed.
    ready: Condvar,
    /// The same for jobs of low priority, where they have threads of their own.
    ready_low: Condvar,
    /// A thread has ended.
    ended: Condvar,
    clock: Box<dyn Clock>,
    threads: usize,
}

/// Nothing that can panic runs while it is locked, so a poisoned lock is a sound one.
struct PoolState {
    queue: Queue<Task>,
    counts: [PriorityCounts; LEVELS],
    phase: Phase,
    /// Numbers of threads that there should be and are not.
    missing: Vec<usize>,
    /// Whether threads for low priority have been asked for.
    has_low_threads: bool,
    alive: usize,
    restarts: u64,
}

impl PoolState {
    /// A job that ran is over.
    fn count(&mut self, priority: Priority, outcome: TaskOutcome) {
        let counts = &mut self.counts[level(priority)];
        counts.running -= 1;
        match outcome {
            TaskOutcome::Done => counts.done += 1,
            TaskOutcome::Panicked => counts.panicked += 1,
            TaskOutcome::Cancelled => counts.cancelled += 1,
        }
    }

    /// What waits though no thread will ever come: those who wait for it are to be told, by dropping it unlocked.
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
    Open,
    /// What waits is finished, nothing new is taken.
    Closing,
    /// Nothing is begun any more.
    Stopped,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From open to closing.
    fn close(&self) -> MutexGuard<'_, PoolState> {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
        }
        self.wake_all();
        state
    }

    fn wake_all(&self) {
        self.ready.notify_all();
        self.ready_low.notify_all();
    }

    /// How many threads there are for low priority alone, beside the others; none where there is one thread for all.
    fn low_threads(&self) -> usize {
        self.threads / 2
    }

    fn ready_for(&self, priority: Priority) -> &Condvar {
        match priority {
            Priority::Low if self.low_threads() > 0 => &self.ready_low,
            _ => &self.ready,
        }
    }

    /// What the thread of this number does.
    fn priorities_of(&self, number: usize) -> &'static [Priority] {
        match number < self.threads {
            true if self.low_threads() > 0 => &[Priority::High, Priority::Normal],
            true => &PRIORITIES,
            false => &[Priority::Low],
        }
    }

    /// Starts the threads that are missing, as far as the system gives them.
    fn start_missing<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, PoolState>) -> MutexGuard<'a, PoolState> {
        let missing = std::mem::take(&mut state.missing);
        state.alive += missing.len();
        drop(state);
        for number in missing {
            self.start(number);
        }
        self.lock()
    }

    /// Starts a thread that is counted as alive already, and no longer if that fails.
    fn start(self: &Arc<Self>, number: usize) {
        let slot = ThreadSlot {
            shared: Arc::clone(self),
            number,
            stage: ThreadStage::NotStarted,
        };
        // Where this fails, the post is dropped with the closure, and so the thread is told missing.
        drop(
            thread::Builder::new()
                .name(format!("{THREAD_NAME}{number}"))
                .spawn(move || slot.work()),
        );
    }

    /// Waits for a job of some priorities; `None` when there will be no more.
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

/// One thread's place in the pool. However the thread ends, dropping it sets the counters right.
struct ThreadSlot {
    shared: Arc<Shared>,
    number: usize,
    stage: ThreadStage,
}

#[derive(Debug, Clone, Copy)]
enum ThreadStage {
    /// The thread has not begun.
    NotStarted,
    Waiting,
    Running(Priority),
    /// The thread has nothing left to do.
    Finished,
}

impl ThreadSlot {
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
        let left = state.take_stranded();
        drop(state);
        drop(left);
        self.shared.ended.notify_all();
    }
}

/// With its number it stays within the 15 bytes Linux keeps of a thread's name.
const THREAD_NAME: &str = "rn-block-";

/// Far more than disks serve at once; beyond, threads only cost memory. It also keeps names within their 15 bytes, those of
/// threads for low priority included.
pub const MAX_THREADS: usize = 512;

#[cfg(test)]
mod tests;
