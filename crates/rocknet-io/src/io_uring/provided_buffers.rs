//! Provided buffers: the kernel chooses one when data arrives, so that idle connections need none.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use super::kernel::Kernel;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Size of a buffer in bytes. Most requests fit into one buffer; larger ones use several.
pub(super) const BUFFER_BYTES: usize = 4 * 1024;
/// Initial number of buffers. Together they occupy a quarter of a megabyte, which is more than one turn of a quiet
/// worker fills.
const INITIAL_BUFFERS: u16 = 64;
/// Maximum number of buffers. The data of one turn of the ring occupies at most 1 MiB, even if one client sends all of
/// it and its task does not receive. Further data waits in the sockets. The kernel requires a power of two.
const MAX_BUFFERS: u16 = 256;
/// Byte that fills the buffers given to the kernel in tests.
#[cfg(test)]
const POISON: u8 = 0xdd;

/// Buffer that the kernel has filled. It must be returned to the kernel by `give_back`.
pub(super) struct FilledBuffer {
    id: u16,
    length: u16,
}

impl FilledBuffer {
    /// Returns the number of bytes received.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }
}

/// Buffers, and the kernel's queue of free ones, each in a memory mapping of its own.
pub(super) struct ProvidedBuffers {
    /// Queue of free buffers.
    free: NonNull<BufRingEntry>,
    /// Memory of all buffers, in the order of their ids.
    memory: NonNull<u8>,
    /// Number of entries added to the queue so far, modulo 2^16.
    tail: u16,
    /// Number of buffers in use; their ids start at 0. The memory of the other buffers has never been touched.
    in_use: u16,
}

/// Size of the kernel's queue in bytes.
const QUEUE_BYTES: usize = MAX_BUFFERS as usize * size_of::<BufRingEntry>();
/// Size of all buffers together in bytes.
const MEMORY_BYTES: usize = MAX_BUFFERS as usize * BUFFER_BYTES;

#[allow(unsafe_code)]
impl ProvidedBuffers {
    /// Registers the buffers with the kernel. They must not be dropped before the ring has unregistered them.
    pub fn new(kernel: &mut Kernel) -> io::Result<ProvidedBuffers> {
        let (free, memory) = (map(QUEUE_BYTES)?, map(MEMORY_BYTES)?);
        let mut buffers = ProvidedBuffers {
            free: free.cast(),
            memory,
            tail: 0,
            in_use: 0,
        };
        // SAFETY: the queue is mapped, page-aligned, zeroed and of this length. `ProvidedBuffers` unmaps it when
        // dropped, which its owner does only after the ring has unregistered it.
        unsafe { kernel.provide(free.as_ptr().cast(), MAX_BUFFERS)? };
        buffers.grow_to(INITIAL_BUFFERS);
        Ok(buffers)
    }

    /// Returns the filled buffer of a completion; `None` if `id` or `length` is out of range. Must be called only once
    /// per completion, because each buffer may have only one owner.
    pub fn filled(&self, id: u16, length: usize) -> Option<FilledBuffer> {
        let is_valid = id < self.in_use && length <= BUFFER_BYTES;
        is_valid.then_some(FilledBuffer {
            id,
            length: length as u16,
        })
    }

    /// Returns the received bytes.
    pub fn bytes(&self, filled: &FilledBuffer) -> &[u8] {
        // SAFETY: `filled` was checked to lie within the memory. The kernel has handed this buffer over and does not
        // write to it until `give_back`, which consumes `filled`. Pages of an anonymous mapping are always readable.
        unsafe { slice::from_raw_parts(self.at(filled.id), filled.len()) }
    }

    /// Gives a buffer back to the kernel.
    pub fn give_back(&mut self, FilledBuffer { id, .. }: FilledBuffer) {
        self.add(id);
    }

    /// Gives back the buffer of a completion that contains no bytes, or bytes for a released connection.
    pub fn give_back_unread(&mut self, id: u16) {
        if id < self.in_use {
            self.add(id);
        }
    }

    /// Doubles the number of buffers, up to the maximum.
    pub fn grow(&mut self) {
        self.grow_to(self.in_use.saturating_mul(2).min(MAX_BUFFERS));
    }

    /// Adds unused buffers until `count` buffers are in use.
    fn grow_to(&mut self, count: u16) {
        for id in self.in_use..count {
            self.add(id);
        }
        self.in_use = count;
    }

    /// Returns the address of a buffer.
    fn at(&self, id: u16) -> *mut u8 {
        debug_assert!(id < MAX_BUFFERS);
        // SAFETY: within the mapping of `MAX_BUFFERS` buffers.
        unsafe { self.memory.as_ptr().add(usize::from(id) * BUFFER_BYTES) }
    }

    /// Adds a buffer to the kernel's queue of free ones.
    fn add(&mut self, id: u16) {
        let address = self.at(id) as u64;
        // Overwrites the buffer, so that tests detect later reads of it by wrong bytes.
        // SAFETY: within the mapping, and owned by this process until the store below.
        #[cfg(test)]
        unsafe {
            self.at(id).write_bytes(POISON, BUFFER_BYTES);
        }
        // SAFETY: the index is below `MAX_BUFFERS`, the number of entries. The kernel reads entries only before the
        // tail, and the store below adds this one to them. At most `MAX_BUFFERS` are in the queue, as each buffer is in
        // it once. The tail is part of the first entry, at an offset that `set_*` does not write to, and is aligned for
        // its type.
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
        // SAFETY: both mappings have these lengths, and nothing borrowed from them outlives `self`.
        unsafe {
            let _ = munmap(self.free.as_ptr().cast(), QUEUE_BYTES);
            let _ = munmap(self.memory.as_ptr().cast(), MEMORY_BYTES);
        }
    }
}

/// Maps zeroed memory.
#[allow(unsafe_code)]
pub(super) fn map(length: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address that the kernel chooses, so that it overlaps no other.
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
