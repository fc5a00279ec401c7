//! Interim responses (1xx) that a handler sends before its final response, mostly 103 (Early Hints, RFC 8297).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rocknet_proto::fields::is_framing;
use rocknet_proto::status::Status;

use crate::response::FieldList;

/// Maximum number of interim responses to one request. Servers send one or two, and each costs the client some work.
pub const MAX_INTERIM_RESPONSES: u8 = 8;

/// Maximum size of the fields of one interim response, in bytes of names and values. The default limit of a head is the
/// same.
pub const MAX_INTERIM_BYTES: usize = 16 * 1024;

/// An interim response. Its status is neither 100, which the protocol sends itself, nor 101, which ends the exchange.
pub struct InterimResponse {
    /// Status: 102, 103 or another one of 1xx.
    pub status: Status,
    /// Header fields.
    pub fields: FieldList,
}

/// Sends interim responses. The handler's end of an [`InterimChannel`].
#[derive(Default)]
pub struct InterimSender(Rc<InterimChannel>);

/// Channel from the handler to the protocol. Holds at most one interim response.
#[derive(Default)]
pub struct InterimChannel {
    /// Boxed, because each request has this field and few have interim responses.
    response: RefCell<Option<Box<InterimResponse>>>,
    /// Wakes the handler when the protocol has taken the response.
    waker: RefCell<Option<Waker>>,
    /// Number of responses that the channel has accepted.
    sent: Cell<u8>,
}

impl InterimResponse {
    /// Adds an interim response of an upstream to the one that has not been sent yet.
    ///
    /// Early hints are combined, and take precedence over every other response, earlier or later. Of all other
    /// responses, only the latest is kept, because they indicate little more than that the upstream is working. 100 is
    /// dropped.
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
    /// Returns the protocol's end.
    pub fn channel(&self) -> Rc<InterimChannel> {
        Rc::clone(&self.0)
    }

    /// Sends fields, mostly `Link`, as 103 (Early Hints).
    ///
    /// Ready when the connection has accepted the fields. The connection accepts fields only as fast as the client
    /// reads. HTTP/1.0 clients get no interim responses. Responses beyond [`MAX_INTERIM_RESPONSES`] or
    /// [`MAX_INTERIM_BYTES`] are dropped.
    pub async fn send_early_hints(&mut self, fields: FieldList) {
        let status = Status::EARLY_HINTS;
        let mut response = Some(Box::new(InterimResponse { status, fields }));
        poll_fn(|context| self.poll_send(context, &mut response)).await;
    }

    /// Polls for sending an interim response of any status; see [`InterimSender::send_early_hints`]. Sets `response` to
    /// `None` once the channel has accepted or dropped it.
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
                // The connection has taken the response, or the response exceeds a limit and is dropped.
                _ => return Poll::Ready(()),
            }
        }
        *channel.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Removes the fields of the connection, which the protocol sets, and the fields of a body, because an interim response
/// has no body.
fn without_framing(mut response: Box<InterimResponse>) -> Box<InterimResponse> {
    response.fields.retain(|name| !is_framing(name.as_bytes()));
    response
}

fn size(fields: &FieldList) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len()).sum()
}

impl InterimChannel {
    /// Takes the interim response to be sent, and wakes the handler.
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
    fn each_response_waits_for_the_previous_one_and_their_number_is_limited() {
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
        assert!(channel.take().is_none(), "a response beyond the limit was sent");
    }

    #[test]
    fn large_responses_and_framing_fields_are_dropped() {
        // Name and value of a field, and whether the response is sent. The name `link` has 4 bytes.
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
    fn hints_are_combined_and_replace_other_responses() {
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
        // Status and `Link` value of the next response, and the status and values that wait after it.
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
