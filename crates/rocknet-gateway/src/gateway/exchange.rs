//! One request and its answer over one connection: its body, which has been received before, is sent while what comes back is
//! read, up to the end of its head and from there on as it is asked for.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::Deadline;
use rocknet_proto::cgi::{MAX_HEAD_SIZE, find_head_end};
use rocknet_proto::fastcgi::{self, RecordEvent};

use super::backend::{Backend, BackendConnection};
use super::error::BackendError;
use super::stderr::StderrLog;
use rocknet_handler::exchange::RequestBody;
use rocknet_handler::response::UpstreamTiming;
use rocknet_handler::services::Services;

/// Bytes of an answer that are held while its request is still being sent. A script that says more before it has read its
/// content gets no more of it: the answer has to begin, and behind its beginning no content is taken.
const MAX_BUFFERED: usize = 2 * MAX_HEAD_SIZE;

/// The protocol status of an application that takes no further request.
const OVERLOADED: u8 = 2;

pub struct BackendExchange {
    services: Rc<Services>,
    /// Taken when it is kept for another.
    connection: Option<BackendConnection>,
    /// Who keeps it, beside how many others.
    keep_alive: Option<(Arc<Backend>, usize)>,
    /// Of the request, what the socket has not taken.
    sending: SendQueue,
    /// Content that is still to be sent.
    body: Option<RequestBody>,
    framing: Framing,
    /// The answer as far as nobody has taken it, its head included until that is complete.
    received: Vec<u8>,
    head: Option<usize>,
    has_received: bool,
    /// It had no room for the request.
    overloaded: bool,
    /// Something went wrong that rules out another request on this connection.
    must_close: bool,
    stderr_log: StderrLog,
    began: Instant,
}

/// How the two sides tell their parts.
enum Framing {
    Records(fastcgi::ResponseReader),
    /// Content follows the request as it is, and the answer ends with the connection.
    Plain {
        /// Bytes of an answer that may still come.
        remaining: u64,
        is_over: bool,
    },
}

impl Framing {
    fn body(&self, out: &mut Vec<u8>, body: &[u8]) {
        match self {
            Framing::Records(_) => fastcgi::stdin(out, body),
            Framing::Plain { .. } => out.extend_from_slice(body),
        }
    }

    fn body_end(&self, out: &mut Vec<u8>) {
        match self {
            Framing::Records(_) => fastcgi::stdin_end(out),
            Framing::Plain { .. } => {}
        }
    }
}

/// What sending the request waits for.
#[derive(PartialEq, Eq)]
enum SendState {
    /// The disk.
    WaitsForBody,
    WaitsForSocket,
    Done,
}

impl BackendExchange {
    /// `request`: its records, all but the content.
    pub fn fastcgi(
        services: &Rc<Services>,
        connection: BackendConnection,
        request: Vec<u8>,
        stderr_log: StderrLog,
    ) -> BackendExchange {
        let framing = Framing::Records(fastcgi::ResponseReader::new());
        BackendExchange::new(services, connection, request, framing, stderr_log)
    }

    /// Has the connection kept behind the answer, for another request: the application was asked to leave it open.
    pub fn keep_alive(self, backend: &Arc<Backend>, max_idle: usize) -> BackendExchange {
        let keep_alive = (max_idle > 0).then(|| (Arc::clone(backend), max_idle));
        BackendExchange { keep_alive, ..self }
    }

    /// `request`: what goes before the content. The answer has at most `remaining` bytes.
    pub fn plain(
        services: &Rc<Services>,
        connection: BackendConnection,
        request: Vec<u8>,
        remaining: u64,
        stderr_log: StderrLog,
    ) -> BackendExchange {
        let framing = Framing::Plain {
            remaining,
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
            head: None,
            has_received: false,
            overloaded: false,
            must_close: false,
            stderr_log,
            began: Instant::now(),
        }
    }

    /// Names the application, and the time that the head of its answer took; `None` for a program that was started for the
    /// request.
    pub fn timing(&self) -> Option<UpstreamTiming> {
        let in_flight = self.connection.as_ref()?.in_flight.as_ref()?;
        Some(UpstreamTiming {
            address: in_flight.backend().address().to_string().into(),
            head: Some(self.began.elapsed()),
        })
    }

