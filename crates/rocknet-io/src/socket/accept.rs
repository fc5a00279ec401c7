//! Accepts connections and classifies errors of accepting.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use socket2::SockRef;

use super::peer_address::{PeerAddress, canonical};
use super::{Listener, system};

/// Accepts the next connection. Its descriptor is non-blocking and close-on-exec.
///
/// # Errors
///
/// `WouldBlock` if no connection is waiting; [`accept_error_kind`] classifies this error and all others.
pub fn accept(listener: &Listener) -> io::Result<(OwnedFd, PeerAddress)> {
    system::accept(listener.as_fd())
}

/// Returns the local address of a connection, by which IP-based sites are selected; `None` for a Unix socket.
///
/// # Errors
///
/// Fails if the system call does.
pub fn local_address(connection: impl AsFd) -> io::Result<Option<SocketAddr>> {
    Ok(SockRef::from(&connection).local_addr()?.as_socket().map(canonical))
}

/// The reaction that an error of [`accept`] requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptErrorKind {
    /// No connection is waiting: wait for the next event.
    WouldBlock,
    /// The connection failed while it was queued, or a signal interrupted the call: accept the next one immediately.
    ConnectionLost,
    /// Descriptors or memory are exhausted, or the error is unknown: pause, then continue. Waiting connections stay
    /// queued.
    Exhausted,
    /// The listening socket is unusable: restart its worker.
    ListenerBroken,
}

/// Classifies an error of [`accept`].
pub fn accept_error_kind(error: &io::Error) -> AcceptErrorKind {
    let Some(errno) = error.raw_os_error().map(Errno::from_raw_os_error) else {
        return AcceptErrorKind::Exhausted;
    };
    match errno {
        Errno::AGAIN => AcceptErrorKind::WouldBlock,
        // Linux reports errors that were already pending on the new connection, and EPERM if a firewall rejects it.
        Errno::INTR
        | Errno::CONNABORTED
        | Errno::CONNRESET
        | Errno::PROTO
        | Errno::PERM
        | Errno::NETDOWN
        | Errno::NETUNREACH
        | Errno::HOSTDOWN
        | Errno::HOSTUNREACH
        | Errno::NOPROTOOPT
        | Errno::OPNOTSUPP
        | Errno::TIMEDOUT => AcceptErrorKind::ConnectionLost,
        Errno::BADF | Errno::NOTSOCK | Errno::INVAL => AcceptErrorKind::ListenerBroken,
        // EMFILE, ENFILE, ENOBUFS and ENOMEM. Unknown errors are treated like these, so that they neither make a worker
        // spin nor stop it.
        _ => AcceptErrorKind::Exhausted,
    }
}
