//! Socket operations with calls and options of Linux.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::SocketFlags;
use socket2::SockRef;

use super::PeerAddress;

/// Accepts a connection. The new socket is non-blocking and closed on exec.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, PeerAddress)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, address) = rustix::net::acceptfrom_with(listener, flags)?;
    Ok((
        socket,
        PeerAddress::of(address.and_then(|address| SocketAddr::try_from(address).ok())),
    ))
}

/// Returns whether the socket is a listening socket.
pub(super) fn listens(socket: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(rustix::net::sockopt::socket_acceptconn(socket)?)
}

/// Sets the maximum time that sent bytes can remain unacknowledged before the kernel closes the connection.
pub(super) fn user_timeout(socket: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_user_timeout(Some(timeout))
}

/// Sets how many unsent bytes the kernel holds before the socket counts as full.
pub(super) fn notsent_lowat(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    SockRef::from(&socket).set_tcp_notsent_lowat(bytes)
}

/// Sets `TCP_CORK`. While it is on, the kernel sends only full packets.
pub(super) fn cork(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_cork(socket, on)?)
}

/// Makes the kernel report a new connection only when its first bytes arrive, or after about `wait`, in whole seconds.
#[allow(unsafe_code, reason = "no safe function of a dependency sets this option")]
pub(super) fn defer_accept(listener: BorrowedFd<'_>, wait: Duration) -> io::Result<()> {
    let seconds = libc::c_int::try_from(wait.as_secs()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is borrowed and so open; the value is a live `c_int` of the size passed.
    let result = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
