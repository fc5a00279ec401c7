//! Socket operations for systems other than Linux. Options that a system lacks are ignored, because the server works
//! without them.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use socket2::SockRef;

use super::PeerAddress;

/// Accepts a connection. The new socket is non-blocking.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, PeerAddress)> {
    let (socket, address) = SockRef::from(&listener).accept()?;
    socket.set_nonblocking(true)?;
    // Not every system inherits TCP_NODELAY from the listening socket. A Unix socket does not have this option.
    if address.as_socket().is_some() {
        socket.set_tcp_nodelay(true)?;
    }
    Ok((socket.into(), PeerAddress::of(address.as_socket())))
}

/// Returns true if the socket listens, and fails otherwise. Not every system reports that state, so this function calls
/// `listen` again. On a listening socket this changes only the length of the queue; on a connected one it fails.
pub(super) fn listens(socket: BorrowedFd<'_>) -> io::Result<bool> {
    SockRef::from(&socket).listen(super::BACKLOG).map(|()| true)
}

/// Does nothing in place of `TCP_USER_TIMEOUT`.
pub(super) fn user_timeout(_socket: BorrowedFd<'_>, _timeout: Duration) -> io::Result<()> {
    Ok(())
}

/// Does nothing in place of `TCP_NOTSENT_LOWAT`.
pub(super) fn notsent_lowat(_socket: BorrowedFd<'_>, _bytes: u32) -> io::Result<()> {
    Ok(())
}

/// Does nothing in place of `TCP_CORK`.
pub(super) fn cork(_socket: BorrowedFd<'_>, _on: bool) -> io::Result<()> {
    Ok(())
}

/// Does nothing in place of `TCP_DEFER_ACCEPT`.
pub(super) fn defer_accept(_listener: BorrowedFd<'_>, _wait: Duration) -> io::Result<()> {
    Ok(())
}
