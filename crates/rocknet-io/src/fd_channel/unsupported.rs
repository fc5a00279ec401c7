//! Systems whose sockets do not keep messages apart (`SOCK_SEQPACKET`) have no couriers, and whoever wants one is told.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub struct FdChannel(Infallible);

pub struct Message {
    pub size: usize,
    pub fd: Option<OwnedFd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    Yes,
    No,
}

impl FdChannel {
    pub fn pair() -> io::Result<(FdChannel, OwnedFd)> {
        Err(none())
    }

    pub fn from_stdin() -> io::Result<FdChannel> {
        Err(none())
    }

    pub fn send(&self, _: &[u8], _: Option<BorrowedFd<'_>>, _: Blocking) -> io::Result<()> {
        match self.0 {}
    }

    pub fn recv(&self, _: &mut [u8], _: Blocking) -> io::Result<Option<Message>> {
        match self.0 {}
    }

    pub fn send_with_fds(&self, _: &[u8], _: &[BorrowedFd<'_>], _: Blocking) -> io::Result<()> {
        match self.0 {}
    }

    pub fn recv_with_fds(&self, _: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        match self.0 {}
    }

    pub fn wait_readable(&self, _: Duration) -> bool {
        match self.0 {}
    }

    pub fn shut_down(&self) {
        match self.0 {}
    }
}

impl AsFd for FdChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

fn none() -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        "this system has no sockets that keep messages to another process apart",
    )
}

pub fn stream_pair() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}
