//! Control sockets of Linux.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::Peer;

/// Connects to a control socket within the timeout. The stream keeps the timeout as its write timeout.
pub fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The timeout for sending also limits the wait of `connect`, see socket(7).
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket.into())
}

/// Returns the process that listens at the socket; `None` if the operating system returns an error.
pub fn peer(stream: &UnixStream) -> Option<Peer> {
    let peer = socket_peercred(stream).ok()?;
    Some(Peer {
        pid: peer.pid.as_raw_nonzero().get().unsigned_abs(),
        uid: peer.uid.as_raw(),
    })
}
