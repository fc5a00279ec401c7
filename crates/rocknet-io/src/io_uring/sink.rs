//! Memory that all read-ahead writes to and nothing reads.

use std::io;
use std::ptr::NonNull;

use rustix::mm::munmap;

use super::provided_buffers::map;

/// Bytes of one read. Reads follow each other, so that the kernel sees a sequential reader and reads ahead by itself.
/// From 128 KiB on, more than the pages that the kernel gathers at once, it passes the rest of a read that had to wait
/// to a thread. A megabyte then cost 800 µs of CPU time, against 280 with 64 KiB and 230 with 32 KiB.
pub(super) const READ_BYTES: usize = 32 * 1024;

/// Destination of all reads.
pub(super) struct Sink {
    memory: NonNull<u8>,
}

#[allow(unsafe_code)]
impl Sink {
    pub fn new() -> io::Result<Sink> {
        Ok(Sink {
            memory: map(READ_BYTES)?,
        })
    }

    /// Returns memory of [`READ_BYTES`].
    pub fn memory(&self) -> *mut u8 {
        self.memory.as_ptr()
    }
}

#[allow(unsafe_code)]
impl Drop for Sink {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nothing borrows from it.
        unsafe {
            let _ = munmap(self.memory.as_ptr().cast(), READ_BYTES);
        }
    }
}
