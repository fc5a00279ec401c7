//! Reports io_uring as unavailable on systems other than Linux.

use std::io;

use tokio::runtime::{Builder, LocalRuntime};

/// Cannot be constructed.
pub enum RingGuard {}

/// Fails, because the system has no io_uring.
pub fn build_with_ring(_: &mut Builder) -> io::Result<(LocalRuntime, RingGuard)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns why io_uring is unavailable; `None` if it works.
pub fn io_uring_unavailable() -> Option<String> {
    Some("only Linux has io_uring".to_owned())
}

/// Does nothing, because no ring exists.
pub fn drain_ring() {}
