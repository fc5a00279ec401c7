//! Sends files by reading and writing, on systems other than Linux.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Fails, because other systems report residency only for a memory mapping.
pub(super) fn read_resident(_file: BorrowedFd<'_>, _offset: u64, _buffer: &mut [u8]) -> Result<usize, Errno> {
    Err(Errno::NOSYS)
}

/// Fails for the same reason as [`read_resident`].
pub(super) fn append_resident(_file: BorrowedFd<'_>, _offset: u64, _content: &mut Vec<u8>) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Returns false, because the type of the file system is not queried on other systems.
pub(super) fn is_memory_backed(_file: BorrowedFd<'_>) -> bool {
    false
}

/// Fails, because not every system has a `sendfile` to a file.
pub(super) fn sendfile_to_null(_file: BorrowedFd<'_>, _offset: &mut u64, _count: usize) -> Result<usize, Errno> {
    Err(Errno::NOSYS)
}

/// Sends at most `count` bytes, and at most [`CHUNK`], from `offset` into a socket, and advances `offset`. Returns the
/// number of bytes sent, 0 at the end of the file.
pub(super) fn sendfile(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: &mut u64,
    count: usize,
) -> Result<usize, Errno> {
    let mut buffer = [0; CHUNK];
    let length = count.min(CHUNK);
    let read = rustix::io::pread(file, &mut buffer[..length], *offset)?;
    if read == 0 {
        return Ok(0);
    }
    // `offset` advances by the number of bytes sent, so the next call reads again the bytes that the socket refused.
    let sent = rustix::io::write(socket, &buffer[..read])?;
    *offset += sent as u64;
    Ok(sent)
}

/// Size of one read and write in bytes: large enough that the two calls cost little, small enough for the stack.
const CHUNK: usize = 16 * 1024;
