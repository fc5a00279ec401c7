//! A connection from a balancer: it says whose it is, by the PROXY protocol, and then goes on as if it were that one's.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;

use rocknet_io::link::Link;
use rocknet_io::stream::Stream;
use rocknet_proto::proxy_protocol::{Announced, Progress, read};
use tracing::Level;

use super::go_on;
use crate::exchange::Client;
use crate::log::throttle::Cause;
use crate::worker::{OpenConnection, Worker};

/// Reads the header, and goes on.
pub async fn serve(open: OpenConnection, mut link: Stream, sender: Client, local: Option<IpAddr>) {
    let worker = Rc::clone(open.worker());
    let announced = match hear(&worker, &mut link).await {
        Ok(announced) => announced,
        Err(error) => {
            // A balancer that does not say whose its connections are says so with each of them.
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
            return;
        }
    };
    let (client, local) = match announced {
        Announced::Own | Announced::Unknown => (sender, local),
        Announced::Client { source, destination } => {
            let client = Client::Ip {
                address: source.ip(),
                port: source.port(),
            };
            // Which address was asked matters where sites have their own.
            (client, local.map(|_| destination.ip().to_canonical()))
        }
    };
    go_on(open, link, client, local);
}

async fn hear(worker: &Rc<Worker>, link: &mut Stream) -> io::Result<Announced> {
    let deadline = worker.wheel.deadline();
    // Hard, as the time for a head is.
    deadline.set(worker.view().ticks.header);
    let mut header = Vec::new();
    loop {
        let wanted = match read(&header) {
            Ok(Progress::Whole(announced)) => return Ok(announced),
            Ok(Progress::More { wanted }) => wanted,
            Err(fault) => return Err(io::Error::new(io::ErrorKind::InvalidData, fault.reason())),
        };
        poll_fn(|context| {
            let input = &mut worker.buffers.borrow_mut().input;
            // Not one byte more: what follows is not ours to take.
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
                Poll::Pending if worker.is_stopping() => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
                Poll::Pending if deadline.poll_past(context.waker()) => {
                    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await?;
    }
}
