//! One HTTP/1 connection: a future that ends with it.
//!
//! ```text
//! Reading ──request, ready──▶ Reading        the fast way: no task, no allocation, one write for all that was read
//!    │ └──not ready──▶ Waiting ──response──▶ Feeding ──all queued──▶ Reading | Closing
//!    └──last answer──▶ Closing ──sent──▶ Lingering ──client closed──▶ Closed
//! ```
//! Before any state acts, what is queued must have left: that is all the back-pressure there is.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Content, Length, Next, Received, Refusal, ServerConnection};
use rocknet_proto::request::{OwnedRequest, RequestIndex};
use rocknet_proto::status::Status;

use super::content::{Pulled, pull};
use super::deadlines::{Deadlines, Phase};
use super::feed::{Fed, Feed};
use super::record;
use super::reply::H1Reply;
use crate::dispatch::{self, Dispatched, Outcome};
use crate::exchange::{Client, ContentError, Pipe, RequestContent};
use crate::filter;
use crate::handler::fixed;
use crate::response::Response;
use crate::worker::{Buffers, OpenConnection, View, Worker};

/// Answers rendered before they are sent, so that a client that pipelines without reading cannot fill memory.
const OUTPUT_BOUND: u64 = 256 * 1024;
/// Content nobody wanted is read and thrown away up to here, to save the connection; beyond, it is closed.
const DRAIN_BOUND: u32 = 256 * 1024;
/// After our last answer this much is read, so that closing does not reset what is still on its way.
const LINGER_BOUND: u32 = 1 << 20;

pub struct Connection<L> {
    link: L,
    engine: ServerConnection,
    open: OpenConnection,
    deadlines: Deadlines,
    client: Client,
    /// The address it came in on, where that matters. Boxed, as the next field is: every byte here is paid for by each
    /// idle connection.
    local: Option<Box<IpAddr>>,
    /// The client's address as text, once it has been logged.
    client_text: Option<Box<String>>,
    /// The wheel's tick at its beginning.
    born: u32,
    state: State,
    /// What was received and not yet understood: empty for an idle connection.
    unread: Vec<u8>,
    /// `unread` may hold whole requests.
    stalled: bool,
    /// What did not fit into the socket.
    backlog: Option<Box<SendQueue>>,
    /// Bytes thrown away, of content or while lingering.
    dropped: u32,
}

enum State {
    Reading,
    Waiting(Box<Waiting>),
    Feeding(Box<Feeding>),
    Closing { linger: bool },
    Lingering,
    Closed,
}

/// A request whose answer is still being made.
struct Waiting {
    answer: Pin<Box<dyn Future<Output = Outcome>>>,
    pipe: Option<Rc<Pipe>>,
    facts: Facts,
}

/// An answer that is being sent.
struct Feeding {
    feed: Feed,
    status: Status,
    sent: u64,
    facts: Facts,
}

/// What the access log will want to know.
struct Facts {
    site: Option<u32>,
    /// Kept only where there is a log.
    request: Option<Rc<OwnedRequest>>,
}

impl<L: Link> Connection<L> {
    pub fn new(worker: &Rc<Worker>, link: L, client: Client, local: Option<IpAddr>) -> Connection<L> {
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.begin(Phase::First, worker.view().ticks.header);
        Connection {
            link,
            engine: ServerConnection::new(),
            open: OpenConnection::new(worker),
            deadlines,
            client,
            local: local.map(Box::new),
            client_text: None,
            born: worker.wheel.now(),
            state: State::Reading,
            unread: Vec::new(),
            stalled: false,
            backlog: None,
            dropped: 0,
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let progress = match self.send_backlog(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => return self.broken(&error),
                Poll::Ready(Ok(())) => match &self.state {
                    State::Reading => self.read(context),
                    State::Waiting(_) => self.wait(context),
                    State::Feeding(_) => self.feed(context),
                    State::Closing { linger } => {
                        let linger = *linger;
                        self.end(linger)
                    }
                    State::Lingering => self.linger(context),
                    State::Closed => return Poll::Ready(()),
                },
            };
            match progress {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return self.broken(&error),
                Poll::Pending => {
                    let view = self.open.worker().view();
                    let (window, ticks) = match self.deadlines.phase() {
                        Phase::Content => (view.content_window(), view.ticks.body),
                        _ => (view.send_window(), view.ticks.send),
                    };
                    if !self.deadlines.poll_past(context.waker(), window, ticks) {
                        return Poll::Pending;
                    }
                    self.expire();
                }
            }
        }
    }

