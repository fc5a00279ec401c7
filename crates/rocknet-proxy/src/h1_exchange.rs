//! HTTP/1.1 exchange with an upstream over one connection.
//!
//! The request body is forwarded while it is received from the client. The response head is read immediately; the
//! response body is read only as fast as the client accepts it.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::wheel::Deadline;

use crate::Timeouts;
use crate::error::ProxyError;
use crate::h1_connection::H1Connection;
use crate::head::ResponseHead;
use crate::permit::Permit;
use crate::pool::ConnectionPool;
use crate::request::UpstreamRequest;
use crate::response_reader::ResponseReader;
use crate::tls_error;
use crate::trailers;
use crate::upstream::Upstream;
use rocknet_handler::exchange::RequestBody;
use rocknet_handler::interim::InterimSender;
use rocknet_handler::response::FieldList;
use rocknet_handler::services::{ReceiveBuffer, Services};

/// One request and its response over HTTP/1.1.
pub struct H1Exchange {
    services: Rc<Services>,
    /// Released when the response is over. `None` until the response head has arrived.
    permit: Option<Permit>,
    /// `None` after the connection was returned to the pool, closed, or taken for a tunnel.
    connection: Option<Box<H1Connection>>,
    /// Timeouts in ticks.
    times: Timeouts,
    /// Request body that is not sent yet; `None` without a body, and once it was sent or dropped.
    body: Option<RequestBody>,
    /// True if the request has or had a body; remains true after the body was sent.
    has_body: bool,
    /// Fields that the proxy sets, which trailers must not override. `None` without a request body.
    proxy_headers: Option<Arc<[(String, String)]>>,
    /// True if a part of the request body was consumed, or the response has begun. The body then cannot be sent to
    /// another upstream.
    body_taken: bool,
    response: ResponseReader,
    /// True once a byte of the response was received.
    has_received: bool,
    /// True if the connection cannot be reused.
    must_close: bool,
}

/// State of sending the request.
#[derive(PartialEq, Eq)]
enum SendState {
    /// The next part of the request body has not arrived from the client.
    WaitsForClient,
    /// The upstream does not accept more data at the moment.
    WaitsForUpstream,
    /// Nothing more is sent, because the request is complete or cannot be sent any further.
    Done,
}

impl H1Exchange {
    /// Returns an exchange over a connection; nothing is sent yet.
    pub fn new(services: &Rc<Services>, connection: Box<H1Connection>, times: Timeouts) -> H1Exchange {
        H1Exchange {
            services: Rc::clone(services),
            permit: None,
            connection: Some(connection),
            times,
            body: None,
            has_body: false,
            proxy_headers: None,
            body_taken: false,
            response: ResponseReader::default(),
            has_received: false,
            must_close: false,
        }
    }

    /// Encodes the request head and takes the body out of `body`. `sent` is the request as it is sent to the upstream.
    /// Sets `deadline` to the timeout of the response head.
    pub fn start(
        &mut self,
        upstream: &Upstream,
        sent: &UpstreamRequest<'_>,
        body: &mut Option<RequestBody>,
        deadline: &Deadline,
    ) -> Result<(), ProxyError> {
        if let Some(connection) = &mut self.connection {
            let H1Connection { engine, out, .. } = &mut **connection;
            sent.encode(engine, upstream, out.buffer())
                .map_err(ProxyError::Encode)?;
        }
        self.response.upgrade = sent.upgrade().map(Rc::clone);
        if sent.has_body() {
            self.has_body = true;
            self.body = body.take();
            self.proxy_headers = Some(Arc::clone(sent.proxy_headers()));
        }
        deadline.set(self.times.first_byte);
        Ok(())
    }

