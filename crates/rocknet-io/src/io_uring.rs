//! Completion back end: sockets on io_uring, with one ring for each worker, driven when its runtime would park.
//!
//! ```text
//! tasks run ──none left──▶ turn: submit, wait, reap, wake ──▶ tasks run
//!                               │ the ring also polls the runtime's own epoll: timers, other threads, signals
//! ```
//!
//! The kernel reads and writes memory that the ring owns. No operation names memory of a task, so that a task may be
//! dropped at any time.

mod completions;
mod driver;
mod file_operation;
mod file_operations;
mod kernel;
mod large_receive;
mod path_prefetch;
mod provided_buffers;
mod read_ahead;
mod receive_mode;
mod runtime_epoll;
#[cfg(test)]
mod simulated;
mod sink;
mod slot;
mod state;
mod stream;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
mod user_data;
mod write_batch;

pub use driver::{Driver, current};
pub(crate) use driver::{DriverGuard, install, on_park};
pub(crate) use path_prefetch::prefetch_path;
pub use read_ahead::read_ahead;
pub use stream::UringStream;
