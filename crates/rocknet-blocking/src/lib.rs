//! Thread pool for blocking work (disks, hashing, compression), which runs jobs by priority so that event loops never
//! block.
//!
//! [`Pool::spawn`] submits a job and returns a [`Job`], a future for any executor. [`Queue`] decides which job is next;
//! it performs no I/O, and time is an argument. Threads, locks and counters are in [`pool`].
//!
//! ```
//! use rocknet_blocking::Pool;
//! use rocknet_config::model::Priority;
//!
//! let pool = Pool::new(2);
//! let job = pool.spawn(Priority::Normal, || 6 * 7);
//! let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! assert_eq!(runtime.block_on(job), Ok(42));
//! ```
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
