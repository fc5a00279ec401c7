//! Sink of read-ahead: memory that all its reads write to and that nothing reads.

use std::io;
use std::ptr::NonNull;

use rustix::mm::munmap;

use super::provided_buffers::map;

/// Bytes of one read. Reads follow each other, so that the kernel recognizes a sequential reader and reads ahead by
/// itself. A read of 128 KiB or more exceeds the pages that the kernel gathers in one step. If such a read has to wait,
/// the kernel passes the remaining part to a thread. A megabyte then cost 800 µs of CPU time, compared with 280 µs for
/// reads of 64 KiB and 230 µs for reads of 32 KiB.
pub(super) const READ_BYTES: usize = 32 * 1024;

/// Destination of all reads of one ring.
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

    /// Returns the address of [`READ_BYTES`] bytes of memory.
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
