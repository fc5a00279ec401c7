//! One request and its answer over one connection: content goes there as the client sends it, while what comes back is
//! read, up to the end of its head and from there on as it is asked for.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::wheel::Deadline;
use rocknet_proto::h1::{Answered, Fault, ResponseContent};
use rocknet_proto::limits::Limits;
use rocknet_proto::response::ResponseIndex;
use rocknet_proto::status::Status;

use super::Times;
use super::answer::Head;
use super::connection::Connection;
use super::group::Place;
use super::mistrust;
use super::pool::Input;
use super::request::Sent;
use super::switch::Wish;
use super::trailers;
use super::trouble::Trouble;
use super::upstream::Upstream;
use crate::exchange::RequestContent;
use crate::interim::Interim;
use crate::response::FieldList;
use crate::worker::Worker;

/// Bytes of an answer's head, and its fields: twice what clients may say, because cookies are set with all they hold.
const LIMITS: Limits = Limits {
    head_size: 32 * 1024,
    fields: 200,
    target_size: 0,
    trailer_size: 8 * 1024,
    chunk_extension: 4 * 1024,
    content_size: 0,
};

pub struct Conversation {
    worker: Rc<Worker>,
    upstream: Arc<Upstream>,
    /// Left when the answer is over.
    place: Option<Place>,
    /// Taken when it is kept for another.
    connection: Option<Box<Connection>>,
    times: Times,
    /// Client's content that is still to come.
    content: Option<RequestContent>,
    /// The request has content, whether it is still to come or not.
    has_content: bool,
    /// Fields that the proxy sets, in trailers as in heads.
    set: Arc<[(String, String)]>,
    /// Some of that content was taken.
    taken: bool,
    answer: Answer,
    heard: bool,
    /// Something went wrong that rules out another request on this connection.
    spoilt: bool,
}

/// What has come of an answer.
#[derive(Default)]
struct Answer {
    head: Option<Head>,
    /// Content that nobody has taken.
    pending: Vec<u8>,
    /// What of 103 (Early Hints) nobody has been told yet.
    hints: Option<FieldList>,
    wish: Option<Rc<Wish>>,
    /// Fields behind the content.
    trailers: Option<FieldList>,
    /// The protocol that the upstream has gone over to.
    switched: Option<Vec<u8>>,
    is_over: bool,
}

/// What sending the request waits for.
#[derive(PartialEq, Eq)]
enum Asking {
    Client,
    Server,
    Nothing,
}

impl Conversation {
    pub fn new(
        worker: &Rc<Worker>,
        upstream: &Arc<Upstream>,
        connection: Box<Connection>,
        times: Times,
        set: &Arc<[(String, String)]>,
    ) -> Conversation {
        Conversation {
            worker: Rc::clone(worker),
            upstream: Arc::clone(upstream),
            place: None,
            connection: Some(connection),
            times,
            content: None,
            has_content: false,
            set: Arc::clone(set),
            taken: false,
            answer: Answer::default(),
            heard: false,
            spoilt: false,
        }
    }

    /// Goes on until the head of the answer is there. `content` is left where it is when nothing of it was taken, so that
    /// another server can be asked. The time the client takes is the client's.
    pub async fn hold(
        mut self,
        sent: &Sent<'_>,
        content: &mut Option<RequestContent>,
        interim: &mut Interim,
        deadline: &Deadline,
    ) -> Result<Conversation, Trouble> {
        if let Some(connection) = &mut self.connection {
            let Connection { engine, out, .. } = &mut **connection;
            sent.encode(engine, &self.upstream, out.buffer())
                .map_err(Trouble::Request)?;
        }
        self.answer.wish = sent.wish().map(Rc::clone);
        if sent.has_content() {
            self.has_content = true;
            self.content = content.take();
        }
        deadline.set(self.times.first_byte);
        let held = poll_fn(|context| self.poll_head(context, interim, deadline)).await;
        if !self.taken && self.content.is_some() {
            *content = self.content.take();
        }
        held.map(|()| self)
    }

    /// The place at the server is this one's until the answer is over.
    pub fn hold_place(&mut self, place: Place) {
        self.place = Some(place);
    }

    pub fn take_head(&mut self) -> Option<Head> {
        self.answer.head.take()
    }

    /// The protocol that was agreed on, if one was.
    pub fn take_switched(&mut self) -> Option<Vec<u8>> {
        self.answer.switched.take()
    }

