//! One exchange with a back end over one connection.
//!
//! The request body has been received completely before the exchange starts. It is sent while the response head is
//! read. The response body is read only as fast as the client accepts it.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::Deadline;
use rocknet_proto::cgi::{MAX_HEAD_SIZE, find_head_end};
use rocknet_proto::fastcgi::{self, RecordEvent};
use rocknet_proto::status::Status;

use super::backend::{Backend, BackendConnection};
use super::error::BackendError;
use super::socket::Socket;
use super::stderr::StderrLog;
use rocknet_handler::exchange::RequestBody;
use rocknet_handler::response::UpstreamTiming;
use rocknet_handler::services::Services;

/// Maximum number of response bytes buffered while the request is still being sent. If a script writes more before it
/// has read the request body, the response begins, and the remaining request body is dropped.
const MAX_BUFFERED: usize = 2 * MAX_HEAD_SIZE;

/// `FCGI_OVERLOADED`: protocol status of an application that accepts no further request.
const OVERLOADED: u8 = 2;

/// One request sent to a back end, and its response.
pub struct BackendExchange {
    services: Rc<Services>,
    /// `None` after [`BackendExchange::finish`], which keeps the connection for another request or closes it.
    connection: Option<BackendConnection>,
    /// Back end that keeps the connection after the exchange, and its maximum number of idle connections. `None` if the
    /// connection is closed after the exchange.
    keep_alive: Option<(Arc<Backend>, usize)>,
    /// Bytes of the request that the socket has not accepted yet.
    sending: SendQueue,
    /// Part of the request body that has not been queued in `sending`; `None` if nothing is left.
    body: Option<RequestBody>,
    framing: Framing,
    /// Received bytes of the response that have not been taken yet, including the head.
    received: Vec<u8>,
    /// Length of the response head in bytes; `None` until the head is complete.
    head_length: Option<usize>,
    /// True once a byte of the response has been received.
    has_received: bool,
    /// True if the application rejected the request with `FCGI_OVERLOADED`.
    overloaded: bool,
    /// True if the response has a `Content-Length` and was incomplete when its head had been received. The exchange
    /// then waits for the rest, even if a program has ended and another process keeps its output open.
    expects_more: bool,
    /// True if the connection must not be reused, because of an error or because the request was not sent completely.
    must_close: bool,
    stderr_log: StderrLog,
    began: Instant,
}

/// Framing of request and response.
enum Framing {
    /// FastCGI records.
    Records(fastcgi::ResponseReader),
    /// The request body follows the request unframed, and the end of the connection ends the response.
    Plain {
        /// Bytes that may still be received before the response exceeds its maximum length.
        remaining: u64,
        /// True once the peer has closed the connection, which ends the response.
        is_over: bool,
    },
}

impl Framing {
    /// Appends a piece of the request body.
    fn write_body(&self, out: &mut Vec<u8>, body: &[u8]) {
        match self {
            Framing::Records(_) => fastcgi::stdin(out, body),
            Framing::Plain { .. } => out.extend_from_slice(body),
        }
    }

    /// Appends the mark after the request body, if the framing has one.
    fn write_body_end(&self, out: &mut Vec<u8>) {
        match self {
            Framing::Records(_) => fastcgi::stdin_end(out),
            Framing::Plain { .. } => {}
        }
    }
}

/// State of sending the request.
#[derive(PartialEq, Eq)]
enum SendState {
    /// The next piece of the body is being read from disk.
    WaitsForBody,
    WaitsForSocket,
    Done,
}

impl BackendExchange {
    /// Starts an exchange over FastCGI. `request`: the records of the request without the records of its body.
    pub fn fastcgi(
        services: &Rc<Services>,
        connection: BackendConnection,
        request: Vec<u8>,
        stderr_log: StderrLog,
    ) -> BackendExchange {
        let framing = Framing::Records(fastcgi::ResponseReader::new());
        BackendExchange::new(services, connection, request, framing, stderr_log)
    }

    /// Keeps the connection after the response for another request, if fewer than `max_idle` connections are idle. The
    /// request must carry `FCGI_KEEP_CONN`, so that the application leaves the connection open.
    pub fn keep_alive(self, backend: &Arc<Backend>, max_idle: usize) -> BackendExchange {
        let keep_alive = (max_idle > 0).then(|| (Arc::clone(backend), max_idle));
        BackendExchange { keep_alive, ..self }
    }

    /// Starts an exchange without framing. `request`: the bytes before the body; `max_length`: maximum length of the
    /// response in bytes.
    pub fn plain(
        services: &Rc<Services>,
        connection: BackendConnection,
        request: Vec<u8>,
        max_length: u64,
        stderr_log: StderrLog,
    ) -> BackendExchange {
        let framing = Framing::Plain {
            remaining: max_length,
            is_over: false,
        };
        BackendExchange::new(services, connection, request, framing, stderr_log)
    }

