//! Answering: from one request to its answer in the send queue, and what becomes of the connection after it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Content, EncodeError, Length, Next, Refusal};
use rocknet_proto::request::{OwnedRequest, RequestIndex};
use rocknet_proto::status::Status;

use super::connection::{Connection, Feeding, State, Waiting};
use super::feed::Feed;
use super::reply::{H1Reply, Written};
use crate::pipeline::{self, Begun, Going, Incoming, RequestContext, Step, access_log, refusals};
use crate::protocol::deadlines::Phase;
use crate::protocol::record;
use crate::response::{Body, Response};
use crate::worker::{View, Worker};

impl<L: Link> Connection<L> {
    #[inline]
    pub(super) fn answer(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        head: &[u8],
        index: &RequestIndex,
        content: Content,
        output: &mut SendQueue,
    ) {
        let request = index.view(head);
        let close = worker.is_stopping() || worker.wheel.now().since(self.born) >= view.ticks.age;
        let incoming = Incoming {
            request: &request,
            owned: || Rc::new(OwnedRequest::copy(head, index)),
            has_body: content != Content::None,
            peer: self.client,
            secure: self.secure.as_ref(),
            local: self.local.as_deref().copied(),
        };
        let mut reply = H1Reply::new(&mut self.engine, output, worker, close);
        let begun = catch_unwind(AssertUnwindSafe(|| {
            pipeline::begin(worker, view, &incoming, &mut reply)
        }));
        let written = reply.written;
        match begun {
            Ok(Begun::Sent { status, site }) if written.feed.is_none() => {
                worker.counters.answered(status);
                record::write(
                    worker,
                    access_log(view, Some(site)),
                    self.client,
                    &mut self.client_text,
                    Some(&request),
                    status,
                    written.content_bytes,
                );
                self.go_on(written.next.unwrap_or(Next::Close));
            }
            Ok(Begun::Sent { status, site }) => {
                let request_context = RequestContext::new(view, Some(site), None, incoming.local, incoming.owned);
                self.step(
                    worker,
                    view,
                    Rc::new(request_context),
                    Step::Sent(status),
                    false,
                    written,
                    output,
                );
            }
            Ok(Begun::Going(going)) => self.proceed(worker, view, going, written, output),
            Err(_) => {
                let request_context = pipeline::context_of(view, &incoming);
                self.panicked(worker, view, request_context, output);
            }
        }
    }

    #[inline(never)]
    pub(super) fn proceed(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        going: Going,
        written: Written,
        output: &mut SendQueue,
    ) {
        let Going { context, step, close } = going;
        self.step(worker, view, context, step, close, written, output);
    }

    /// Goes on with a response that was sent, is here, or is waited for. `close`: the connection ends with it.
    pub(super) fn step(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        request_context: Rc<RequestContext>,
        step: Step,
        close: bool,
        written: Written,
        output: &mut SendQueue,
    ) {
        self.deadlines.set_patience(None);
        match step {
            Step::Sent(status) => match written.feed {
                Some(feed) => {
                    let sent = written.content_bytes;
                    self.deadlines.leave_handler();
                    self.state = State::Feeding(Box::new(Feeding {
                        feed,
                        status,
                        sent,
                        request_context,
                        pipe: None,
                    }));
                }
                None => {
                    let next = written.next.unwrap_or_else(|| self.engine.finish(output.buffer()));
                    self.answered(worker, status, written.content_bytes, &request_context, next);
                }
            },
            Step::Respond(response) => {
                self.respond(worker, view, *response, close, request_context, output);
                if close && !matches!(self.state, State::Feeding(_)) {
                    self.state = State::Closing { linger: true };
                }
            }
            Step::Wait(pending) => {
                self.deadlines.set_patience(pending.patience);
                self.deadlines.begin(Phase::Handler, self.answer_ticks(view));
                self.state = State::Waiting(Box::new(Waiting {
                    pending,
                    pipe: written.pipe,
                    request_context,
                    close,
                }));
            }
        }
    }

