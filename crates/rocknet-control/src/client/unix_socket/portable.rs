//! Control sockets of systems other than Linux.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::Peer;

/// Connects to a control socket. The stream keeps the timeout as its write timeout. The wait for the connection itself
/// has no limit: other systems refuse a connection while the queue of the socket is full.
pub fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

/// Returns `None`: the standard library cannot query the process at the other end.
pub fn peer(_: &UnixStream) -> Option<Peer> {
    None
}
