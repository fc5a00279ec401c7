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

use super::backend::{Backend, Connected};
use super::complaints::Complaints;
use super::trouble::Trouble;
use rocknet_handler::exchange::RequestBody;
use rocknet_handler::response::UpstreamTiming;
use rocknet_handler::services::Services;

/// Bytes of an answer that are held while its request is still being sent. A script that says more before it has read its
/// content gets no more of it: the answer has to begin, and behind its beginning no content is taken.
const MAX_AHEAD: usize = 2 * MAX_HEAD_SIZE;

/// The protocol status of an application that takes no further request.
const OVERLOADED: u8 = 2;

pub struct Conversation {
    services: Rc<Services>,
    /// Taken when it is kept for another.
    connected: Option<Connected>,
    /// Who keeps it, beside how many others.
    keeper: Option<(Arc<Backend>, usize)>,
    /// Of the request, what the socket has not taken.
    sending: SendQueue,
    /// Content that is still to be sent.
    content: Option<RequestBody>,
    framing: Framing,
    /// The answer as far as nobody has taken it, its head included until that is complete.
    answer: Vec<u8>,
    head: Option<usize>,
    heard: bool,
    /// It had no room for the request.
    overloaded: bool,
    /// Something went wrong that rules out another request on this connection.
    spoilt: bool,
    complaints: Complaints,
    began: Instant,
}

/// How the two sides tell their parts.
enum Framing {
    Records(fastcgi::ResponseReader),
    /// Content follows the request as it is, and the answer ends with the connection.
    Plain {
        /// Bytes of an answer that may still come.
        room: u64,
        is_over: bool,
    },
}

impl Framing {
    fn content(&self, out: &mut Vec<u8>, content: &[u8]) {
        match self {
            Framing::Records(_) => fastcgi::stdin(out, content),
            Framing::Plain { .. } => out.extend_from_slice(content),
        }
    }

    fn content_end(&self, out: &mut Vec<u8>) {
        match self {
            Framing::Records(_) => fastcgi::stdin_end(out),
            Framing::Plain { .. } => {}
        }
    }
}

/// What sending the request waits for.
#[derive(PartialEq, Eq)]
enum Asking {
    /// The disk.
    Content,
    Server,
    Nothing,
}

impl Conversation {
    /// `request`: its records, all but the content.
    pub fn by_records(
        services: &Rc<Services>,
        connected: Connected,
        request: Vec<u8>,
        complaints: Complaints,
    ) -> Conversation {
        let framing = Framing::Records(fastcgi::ResponseReader::new());
        Conversation::new(services, connected, request, framing, complaints)
    }

    /// Has the connection kept behind the answer, for another request: the application was asked to leave it open.
    pub fn kept_by(self, backend: &Arc<Backend>, most: usize) -> Conversation {
        let keeper = (most > 0).then(|| (Arc::clone(backend), most));
        Conversation { keeper, ..self }
    }

    /// `request`: what goes before the content. The answer has at most `room` bytes.
    pub fn plain(
        services: &Rc<Services>,
        connected: Connected,
        request: Vec<u8>,
        room: u64,
        complaints: Complaints,
    ) -> Conversation {
        let framing = Framing::Plain { room, is_over: false };
        Conversation::new(services, connected, request, framing, complaints)
    }

    fn new(
        services: &Rc<Services>,
        connected: Connected,
        request: Vec<u8>,
        framing: Framing,
        complaints: Complaints,
    ) -> Conversation {
        Conversation {
            services: Rc::clone(services),
            connected: Some(connected),
            keeper: None,
            sending: request.into(),
            content: None,
            framing,
            answer: Vec::new(),
            head: None,
            heard: false,
            overloaded: false,
            spoilt: false,
            complaints,
            began: Instant::now(),
        }
    }

    /// Names the application, and the time that the head of its answer took; `None` for a program that was started for the
    /// request.
    pub fn timing(&self) -> Option<UpstreamTiming> {
        let place = self.connected.as_ref()?.place.as_ref()?;
        Some(UpstreamTiming {
            address: place.backend().place().to_string().into(),
            head: Some(self.began.elapsed()),
        })
    }

    /// Goes on until the head of the answer is there, and the request has been sent. While the disk is waited for, the time of the
    /// application stands still.
    pub async fn hold(
        mut self,
        content: RequestBody,
        deadline: &Deadline,
        ticks: u32,
    ) -> Result<Conversation, Trouble> {
        match content.is_empty() {
            true => self.framing.content_end(self.sending.buffer()),
            false => self.content = Some(content),
        }
        poll_fn(|context| self.poll_head(context, deadline, ticks)).await?;
        Ok(self)
    }

    /// Where the head of the answer ends; the content follows it.
    pub fn head(&self) -> usize {
        self.head.unwrap_or_default()
    }

    /// What has come of the answer and was not taken yet.
    pub fn answer(&mut self) -> &mut Vec<u8> {
        &mut self.answer
    }

    pub fn is_over(&self) -> bool {
        match &self.framing {
            Framing::Records(records) => records.is_ended(),
            Framing::Plain { is_over, .. } => *is_over,
        }
    }

