//! Other systems have the runtime's own events alone.

use std::io;

use tokio::runtime::{Builder, LocalRuntime};

pub enum RingGuard {}

pub fn build_with_ring(_: &mut Builder) -> io::Result<(LocalRuntime, RingGuard)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Why io_uring cannot be used here.
pub fn io_uring_unavailable() -> Option<String> {
    Some("io_uring is part of Linux".to_owned())
}

pub fn drain_ring() {}
