//! Options of TCP sockets. Connections inherit all of them except `defer_accept` from the listening socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::system;

/// Timing of the probes of TCP keepalive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Number of unanswered probes after which the connection is closed.
    pub count: u32,
}

/// Enables keepalive, which finds peers that vanished without closing, for example because a router on the path lost
/// its state.
///
/// # Errors
///
/// Fails if the system call does.
pub fn keepalive(socket: impl AsFd, keepalive: Keepalive) -> io::Result<()> {
    let options = TcpKeepalive::new()
        .with_time(keepalive.idle)
        .with_interval(keepalive.interval)
        .with_retries(keepalive.count);
    SockRef::from(&socket).set_tcp_keepalive(&options)
}

/// Sets the maximum time that sent bytes can remain unacknowledged before the kernel closes the connection
/// (`TCP_USER_TIMEOUT`).
///
/// # Errors
///
/// Fails if the system call does.
pub fn user_timeout(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    system::user_timeout(socket.as_fd(), timeout)
}

/// Sets the number of unsent bytes in the kernel beyond which the socket counts as full (`TCP_NOTSENT_LOWAT`). A slow
/// client then costs less memory, and fewer bytes are ahead of an urgent response of HTTP/2.
///
/// # Errors
///
/// Fails if the system call does.
pub fn notsent_lowat(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    system::notsent_lowat(socket.as_fd(), bytes)
}

/// Makes the kernel report a new connection only when its first bytes arrive, or after about `wait`, in whole seconds
/// (`TCP_DEFER_ACCEPT`). Suitable only for protocols in which the client sends first.
///
/// # Errors
///
/// Fails if `listener` is not a TCP socket.
pub fn defer_accept(listener: impl AsFd, wait: Duration) -> io::Result<()> {
    system::defer_accept(listener.as_fd(), wait)
}

/// Sets `TCP_CORK`. While it is on, the kernel sends only full packets. Turning it off sends the remaining bytes.
/// Errors are ignored, because the option is only an optimization.
pub(crate) fn cork(socket: BorrowedFd<'_>, on: bool) {
    let _ = system::cork(socket, on);
}
