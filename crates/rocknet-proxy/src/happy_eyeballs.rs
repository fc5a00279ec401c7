//! Happy Eyeballs (RFC 8305 §5): staggered connection attempts to the addresses of one server. The first connection
//! that succeeds is used.
//!
//! The next attempt starts when the previous one has failed or has been pending for [`ATTEMPT_DELAY`]. An address that
//! does not respond therefore costs that delay and not the whole timeout.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;

use rocknet_handler::port_exhaustion;

/// "Connection Attempt Delay" with the value that RFC 8305 §8 recommends.
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to one of `addresses`, which are in order of preference. `pause` waits for the attempt delay.
///
/// # Errors
///
/// Returns the error of the last failed attempt, or `AddrNotAvailable` without addresses.
pub async fn connect(addresses: &[SocketAddr], pause: impl AsyncFn()) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return port_exhaustion::connect(*only, TcpStream::connect(only)).await;
    }
    let mut attempts = Attempts {
        running: Vec::new(),
        last: ErrorKind::AddrNotAvailable.into(),
    };
    for address in addresses {
        let connect = port_exhaustion::connect(*address, TcpStream::connect(*address));
        attempts.running.push(Box::pin(connect));
        let mut pausing = pin!(pause());
        let next = |context: &mut Context<'_>| match attempts.poll(context) {
            Poll::Pending => pausing.as_mut().poll(context).map(|()| None),
            finished => finished,
        };
        if let Some(stream) = poll_fn(next).await {
            return Ok(stream);
        }
    }
    while !attempts.running.is_empty() {
        if let Some(stream) = poll_fn(|context| attempts.poll(context)).await {
            return Ok(stream);
        }
    }
    Err(attempts.last)
}

/// Attempts in progress.
struct Attempts {
    running: Vec<Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>>,
    /// Error of the last attempt that failed.
    last: io::Error,
}

impl Attempts {
    /// Returns the stream of an attempt that succeeded, or `None` if an attempt failed. Pending until an attempt has
    /// finished.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<TcpStream>> {
        for index in 0..self.running.len() {
            match self.running[index].as_mut().poll(context) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(Some(stream)),
                Poll::Ready(Err(error)) => {
                    self.last = error;
                    drop(self.running.remove(index));
                    return Poll::Ready(None);
                }
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use rustix::net;

    use super::*;

    /// Returns an address that never responds, because the backlog of its listener is full. The sockets must stay open.
    fn silent() -> (SocketAddr, TcpListener, Vec<std::net::TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        net::listen(&listener, 0).expect("a short queue");
        let address = listener.local_addr().expect("its address");
        let mut waiting = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
            waiting.push(stream);
        }
        (address, listener, waiting)
    }

    /// Returns an address that refuses connections.
    fn refusing() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.local_addr().expect("its address")
    }

    fn run<T>(connecting: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(connecting)
    }

    #[test]
    fn the_first_successful_connection_is_used_and_unresponsive_addresses_are_skipped() {
        let (silent, _listener, _waiting) = silent();
        let answering = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let answering = answering
            .local_addr()
            .map(|address| (address, answering))
            .expect("its address");
        let (refusing, reachable) = (refusing(), answering.0);
        for addresses in [
            &[reachable][..],
            &[reachable, silent],
            &[silent, reachable],
            &[refusing, reachable],
            &[silent, refusing, reachable, refusing],
        ] {
            let stream = run(connect(addresses, async || {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }));
            let peer = stream.and_then(|stream| stream.peer_addr());
            assert_eq!(peer.ok(), Some(reachable), "{addresses:?}");
        }
        // After a failure the next attempt starts immediately, without the delay.
        let stream = run(connect(&[refusing, reachable], async || std::future::pending().await));
        assert!(stream.is_ok(), "{stream:?}");
        for (addresses, expected) in [
            (&[][..], ErrorKind::AddrNotAvailable),
            (&[refusing], ErrorKind::ConnectionRefused),
            (&[refusing, refusing], ErrorKind::ConnectionRefused),
        ] {
            let failed = run(connect(addresses, async || std::future::pending().await));
            assert_eq!(failed.map_err(|error| error.kind()).err(), Some(expected));
        }
    }
}
