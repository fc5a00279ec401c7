//! Handler that opens tunnels whose other ends the test reads and writes.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet::snapshot::Mount;
use rocknet::tunnel::Splice;
use rocknet_io::stream::Stream;
use rocknet_proto::status::Status;
use tokio::sync::mpsc;

use super::DEADLINE;
use super::running::mount;

/// Accepts upgrades, and connects each client to a socket whose other end the test reads. A path that ends with `/page`
/// gets a page instead, and one that ends with `/anyway` gets a tunnel even without an upgrade.
pub struct OpensTunnels(Mutex<mpsc::UnboundedSender<UnixStream>>);

impl Handler for OpensTunnels {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let incoming = exchange.request.view();
        let protocol = incoming.upgrade.map(|name| String::from_utf8_lossy(name).into_owned());
        let (is_upgrade, anyway) = (protocol.is_some(), exchange.path.ends_with("/anyway"));
        if !is_upgrade && !anyway || exchange.path.ends_with("/page") {
            let text = format!("a page, requested protocol {protocol:?}");
            return respond_with(async move { Response::new(Status::OK).body(text.into_bytes()) });
        }
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        theirs.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        theirs.set_write_timeout(Some(DEADLINE)).expect("a deadline");
        ours.set_nonblocking(true).expect("non-blocking");
        let _ = self.0.lock().expect("no thread panicked").send(theirs);
        respond_with(async move {
            let stream = Stream::new(ours.into()).expect("a link");
            // The client receives the bytes `early ` first.
            Response::tunnel("echo", Splice::new(stream, b"early ".to_vec())).with("X-More", "yes")
        })
    }
}

/// Other ends of the tunnels, in the order in which they were opened.
pub struct Peers(mpsc::UnboundedReceiver<UnixStream>);

impl Peers {
    /// Waits for the next tunnel, and returns the end that the test reads.
    pub fn next(&mut self) -> UnixStream {
        self.0.blocking_recv().expect("a server that still runs")
    }
}

/// Returns a handler of tunnels below `/join/`, and the other ends of its tunnels.
pub fn mounts() -> (Vec<Mount>, Peers) {
    let (send, received) = mpsc::unbounded_channel();
    (vec![mount("/join/", OpensTunnels(Mutex::new(send)))], Peers(received))
}

/// Reads `count` bytes.
pub fn read(peer: &mut UnixStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    peer.read_exact(&mut bytes).expect("bytes in time");
    bytes
}

/// Reads until the end. Returns the remaining bytes, and true if the end was orderly.
pub fn rest(peer: &mut UnixStream) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let is_orderly = match peer.read_to_end(&mut bytes) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
        Err(error) => panic!("no end: {error}"),
    };
    (bytes, is_orderly)
}
