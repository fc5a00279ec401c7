//! Moves bytes between sockets and pipes with `splice(2)`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

/// Minimum capacity in bytes: with less, a pipe costs more than copying. The kernel creates smaller pipes for users
/// that have many (`pipe-user-pages-soft`).
const MIN_PIPE_BYTES: usize = 64 * 1024;

/// Both ends of a non-blocking pipe.
pub struct PipeEnds {
    reader: OwnedFd,
    writer: OwnedFd,
}

/// Opens a pipe with a capacity of `room` bytes. If the system refuses that capacity, the pipe keeps its default
/// capacity. Fails if the resulting capacity is below `MIN_PIPE_BYTES`.
pub fn open(room: usize) -> io::Result<PipeEnds> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // If the user's limit forbids the size, the default size may be enough.
    let size = fcntl_setpipe_size(&writer, room).or_else(|_| fcntl_getpipe_size(&writer))?;
    match size >= MIN_PIPE_BYTES {
        true => Ok(PipeEnds { reader, writer }),
        false => Err(io::ErrorKind::QuotaExceeded.into()),
    }
}

/// Moves at most `limit` bytes from a socket into the pipe, and returns their number.
pub fn fill(ends: &PipeEnds, socket: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
    match splice(socket, None, &ends.writer, None, limit, FLAGS) {
        Ok(moved) => Ok(moved),
        // No data, no room, an interrupted call, or a socket without `splice`. For the end of the stream and
        // out-of-band data, `splice` itself returns 0.
        Err(Errno::AGAIN | Errno::INTR | Errno::INVAL) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Moves at most `limit` bytes from the pipe into a socket, and returns their number.
pub fn drain(ends: &PipeEnds, socket: BorrowedFd<'_>, limit: usize) -> io::Result<usize> {
    Ok(splice(&ends.reader, None, socket, None, limit, FLAGS)?)
}

/// Copies bytes into the pipe, and returns their number; 0 if the pipe is full.
pub fn write(ends: &PipeEnds, bytes: &[u8]) -> io::Result<usize> {
    match rustix::io::write(&ends.writer, bytes) {
        Err(Errno::AGAIN) => Ok(0),
        written => Ok(written?),
    }
}

/// Takes bytes from the front of the pipe into `room`, and returns their number. Fails with `WouldBlock` if the pipe is
/// empty.
pub fn read(ends: &PipeEnds, room: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(&ends.reader, room)?)
}

/// Moves pages instead of copying them where possible, and does not wait for the pipe.
const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);
