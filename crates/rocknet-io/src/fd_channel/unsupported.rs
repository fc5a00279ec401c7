//! Replacement for systems without `SOCK_SEQPACKET` sockets: every constructor fails.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A channel that cannot be created on this system.
pub struct FdChannel(Infallible);

/// A received message.
pub struct Message {
    /// Number of bytes received.
    pub size: usize,
    /// The descriptor sent with the message, if any.
    pub fd: Option<OwnedFd>,
}

/// Blocking mode of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// The call blocks.
    Yes,
    /// The call fails with `WouldBlock` instead.
    No,
}

impl FdChannel {
    /// Fails with `Unsupported`.
    pub fn pair() -> io::Result<(FdChannel, OwnedFd)> {
        Err(unsupported())
    }

    /// Fails with `Unsupported`.
    pub fn from_stdin() -> io::Result<FdChannel> {
        Err(unsupported())
    }

    /// Fails with `Unsupported`.
    pub fn from_socket(_: OwnedFd) -> io::Result<FdChannel> {
        Err(unsupported())
    }

    /// Fails with `Unsupported`.
    pub fn wait_any(_: &[&FdChannel], _: Option<Duration>) -> io::Result<Vec<usize>> {
        Err(unsupported())
    }

    /// Cannot be called.
    pub fn send(&self, _: &[u8], _: Option<BorrowedFd<'_>>, _: Blocking) -> io::Result<()> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn recv(&self, _: &mut [u8], _: Blocking) -> io::Result<Option<Message>> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn send_with_fds(&self, _: &[u8], _: &[BorrowedFd<'_>], _: Blocking) -> io::Result<()> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn recv_with_fds(&self, _: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn set_send_timeout(&self, _: Duration) -> io::Result<()> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn wait_readable(&self, _: Duration) -> bool {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn shut_down(&self) {
        match self.0 {}
    }
}

impl From<OwnedFd> for FdChannel {
    /// Cannot be called with a descriptor from [`FdChannel::pair`], because `pair` always fails.
    ///
    /// # Panics
    ///
    /// Panics, because this system has no such channels.
    fn from(_: OwnedFd) -> FdChannel {
        unreachable!("this system has no channels that pass file descriptors")
    }
}

impl AsFd for FdChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

/// Returns the error of all functions that this system does not support.
fn unsupported() -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        "this system has no SOCK_SEQPACKET Unix sockets, which RockNet uses to pass file descriptors",
    )
}

/// Creates a connected pair of byte-stream sockets.
pub fn stream_pair() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}
