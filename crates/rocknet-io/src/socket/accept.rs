//! Taking connections off a listening socket, and what to make of it when that fails.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use socket2::SockRef;

use super::peer_address::{PeerAddress, canonical};
use super::{Listener, system};

/// Takes the next connection; it is non-blocking and closed on exec. `WouldBlock` when there is none.
pub fn accept(listener: &Listener) -> io::Result<(OwnedFd, PeerAddress)> {
    system::accept(listener.as_fd())
}

/// The address of this machine that a connection came in on, by which IP-based sites are told apart; `None` for a
/// socket file.
pub fn local_address(connection: impl AsFd) -> io::Result<Option<SocketAddr>> {
    Ok(SockRef::from(&connection).local_addr()?.as_socket().map(canonical))
}

/// What a failed `accept` asks of the one who accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptErrorKind {
    /// No connection is waiting; wait for the next event.
    WouldBlock,
    /// That connection died in the queue; try the next at once.
    ConnectionLost,
    /// No descriptor or memory is left (or something unheard of happened): pause, then go on. The waiting connections
    /// stay in the queue.
    Exhausted,
    /// The socket itself is unfit; its worker is to be started anew.
    ListenerBroken,
}

/// Sorts an error of [`accept`] by what is to be done.
pub fn accept_error_kind(error: &io::Error) -> AcceptErrorKind {
    let Some(errno) = error.raw_os_error().map(Errno::from_raw_os_error) else {
        return AcceptErrorKind::Exhausted;
    };
    match errno {
        Errno::AGAIN => AcceptErrorKind::WouldBlock,
        // Linux hands over errors that were already pending on the new connection, and EPERM where a firewall says no.
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
        // EMFILE, ENFILE, ENOBUFS, ENOMEM; and what is not known must neither spin nor kill a worker.
        _ => AcceptErrorKind::Exhausted,
    }
}
