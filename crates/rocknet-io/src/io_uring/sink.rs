//! Discard buffer for read-ahead: every read-ahead operation of a ring overwrites it, and its contents are never used.

use std::io;
use std::ptr::NonNull;

use rustix::mm::munmap;

use super::provided_buffers::map;

/// Size of one read in bytes. Reads follow each other, so that the kernel recognizes a sequential reader and reads
/// ahead by itself. A read of 128 KiB or more has more pages than the kernel takes from the page cache at a time. If
/// such a read has to wait for the disk, the kernel moves it to one of its threads (io-wq). Reading 1 MiB cost 750 to
/// 1,020 µs of CPU time with reads of 256 KiB, 240 to 295 µs with 64 KiB, and 220 to 245 µs with 32 KiB.
pub(super) const READ_BYTES: usize = 32 * 1024;

/// Destination of all read-ahead operations of one ring.
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
        // SAFETY: the memory was mapped with this length, and nothing borrows from it. No operation in flight can write
        // to it: the ring drops its sink only after the kernel has ended all operations, and leaks it otherwise.
        unsafe {
            let _ = munmap(self.memory.as_ptr().cast(), READ_BYTES);
        }
    }
}