    /// The connection, to be used for something else than HTTP.
    pub fn take_connection(&mut self) -> Option<Box<Connection>> {
        self.connection.take()
    }

    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// What has come of the content and was not taken yet.
    pub fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answer.pending)
    }

    pub fn is_over(&self) -> bool {
        self.answer.is_over
    }

    pub fn has_trailers(&self) -> bool {
        self.answer.trailers.is_some()
    }

    /// Fields behind the content, once that is over.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        self.answer.trailers.take()
    }

    /// A deadline for the pieces of the answer.
    pub fn deadline(&self) -> Deadline {
        self.worker.wheel.deadline()
    }

    pub fn idle_ticks(&self) -> u32 {
        self.times.idle
    }

    /// Goes on with an answer that has begun: what is still to be sent of its request, and then what is there of it.
    pub fn poll_on(&mut self, context: &mut Context<'_>, deadline: &Deadline) -> Poll<Result<(), Trouble>> {
        // Silent is who neither speaks nor listens: an upstream that answers bit by bit what it is sent bit by bit is not.
        if self.has_content
            && let Err(trouble) = self.ask(context, deadline, self.times.idle)
        {
            return Poll::Ready(Err(trouble));
        }
        match self.poll_more(context) {
            Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(Err(Trouble::Slow)),
            polled => polled,
        }
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        interim: &mut Interim,
        deadline: &Deadline,
    ) -> Poll<Result<(), Trouble>> {
        loop {
            let asking = match self.ask(context, deadline, self.times.first_byte) {
                Ok(asking) => asking,
                Err(trouble) => return Poll::Ready(Err(trouble)),
            };
            if self.answer.head.is_some() {
                // Behind a whole answer nobody wants the rest of the request.
                if self.is_over() && asking != Asking::Nothing {
                    (self.spoilt, self.content) = (true, None);
                }
                self.taken = true;
                return Poll::Ready(Ok(()));
            }
            match self.poll_more(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(trouble)) => return Poll::Ready(Err(trouble)),
                Poll::Pending if asking != Asking::Client && deadline.poll_past(context.waker()) => {
                    return Poll::Ready(Err(Trouble::Slow));
                }
                Poll::Pending => {
                    if self.answer.hints.is_some() {
                        // Nobody waits until they are taken: this is polled again when they are.
                        let _ = interim.poll_early_hints(context, &mut self.answer.hints);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Sends what there is of the request; after each piece of it the other side has `ticks` anew.
    fn ask(&mut self, context: &mut Context<'_>, deadline: &Deadline, ticks: u32) -> Result<Asking, Trouble> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Ok(Asking::Nothing);
            };
            let Connection { link, engine, out, .. } = &mut **connection;
            if let Some(unsent) = link.take_unsent() {
                out.put_back(unsent);
                match link.poll_send(context, out) {
                    Poll::Pending => return Ok(Asking::Server),
                    Poll::Ready(sent) => self.spoilt |= sent.is_err(),
                }
            }
            if !out.is_empty() && !link.send_together(out) {
                match link.poll_send(context, out) {
                    Poll::Pending => return Ok(Asking::Server),
                    Poll::Ready(Ok(())) => {}
                    // It listens no more; what it says is still worth hearing, and tells more than this error.
                    Poll::Ready(Err(_)) => self.spoilt = true,
                }
            }
            if self.spoilt {
                out.clear();
                if self.taken {
                    self.content = None;
                }
                return Ok(Asking::Nothing);
            }
            let Some(content) = &mut self.content else {
                return Ok(Asking::Nothing);
            };
            match content.poll_chunk(context) {
                Poll::Pending => return Ok(Asking::Client),
                Poll::Ready(Ok(Some(chunk))) => {
                    self.taken = true;
                    engine
                        .begin_data(chunk.len() as u64, out.buffer())
                        .map_err(Trouble::Request)?;
                    if !chunk.is_empty() {
                        out.push_owned(chunk);
                        out.buffer().extend_from_slice(engine.data_end());
                    }
                }
                Poll::Ready(Ok(None)) => {
                    let trailers = content.take_trailers().unwrap_or_default();
                    let trailers = trailers::of_request(&trailers, &self.set);
                    (self.taken, self.content) = (true, None);
                    let is_whole = engine.finish(trailers.bytes(), out.buffer());
                    if !is_whole.map_err(Trouble::Request)? {
                        return Err(Trouble::Content(crate::exchange::ContentError::Cut));
                    }
                }
                Poll::Ready(Err(error)) => {
                    self.taken = true;
                    return Err(Trouble::Content(error));
                }
            }
            deadline.set(ticks);
        }
    }

    /// Receives once, and reads what came.
    pub fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Err(Trouble::Silent));
        };
        let is_unheard = !self.heard && !connection.is_new;
        let Connection {
            link, engine, unread, ..
        } = &mut **connection;
        let mut input = self.worker.upstreams.input.borrow_mut();
        let Input { bytes, index } = input.ready();
        let received = match link.poll_recv(context, bytes) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(received)) => received,
            Poll::Ready(Err(_)) if is_unheard => return Poll::Ready(Err(Trouble::Unheard)),
            // Under TLS 1.3 a server sees our certificate when the handshake is over for us.
            Poll::Ready(Err(error)) if !self.heard && mistrust::is_refusal(&error) => {
                return Poll::Ready(Err(Trouble::Handshake(error)));
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(Trouble::Broken(error))),
        };
        let answer = &mut self.answer;
        let read = if received.is_empty() {
            self.spoilt = true;
            match engine.closed() {
                Ok(ended) => {
                    answer.is_over |= ended;
                    Ok(())
                }
                Err(_) if is_unheard => return Poll::Ready(Err(Trouble::Unheard)),
                Err(_) if !self.heard => return Poll::Ready(Err(Trouble::Silent)),
                Err(fault) => Err(fault),
            }
        } else {
            self.heard = true;
            if unread.is_empty() {
                answer.read(engine, &received, index).map(|consumed| {
                    unread.extend_from_slice(&received[consumed..]);
                })
            } else {
                unread.extend_from_slice(&received);
                answer.read(engine, unread, index).map(|consumed| {
                    unread.drain(..consumed);
                })
            }
        };
        // What lies behind the end is nobody's.
        self.spoilt |= answer.is_over && !unread.is_empty();
        Poll::Ready(read.map_err(Trouble::Fault))
    }

    /// Behind the last of the answer: the connection is kept for another request, if it is fit for one.
    pub fn finish(&mut self) {
        self.place = None;
        let is_fit = self.is_over() && !self.spoilt && self.content.is_none();
        if let Some(connection) = self.connection.take().filter(|_| is_fit) {
            let tick_ms = u64::try_from(self.worker.wheel.tick_length().as_millis()).unwrap_or(u64::MAX);
            let idle_ms = tick_ms.saturating_mul(self.times.idle.into());
            let now_ms = self.worker.clock.uptime_ms();
            self.worker.upstreams.keep(&self.upstream, connection, now_ms, idle_ms);
        }
    }
}

