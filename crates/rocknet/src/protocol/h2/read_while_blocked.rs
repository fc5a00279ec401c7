//! Reads while the socket is blocked: frames are handled, and requests are held until the backlog has been sent.
//!
//! A client may write before it reads. If the server did not read until the client had taken the backlog, both sides
//! could wait for each other until a deadline passes. So frames are handled: flow-control windows are updated, request
//! bodies are stored for their handlers, and resets end exchanges. New exchanges, however, are not started. The backlog
//! therefore grows only by control frames, whose number the engine bounds.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{DecodedHead, StreamId};
use rocknet_proto::method::Method;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;

use super::connection::{Connection, State};
use super::responder::RequestBody;
use super::streams::{ExchangeState, HeldRequest, RequestStream, StreamExchange};
use crate::exchange::{self, BodyError};
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::deadlines::Deadlines;
use crate::pipeline::{RequestContext, body_limit};
use crate::worker::{Buffers, Worker, WorkerConfig};

/// Maximum size of held requests in bytes: 2 KiB for each of the 128 streams that a client may open, which is more
/// than browsers send. Above this size the server stops reading until the client takes its responses.
const HELD_HEADS_BOUND: usize = 256 * 1024;

/// Backlog size in bytes at which the server stops reading. Half of this size is for the responses that the server
/// queues before it waits for the socket (256 KiB). The other half is for control frames. The limits on control frames
/// allow far less.
const QUEUE_BOUND: u64 = 512 * 1024;

impl<L: Link> Connection<L> {
    /// Receives once while the backlog waits for the socket. Pending if nothing was received, or if the held requests
    /// or the backlog have reached their limit.
    pub(super) fn read_while_blocked(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(mut backlog) = self.core.backlog.take_if(|backlog| backlog.len() < QUEUE_BOUND) else {
            return Poll::Pending;
        };
        let worker = Rc::clone(self.core.open.worker());
        let received = if self.held_bytes < HELD_HEADS_BOUND {
            self.receive_while_blocked(context, &worker, &mut backlog)
        } else {
            Poll::Pending
        };
        self.core.backlog = Some(backlog);
        received
    }

    /// Receives once, and handles the received frames without starting an exchange.
    fn receive_while_blocked(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        backlog: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        let Buffers { input, head, .. } = &mut *worker.buffers.borrow_mut();
        let Poll::Ready(received) = self.core.link.poll_recv(context, input) else {
            return Poll::Pending;
        };
        let received = received?;
        if received.is_empty() {
            // The client has ended its side, but may still read the backlog. After the backlog has been sent, the next
            // receive returns the end again.
            return Poll::Pending;
        }
        self.core.unread.extend_from_slice(&received);
        self.is_blocked = true;
        self.process_unread(worker, &worker.config(), head, backlog);
        self.is_blocked = false;
        if self.engine.is_closed() {
            // GOAWAY is queued. Later input has no meaning, and is not read before GOAWAY has been sent.
            self.state = State::Closing;
        }
        Poll::Ready(Ok(()))
    }

    /// Holds a request until exchanges may start again. If its announced body is too large, only the rejection is held.
    /// `end`: true if the client has ended the stream with the head. `expects_continue`: true if the client waits for
    /// 100 (Continue) before it sends the body.
    #[cold]
    pub(super) fn hold_request(
        &mut self,
        worker: &Worker,
        config: &Rc<WorkerConfig>,
        head: &DecodedHead,
        id: StreamId,
        end: bool,
        expects_continue: bool,
    ) {
        let request = head.request();
        let head_only = request.method == Method::Head;
        let site = config.site(self.core.info.local(), request.authority);
        let owned = Rc::new(OwnedRequest::copy(head.bytes(), head.index()));
        let (body, channel) = exchange::RequestBody::channel();
        let mut receiver = None;
        let rejection = if end {
            channel.end(Ok(()));
            None
        } else if request.upgrade.is_some() {
            // The data that follows is for a tunnel, not a request body, so no 100 (Continue) is sent (`false`).
            channel.end(Ok(()));
            receiver = Some(BodyReceiver::new(channel, false));
            None
        } else {
            let is_secure = self.core.info.secure.is_some();
            let limit = body_limit(config, site, &request, self.core.info.client, is_secure);
            let refused = self.engine.set_body_limit(id, limit).err();
            if refused.is_none() {
                receiver = Some(BodyReceiver::new(channel, expects_continue));
            }
            refused.map(|refusal| {
                let connection = (self.core.info.local(), is_secure);
                let context = RequestContext::without_route(config, site, connection, || Rc::clone(&owned));
                HeldRequest::Refusal(refusal, Rc::new(context))
            })
        };
        self.held_bytes += head.bytes().len() + size_of::<OwnedRequest>();
        let mut stream = RequestStream::new(id, head_only);
        stream.body = receiver;
        self.hold_exchange(
            worker,
            stream,
            rejection.unwrap_or(HeldRequest::Request { request: owned, body }),
        );
    }

    /// Holds the request for the upgrade to HTTP/2, which has no body.
    pub(super) fn hold_upgrade_request(&mut self, id: StreamId, request: OwnedRequest) {
        let (body, channel) = exchange::RequestBody::channel();
        channel.end(Ok(()));
        let head_only = request.view().method == Method::Head;
        let request = Rc::new(request);
        let worker = Rc::clone(self.core.open.worker());
        self.hold_exchange(
            &worker,
            RequestStream::new(id, head_only),
            HeldRequest::Request { request, body },
        );
    }

    /// Stores an exchange that starts once the backlog has been sent.
    fn hold_exchange(&mut self, worker: &Worker, stream: RequestStream, held: HeldRequest) {
        self.streams.insert(Box::new(StreamExchange {
            stream,
            state: ExchangeState::Held(held),
            deadlines: Deadlines::new(&worker.wheel),
        }));
    }

    /// Holds a rejection until exchanges may start again. [`Connection::begin_held`] then responds. If the exchange of
    /// the stream is in progress, its request body fails now, and the rejection replaces the exchange.
    #[cold]
    pub(super) fn hold_refusal(
        &mut self,
        worker: &Worker,
        config: &Rc<WorkerConfig>,
        stream: RequestStream,
        refusal: Refusal,
    ) {
        let mut request_context = RequestContext::unparsed(config, self.core.info.local());
        if let Some(entry) = self.streams.take(stream.id) {
            // A request in progress is rejected only if its body is too large.
            entry.stream.fail(BodyError::TooLarge);
            if let ExchangeState::Active(exchange) = entry.state {
                request_context = exchange.context;
            }
        }
        self.held_bytes += size_of::<StreamExchange>();
        self.hold_exchange(worker, stream, HeldRequest::Refusal(refusal, request_context));
    }

    /// Starts the exchange of a held request, or sends a held rejection.
    #[cold]
    pub(super) fn begin_held(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        held: HeldRequest,
        stream: RequestStream,
    ) {
        let output = &mut worker.buffers.borrow_mut().output;
        match held {
            HeldRequest::Refusal(refusal, context) => self.respond_refusal(worker, refusal, context, stream, output),
            HeldRequest::Request { request, body } => {
                let request_view = request.view();
                self.pushes.record_request(&request_view);
                let owned = || Rc::clone(&request);
                let body = RequestBody::Held(stream.body.is_some().then_some(body));
                self.begin_exchange(
                    worker,
                    config,
                    &request_view,
                    owned,
                    stream.id,
                    body,
                    stream.body,
                    output,
                );
            }
        }
    }
}
