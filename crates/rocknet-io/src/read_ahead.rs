//! Read-ahead: loads a range of a file, or the names of a path, into the kernel's memory on the event loop of the
//! thread.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

/// Future of a read-ahead. It resolves to true once the range is in memory or cannot be loaded; an error shows again
/// when the range is read. False: the event loop did not start it, so the caller has to load the range where blocking
/// is allowed.
pub type ReadAhead = Pin<Box<dyn Future<Output = bool>>>;

/// Loads `length` bytes of a file from `offset` into the page cache without a thread. Returns `None` if the event loop
/// has no such operation; then the range has to be loaded where blocking is allowed.
#[cfg(target_os = "linux")]
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    Some(Box::pin(crate::io_uring::read_ahead(file, offset, length)?))
}

/// Returns `None`, because only io_uring has such an operation.
#[cfg(not(target_os = "linux"))]
pub fn read_ahead(_: &Arc<File>, _: u64, _: u64) -> Option<ReadAhead> {
    None
}
