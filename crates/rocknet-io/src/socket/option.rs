//! ListenOptions of TCP sockets. Set on a listening socket, all but `defer_accept` pass to the connections it accepts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::system;

/// When a silent peer is asked whether it is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first question.
    pub idle: Duration,
    /// Between questions.
    pub interval: Duration,
    /// Unanswered questions after which the connection is given up.
    pub count: u32,
}

/// Finds peers that vanished without a word, such as behind a router that forgot them.
pub fn keepalive(socket: impl AsFd, keepalive: Keepalive) -> io::Result<()> {
    let options = TcpKeepalive::new()
        .with_time(keepalive.idle)
        .with_interval(keepalive.interval)
        .with_retries(keepalive.count);
    SockRef::from(&socket).set_tcp_keepalive(&options)
}

/// How long sent bytes may stay unacknowledged before the connection is given up.
pub fn user_timeout(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    system::user_timeout(socket.as_fd(), timeout)
}

/// How many unsent bytes the kernel may hold before the socket counts as full: less memory per slow client, and later
/// answers are decided later.
pub fn notsent_lowat(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    system::notsent_lowat(socket.as_fd(), bytes)
}

/// Lets the kernel hold a new connection back until its first bytes arrive, for about `wait` (in whole seconds).
/// For protocols where the client speaks first.
pub fn defer_accept(listener: impl AsFd, wait: Duration) -> io::Result<()> {
    system::defer_accept(listener.as_fd(), wait)
}

/// While it is on, the kernel sends whole packets alone, whatever calls they were written by; off sends what is left.
/// It only tunes: a socket that has no such option does without.
pub(crate) fn cork(socket: BorrowedFd<'_>, on: bool) {
    let _ = system::cork(socket, on);
}
