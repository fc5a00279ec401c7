//! Systems whose sockets do not keep messages apart (`SOCK_SEQPACKET`) have no couriers, and whoever wants one is told.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub struct Courier(Infallible);

pub struct Message {
    pub size: usize,
    pub brings: Option<OwnedFd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    Wait,
    Now,
}

impl Courier {
    pub fn pair() -> io::Result<(Courier, OwnedFd)> {
        Err(none())
    }

    pub fn from_input() -> io::Result<Courier> {
        Err(none())
    }

    pub fn send(&self, _: &[u8], _: Option<BorrowedFd<'_>>, _: Patience) -> io::Result<()> {
        match self.0 {}
    }

    pub fn recv(&self, _: &mut [u8], _: Patience) -> io::Result<Option<Message>> {
        match self.0 {}
    }

    pub fn send_all(&self, _: &[u8], _: &[BorrowedFd<'_>], _: Patience) -> io::Result<()> {
        match self.0 {}
    }

    pub fn recv_all(&self, _: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        match self.0 {}
    }

    pub fn is_readable_within(&self, _: Duration) -> bool {
        match self.0 {}
    }

    pub fn end(&self) {
        match self.0 {}
    }
}

impl AsFd for Courier {
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

pub fn stream() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}
