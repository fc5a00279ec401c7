//! Memory that all reading ahead writes to, and that nobody ever looks at.

use std::io;
use std::ptr::NonNull;

use rustix::mm::munmap;

use super::provided_buffers::map;

/// Bytes of one operation, one after the other, so that the kernel sees a file that is read from its start and reads ahead
/// of us by itself. From 128 KiB on, more than the pages that the kernel gathers at once, it gives the rest of a read that
/// had to wait to a thread: a megabyte then cost 800 µs of CPU time, by 64 KiB 280 and by 32 KiB 230.
pub(super) const READ_BYTES: usize = 32 * 1024;

/// Where all reads go.
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

    /// Room for a stretch.
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
