//! Interim answers: what a handler tells the client before it has its answer, mostly as 103 (Early Hints, RFC 8297).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rocknet_proto::fields::is_framing;
use rocknet_proto::status::Status;

use crate::response::FieldList;

/// Interim answers to one request: servers send one or two, and each costs the client a look.
pub const MAX_INTERIM_RESPONSES: u8 = 8;

/// Fields of one of them, in bytes of names and values: as much as a head may have by default.
pub const MAX_INTERIM_BYTES: usize = 16 * 1024;

/// One of them. Its status is neither 100, which is the protocol's own matter, nor 101, which is no interim answer.
pub struct InterimResponse {
    pub status: Status,
    pub fields: FieldList,
}

/// The handler's side.
#[derive(Default)]
pub struct InterimSender(Rc<InterimChannel>);

/// One interim answer at most is on its way from the handler to the protocol.
#[derive(Default)]
pub struct InterimChannel {
    /// Boxed: few requests have any, and each has this.
    response: RefCell<Option<Box<InterimResponse>>>,
    waker: RefCell<Option<Waker>>,
    sent: Cell<u8>,
}

impl InterimResponse {
    /// Puts what a server says to what its client has not been told yet. Hints are told together; of other answers, which
    /// say little more than that it is at work, one is enough, and hints come first.
    pub fn merge(waiting: &mut Option<Box<InterimResponse>>, status: Status, fields: FieldList) {
        match waiting {
            Some(response) if response.status == Status::EARLY_HINTS => {
                if status == Status::EARLY_HINTS {
                    fields.iter().for_each(|(name, value)| response.fields.add(name, value));
                }
            }
            _ if status == Status::CONTINUE => {}
            _ => *waiting = Some(Box::new(InterimResponse { status, fields })),
        }
    }
}

impl InterimSender {
    /// What the protocol asks.
    pub fn channel(&self) -> Rc<InterimChannel> {
        Rc::clone(&self.0)
    }

    /// Tells the client these fields, mostly `Link`, and is ready when the connection has taken them: it takes no more
    /// than the client does. Clients that know no interim answers (HTTP/1.0) get none, and nobody gets more than
    /// [`MAX_INTERIM_RESPONSES`]; what is too much is left out.
    pub async fn send_early_hints(&mut self, fields: FieldList) {
        let status = Status::EARLY_HINTS;
        let mut response = Some(Box::new(InterimResponse { status, fields }));
        poll_fn(|context| self.poll_send(context, &mut response)).await;
    }

    /// As [`InterimSender::send_early_hints`], with any status, for those who do something else meanwhile. What is told is taken out of
    /// its place when there is room for it.
    pub fn poll_send(&mut self, context: &mut Context<'_>, response: &mut Option<Box<InterimResponse>>) -> Poll<()> {
        let channel = &self.0;
        if channel.response.borrow().is_none() {
            match response.take().map(without_framing) {
                Some(response)
                    if channel.sent.get() < MAX_INTERIM_RESPONSES && size(&response.fields) <= MAX_INTERIM_BYTES =>
                {
                    channel.sent.set(channel.sent.get() + 1);
                    *channel.response.borrow_mut() = Some(response);
                }
                _ => return Poll::Ready(()),
            }
        }
        *channel.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Without fields that are the protocol's: those of a connection, and of content that is not there.
fn without_framing(mut response: Box<InterimResponse>) -> Box<InterimResponse> {
    response.fields.retain(|name| !is_framing(name.as_bytes()));
    response
}

fn size(fields: &FieldList) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len()).sum()
}

impl InterimChannel {
    /// Takes the interim response that waits to be sent, and lets the handler go on.
    #[inline]
    pub fn take(&self) -> Option<Box<InterimResponse>> {
        let response = self.response.borrow_mut().take()?;
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(name: &'static str, value: impl Into<String>) -> Box<InterimResponse> {
        let mut fields = FieldList::default();
        fields.add(name, value.into());
        let status = Status::EARLY_HINTS;
        Box::new(InterimResponse { status, fields })
    }

    #[test]
    fn each_waits_for_the_one_before_and_there_are_not_many() {
        let mut interim = InterimSender::default();
        let channel = interim.channel();
        let mut context = Context::from_waker(Waker::noop());
        for number in 0..MAX_INTERIM_RESPONSES {
            let mut first = Some(response("link", number.to_string()));
            assert!(interim.poll_send(&mut context, &mut first).is_pending() && first.is_none());
            let mut second = Some(response("link", "too soon"));
            assert!(interim.poll_send(&mut context, &mut second).is_pending() && second.is_some());
            let sent = channel.take().expect("hints");
            assert_eq!(sent.fields.value("link"), Some(&*number.to_string()));
            assert!(channel.take().is_none());
            assert!(interim.poll_send(&mut context, &mut first).is_ready());
        }
        let mut more = Some(response("link", "one more"));
        assert!(interim.poll_send(&mut context, &mut more).is_ready());
        assert!(channel.take().is_none(), "and it is sent to nobody");
    }

    #[test]
    fn what_is_no_hint_is_left_out() {
        for (name, value, sent) in [
            ("link", "x".repeat(MAX_INTERIM_BYTES - 4), true),
            ("link", "x".repeat(MAX_INTERIM_BYTES - 3), false),
            ("Content-Length", "5".to_owned(), true),
        ] {
            let mut interim = InterimSender::default();
            let channel = interim.channel();
            let mut all = Some(response(name, value));
            let polled = interim.poll_send(&mut Context::from_waker(Waker::noop()), &mut all);
            let hints = channel.take();
            assert_eq!((polled.is_pending(), hints.is_some()), (sent, sent), "{name}");
            assert!(hints.is_none_or(|hints| hints.fields.value("content-length").is_none()));
        }
    }

    #[test]
    fn hints_are_joined_and_come_before_all_else() {
        let mut waiting = None;
        let mut join = |status: u16, value: &'static str| {
            let status = Status::new(status).expect("a status");
            InterimResponse::merge(&mut waiting, status, response("link", value).fields);
            let sent = waiting.as_ref();
            sent.map(|response| {
                (
                    response.status.code(),
                    response.fields.iter().map(|(_, value)| value).collect::<String>(),
                )
            })
        };
        for (status, value, expected) in [
            (100, "a", None),
            (102, "b", Some((102, "b"))),
            (104, "c", Some((104, "c"))),
            (100, "d", Some((104, "c"))),
            (103, "e", Some((103, "e"))),
            (102, "f", Some((103, "e"))),
            (103, "g", Some((103, "eg"))),
        ] {
            let expected = expected.map(|(status, text)| (status, text.to_owned()));
            assert_eq!(join(status, value), expected, "{status} {value}");
        }
    }
}