    /// Drives the exchange until the response head has arrived.
    ///
    /// A request body of which nothing was consumed is put back into `body`, so that it can be sent to another
    /// upstream. Time spent waiting for the client does not count against the upstream.
    pub fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        body: &mut Option<RequestBody>,
        interim: &mut InterimSender,
        deadline: &Deadline,
    ) -> Poll<Result<(), ProxyError>> {
        let result = ready!(self.poll_until_head(context, interim, deadline));
        if !self.body_taken && self.body.is_some() {
            *body = self.body.take();
        }
        Poll::Ready(result)
    }

    /// Keeps the permit until the response is over.
    pub fn hold_permit(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// Takes the response head; `None` if it has not arrived or was taken before.
    pub fn take_head(&mut self) -> Option<ResponseHead> {
        self.response.head.take()
    }

    /// Returns true if the upstream switched to another protocol.
    pub fn is_tunnel(&self) -> bool {
        self.response.upgraded_protocol.is_some()
    }

    /// Takes the name of the protocol that the upstream switched to, if it did.
    pub fn take_upgraded_protocol(&mut self) -> Option<Box<[u8]>> {
        self.response.upgraded_protocol.take()
    }

    /// Takes the connection, for a protocol other than HTTP; `None` if the exchange has no connection any more.
    pub fn take_connection(&mut self) -> Option<Box<H1Connection>> {
        self.connection.take()
    }

    pub fn times(&self) -> Timeouts {
        self.times
    }

    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Takes the bytes of the response body that have arrived.
    pub fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.response.pending)
    }

    /// Returns true if the response has been received completely.
    pub fn is_complete(&self) -> bool {
        self.response.is_complete
    }

    /// Returns true if trailer fields were received.
    pub fn has_trailers(&self) -> bool {
        self.response.trailers.is_some()
    }

    /// Takes the trailer fields, once the response body is over; `None` for a response without trailer fields.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        self.response.trailers.take().map(|trailers| *trailers)
    }

    /// Returns a deadline for the pieces of the response body.
    pub fn deadline(&self) -> Deadline {
        self.services.wheel.deadline()
    }

    /// Returns the idle timeout in ticks.
    pub fn idle_ticks(&self) -> u32 {
        self.times.idle
    }

    /// Continues an exchange whose response has begun: sends more of the request, then receives once.
    pub fn poll_progress(&mut self, context: &mut Context<'_>, deadline: &Deadline) -> Poll<Result<(), ProxyError>> {
        // Sent data restarts the deadline too, because an upstream may respond piece by piece to what it receives.
        if self.has_body {
            if let Err(error) = self.send_pending(context, deadline, self.times.idle) {
                return Poll::Ready(Err(error));
            }
        } else {
            self.drop_unsent();
        }
        match self.poll_receive(context) {
            Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(Err(ProxyError::Timeout)),
            polled => polled,
        }
    }

    /// Takes the unsent part of the request back from the link and discards it. Called for a request without a body
    /// whose response has already begun. Until the unsent part is taken back, receiving may remain pending.
    fn drop_unsent(&mut self) {
        if let Some(connection) = &mut self.connection
            && connection.link.take_unsent().is_some()
        {
            self.must_close = true;
        }
    }

    fn poll_until_head(
        &mut self,
        context: &mut Context<'_>,
        interim: &mut InterimSender,
        deadline: &Deadline,
    ) -> Poll<Result<(), ProxyError>> {
        loop {
            let send_state = match self.send_pending(context, deadline, self.times.first_byte) {
                Ok(send_state) => send_state,
                Err(error) => return Poll::Ready(Err(error)),
            };
            if self.response.head.is_some() {
                // After a complete response, the unsent part of the request is not needed.
                if self.is_complete() && send_state != SendState::Done {
                    (self.must_close, self.body) = (true, None);
                }
                // The rest of the body stays here: it is sent while the response is received.
                self.body_taken = true;
                return Poll::Ready(Ok(()));
            }
            match self.poll_receive(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if send_state != SendState::WaitsForClient && deadline.poll_past(context.waker()) => {
                    return Poll::Ready(Err(ProxyError::Timeout));
                }
                Poll::Pending => {
                    if self.response.interim.is_some() {
                        // The result is ignored, because the task is polled again once the interim responses
                        // have been sent.
                        let _ = interim.poll_send(context, &mut self.response.interim);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Sends the parts of the request that are available. Each part restarts `deadline` with `ticks`.
    fn send_pending(
        &mut self,
        context: &mut Context<'_>,
        deadline: &Deadline,
        ticks: u32,
    ) -> Result<SendState, ProxyError> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Ok(SendState::Done);
            };
            let H1Connection { link, engine, out, .. } = &mut **connection;
            // Continues a batched write that the socket accepted only in part.
            if let Some(unsent) = link.take_unsent() {
                out.put_back(unsent);
                match link.poll_send(context, out) {
                    Poll::Pending => return Ok(SendState::WaitsForUpstream),
                    Poll::Ready(sent) => self.must_close |= sent.is_err(),
                }
            }
            if !out.is_empty() && !link.send_batched(context, out) {
                match link.poll_send(context, out) {
                    Poll::Pending => return Ok(SendState::WaitsForUpstream),
                    Poll::Ready(Ok(())) => {}
                    // The upstream stopped reading. Its response is still read, because that explains more than this
                    // error.
                    Poll::Ready(Err(_)) => self.must_close = true,
                }
            }
            if self.must_close {
                out.clear();
                // An untouched body is kept, so that `poll_head` can return it for another try.
                if self.body_taken {
                    self.body = None;
                }
                return Ok(SendState::Done);
            }
            let Some(body) = &mut self.body else {
                return Ok(SendState::Done);
            };
            match body.poll_chunk(context) {
                Poll::Pending => return Ok(SendState::WaitsForClient),
                Poll::Ready(Ok(Some(chunk))) => {
                    self.body_taken = true;
                    // For an empty chunk, `begin_data` writes nothing, because a chunk of length 0 would end the body.
                    engine
                        .begin_data(chunk.len() as u64, out.buffer())
                        .map_err(ProxyError::Encode)?;
                    if !chunk.is_empty() {
                        out.push_owned(chunk);
                        out.buffer().extend_from_slice(engine.data_end());
                    }
                }
                Poll::Ready(Ok(None)) => {
                    let trailers = body.take_trailers().unwrap_or_default();
                    let trailers = trailers::for_request(&trailers, self.proxy_headers.as_deref().unwrap_or_default());
                    (self.body_taken, self.body) = (true, None);
                    let is_body_complete = engine.finish(trailers.bytes(), out.buffer());
                    if !is_body_complete.map_err(ProxyError::Encode)? {
                        return Err(ProxyError::RequestBody(
                            rocknet_handler::exchange::BodyError::Incomplete,
                        ));
                    }
                }
                Poll::Ready(Err(error)) => {
                    self.body_taken = true;
                    return Err(ProxyError::RequestBody(error));
                }
            }
            deadline.set(ticks);
        }
    }

    /// Receives once and parses the result.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ProxyError>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Err(ProxyError::NoResponse));
        };
        // The upstream may have closed an idle connection before the request arrived. This does not count as its
        // failure.
        let is_unused_since_idle = !self.has_received && !connection.is_new;
        let H1Connection {
            link, engine, unread, ..
        } = &mut **connection;
        let mut input = self.services.receive_buffer.borrow_mut();
        let ReceiveBuffer { bytes, index } = input.allocated();
        let received = match link.poll_recv(context, bytes) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(received)) => received,
            Poll::Ready(Err(_)) if is_unused_since_idle => return Poll::Ready(Err(ProxyError::ReusedConnectionClosed)),
            // In TLS 1.3 the upstream checks the client certificate only after the handshake is complete on this side.
            Poll::Ready(Err(error)) if !self.has_received && tls_error::is_client_rejected(&error) => {
                return Poll::Ready(Err(ProxyError::Handshake(error)));
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(ProxyError::ConnectionLost(error))),
        };
        let response = &mut self.response;
        let read = if received.is_empty() {
            self.must_close = true;
            match engine.closed() {
                Ok(is_end) => {
                    response.is_complete |= is_end;
                    Ok(())
                }
                Err(_) if is_unused_since_idle => return Poll::Ready(Err(ProxyError::ReusedConnectionClosed)),
                Err(_) if !self.has_received => return Poll::Ready(Err(ProxyError::NoResponse)),
                Err(error) => Err(error),
            }
        } else {
            self.has_received = true;
            if unread.is_empty() {
                response.read(engine, &received, index).map(|consumed| {
                    unread.extend_from_slice(&received[consumed..]);
                })
            } else {
                unread.extend_from_slice(&received);
                response.read(engine, unread, index).map(|consumed| {
                    unread.drain(..consumed);
                })
            }
        };
        // Bytes after the end of a response belong to no request.
        self.must_close |= response.is_complete && !unread.is_empty();
        Poll::Ready(read.map_err(ProxyError::InvalidH1))
    }

    /// Sends a batched write immediately.
    pub fn flush(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.link.flush();
        }
    }

    /// Ends the exchange after the response, and releases the permit. A reusable connection is returned to the pool.
    pub fn finish(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let is_reusable = self.is_complete() && !self.must_close && self.body.is_none();
        if let Some(connection) = self.connection.take().filter(|_| is_reusable) {
            let tick_ms = u64::try_from(self.services.wheel.tick_length().as_millis()).unwrap_or(u64::MAX);
            let idle_ms = tick_ms.saturating_mul(self.times.idle.into());
            let now_ms = self.services.clock.uptime_ms();
            self.services
                .local::<ConnectionPool>()
                .keep(&permit.upstream, connection, now_ms, idle_ms);
        }
    }
}

/// Converts to the error with which a body stream reports a truncated response.
impl From<ProxyError> for io::Error {
    fn from(error: ProxyError) -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionAborted, format!("proxy: {error}"))
    }
}
