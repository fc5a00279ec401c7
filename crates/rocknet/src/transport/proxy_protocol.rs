//! Reads the PROXY protocol header, in which a load balancer names the client of a connection.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;

use rocknet_io::link::Link;
use rocknet_io::stream::Stream;
use rocknet_proto::proxy_protocol::{self, ParseProgress, ProxyHeader};
use tracing::Level;

use crate::exchange::Client;
use crate::log::throttle::Cause;
use crate::worker::Worker;

/// Returns the client and the local address that the header names. `sender` is the load balancer, and `local` the local
/// address of its connection, or `None` if no site is selected by address. If a valid header names no client, returns
/// `sender` and `local`. Returns `None` if there is no valid header; the connection is then closed.
pub async fn read(
    worker: &Rc<Worker>,
    link: &mut Stream,
    sender: Client,
    local: Option<IpAddr>,
) -> Option<(Client, Option<IpAddr>)> {
    let header = match header(worker, link).await {
        Ok(header) => header,
        Err(error) => {
            // A load balancer that does not send the header omits it on all its connections, so this is logged at most
            // once a second. A connection that ends or times out before the end of the header is not logged.
            let address = worker.address.to_string();
            let cause = Cause {
                level: Level::WARN,
                what: "a connection was refused (server.proxy_protocol)",
                site: "",
                subject: &address,
            };
            if error.kind() == io::ErrorKind::InvalidData && cause.may_be_logged() {
                tracing::warn!(%sender, "a connection was refused: {error} (server.proxy_protocol)");
            }
            return None;
        }
    };
    Some(match header {
        ProxyHeader::Local | ProxyHeader::Unknown => (sender, local),
        ProxyHeader::Client { source, destination } => {
            let client = Client::Ip {
                address: source.ip(),
                port: source.port(),
            };
            // Without `local`, no site is selected by address, so the destination is not needed either.
            (client, local.map(|_| destination.ip().to_canonical()))
        }
    })
}

/// Receives the header, and no bytes after it.
async fn header(worker: &Rc<Worker>, link: &mut Stream) -> io::Result<ProxyHeader> {
    let deadline = worker.wheel.deadline();
    // As for a request head, received bytes do not extend the deadline.
    deadline.set(worker.config().ticks.header);
    let mut header = Vec::new();
    loop {
        let wanted = match proxy_protocol::parse(&header) {
            Ok(ParseProgress::Complete(header)) => return Ok(header),
            Ok(ParseProgress::More { wanted }) => wanted,
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error.reason())),
        };
        poll_fn(|context| {
            let input = &mut worker.buffers.borrow_mut().input;
            // Bytes after the header are not read, because they belong to the protocol of the connection.
            let room = wanted.min(input.len());
            match link.poll_recv(context, &mut input[..room]) {
                Poll::Ready(Ok(received)) if received.is_empty() => {
                    Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
                }
                Poll::Ready(Ok(received)) => {
                    header.extend_from_slice(&received);
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending if worker.closes_idle() => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
                Poll::Pending if deadline.poll_past(context.waker()) => {
                    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await?;
    }
}
