//! Builds a runtime whose sockets are driven by io_uring.

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::io_uring;

/// Owner of this thread's ring; it must be dropped after all tasks.
pub type RingGuard = io_uring::DriverGuard;

/// Builds a runtime, and installs a ring for the calling thread.
pub fn build_with_ring(builder: &mut Builder) -> io::Result<(LocalRuntime, RingGuard)> {
    let runtime = builder
        .on_thread_park(io_uring::on_park)
        .build_local(LocalOptions::default())?;
    let ring = runtime.block_on(async { io_uring::install() })?;
    Ok((runtime, ring))
}

/// Delivers all completions of this thread's ring.
pub fn drain_ring() {
    if let Some(driver) = io_uring::current() {
        driver.drain();
    }
}
