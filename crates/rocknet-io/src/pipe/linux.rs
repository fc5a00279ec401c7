//! Pipes between sockets by splice(2).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

/// A pipe with less room than this costs more than copying. The system gives such to users who have many.
const LEAST: usize = 64 * 1024;

pub struct Ends {
    output: OwnedFd,
    input: OwnedFd,
}

pub fn open(room: usize) -> io::Result<Ends> {
    let (output, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // Where the limit of the user is reached, what it has by itself may do.
    let size = fcntl_setpipe_size(&input, room).or_else(|_| fcntl_getpipe_size(&input))?;
    match size >= LEAST {
        true => Ok(Ends { output, input }),
        false => Err(io::ErrorKind::QuotaExceeded.into()),
    }
}

pub fn fill(ends: &Ends, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    match splice(socket, None, &ends.input, None, most, FLAGS) {
        Ok(moved) => Ok(moved),
        // Nothing there, no room, or a socket that cannot do it: an end and a byte out of band look like the first.
        Err(Errno::AGAIN | Errno::INTR | Errno::INVAL) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

pub fn drain(ends: &Ends, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    Ok(splice(&ends.output, None, socket, None, most, FLAGS)?)
}

pub fn write(ends: &Ends, bytes: &[u8]) -> io::Result<usize> {
    match rustix::io::write(&ends.input, bytes) {
        Err(Errno::AGAIN) => Ok(0),
        written => Ok(written?),
    }
}

pub fn read(ends: &Ends, room: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(&ends.output, room)?)
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);
