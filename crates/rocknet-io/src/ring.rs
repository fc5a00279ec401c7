//! Sockets on io_uring: one ring for each worker's thread, driven where the runtime would go to sleep.
//!
//! ```text
//! tasks run ──none left──▶ turn: submit, wait, reap, wake ──▶ tasks run
//!                               │ the ring also waits for the runtime's own epoll: timers, other threads, signals
//! ```
//! The kernel reads and writes memory that the ring owns, and no operation names memory of anybody else, so that a task
//! may be dropped at any time.

mod buffers;
mod bulk;
mod bulk_receive;
mod completions;
mod driver;
mod epoll;
mod errand;
mod errands;
mod kernel;
mod names;
mod number;
mod outbox;
mod place;
mod reads;
#[cfg(test)]
mod simulated;
mod sink;
mod state;
mod stream;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;

pub use driver::{Driver, current};
pub(crate) use driver::{Installed, install, park};
pub(crate) use names::names_ahead;
pub use reads::read_ahead;
pub use stream::RingStream;
