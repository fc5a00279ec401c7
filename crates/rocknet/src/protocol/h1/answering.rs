//! Answering: from one request to its answer in the send queue, and what becomes of the connection after it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Content, EncodeError, Length, Next, Refusal};
use rocknet_proto::request::{OwnedRequest, Request, RequestIndex};
use rocknet_proto::status::Status;

use super::connection::{Connection, Feeding, State, Waiting};
use super::feed::Feed;
use super::reply::{H1Reply, Written};
use crate::dispatch::{self, Arrival, Asker, Dispatched, Later};
use crate::exchange::{Pipe, RequestContent};
use crate::filter;
use crate::guard;
use crate::handler::fixed;
use crate::protocol::deadlines::Phase;
use crate::protocol::facts::{Facts, access};
use crate::protocol::record;
use crate::protocol::refused;
use crate::response::{Body, Response};
use crate::worker::{View, Worker};

impl<L: Link> Connection<L> {
    #[inline]
    pub(super) fn answer(
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
        let close = worker.is_stopping() || worker.wheel.now().since(self.born) >= view.ticks.age;
        let owned = || Rc::new(OwnedRequest::copy(head, index));
        if view.is_guarded
            && let Some(response) = guard::stop(worker, view, self.secure.as_deref(), site, &request)
        {
            let facts = Facts::new(view, site, owned);
            return self.answer_stopped(worker, view, &request, content, site, response, facts, output);
        }
        if let (Content::None, Some(number)) = (content, site) {
            let mut reply = H1Reply::new(&mut self.engine, output, worker, close);
            let dispatched = catch_unwind(AssertUnwindSafe(|| {
                let asker = Asker {
                    peer: self.client,
                    secure: self.secure.as_deref(),
                };
                dispatch::ready(worker, number, &request, asker, owned, &mut reply)
            }));
            let written = reply.written;
            match dispatched {
                Ok(Some(Dispatched::Sent(status))) if written.feed.is_none() => {
                    worker.counters.answered(status);
                    record::write(
                        worker,
                        access(view, site),
                        self.client,
                        &mut self.client_text,
                        Some(&request),
                        status,
                        written.content_bytes,
                    );
                    return self.go_on(written.next.unwrap_or(Next::Close));
                }
                Ok(None) => {}
                Ok(Some(dispatched)) => {
                    let facts = Facts::new(view, site, owned);
                    return self.dispatched(worker, view, dispatched, written, facts, None, output);
                }
                Err(_) => return self.panicked(worker, view, Facts::new(view, site, owned), output),
            }
        }
        let logged = site.or_else(|| view.stand_in(self.local.as_deref().copied()));
        let facts = Facts::new(view, logged, owned);
        self.answer_slowly(worker, view, head, index, content, site, facts, output);
    }

    /// Answers a request that came the wrong way.
    #[inline(never)]
    fn answer_stopped(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        request: &Request<'_>,
        content: Content,
        site: Option<u32>,
        response: Response,
        facts: Facts,
        output: &mut SendQueue,
    ) {
        if let Err(refusal) = self.limit_content(view, content, site, request) {
            return self.refuse(worker, view, refusal, request.path, facts, output);
        }
        let dispatched = Dispatched::Respond(Box::new(response));
        self.dispatched(worker, view, dispatched, Written::default(), facts, None, output);
    }

    fn limit_content(
        &mut self,
        view: &View,
        content: Content,
        site: Option<u32>,
        request: &Request<'_>,
    ) -> Result<(), Refusal> {
        if content == Content::None {
            return Ok(());
        }
        let limit = dispatch::content_limit(view, site, request, self.secure.is_some());
        self.engine.set_content_limit(limit)
    }

    #[inline(never)]
    pub(super) fn answer_slowly(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        head: &[u8],
        index: &RequestIndex,
        content: Content,
        site: Option<u32>,
        facts: Facts,
        output: &mut SendQueue,
    ) {
        let request = index.view(head);
        if let Err(refusal) = self.limit_content(view, content, site, &request) {
            return self.refuse(worker, view, refusal, request.path, facts, output);
        }
        let (request_content, pipe) = match content {
            Content::None => (RequestContent::none(), None),
            _ => {
                let (content, pipe) = RequestContent::piped();
                (content, Some(pipe))
            }
        };
        let owned = || {
            facts
                .request
                .clone()
                .unwrap_or_else(|| Rc::new(OwnedRequest::copy(head, index)))
        };
        let dispatched = catch_unwind(AssertUnwindSafe(|| {
            let arrival = Arrival {
                request: &request,
                owned,
                content: request_content,
                peer: self.client,
                secure: self.secure.as_ref(),
            };
            dispatch::slow(worker, site, arrival)
        }));
        match dispatched {
            Ok(dispatched) => self.dispatched(worker, view, dispatched, Written::default(), facts, pipe, output),
            Err(_) => self.panicked(worker, view, facts, output),
        }
    }

