//! Bringing a file, or the way to it, into memory ahead of its sending, by whatever drives this thread's sockets.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

/// Ends when the stretch is in memory, or cannot be brought there: what went wrong shows again when it is sent. False: the loop
/// did not get to it, and somebody else has to, who may wait for the disk.
pub type ReadAhead = Pin<Box<dyn Future<Output = bool>>>;

/// Reads a stretch so that the kernel has it in memory, without a thread. `None`: this loop has no means of its own for
/// it, and reading is to be done where waiting is allowed.
#[cfg(target_os = "linux")]
pub fn read_ahead(file: &Arc<File>, offset: u64, length: u64) -> Option<ReadAhead> {
    Some(Box::pin(crate::ring::read_ahead(file, offset, length)?))
}

#[cfg(not(target_os = "linux"))]
pub fn read_ahead(_: &Arc<File>, _: u64, _: u64) -> Option<ReadAhead> {
    None
}
