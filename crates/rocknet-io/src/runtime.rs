//! Event loop of one worker: a Tokio runtime whose tasks never leave their thread.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::epoll::write_batch;

#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
#[path = "runtime/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "runtime/portable.rs"]
mod system;

#[cfg(target_os = "linux")]
pub use probe::io_uring_unavailable;
#[cfg(not(target_os = "linux"))]
pub use system::io_uring_unavailable;

/// Number of tasks that run before the runtime polls the kernel's events. With Tokio's default of 61, for example, 64
/// busy connections would need a second poll each time that all their tasks run.
const EVENT_INTERVAL: u32 = 256;

/// Single-threaded Tokio runtime with an I/O back end.
pub struct Runtime {
    runtime: LocalRuntime,
    /// Declared after `runtime`, like the next field, so that both are dropped after all tasks.
    _write_batch: write_batch::BatchGuard,
    _ring: Option<system::RingGuard>,
}

impl Runtime {
    /// Builds a runtime whose sockets are driven by its own events (epoll, kqueue). `max_events` is the maximum number
    /// of events read from the kernel in one poll.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, for example if descriptors have run out.
    pub fn new(max_events: usize) -> io::Result<Runtime> {
        let runtime = builder(max_events)
            .on_thread_park(write_batch::flush_on_park)
            .build_local(LocalOptions::default())?;
        Ok(Runtime {
            runtime,
            _write_batch: write_batch::install(),
            _ring: None,
        })
    }

    /// Builds a runtime whose sockets are driven by io_uring. Sockets that remain on the runtime's own events also send
    /// in batches, which are flushed before each turn of the ring. `max_events` is the same as in [`Runtime::new`].
    ///
    /// # Errors
    ///
    /// Returns the error of the system, and `Unsupported` on systems other than Linux. [`io_uring_unavailable`]
    /// explains the cause to the operator.
    pub fn with_io_uring(max_events: usize) -> io::Result<Runtime> {
        let (runtime, ring) = system::build_with_ring(&mut builder(max_events))?;
        Ok(Runtime {
            runtime,
            _write_batch: write_batch::install(),
            _ring: Some(ring),
        })
    }

    /// Runs a future to completion. Spawned tasks run in the meantime.
    ///
    /// # Panics
    ///
    /// Panics if the current thread is inside a runtime already.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

/// Returns a builder with the settings that runtimes of both I/O back ends share.
fn builder(max_events: usize) -> Builder {
    let mut builder = Builder::new_current_thread();
    if crate::ticker::NEEDS_RUNTIME_TIME {
        builder.enable_time();
    }
    // `epoll_wait(2)` rejects 0 events. The upper bound limits the memory for the events.
    builder
        .enable_io()
        .max_io_events_per_tick(max_events.clamp(1, 1 << 16))
        .event_interval(EVENT_INTERVAL);
    builder
}

/// Returns one runtime constructor for each I/O back end that works on this machine.
#[cfg(test)]
pub(crate) fn back_ends() -> Vec<fn() -> Runtime> {
    /// Maximum number of events in one poll. Any value serves in tests.
    const MAX_EVENTS: usize = 8;
    let events: fn() -> Runtime = || Runtime::new(MAX_EVENTS).expect("a runtime");
    match io_uring_unavailable() {
        None => vec![events, || Runtime::with_io_uring(MAX_EVENTS).expect("a ring")],
        Some(reason) => {
            rocknet_testing::skip(rocknet_testing::Need::IoUring, &reason);
            vec![events]
        }
    }
}

/// Spawns a task on the runtime of this thread.
///
/// # Panics
///
/// Panics outside of a [`Runtime`].
pub fn spawn<F: Future<Output = ()> + 'static>(future: F) {
    drop(tokio::task::spawn_local(future));
}

/// Delivers the events that the kernel has at this moment to their tasks: all completions of the ring, and at most as
/// many of the runtime's own events as one poll reads.
pub async fn drain_events() {
    tokio::task::yield_now().await;
    // Yielding made the runtime poll its events once. The tasks that these events woke have run and may have added
    // writes to the batch. Yielding does not park the thread, so the hook that flushes the batch has not run.
    write_batch::flush_on_park();
    system::drain_ring();
}
