//! Threads for work that blocks (disks, hashing, compressing), served by priority, so that event loops never wait.
//!
//! [`Pool::spawn`] hands a job over and gives a [`Job`], a future that any executor can wait for. Which job is next is
//! decided by [`Queue`], which is pure: time is an argument. Threads, locks and counters are in `pool`.
#![forbid(unsafe_code)]

pub mod clock;
pub mod job;
pub mod oneshot_slot;
pub mod pool;
pub mod queue;

pub use clock::{Clock, SystemClock};
pub use job::{Job, JobError};
pub use pool::{MAX_THREADS, Pool, PoolStats, PriorityCounts, StopReport};
pub use queue::{AGE_STEP, LEVEL_LIMIT, Queue, Ticket};
