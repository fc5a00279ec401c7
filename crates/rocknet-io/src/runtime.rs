//! The event loop of one worker: a runtime that never leaves its thread.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

/// Tasks run between two looks at the kernel's events. The runtime's own 61 would ask the kernel
/// an extra time in every batch of 64 busy connections.
const TASKS_BETWEEN_EVENTS: u32 = 256;

pub struct Runtime(LocalRuntime);

impl Runtime {
    /// `batch`: most events taken from the kernel at once.
    pub fn new(batch: usize) -> io::Result<Runtime> {
        let mut builder = Builder::new_current_thread();
        if crate::ticker::NEEDS_RUNTIME_TIME {
            builder.enable_time();
        }
        let runtime = builder
            .enable_io()
            .max_io_events_per_tick(batch.clamp(1, 1 << 16))
            .event_interval(TASKS_BETWEEN_EVENTS)
            .build_local(LocalOptions::default())?;
        Ok(Runtime(runtime))
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}

/// Starts a task on the runtime of this thread.
pub fn spawn<F: Future<Output = ()> + 'static>(future: F) {
    drop(tokio::task::spawn_local(future));
}