    /// Writes an answer that was not prepared.
    pub(super) fn respond(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        response: Response,
        close: bool,
        request_context: Rc<RequestContext>,
        output: &mut SendQueue,
    ) {
        self.state = State::Reading;
        self.deadlines.leave_handler();
        let close = close || worker.is_stopping() || worker.wheel.now().since(self.born) >= view.ticks.age;
        let Response {
            status, fields, body, ..
        } = response;
        if let Body::Tunnel(switch) = body {
            return self.begin_tunnel(worker, view, fields, switch, request_context, output);
        }
        let date = worker.clock.date();
        // What is here whole needs no account of its pieces.
        let body = match body.whole() {
            Ok(bytes) => {
                let length = bytes.len() as u64;
                let (framing, next) = self.engine.respond_complete(status, Length::Exact(length), close);
                if let Err(error) = h1::encode_dated_head(output.buffer(), framing, status, &date, &fields) {
                    return self.broken_answer(worker, error, &request_context, output);
                }
                let sent = if framing.content { length } else { 0 };
                if sent > 0 {
                    output.push_owned(bytes);
                }
                return self.answered(worker, status, sent, &request_context, next);
            }
            Err(body) => body,
        };
        let length = body.length().map_or(Length::Unknown, Length::Exact);
        let framing = self.engine.respond(status, length, close);
        if let Err(error) = h1::encode_dated_head(output.buffer(), framing, status, &date, &fields) {
            return self.broken_answer(worker, error, &request_context, output);
        }
        let mut sent = 0;
        if framing.content {
            self.open_ended = !framing.chunked && framing.content_length.is_none();
            // A stream is accounted for piece by piece.
            if let Some(length) = body.length().filter(|_| !matches!(body, Body::Stream(_))) {
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
                    request_context,
                    pipe: None,
                }));
                return;
            }
        }
        let next = self.engine.finish(output.buffer());
        self.answered(worker, status, sent, &request_context, next);
    }

    /// Answers in place of an answer that cannot be sent.
    #[cold]
    fn broken_answer(
        &mut self,
        worker: &Rc<Worker>,
        error: EncodeError,
        request_context: &RequestContext,
        output: &mut SendQueue,
    ) {
        tracing::error!("an answer could not be written: {error}");
        output.buffer().extend_from_slice(BROKEN_ANSWER);
        self.engine.abort();
        self.answered(worker, Status::INTERNAL_SERVER_ERROR, 0, request_context, Next::Linger);
    }

    pub(super) fn answered(
        &mut self,
        worker: &Rc<Worker>,
        status: Status,
        sent: u64,
        request_context: &RequestContext,
        next: Next,
    ) {
        worker.counters.answered(status);
        record::write(
            worker,
            request_context.access,
            self.client,
            &mut self.client_text,
            request_context.request.as_ref().map(|request| request.view()).as_ref(),
            status,
            sent,
        );
        self.state = State::Reading;
        self.stalled = !self.unread.is_empty();
        self.go_on(next);
    }

    #[inline]
    pub(super) fn go_on(&mut self, next: Next) {
        match next {
            // Whatever is waited for next, its time begins anew.
            Next::KeepAlive => self.deadlines.leave(),
            Next::Drain => {
                self.deadlines.leave();
                self.dropped = 0;
            }
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
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        refusal: Refusal,
        request_context: Rc<RequestContext>,
        output: &mut SendQueue,
    ) {
        let step = pipeline::refused(worker, &request_context, self.client, b"", refusal);
        let is_preface = view.h2c && refusal.may_be_preface();
        if refusal.may_answer() && !is_preface && self.engine.may_answer() {
            self.step(worker, view, request_context, step, true, Written::default(), output);
        } else {
            self.state = State::Closing { linger: true };
        }
    }

    #[cold]
    pub(super) fn panicked(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        request_context: Rc<RequestContext>,
        output: &mut SendQueue,
    ) {
        worker.counters.panics.add(1);
        refusals::log_panic(&request_context);
        if self.engine.may_answer() {
            let step = pipeline::error(worker, &request_context, Status::INTERNAL_SERVER_ERROR);
            self.step(worker, view, request_context, step, true, Written::default(), output);
        } else {
            self.engine.abort();
            self.state = State::Closing { linger: true };
        }
    }
}

/// What goes out when an answer turns out to be unspeakable.
pub(super) const BROKEN_ANSWER: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
