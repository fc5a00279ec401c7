//! Buffers that the kernel chooses from when bytes arrive: a connection that is idle needs none.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use super::kernel::Kernel;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Holds most requests whole; larger ones take several.
pub(super) const BUFFER_BYTES: usize = 4 * 1024;
/// Buffers in use at first: a quarter of a megabyte, more than one turn of a quiet worker takes.
const INITIAL_BUFFERS: u16 = 64;
/// Most buffers: what arrives in one turn cannot take more memory than 1 MiB, be it all from one client that nobody is
/// ready to hear; the rest waits in its sockets. A power of two, as the kernel wants it.
const MAX_BUFFERS: u16 = 256;
/// What tests find in a buffer that is the kernel's.
#[cfg(test)]
const POISON: u8 = 0xdd;

/// Bytes that the kernel has put into a buffer. To be given back.
pub(super) struct FilledBuffer {
    id: u16,
    length: u16,
}

impl FilledBuffer {
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }
}

/// Two stretches of memory of their own: the kernel's queue of free buffers, and the buffers.
pub(super) struct ProvidedBuffers {
    free: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    tail: u16,
    /// Buffers that have been brought into use; the memory of the others has never been touched.
    in_use: u16,
}

const QUEUE_BYTES: usize = MAX_BUFFERS as usize * size_of::<BufRingEntry>();
const MEMORY_BYTES: usize = MAX_BUFFERS as usize * BUFFER_BYTES;

#[allow(unsafe_code)]
impl ProvidedBuffers {
    /// Makes them known to the kernel. They must live until the ring knows them no more.
    pub fn new(kernel: &mut Kernel) -> io::Result<ProvidedBuffers> {
        let (free, memory) = (map(QUEUE_BYTES)?, map(MEMORY_BYTES)?);
        let mut buffers = ProvidedBuffers {
            free: free.cast(),
            memory,
            tail: 0,
            in_use: 0,
        };
        // SAFETY: the queue is mapped, page-aligned, zeroed and of this length. `ProvidedBuffers` unmaps it when dropped, which
        // its owner does only after the ring has forgotten it.
        unsafe { kernel.provide(free.as_ptr().cast(), MAX_BUFFERS)? };
        buffers.grow_to(INITIAL_BUFFERS);
        Ok(buffers)
    }

    /// What the kernel says it has filled: `id` and `length` from a completion that was not seen before.
    pub fn filled(&self, id: u16, length: usize) -> Option<FilledBuffer> {
        let is_valid = id < self.in_use && length <= BUFFER_BYTES;
        is_valid.then_some(FilledBuffer {
            id,
            length: length as u16,
        })
    }

    pub fn bytes(&self, filled: &FilledBuffer) -> &[u8] {
        // SAFETY: `filled` was checked to lie within the memory. The kernel has handed this buffer over and writes to
        // it no more until `give_back`, which consumes `filled`; pages of an anonymous mapping are always readable.
        unsafe { slice::from_raw_parts(self.at(filled.id), filled.len()) }
    }

    pub fn give_back(&mut self, FilledBuffer { id, .. }: FilledBuffer) {
        self.add(id);
    }

    /// Gives back a buffer that a completion names and that holds nothing.
    pub fn give_back_empty(&mut self, id: u16) {
        if id < self.in_use {
            self.add(id);
        }
    }

    /// There were too few: brings twice as many into use, up to the bound.
    pub fn grow(&mut self) {
        self.grow_to(self.in_use.saturating_mul(2).min(MAX_BUFFERS));
    }

    fn grow_to(&mut self, count: u16) {
        for id in self.in_use..count {
            self.add(id);
        }
        self.in_use = count;
    }

    fn at(&self, id: u16) -> *mut u8 {
        debug_assert!(id < MAX_BUFFERS);
        // SAFETY: within the mapping of `MAX_BUFFERS` buffers.
        unsafe { self.memory.as_ptr().add(usize::from(id) * BUFFER_BYTES) }
    }

    fn add(&mut self, id: u16) {
        let address = self.at(id) as u64;
        // What is read of it from now on is seen to be wrong.
        // SAFETY: within the mapping, and not the kernel's before the store below.
        #[cfg(test)]
        unsafe {
            self.at(id).write_bytes(POISON, BUFFER_BYTES);
        }
        // SAFETY: the index is below `MAX_BUFFERS`, the number of entries. The kernel reads entries only before the tail, and
        // this one is made part of them by the store below; at most `MAX_BUFFERS` are there, as each buffer is in it once. The
        // tail lies in the first entry where `set_*` does not write, and is aligned for its type.
        unsafe {
            let entry = &mut *self.free.as_ptr().add(usize::from(self.tail % MAX_BUFFERS));
            entry.set_addr(address);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.free.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

#[allow(unsafe_code)]
impl Drop for ProvidedBuffers {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these lengths, and nothing borrowed from them outlives `self`.
        unsafe {
            let _ = munmap(self.free.as_ptr().cast(), QUEUE_BYTES);
            let _ = munmap(self.memory.as_ptr().cast(), MEMORY_BYTES);
        }
    }
}

#[allow(unsafe_code)]
pub(super) fn map(length: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping where the kernel likes it: nothing that exists is touched.
    let address = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )?
    };
    NonNull::new(address.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