    fn poll_head(&mut self, context: &mut Context<'_>, deadline: &Deadline, ticks: u32) -> Poll<Result<(), Trouble>> {
        loop {
            let asking = match self.ask(context, deadline, ticks) {
                Ok(asking) => asking,
                Err(trouble) => return Poll::Ready(Err(trouble)),
            };
            if self.head.is_some() {
                let is_sent = self.has_left() && asking == Asking::Nothing;
                if is_sent || self.is_over() || self.answer.len() >= MAX_AHEAD {
                    self.spoilt |= !is_sent;
                    self.content = None;
                    return Poll::Ready(Ok(()));
                }
                // Some came back: it is sent again, or its room is waited for.
                if !self.sending.is_empty() && asking != Asking::Server {
                    continue;
                }
            }
            if self.is_over() {
                let trouble = if self.overloaded {
                    Trouble::Full
                } else {
                    Trouble::Silent
                };
                return Poll::Ready(Err(trouble));
            }
            match self.poll_more(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(trouble)) => return Poll::Ready(Err(trouble)),
                Poll::Pending if asking != Asking::Content && deadline.poll_past(context.waker()) => {
                    return Poll::Ready(Err(Trouble::Slow));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether what the socket has taken has left, so that nothing of it can come back.
    fn has_left(&mut self) -> bool {
        let connected = self.connected.as_mut();
        connected.is_none_or(|connected| connected.socket.has_left(&mut self.sending))
    }

    /// Sends what there is of the request.
    fn ask(&mut self, context: &mut Context<'_>, deadline: &Deadline, ticks: u32) -> Result<Asking, Trouble> {
        loop {
            let Some(connected) = &mut self.connected else {
                return Ok(Asking::Nothing);
            };
            match connected.socket.poll_send(context, &mut self.sending) {
                Poll::Ready(Ok(())) => {}
                Poll::Pending => return Ok(Asking::Server),
                // It listens no more; what it says is still worth hearing, and tells more than this error.
                Poll::Ready(Err(_)) => {
                    self.sending.clear();
                    (self.content, self.spoilt) = (None, true);
                }
            }
            let Some(content) = &mut self.content else {
                connected.socket.end_writing();
                return Ok(Asking::Nothing);
            };
            match content.poll_chunk(context) {
                Poll::Pending => return Ok(Asking::Content),
                Poll::Ready(Ok(Some(chunk))) => {
                    self.framing.content(self.sending.buffer(), &chunk);
                    deadline.set(ticks);
                }
                Poll::Ready(Ok(None)) => {
                    self.framing.content_end(self.sending.buffer());
                    self.content = None;
                    deadline.set(ticks);
                }
                Poll::Ready(Err(error)) => return Err(Trouble::Content(error)),
            }
        }
    }

    /// Receives once, and reads the records in it.
    pub fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        let Some(connected) = &mut self.connected else {
            return Poll::Ready(Err(Trouble::Silent));
        };
        let services = Rc::clone(&self.services);
        let mut input = services.receive_buffer.borrow_mut();
        let input = &mut input.allocated().bytes;
        while let Poll::Ready(Ok(length @ 1..)) = connected.socket.poll_complaint(context, input) {
            self.complaints.add(&input[..length]);
        }
        let received = match connected.socket.poll_recv(context, input) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(received) => received,
        };
        let is_unheard = !self.heard && !connected.is_new;
        let received = match received {
            Ok(received) if !received.is_empty() => received,
            _ if is_unheard => return Poll::Ready(Err(Trouble::Unheard)),
            Ok(_) => return Poll::Ready(self.ended()),
            Err(error) => return Poll::Ready(Err(Trouble::Broken(error))),
        };
        self.heard = true;
        if let Some(unheard) = connected.unheard.take() {
            unheard.heard();
        }
        let before = self.answer.len();
        if let Err(trouble) = self.read(&received) {
            self.spoilt = true;
            // What is complete is passed on: that there is more behind it spoils the connection, not the answer.
            if !self.is_over() {
                return Poll::Ready(Err(trouble));
            }
        }
        if self.head.is_none() {
            self.head = find_head_end(&self.answer, before);
            if self.head.unwrap_or(self.answer.len()) > MAX_HEAD_SIZE {
                return Poll::Ready(Err(Trouble::HeadTooLong));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The other side has closed.
    fn ended(&mut self) -> Result<(), Trouble> {
        let Framing::Plain { is_over, .. } = &mut self.framing else {
            return Err(Trouble::Silent);
        };
        match &self.connected {
            Some(connected) if connected.socket.is_whole() => {
                *is_over = true;
                Ok(())
            }
            _ => Err(Trouble::Slow),
        }
    }

    fn read(&mut self, input: &[u8]) -> Result<(), Trouble> {
        let records = match &mut self.framing {
            Framing::Records(records) => records,
            Framing::Plain { room, .. } => {
                *room = room.checked_sub(input.len() as u64).ok_or(Trouble::TooMuch)?;
                self.answer.extend_from_slice(input);
                return Ok(());
            }
        };
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            let received = records.receive(rest).map_err(Trouble::Records)?;
            match received.event {
                RecordEvent::Stdout(place) => self.answer.extend_from_slice(&rest[place]),
                RecordEvent::Stderr(place) => self.complaints.add(&rest[place]),
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
        let fit = self.is_over() && !self.spoilt && self.content.is_none() && self.sending.is_empty();
        match (self.connected.take().filter(|_| fit), &self.keeper) {
            (Some(connected), Some((backend, most))) => backend.keep(connected, *most),
            // A program may go on for a moment, with what nobody waits for.
            (Some(connected), None) => drop(connected.socket.rest()),
            (None, _) => {}
        }
    }
}

/// How the streams of bodies tell that an answer was cut.
impl From<Trouble> for io::Error {
    fn from(trouble: Trouble) -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionAborted, format!("the application: {trouble}"))
    }
}