    fn new(
        services: &Rc<Services>,
        connection: BackendConnection,
        request: Vec<u8>,
        framing: Framing,
        stderr_log: StderrLog,
    ) -> BackendExchange {
        BackendExchange {
            services: Rc::clone(services),
            connection: Some(connection),
            keep_alive: None,
            sending: request.into(),
            body: None,
            framing,
            received: Vec::new(),
            head_length: None,
            has_received: false,
            overloaded: false,
            expects_more: false,
            must_close: false,
            stderr_log,
            began: Instant::now(),
        }
    }

    /// Returns the label of the back end and the time from the start of the exchange until now; `None` for a CGI
    /// program. Call it when the response head with this status has been received.
    pub fn timing(&self, status: Status) -> Option<UpstreamTiming> {
        let in_flight = self.connection.as_ref()?.in_flight.as_ref()?;
        Some(UpstreamTiming {
            address: Arc::clone(in_flight.backend().label()),
            head: Some(self.began.elapsed()),
            status: Some(status),
        })
    }

    /// Sends the request and receives the response head. `deadline` restarts with `ticks` after each piece of the
    /// request body, and is not enforced while the body is read from disk.
    ///
    /// # Errors
    ///
    /// Returns an error if no valid response head arrives in time, or if the request body cannot be read.
    pub async fn run_until_head(
        mut self,
        body: RequestBody,
        deadline: &Deadline,
        ticks: u32,
    ) -> Result<BackendExchange, BackendError> {
        match body.is_empty() {
            true => self.framing.write_body_end(self.sending.buffer()),
            false => self.body = Some(body),
        }
        poll_fn(|context| self.poll_head(context, deadline, ticks)).await?;
        Ok(self)
    }

    /// Returns the length of the response head in bytes; the body follows it.
    pub fn head_length(&self) -> usize {
        self.head_length.unwrap_or_default()
    }

    /// Returns the received bytes that have not been taken yet.
    pub fn received(&mut self) -> &mut Vec<u8> {
        &mut self.received
    }

    /// Called if the response has a `Content-Length` and was incomplete when its head had been received. The exchange
    /// then waits for the rest, even after the end of a program.
    pub fn expect_more(&mut self) {
        self.expects_more = true;
    }

    /// Returns whether the response is complete.
    pub fn is_over(&self) -> bool {
        match &self.framing {
            Framing::Records(records) => records.is_ended(),
            Framing::Plain { is_over, .. } => *is_over,
        }
    }