    /// Goes on until the head of the answer is there, and the request has been sent. While the disk is waited for, the time of the
    /// application stands still.
    pub async fn run_until_head(
        mut self,
        body: RequestBody,
        deadline: &Deadline,
        ticks: u32,
    ) -> Result<BackendExchange, BackendError> {
        match body.is_empty() {
            true => self.framing.body_end(self.sending.buffer()),
            false => self.body = Some(body),
        }
        poll_fn(|context| self.poll_head(context, deadline, ticks)).await?;
        Ok(self)
    }

    /// Where the head of the answer ends; the content follows it.
    pub fn head(&self) -> usize {
        self.head.unwrap_or_default()
    }

    /// What has come of the answer and was not taken yet.
    pub fn received(&mut self) -> &mut Vec<u8> {
        &mut self.received
    }

    pub fn is_over(&self) -> bool {
        match &self.framing {
            Framing::Records(records) => records.is_ended(),
            Framing::Plain { is_over, .. } => *is_over,
        }
    }

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
            if self.head.is_some() {
                let is_sent = self.is_flushed() && send_state == SendState::Done;
                if is_sent || self.is_over() || self.received.len() >= MAX_BUFFERED {
                    self.must_close |= !is_sent;
                    self.body = None;
                    return Poll::Ready(Ok(()));
                }
                // Some came back: it is sent again, or its room is waited for.
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

    /// Whether what the socket has taken has left, so that nothing of it can come back.
    fn is_flushed(&mut self) -> bool {
        let connection = self.connection.as_mut();
        connection.is_none_or(|connection| connection.socket.is_flushed(&mut self.sending))
    }

    /// Sends what there is of the request.
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
                // It listens no more; what it says is still worth hearing, and tells more than this error.
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
                    self.framing.body(self.sending.buffer(), &chunk);
                    deadline.set(ticks);
                }
                Poll::Ready(Ok(None)) => {
                    self.framing.body_end(self.sending.buffer());
                    self.body = None;
                    deadline.set(ticks);
                }
                Poll::Ready(Err(error)) => return Err(BackendError::RequestBody(error)),
            }
        }
    }

    /// Receives once, and reads the records in it.
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
            Poll::Pending => return Poll::Pending,
            Poll::Ready(received) => received,
        };
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
            // What is complete is passed on: that there is more behind it spoils the connection, not the answer.
            if !self.is_over() {
                return Poll::Ready(Err(error));
            }
        }
        if self.head.is_none() {
            self.head = find_head_end(&self.received, before);
            if self.head.unwrap_or(self.received.len()) > MAX_HEAD_SIZE {
                return Poll::Ready(Err(BackendError::HeadTooLong));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The other side has closed.
    fn on_eof(&mut self) -> Result<(), BackendError> {
        let Framing::Plain { is_over, .. } = &mut self.framing else {
            return Err(BackendError::NoResponse);
        };
        match &self.connection {
            Some(connection) if connection.socket.has_ended_cleanly() => {
                *is_over = true;
                Ok(())
            }
            _ => Err(BackendError::Timeout),
        }
    }

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
                // What the script returned is nobody's matter here.
                RecordEvent::End(end) => self.overloaded = end.protocol_status == OVERLOADED,
                RecordEvent::More => {}
            }
            at += received.consumed;
        }
        Ok(())
    }

    /// Whether the answer ends with its connection, so that its own length is all that tells whether it came whole.
    pub fn ends_by_closing(&self) -> bool {
        matches!(self.framing, Framing::Plain { .. })
    }

    /// Behind the last of the answer: the connection is kept for another request, if it is fit for one.
    pub fn finish(&mut self) {
        let fit = self.is_over() && !self.must_close && self.body.is_none() && self.sending.is_empty();
        match (self.connection.take().filter(|_| fit), &self.keep_alive) {
            (Some(connection), Some((backend, max_idle))) => backend.put_idle(connection, *max_idle),
            // A program may go on for a moment, with what nobody waits for.
            (Some(connection), None) => drop(connection.socket.into_idle()),
            (None, _) => {}
        }
    }
}

/// How the streams of bodies tell that an answer was cut.
impl From<BackendError> for io::Error {
    fn from(error: BackendError) -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionAborted, format!("the application: {error}"))
    }
}
