//! A new connection to an upstream, on what this worker drives its sockets with.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::stream::Stream;
use rocknet_io::tls::Tls;
use rocknet_io::wheel::Deadline;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};

use super::Proxy;
use super::announcement;
use super::connection::Connection;
use super::mistrust;
use super::race::{self, HEAD_START};
use super::trouble::Trouble;
use super::upstream::{Upstream, Way};
use super::wire::Wire;
use crate::certificates::HTTP_2;
use crate::exchange::Client;
use crate::worker::Worker;

/// A connection for HTTP/1.1.
pub async fn connect(
    worker: &Rc<Worker>,
    upstream: &Arc<Upstream>,
    proxy: &Proxy,
    client: Client,
    deadline: &Deadline,
) -> Result<Box<Connection>, Trouble> {
    let wire = wire(worker, upstream, proxy, client, deadline).await?;
    Ok(Box::new(Connection::new(wire)))
}

/// Connects within the time that is given for it, to the first of its addresses that answers, the handshake included where there
/// is TLS.
pub async fn wire(
    worker: &Rc<Worker>,
    upstream: &Arc<Upstream>,
    proxy: &Proxy,
    client: Client,
    deadline: &Deadline,
) -> Result<Wire, Trouble> {
    deadline.set(worker.wheel.ticks(proxy.connect));
    let mut header = Vec::new();
    if let Some(version) = upstream.announce {
        announcement::write(version, &announcement::of(client, &worker.address), &mut header);
    }
    let connected = deadline.within(try_connect(worker, upstream, &header)).await;
    let socket = connected.unwrap_or_else(|| Err(Trouble::Unreachable(ErrorKind::TimedOut.into())))?;
    let stream = Stream::connected(socket).map_err(Trouble::Unreachable)?;
    let shaken = deadline.within(shake(worker, upstream, stream)).await;
    let wire = shaken.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()));
    wire.map_err(Trouble::Handshake)
}

/// The handshake, where there is to be one.
async fn shake(worker: &Rc<Worker>, upstream: &Upstream, stream: Stream) -> io::Result<Wire> {
    let Some((secure, name)) = &upstream.secure else {
        return Ok(Wire::Plain(stream));
    };
    // Its certificate costs as much to check as a handshake of a client's costs to answer.
    worker.handshakes.pass().await;
    let mut tls = Tls::connect(stream, Arc::clone(&secure.settings), name.clone(), worker.tls_buffers())?;
    poll_fn(|context| tls.poll_handshake(context)).await?;
    if upstream.http2 && tls.agreed().alpn != Some(HTTP_2) {
        return Err(io::Error::other(mistrust::NO_HTTP2));
    }
    Ok(Wire::Secure(Box::new(tls)))
}

/// `header`: what is said before all else.
async fn try_connect(worker: &Rc<Worker>, upstream: &Upstream, header: &[u8]) -> Result<OwnedFd, Trouble> {
    loop {
        match upstream.way() {
            Way::Unix(path) => {
                worker.connects.pass().await;
                return unix(path, header).await.map_err(Trouble::Unreachable);
            }
            Way::Tcp(addresses) => {
                worker.connects.pass().await;
                let silence = worker.wheel.ticks(HEAD_START);
                let pause = async || {
                    let pause = worker.wheel.deadline();
                    pause.set(silence);
                    pause.past().await;
                };
                let stream = race::connect(&addresses, pause).await;
                let stream = stream.map_err(Trouble::Unreachable)?;
                return tcp(stream, header).await.map_err(Trouble::Unreachable);
            }
            Way::Nowhere(error) => return Err(Trouble::Unresolved(error)),
            // Only in the first moments of a server. The next tick looks again.
            Way::Unknown => {
                let pause = worker.wheel.deadline();
                pause.set(1);
                pause.past().await;
            }
        }
    }
}

async fn unix(path: &Path, header: &[u8]) -> io::Result<OwnedFd> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(header).await?;
    stream.into_std().map(OwnedFd::from)
}

async fn tcp(mut stream: TcpStream, header: &[u8]) -> io::Result<OwnedFd> {
    // Messages are written whole, and their ends are not to wait for the other side.
    stream.set_nodelay(true)?;
    stream.write_all(header).await?;
    stream.into_std().map(OwnedFd::from)
}
