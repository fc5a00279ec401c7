//! Read-ahead: loads a range of a file into the page cache, asynchronously on the event loop of the thread.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

/// Future of a read-ahead, or of a path prefetch: a lookup that loads the directory entries of a path, so that opening
/// its file does not wait for a disk. It resolves to true once the data is in memory or cannot be loaded; an error then
/// occurs again when the file is read or opened. It resolves to false if the event loop could not start or complete the
/// operation. The caller then has to load the data where blocking is allowed.
pub type ReadAhead = Pin<Box<dyn Future<Output = bool>>>;

/// Loads `length` bytes of a file from `offset` into the page cache through the event loop of this thread, without
/// blocking it and without a helper thread. Returns `None` if the event loop does not support read-ahead, or has too
/// many operations in progress. The caller then has to load the range where blocking is allowed.
#[cfg(target_os = "linux")]
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    Some(Box::pin(crate::io_uring::read_ahead(file, offset, length)?))
}

/// Returns `None`, because only io_uring supports read-ahead.
#[cfg(not(target_os = "linux"))]
pub fn read_ahead(_: &Arc<File>, _: u64, _: u64) -> Option<ReadAhead> {
    None
}
