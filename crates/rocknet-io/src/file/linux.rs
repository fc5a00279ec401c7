//! How Linux sends files and says what is in memory.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

pub(super) fn read_resident(file: BorrowedFd<'_>, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
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
