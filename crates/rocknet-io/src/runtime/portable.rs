//! Other systems have the runtime's own events alone.

use std::io;

use tokio::runtime::{Builder, LocalRuntime};

pub enum Ring {}

pub fn with_ring(_: &mut Builder) -> io::Result<(LocalRuntime, Ring)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Why io_uring cannot be used here.
pub fn ring_trouble() -> Option<String> {
    Some("io_uring is part of Linux".to_owned())
}

pub fn drain_ring() {}
