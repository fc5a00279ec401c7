//! How Linux sends files and says what is in memory.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

pub(super) fn read_resident(file: BorrowedFd<'_>, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
}

/// Whether it lies on a file system that has no disk. Its pages may be in swap: then the machine is short of memory, and
/// whoever reads them anywhere waits.
pub(super) fn lives_in_memory(file: BorrowedFd<'_>) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    // The type is a number of 32 bits in a field that some systems sign.
    rustix::fs::fstatfs(file).is_ok_and(|system| matches!(system.f_type as u64 & 0xffff_ffff, TMPFS | RAMFS))
}

pub(super) fn will_need(file: BorrowedFd<'_>, offset: u64, length: NonZeroU64) -> Result<(), Errno> {
    rustix::fs::fadvise(file, offset, Some(length), Advice::WillNeed)
}

pub(super) fn sendfile(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: &mut u64,
    count: usize,
) -> Result<usize, Errno> {
    rustix::fs::sendfile(socket, file, Some(offset), count)
}