    /// Sends the request and receives until the response head is complete, and the request has been sent or the rest of
    /// it is dropped.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        deadline: &Deadline,
        ticks: u32,
    ) -> Poll<Result<(), BackendError>> {
        loop {
            let send_state = match self.send_request(context, deadline, ticks) {
                Ok(send_state) => send_state,
                Err(error) => return Poll::Ready(Err(error)),
            };
            if self.head_length.is_some() {
                let is_sent = self.is_flushed() && send_state == SendState::Done;
                if is_sent || self.is_over() || self.received.len() >= MAX_BUFFERED {
                    self.must_close |= !is_sent;
                    self.body = None;
                    return Poll::Ready(Ok(()));
                }
                // `is_flushed` has put unsent bytes back into `sending`. They are sent again, unless the socket is not
                // writable.
                if !self.sending.is_empty() && send_state != SendState::WaitsForSocket {
                    continue;
                }
            }
            if self.is_over() {
                let error = if self.overloaded {
                    BackendError::Full
                } else {
                    BackendError::NoResponse
                };
                return Poll::Ready(Err(error));
            }
            match self.poll_receive(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if send_state != SendState::WaitsForBody && deadline.poll_past(context.waker()) => {
                    return Poll::Ready(Err(BackendError::Timeout));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends the bytes that wait in the write batch of the socket, and returns whether the kernel accepted all of them.
    /// Otherwise, the unsent bytes are in `sending` again.
    fn is_flushed(&mut self) -> bool {
        let connection = self.connection.as_mut();
        connection.is_none_or(|connection| connection.socket.is_flushed(&mut self.sending))
    }

    /// Sends as much of the request as possible without waiting.
    fn send_request(
        &mut self,
        context: &mut Context<'_>,
        deadline: &Deadline,
        ticks: u32,
    ) -> Result<SendState, BackendError> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Ok(SendState::Done);
            };
            match connection.socket.poll_send(context, &mut self.sending) {
                Poll::Ready(Ok(())) => {}
                Poll::Pending => return Ok(SendState::WaitsForSocket),
                // The application has stopped reading. Its response is still read, because the response explains more
                // than this error.
                Poll::Ready(Err(_)) => {
                    self.sending.clear();
                    (self.body, self.must_close) = (None, true);
                }
            }
            let Some(body) = &mut self.body else {
                connection.socket.end_writing();
                return Ok(SendState::Done);
            };
            match body.poll_chunk(context) {
                Poll::Pending => return Ok(SendState::WaitsForBody),
                Poll::Ready(Ok(Some(chunk))) => {
                    self.framing.write_body(self.sending.buffer(), &chunk);
                    deadline.set(ticks);
                }
                Poll::Ready(Ok(None)) => {
                    self.framing.write_body_end(self.sending.buffer());
                    self.body = None;
                    deadline.set(ticks);
                }
                Poll::Ready(Err(error)) => return Err(BackendError::RequestBody(error)),
            }
        }
    }

    /// Receives once and parses the received bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection ends early, or if its bytes break the protocol or a limit.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BackendError>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Err(BackendError::NoResponse));
        };
        let services = Rc::clone(&self.services);
        let mut input = services.receive_buffer.borrow_mut();
        let input = &mut input.allocated().bytes;
        while let Poll::Ready(Ok(length @ 1..)) = connection.socket.poll_stderr(context, input) {
            self.stderr_log.add(&input[..length]);
        }
        let received = match connection.socket.poll_recv(context, input) {
            Poll::Pending => {
                if connection.socket.poll_abandoned(context, &services.wheel).is_ready() {
                    // The program has ended, but another process keeps its output open. This is logged.
                    self.stderr_log.output_is_open(self.expects_more);
                    if !self.expects_more {
                        return Poll::Ready(self.on_eof());
                    }
                }
                return Poll::Pending;
            }
            Poll::Ready(received) => received,
        };
        // After the end of a program, `poll_abandoned` is ready once no output has arrived for a second. Output
        // restarts this period.
        if let Socket::Program(program) = &connection.socket {
            program.end.restart(&services.wheel);
        }
        let is_stale = !self.has_received && !connection.is_new;
        let received = match received {
            Ok(received) if !received.is_empty() => received,
            _ if is_stale => return Poll::Ready(Err(BackendError::StaleConnection)),
            Ok(_) => return Poll::Ready(self.on_eof()),
            Err(error) => return Poll::Ready(Err(BackendError::ConnectionLost(error))),
        };
        self.has_received = true;
        if let Some(pending) = connection.pending.take() {
            pending.response_received();
        }
        let before = self.received.len();
        if let Err(error) = self.read(&received) {
            self.must_close = true;
            // A complete response is passed on: bytes after its end invalidate the connection, not the response.
            if !self.is_over() {
                return Poll::Ready(Err(error));
            }
        }
        if self.head_length.is_none() {
            self.head_length = find_head_end(&self.received, before);
            if self.head_length.unwrap_or(self.received.len()) > MAX_HEAD_SIZE {
                return Poll::Ready(Err(BackendError::HeadTooLong));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Called when the peer has closed the connection, or when a program has ended and a background process keeps its
    /// output open. Without framing, this ends the response. It is an error if the program was killed, for example at
    /// its time limit.
    fn on_eof(&mut self) -> Result<(), BackendError> {
        let Framing::Plain { is_over, .. } = &mut self.framing else {
            return Err(match self.has_received {
                true => BackendError::ConnectionLost(ErrorKind::UnexpectedEof.into()),
                false => BackendError::NoResponse,
            });
        };
        match &self.connection {
            Some(connection) if connection.socket.has_ended_cleanly() => {
                *is_over = true;
                Ok(())
            }
            _ => Err(BackendError::Timeout),
        }
    }

    /// Parses received bytes, and appends the bytes of the response to `received`.
    fn read(&mut self, input: &[u8]) -> Result<(), BackendError> {
        let records = match &mut self.framing {
            Framing::Records(records) => records,
            Framing::Plain { remaining, .. } => {
                *remaining = remaining
                    .checked_sub(input.len() as u64)
                    .ok_or(BackendError::ResponseTooLarge)?;
                self.received.extend_from_slice(input);
                return Ok(());
            }
        };
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            let received = records.receive(rest).map_err(BackendError::FastCgi)?;
            match received.event {
                RecordEvent::Stdout(range) => self.received.extend_from_slice(&rest[range]),
                RecordEvent::Stderr(range) => self.stderr_log.add(&rest[range]),
                // The exit status of the script is ignored.
                RecordEvent::End(end) => self.overloaded = end.protocol_status == OVERLOADED,
                RecordEvent::More => {}
            }
            at += received.consumed;
        }
        Ok(())
    }

    /// Returns whether the end of the connection ends the response, so that only `Content-Length` shows a truncation.
    pub fn ends_by_closing(&self) -> bool {
        matches!(self.framing, Framing::Plain { .. })
    }

    /// Called after the last byte of the response. Keeps the connection for another request if it is reusable.
    pub fn finish(&mut self) {
        let is_reusable = self.is_over() && !self.must_close && self.body.is_none() && self.sending.is_empty();
        let Some(connection) = self.connection.take() else {
            return;
        };
        match &self.keep_alive {
            Some((backend, max_idle)) if is_reusable => backend.put_idle(connection, *max_idle),
            Some(_) => {}
            // `into_idle` releases a program, so that it may run on for a moment after its complete response, even if
            // it has not read its input or closed its output. A connection is closed.
            None => drop(connection.socket.into_idle()),
        }
    }
}

/// Converts to the error by which a body stream reports a truncated response.
impl From<BackendError> for io::Error {
    fn from(error: BackendError) -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionAborted, format!("the application: {error}"))
    }
}