    pub(super) fn dispatched(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        dispatched: Dispatched,
        written: Written,
        facts: Facts,
        pipe: Option<Rc<Pipe>>,
        output: &mut SendQueue,
    ) {
        self.deadlines.set_patience(None);
        match dispatched {
            Dispatched::Sent(status) => match written.feed {
                Some(feed) => {
                    let sent = written.content_bytes;
                    self.deadlines.leave_handler();
                    self.state = State::Feeding(Box::new(Feeding {
                        feed,
                        status,
                        sent,
                        facts,
                        pipe: None,
                    }));
                }
                None => {
                    let next = written.next.unwrap_or_else(|| self.engine.finish(output.buffer()));
                    self.answered(worker, status, written.content_bytes, &facts, next);
                }
            },
            Dispatched::Respond(response) => self.respond(worker, view, *response, false, facts, output),
            Dispatched::Later(Later { answer, patience, .. }) => {
                self.deadlines.set_patience(patience);
                self.deadlines.begin(Phase::Handler, self.answer_ticks(view));
                self.state = State::Waiting(Box::new(Waiting { answer, pipe, facts }));
            }
        }
    }

    /// Writes an answer that was not prepared.
    pub(super) fn respond(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        response: Response,
        close: bool,
        facts: Facts,
        output: &mut SendQueue,
    ) {
        self.state = State::Reading;
        self.deadlines.leave_handler();
        let close = close || worker.is_stopping() || worker.wheel.now().since(self.born) >= view.ticks.age;
        let Response { status, fields, body } = response;
        if let Body::Tunnel(switch) = body {
            return self.begin_tunnel(worker, view, fields, switch, facts, output);
        }
        let date = worker.clock.date();
        // What is here whole needs no account of its pieces.
        let body = match body.whole() {
            Ok(bytes) => {
                let length = bytes.len() as u64;
                let (framing, next) = self.engine.respond_complete(status, Length::Exact(length), close);
                if let Err(error) = h1::encode_dated_head(output.buffer(), framing, status, &date, &fields) {
                    return self.broken_answer(worker, error, &facts, output);
                }
                let sent = if framing.content { length } else { 0 };
                if sent > 0 {
                    output.push_owned(bytes);
                }
                return self.answered(worker, status, sent, &facts, next);
            }
            Err(body) => body,
        };
        let length = body.length().map_or(Length::Unknown, Length::Exact);
        let framing = self.engine.respond(status, length, close);
        if let Err(error) = h1::encode_dated_head(output.buffer(), framing, status, &date, &fields) {
            return self.broken_answer(worker, error, &facts, output);
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
                    facts,
                    pipe: None,
                }));
                return;
            }
        }
        let next = self.engine.finish(output.buffer());
        self.answered(worker, status, sent, &facts, next);
    }

    /// Answers in place of an answer that cannot be sent.
    #[cold]
    fn broken_answer(&mut self, worker: &Rc<Worker>, error: EncodeError, facts: &Facts, output: &mut SendQueue) {
        tracing::error!("an answer could not be written: {error}");
        output.buffer().extend_from_slice(BROKEN_ANSWER);
        self.engine.abort();
        self.answered(worker, Status::INTERNAL_SERVER_ERROR, 0, facts, Next::Linger);
    }

    pub(super) fn answered(&mut self, worker: &Rc<Worker>, status: Status, sent: u64, facts: &Facts, next: Next) {
        worker.counters.answered(status);
        record::write(
            worker,
            facts.access,
            self.client,
            &mut self.client_text,
            facts.request.as_ref().map(|request| request.view()).as_ref(),
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
        view: &View,
        refusal: Refusal,
        path: &[u8],
        facts: Facts,
        output: &mut SendQueue,
    ) {
        refused::log(view, &self.client, &facts, path, refusal.status(), refusal.reason());
        let is_preface = view.h2c && refusal.may_be_preface();
        if refusal.may_answer() && !is_preface && self.engine.may_answer() {
            let mut response = fixed::refused(refusal);
            filter::headers::apply_server(&mut response.fields);
            self.respond(worker, view, response, true, facts, output);
        }
        self.state = State::Closing { linger: true };
    }

    #[cold]
    pub(super) fn panicked(&mut self, worker: &Rc<Worker>, view: &View, facts: Facts, output: &mut SendQueue) {
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
}

/// What goes out when an answer turns out to be unspeakable.
pub(super) const BROKEN_ANSWER: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
