//! Determines the HTTP version of a connection without TLS. A client that starts with the HTTP/2 preface uses HTTP/2,
//! and an HTTP/1.1 client may request an upgrade with its first request.

use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;

use rocknet_io::link::Link;
use rocknet_proto::h1::{BodyFraming, ServerConnection, ServerEvent};
use rocknet_proto::h2::PREFACE;

use crate::exchange::Client;
use crate::lifecycle::connection::ConnectionCore;
use crate::lifecycle::deadlines::{Deadlines, Wait};
use crate::protocol::h2::Upgraded;
use crate::protocol::{h1, h2};
use crate::worker::{OpenConnection, Worker};

/// Determines the version of a connection and serves it. `local`: local IP address of the connection, set only if sites
/// are selected by it.
pub async fn serve<L: Link + Unpin>(open: OpenConnection, mut link: L, client: Client, local: Option<IpAddr>) {
    let worker = Rc::clone(open.worker());
    let mut unread = Vec::new();
    let mut deadlines = Deadlines::new(&worker.wheel);
    deadlines.begin(Wait::FirstByte, worker.config().ticks.header);
    let allows_h2c = worker.config().h2c;
    let mut has_timed_out = false;
    // Receives until there are bytes. If HTTP/2 without an upgrade is allowed, also until they differ from its preface
    // or contain all of it.
    while !has_timed_out
        && (unread.is_empty() || allows_h2c && unread.len() < PREFACE.len() && PREFACE.starts_with(&unread))
    {
        let progress = poll_fn(|context| {
            let input = &mut worker.buffers.borrow_mut().input;
            if let Poll::Ready(received) = link.poll_recv(context, input) {
                let received = received.ok().filter(|received| !received.is_empty());
                return Poll::Ready(received.map(|received| unread.extend_from_slice(&received)));
            }
            if worker.closes_idle() && unread.is_empty() {
                return Poll::Ready(None);
            }
            let is_past = deadlines.poll_past(context.waker());
            match is_past {
                // A client that has sent only a part of the preface gets the response 408 over HTTP/1.
                true if !unread.is_empty() => {
                    has_timed_out = true;
                    Poll::Ready(Some(()))
                }
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        });
        // The client is gone or has sent nothing in time, or the server stops.
        if progress.await.is_none() {
            return;
        }
    }
    // The deadline of the first head started with the connection and does not restart with the protocol.
    let left = if has_timed_out { 0 } else { deadlines.left() };
    drop(deadlines);
    let core = ConnectionCore::new(open, link, client, local);
    // The connection is boxed to keep the task of this function small.
    if allows_h2c && unread.starts_with(PREFACE) {
        let core = core.with_unread(unread).with_header_ticks(left);
        Box::pin(h2::Connection::new(core)).await;
    } else if let Some((upgraded, used)) = upgrade(&worker, &unread) {
        unread.drain(..used);
        // The first head was received in time, so the HTTP/2 preface of the client gets its own deadline.
        Box::pin(h2::Connection::upgraded(core.with_unread(unread), upgraded)).await;
    } else {
        let core = core.with_unread(unread).with_header_ticks(left);
        Box::pin(h1::Connection::new(core)).await;
    }
}

/// Returns the upgrade to HTTP/2 and the size in bytes of its request, if the first request is complete, has no body,
/// and requests the upgrade. Any other request may be served without the upgrade (RFC 9110 §7.8).
fn upgrade(worker: &Worker, unread: &[u8]) -> Option<(Upgraded, usize)> {
    let config = worker.config();
    if !config.h2c_upgrade {
        return None;
    }
    let index = &mut worker.buffers.borrow_mut().request;
    let received = ServerConnection::new().receive(&config.head_limits, unread, index);
    let Ok(ServerEvent::Request {
        consumed,
        body: BodyFraming::None,
    }) = received
    else {
        return None;
    };
    Upgraded::from_request(&unread[..consumed], index).map(|upgraded| (upgraded, consumed))
}