impl Answer {
    /// Reads what there is, and tells how much of it is understood.
    fn read(
        &mut self,
        engine: &mut rocknet_proto::h1::ClientConnection,
        bytes: &[u8],
        index: &mut ResponseIndex,
    ) -> Result<usize, Fault> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match engine.receive(&LIMITS, rest, index)? {
                Answered::More { consumed } => return Ok(at + consumed),
                Answered::Interim { consumed } => {
                    if index.status == Status::EARLY_HINTS {
                        // Those that nobody took yet are told with these.
                        let head = Head::new(&index.view(rest), ResponseContent::None, None);
                        let hints = self.hints.get_or_insert_default();
                        for (name, value) in head.fields().iter() {
                            hints.add(name.to_owned(), value.to_owned());
                        }
                    }
                    at += consumed;
                }
                Answered::Response { consumed, content } => {
                    self.head = Some(Head::new(&index.view(rest), content, None));
                    at += consumed;
                    if content == ResponseContent::None {
                        self.is_over = true;
                        return Ok(at);
                    }
                }
                Answered::Data { start, end } => {
                    self.pending.extend_from_slice(&rest[start..end]);
                    at += end;
                }
                Answered::End { consumed } => {
                    let came = FieldList::copied(index.trailers.view(rest).lines());
                    self.trailers = Some(trailers::of_answer(&came)).filter(|fields| !fields.is_empty());
                    self.is_over = true;
                    return Ok(at + consumed);
                }
                Answered::Switched { consumed } => {
                    let response = index.view(rest);
                    let wish = self.wish.as_deref();
                    let agreed = wish.and_then(|wish| wish.agreed(response.fields));
                    self.switched = Some(agreed.ok_or(Fault::UnaskedUpgrade)?);
                    self.head = Some(Head::new(&response, ResponseContent::None, wish));
                    return Ok(at + consumed);
                }
                Answered::Blocked => return Ok(at),
            }
        }
    }
}

/// How the streams of bodies tell that an answer was cut.
impl From<Trouble> for io::Error {
    fn from(trouble: Trouble) -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionAborted, format!("proxy: {trouble}"))
    }
}
