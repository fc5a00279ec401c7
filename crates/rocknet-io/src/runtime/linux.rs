//! What Linux can drive a loop with beside epoll: io_uring.

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::ring;

/// Keeps the ring of this thread; dropped after all tasks.
pub type Ring = ring::Installed;

pub fn with_ring(builder: &mut Builder) -> io::Result<(LocalRuntime, Ring)> {
    let runtime = builder
        .on_thread_park(ring::park)
        .build_local(LocalOptions::default())?;
    let ring = runtime.block_on(async { ring::install() })?;
    Ok((runtime, ring))
}

/// Takes from the ring what it has for this thread's tasks.
pub fn hear_ring() {
    if let Some(driver) = ring::current() {
        driver.hear();
    }
}