    /// A link that failed is mostly a client that has gone: nobody is left to tell.
    #[cold]
    fn broken(&self, error: &io::Error) -> Poll<()> {
        // But a file that ended before its time is the operator's matter.
        if error.kind() == io::ErrorKind::UnexpectedEof {
            tracing::warn!(client = %self.client, "an answer was cut off: {error}");
        }
        Poll::Ready(())
    }

    fn send_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(backlog) = &mut self.backlog else {
            return Poll::Ready(Ok(()));
        };
        let before = backlog.len();
        let sent = self.link.poll_send(context, backlog);
        let moved = before - backlog.len();
        self.open.worker().counters.bytes_sent.add(moved);
        self.deadlines.moved(moved);
        ready!(sent)?;
        self.backlog = None;
        Poll::Ready(Ok(()))
    }

    /// Sends what has been rendered into the worker's buffer; what does not fit becomes this connection's own.
    #[inline]
    fn send(&mut self, context: &mut Context<'_>, output: &mut SendQueue, view: &View) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let before = output.len();
        let sent = self.link.poll_send(context, output);
        self.open.worker().counters.bytes_sent.add(before - output.len());
        match sent {
            Poll::Ready(Ok(())) => {
                output.clear();
                Ok(())
            }
            Poll::Ready(Err(error)) => {
                output.clear();
                Err(error)
            }
            Poll::Pending => {
                self.deadlines.begin(Phase::Send, view.ticks.send);
                self.backlog = Some(Box::new(output.take_rest()));
                Ok(())
            }
        }
    }

    /// Receives, answers all that can be answered at once, and sends those answers in one go.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let buffers = &mut *worker.buffers.borrow_mut();
        let Buffers { input, output, request } = buffers;
        if self.stalled {
            self.stalled = false;
            self.work_off(&worker, &view, request, output);
        } else {
            let received = match self.link.poll_recv(context, input) {
                // All that had come before the stop is answered.
                Poll::Pending if worker.is_stopping() && self.unread.is_empty() && self.engine.is_idle() => {
                    self.state = State::Closed;
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => {
                    self.await_more(&view);
                    return Poll::Pending;
                }
                Poll::Ready(received) => received?,
            };
            if received.is_empty() {
                self.state = State::Closed;
                return Poll::Ready(Ok(()));
            }
            if self.unread.is_empty() {
                let used = self.answer_all(&worker, &view, &received, request, output);
                if used < received.len() {
                    self.unread.extend_from_slice(&received[used..]);
                }
            } else {
                self.unread.extend_from_slice(&received);
                self.work_off(&worker, &view, request, output);
            }
        }
        if matches!(self.state, State::Feeding(_)) {
            // Head and content leave together.
            return self.feed_into(context, &worker, &view, output);
        }
        Poll::Ready(self.send(context, output, &view))
    }

    fn work_off(&mut self, worker: &Rc<Worker>, view: &View, request: &mut RequestIndex, output: &mut SendQueue) {
        let mut unread = std::mem::take(&mut self.unread);
        let used = self.answer_all(worker, view, &unread, request, output);
        if used < unread.len() {
            unread.drain(..used);
            self.unread = unread;
        }
    }

    /// What is waited for when nothing more is there, and until when.
    fn await_more(&mut self, view: &View) {
        if !self.unread.is_empty() {
            self.deadlines.enter(Phase::Header, view.ticks.header);
        } else if self.engine.is_receiving_content() {
            self.deadlines.enter(Phase::Content, view.ticks.body);
        } else if self.deadlines.phase() != Phase::First {
            self.deadlines.enter(Phase::KeepAlive, view.ticks.keep_alive);
        }
    }

    /// Answers the requests in `bytes` until one has to wait; returns how many bytes are done with.
    #[inline]
    fn answer_all(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        bytes: &[u8],
        request: &mut RequestIndex,
        output: &mut SendQueue,
    ) -> usize {
        let mut at = 0;
        loop {
            match self.engine.receive(&view.head_limits, &bytes[at..], request) {
                Ok(Received::More { consumed }) => return at + consumed,
                Ok(Received::Request { consumed, content }) => {
                    let head = &bytes[at..at + consumed];
                    at += consumed;
                    self.answer(worker, view, head, request, content, output);
                    if !matches!(self.state, State::Reading) {
                        return at;
                    }
                    if at == bytes.len() && content == Content::None {
                        return at;
                    }
                    if output.len() >= OUTPUT_BOUND {
                        self.stalled = at < bytes.len();
                        return at;
                    }
                }
                // Content that nobody wants any more.
                Ok(Received::Data { start, end }) => {
                    self.dropped = self.dropped.saturating_add((end - start) as u32);
                    self.deadlines.moved((end - start) as u64);
                    at += end;
                    if self.dropped > DRAIN_BOUND {
                        self.state = State::Closing { linger: true };
                        return at;
                    }
                }
                Ok(Received::End { consumed }) => {
                    at += consumed;
                    self.dropped = 0;
                }
                Ok(Received::Blocked) => return at,
                Err(refusal) => {
                    self.refuse(worker, view, refusal, output);
                    return at;
                }
            }
        }
    }

    #[inline]
    fn answer(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        head: &[u8],
        index: &RequestIndex,
        content: Content,
        output: &mut SendQueue,
    ) {
        let request = index.view(head);
        let site = view.site(self.local.as_deref().copied(), request.authority);
        let close = worker.is_stopping() || worker.wheel.now() - self.born >= view.ticks.age;
        let owned = || Rc::new(OwnedRequest::copy(head, index));
        if let (Content::None, Some(number)) = (content, site) {
            let date = worker.clock.date();
            let mut reply = H1Reply {
                engine: &mut self.engine,
                output,
                date,
                now_ms: worker.clock.uptime_ms(),
                close,
                next: None,
                feed: None,
                content_bytes: 0,
            };
            let dispatched = catch_unwind(AssertUnwindSafe(|| {
                dispatch::ready(worker, number, &request, owned, &mut reply)
            }));
            let (next, feed, sent) = (reply.next, reply.feed, reply.content_bytes);
            match dispatched {
                Ok(Some(Dispatched::Sent(status))) if feed.is_none() => {
                    worker.counters.answered(status);
                    record::write(
                        worker,
                        view,
                        site,
                        self.client,
                        &mut self.client_text,
                        &request,
                        status,
                        sent,
                    );
                    return self.go_on(next.unwrap_or(Next::Close));
                }
                Ok(None) => {}
                Ok(Some(dispatched)) => {
                    let facts = Facts::new(view, site, owned);
                    return self.dispatched(worker, view, dispatched, feed, facts, None, output);
                }
                Err(_) => return self.panicked(worker, view, Facts::new(view, site, owned), output),
            }
        }
        let facts = Facts::new(view, site, owned);
        self.answer_slowly(worker, view, head, index, content, facts, output);
    }

    #[inline(never)]
    fn answer_slowly(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        head: &[u8],
        index: &RequestIndex,
        content: Content,
        facts: Facts,
        output: &mut SendQueue,
    ) {
        if content != Content::None {
            let limit = facts
                .site
                .map_or(0, |site| view.snapshot.sites[site as usize].body_size);
            if let Err(refusal) = self.engine.set_content_limit(limit) {
                return self.refuse(worker, view, refusal, output);
            }
        }
        let (request_content, pipe) = RequestContent::piped();
        if content == Content::None {
            pipe.end(Ok(()));
        }
        let pipe = (content != Content::None).then_some(pipe);
        let owned = || {
            facts
                .request
                .clone()
                .unwrap_or_else(|| Rc::new(OwnedRequest::copy(head, index)))
        };
        let request = index.view(head);
        let dispatched = catch_unwind(AssertUnwindSafe(|| {
            dispatch::slow(worker, facts.site, &request, owned, request_content, self.client)
        }));
        match dispatched {
            Ok(dispatched) => self.dispatched(worker, view, dispatched, None, facts, pipe, output),
            Err(_) => self.panicked(worker, view, facts, output),
        }
    }

    fn dispatched(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        dispatched: Dispatched,
        feed: Option<Feed>,
        facts: Facts,
        pipe: Option<Rc<Pipe>>,
        output: &mut SendQueue,
    ) {
        match dispatched {
            Dispatched::Sent(status) => match feed {
                Some(feed) => {
                    self.state = State::Feeding(Box::new(Feeding {
                        feed,
                        status,
                        sent: 0,
                        facts,
                    }))
                }
                None => {
                    let next = self.engine.finish(output.buffer());
                    self.answered(worker, view, status, 0, &facts, next);
                }
            },
            Dispatched::Respond(response) => self.respond(worker, view, *response, false, facts, output),
            Dispatched::Later(answer) => {
                self.deadlines.suspend();
                self.state = State::Waiting(Box::new(Waiting { answer, pipe, facts }));
            }
        }
    }

    /// Writes an answer that was not prepared.
    fn respond(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        response: Response,
        close: bool,
        facts: Facts,
        output: &mut SendQueue,
    ) {
        self.state = State::Reading;
        let close = close || worker.is_stopping() || worker.wheel.now() - self.born >= view.ticks.age;
        let Response { status, fields, body } = response;
        let length = body.length().map_or(Length::Unknown, Length::Exact);
        let framing = self.engine.respond(status, length, close);
        let date = worker.clock.date();
        let all = std::iter::once((&b"Date"[..], &date[..]))
            .chain(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        if let Err(error) = h1::encode_head(output.buffer(), framing, status, all) {
            tracing::error!("an answer could not be written: {error}");
            output.buffer().extend_from_slice(BROKEN_ANSWER);
            self.engine.abort();
            self.answered(worker, view, Status::INTERNAL_SERVER_ERROR, 0, &facts, Next::Linger);
            return;
        }
        let mut sent = 0;
        if framing.content {
            if let Some(length) = body.length() {
                sent = length;
                if self.engine.begin_data(length, output.buffer()).is_err() {
                    self.engine.abort();
                }
            }
            if let Some(feed) = Feed::start(body, output) {
                self.state = State::Feeding(Box::new(Feeding {
                    feed,
                    status,
                    sent,
                    facts,
                }));
                return;
            }
        }
        let next = self.engine.finish(output.buffer());
        self.answered(worker, view, status, sent, &facts, next);
    }

    fn answered(&mut self, worker: &Rc<Worker>, view: &View, status: Status, sent: u64, facts: &Facts, next: Next) {
        worker.counters.answered(status);
        if let Some(request) = &facts.request {
            record::write(
                worker,
                view,
                facts.site,
                self.client,
                &mut self.client_text,
                &request.view(),
                status,
                sent,
            );
        }
        self.state = State::Reading;
        self.stalled = !self.unread.is_empty();
        self.go_on(next);
    }

    #[inline]
    fn go_on(&mut self, next: Next) {
        match next {
            // Whatever is waited for next, its time begins anew.
            Next::KeepAlive => self.deadlines.leave(),
            Next::Drain => self.dropped = 0,
            Next::Close => {
                self.state = State::Closing {
                    linger: !self.unread.is_empty(),
                }
            }
            Next::Linger | Next::Upgrade => self.state = State::Closing { linger: true },
        }
    }

    /// Answers what is no acceptable request, and closes.
    #[cold]
    fn refuse(&mut self, worker: &Rc<Worker>, view: &View, refusal: Refusal, output: &mut SendQueue) {
        tracing::debug!(client = %self.client, "refused: {}", refusal.reason());
        let none = Facts {
            site: None,
            request: None,
        };
        if refusal.may_answer() && self.engine.may_answer() {
            let mut response = fixed::error_with_hint(refusal.status(), Some(refusal.reason()));
            filter::headers::apply_server(&mut response.fields);
            self.respond(worker, view, response, true, none, output);
        }
        self.state = State::Closing { linger: true };
    }

    #[cold]
    fn panicked(&mut self, worker: &Rc<Worker>, view: &View, facts: Facts, output: &mut SendQueue) {
        worker.counters.panics.add(1);
        tracing::error!("a request was ended by a panic");
        if self.engine.may_answer() {
            let mut response = fixed::error(Status::INTERNAL_SERVER_ERROR);
            filter::headers::apply_server(&mut response.fields);
            self.respond(worker, view, response, true, facts, output);
        } else {
            self.engine.abort();
        }
        self.state = State::Closing { linger: true };
    }

    /// Waits for a handler, and gives it the request's content as it asks for it.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let State::Waiting(waiting) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| waiting.answer.as_mut().poll(context)));
        if let Ok(Poll::Pending) = polled {
            let Some(pipe) = waiting.pipe.as_ref().filter(|pipe| pipe.is_wanted()).map(Rc::clone) else {
                self.deadlines.suspend();
                return Poll::Pending;
            };
            self.deadlines.enter(Phase::Content, view.ticks.body);
            return self.give_content(context, &worker, &view, &pipe);
        }
        let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Reading) else {
            return Poll::Ready(Ok(()));
        };
        let output = &mut worker.buffers.borrow_mut().output;
        match polled {
            Ok(Poll::Ready(Outcome::Response(response))) => {
                self.respond(&worker, &view, *response, false, waiting.facts, output);
            }
            Ok(Poll::Ready(Outcome::Known(known, request))) => {
                let close = worker.is_stopping() || worker.wheel.now() - self.born >= view.ticks.age;
                let date = worker.clock.date();
                let mut reply = H1Reply {
                    engine: &mut self.engine,
                    output,
                    date,
                    now_ms: worker.clock.uptime_ms(),
                    close,
                    next: None,
                    feed: None,
                    content_bytes: 0,
                };
                let view_of = Rc::clone(&request);
                let dispatched = dispatch::from_known(&worker, &known, &view_of.view(), || request, &mut reply);
                let (next, feed, sent) = (reply.next, reply.feed, reply.content_bytes);
                match (dispatched, next) {
                    (Dispatched::Sent(status), Some(next)) => {
                        self.answered(&worker, &view, status, sent, &waiting.facts, next);
                    }
                    (dispatched, _) => {
                        if let (Dispatched::Sent(status), Some(feed)) = (&dispatched, feed) {
                            let (status, facts) = (*status, waiting.facts);
                            self.state = State::Feeding(Box::new(Feeding {
                                feed,
                                status,
                                sent,
                                facts,
                            }));
                        } else {
                            self.dispatched(&worker, &view, dispatched, None, waiting.facts, waiting.pipe, output);
                        }
                    }
                }
            }
            _ => self.panicked(&worker, &view, waiting.facts, output),
        }
        Poll::Ready(self.send(context, output, &view))
    }

    fn give_content(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &View,
        pipe: &Pipe,
    ) -> Poll<io::Result<()>> {
        let Buffers { input, output, request } = &mut *worker.buffers.borrow_mut();
        if self.engine.wants_continue() {
            self.engine.continue_sent();
            output.buffer().extend_from_slice(h1::CONTINUE);
            self.send(context, output, view)?;
        }
        let pulled = pull(
            &mut self.engine,
            &mut self.link,
            context,
            &view.head_limits,
            &mut self.unread,
            input,
            request,
        );
        match ready!(pulled)? {
            Pulled::Chunk(chunk) => {
                self.deadlines.moved(chunk.len() as u64);
                pipe.put(chunk);
            }
            Pulled::End => pipe.end(Ok(())),
            Pulled::Left => {
                // Half a request and nobody to answer.
                pipe.end(Err(ContentError::Cut));
                self.state = State::Closed;
            }
            Pulled::Refused(refusal) => {
                let too_large = refusal == Refusal::ContentTooLarge;
                pipe.end(Err(if too_large {
                    ContentError::TooLarge
                } else {
                    ContentError::Cut
                }));
                self.refuse(worker, view, refusal, output);
                self.send(context, output, view)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Queues the next piece of an answer.
    fn feed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let output = &mut worker.buffers.borrow_mut().output;
        self.feed_into(context, &worker, &view, output)
    }

    fn feed_into(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &View,
        output: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        let State::Feeding(feeding) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let polled = match catch_unwind(AssertUnwindSafe(|| {
            feeding.feed.poll(context, &worker.shared.pool, output)
        })) {
            Ok(Poll::Pending) => {
                self.deadlines.suspend();
                self.send(context, output, view)?;
                return Poll::Pending;
            }
            Ok(Poll::Ready(polled)) => polled,
            Err(_) => {
                worker.counters.panics.add(1);
                Err(io::ErrorKind::Other.into())
            }
        };
        match polled {
            Ok(Fed::Some) => {}
            Ok(Fed::Chunk(bytes)) => {
                feeding.sent += bytes.len() as u64;
                let end = self.engine.data_end();
                if !bytes.is_empty() && self.engine.begin_data(bytes.len() as u64, output.buffer()).is_ok() {
                    output.push_owned(bytes);
                    output.buffer().extend_from_slice(end);
                }
            }
            Ok(Fed::Done) => {
                let State::Feeding(feeding) = std::mem::replace(&mut self.state, State::Reading) else {
                    return Poll::Ready(Ok(()));
                };
                let next = self.engine.finish(output.buffer());
                self.answered(worker, view, feeding.status, feeding.sent, &feeding.facts, next);
            }
            Err(error) => {
                // The head has left and promised more: only a cut tells the client.
                tracing::warn!("an answer was cut short: {error}");
                self.engine.abort();
                output.clear();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(self.send(context, output, view))
    }

    /// All has been sent.
    fn end(&mut self, linger: bool) -> Poll<io::Result<()>> {
        let worker = self.open.worker();
        // A client that was not the one to say close may have sent more, and closing over that would be a reset, which
        // takes away from it what it has not read yet.
        let ours = worker.is_stopping() || worker.wheel.now() - self.born >= worker.view().ticks.age;
        // Neither is it known what came while an answer that did not fit into the socket was on its way.
        let meanwhile = self.deadlines.phase() == Phase::Send;
        let linger = linger || ours || meanwhile || !self.unread.is_empty();
        self.unread = Vec::new();
        if !linger {
            self.state = State::Closed;
            return Poll::Ready(Ok(()));
        }
        self.link.shut_down()?;
        self.deadlines
            .begin(Phase::Linger, self.open.worker().view().ticks.linger);
        self.dropped = 0;
        self.state = State::Lingering;
        Poll::Ready(Ok(()))
    }

    fn linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let input = &mut worker.buffers.borrow_mut().input;
        let received = ready!(self.link.poll_recv(context, input))?;
        self.dropped = self.dropped.saturating_add(received.len() as u32);
        if received.is_empty() || self.dropped > LINGER_BOUND {
            self.state = State::Closed;
        }
        Poll::Ready(Ok(()))
    }

    /// The deadline has passed.
    #[cold]
    fn expire(&mut self) {
        let worker = Rc::clone(self.open.worker());
        let phase = self.deadlines.phase();
        tracing::debug!(client = %self.client, ?phase, "a deadline passed");
        self.deadlines.suspend();
        if !matches!(phase, Phase::Header | Phase::Content) || (phase == Phase::Content && !self.engine.may_answer()) {
            // Nothing acts before the backlog has left, and this one never will.
            self.backlog = None;
            self.state = State::Closed;
            return;
        }
        let facts = match std::mem::replace(&mut self.state, State::Reading) {
            State::Waiting(waiting) => {
                if let Some(pipe) = waiting.pipe {
                    pipe.end(Err(ContentError::TooSlow));
                }
                waiting.facts
            }
            _ => Facts {
                site: None,
                request: None,
            },
        };
        let view = worker.view();
        let mut response = fixed::error(Status::REQUEST_TIMEOUT);
        filter::headers::apply_server(&mut response.fields);
        let mut output = SendQueue::default();
        self.respond(&worker, &view, response, true, facts, &mut output);
        self.state = State::Closing { linger: true };
        self.deadlines.begin(Phase::Send, view.ticks.send);
        self.backlog = Some(Box::new(output));
    }
}

/// What goes out when an answer turns out to be unspeakable.
const BROKEN_ANSWER: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

impl Facts {
    fn new(view: &View, site: Option<u32>, owned: impl FnOnce() -> Rc<OwnedRequest>) -> Facts {
        let logs = site.is_some_and(|site| view.snapshot.sites[site as usize].access.is_some());
        Facts {
            site,
            request: logs.then(owned),
        }
    }
}

impl<L: Link + Unpin> Future for Connection<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().drive(context)
    }
}
