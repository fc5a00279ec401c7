//! Offers no pipes on systems without `splice(2)`, so that callers copy.

use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

/// Cannot be constructed.
pub enum PipeEnds {}

/// Fails, so no pipe ever exists on this system.
pub fn open(_: usize) -> io::Result<PipeEnds> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Cannot be called, because no pipe exists.
#[cfg(unix)]
pub fn fill(ends: &PipeEnds, _: BorrowedFd<'_>, _: usize) -> io::Result<usize> {
    match *ends {}
}

/// Cannot be called, because no pipe exists.
#[cfg(unix)]
pub fn drain(ends: &PipeEnds, _: BorrowedFd<'_>, _: usize) -> io::Result<usize> {
    match *ends {}
}

/// Cannot be called, because no pipe exists.
pub fn write(ends: &PipeEnds, _: &[u8]) -> io::Result<usize> {
    match *ends {}
}

/// Cannot be called, because no pipe exists.
pub fn read(ends: &PipeEnds, _: &mut [u8]) -> io::Result<usize> {
    match *ends {}
}
