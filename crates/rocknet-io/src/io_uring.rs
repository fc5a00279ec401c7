//! io_uring back end: drives the sockets of each worker by a ring of its own. The ring makes a turn when the worker's
//! runtime would park its thread. It also makes a turn after a fixed amount of work by the tasks (the step limit), so
//! that busy tasks cannot starve the other connections.
//!
//! ```text
//! tasks run ──none left, or step limit──▶ turn: submit, wait if no task is left, reap, wake ──▶ tasks run
//!                                                       │ the ring also polls the runtime's own epoll, so that
//!                                                       │ timers, other threads and signals end the wait too
//! ```
//!
//! Operations read and write only memory that the ring owns. No operation refers to memory of a task, so a task can be
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
