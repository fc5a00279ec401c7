//! The event loop of one worker: a runtime that never leaves its thread.

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

/// Tasks run between two looks at the kernel's events. The runtime's own 61 would ask the kernel
/// an extra time in every batch of 64 busy connections.
const EVENT_INTERVAL: u32 = 256;

pub struct Runtime {
    runtime: LocalRuntime,
    /// These are dropped after all tasks.
    _write_batch: write_batch::BatchGuard,
    _ring: Option<system::RingGuard>,
}

impl Runtime {
    /// Driven by the events of the runtime itself. `batch`: most of them taken from the kernel at once.
    pub fn new(batch: usize) -> io::Result<Runtime> {
        let runtime = builder(batch)
            .on_thread_park(write_batch::flush_on_park)
            .build_local(LocalOptions::default())?;
        Ok(Runtime {
            runtime,
            _write_batch: write_batch::install(),
            _ring: None,
        })
    }

    /// Driven by io_uring. Sockets that are left to the runtime's own events send together too, before each turn of the ring.
    pub fn with_io_uring(batch: usize) -> io::Result<Runtime> {
        let (runtime, ring) = system::build_with_ring(&mut builder(batch))?;
        Ok(Runtime {
            runtime,
            _write_batch: write_batch::install(),
            _ring: Some(ring),
        })
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

fn builder(batch: usize) -> Builder {
    let mut builder = Builder::new_current_thread();
    if crate::ticker::NEEDS_RUNTIME_TIME {
        builder.enable_time();
    }
    builder
        .enable_io()
        .max_io_events_per_tick(batch.clamp(1, 1 << 16))
        .event_interval(EVENT_INTERVAL);
    builder
}

/// Makers of a runtime of each kind that can be had here.
#[cfg(test)]
pub(crate) fn back_ends() -> Vec<fn() -> Runtime> {
    let events: fn() -> Runtime = || Runtime::new(8).expect("a runtime");
    match io_uring_unavailable() {
        None => vec![events, || Runtime::with_io_uring(8).expect("a ring")],
        Some(reason) => {
            rocknet_testing::skip(rocknet_testing::Need::IoUring, &reason);
            vec![events]
        }
    }
}

/// Starts a task on the runtime of this thread.
pub fn spawn<F: Future<Output = ()> + 'static>(future: F) {
    drop(tokio::task::spawn_local(future));
}

/// Goes on when all that the kernel had to tell at this moment has been told to the tasks it concerns.
pub async fn drain_events() {
    tokio::task::yield_now().await;
    // Who yields has no rest, before which all would leave: whatever was put meanwhile is not to wait for that.
    write_batch::flush_on_park();
    system::drain_ring();
}
