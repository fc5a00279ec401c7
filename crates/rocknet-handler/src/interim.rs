//! Interim answers: what a handler tells the client before it has its answer, mostly as 103 (Early Hints, RFC 8297).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rocknet_proto::fields::is_framing;
use rocknet_proto::status::Status;

use crate::response::FieldList;

/// Interim answers to one request: servers send one or two, and each costs the client a look.
pub const HINTS_MAX: u8 = 8;

/// Fields of one of them, in bytes of names and values: as much as a head may have by default.
pub const HINTS_BYTES: usize = 16 * 1024;

/// One of them. Its status is neither 100, which is the protocol's own matter, nor 101, which is no interim answer.
pub struct Early {
    pub status: Status,
    pub fields: FieldList,
}

/// The handler's side.
#[derive(Default)]
pub struct Interim(Rc<Door>);

/// One interim answer at most is on its way from the handler to the protocol.
#[derive(Default)]
pub struct Door {
    /// Boxed: few requests have any, and each has this.
    early: RefCell<Option<Box<Early>>>,
    waker: RefCell<Option<Waker>>,
    passed: Cell<u8>,
}

impl Early {
    /// Puts what a server says to what its client has not been told yet. Hints are told together; of other answers, which
    /// say little more than that it is at work, one is enough, and hints come first.
    pub fn join(waiting: &mut Option<Box<Early>>, status: Status, fields: FieldList) {
        match waiting {
            Some(early) if early.status == Status::EARLY_HINTS => {
                if status == Status::EARLY_HINTS {
                    fields.iter().for_each(|(name, value)| early.fields.add(name, value));
                }
            }
            _ if status == Status::CONTINUE => {}
            _ => *waiting = Some(Box::new(Early { status, fields })),
        }
    }
}

impl Interim {
    /// What the protocol asks.
    pub fn door(&self) -> Rc<Door> {
        Rc::clone(&self.0)
    }

    /// Tells the client these fields, mostly `Link`, and is ready when the connection has taken them: it takes no more
    /// than the client does. Clients that know no interim answers (HTTP/1.0) get none, and nobody gets more than
    /// [`HINTS_MAX`]; what is too much is left out.
    pub async fn early_hints(&mut self, fields: FieldList) {
        let status = Status::EARLY_HINTS;
        let mut early = Some(Box::new(Early { status, fields }));
        poll_fn(|context| self.poll_tell(context, &mut early)).await;
    }

    /// As [`Interim::early_hints`], with any status, for those who do something else meanwhile. What is told is taken out of
    /// its place when there is room for it.
    pub fn poll_tell(&mut self, context: &mut Context<'_>, early: &mut Option<Box<Early>>) -> Poll<()> {
        let door = &self.0;
        if door.early.borrow().is_none() {
            match early.take().map(speakable) {
                Some(early) if door.passed.get() < HINTS_MAX && size(&early.fields) <= HINTS_BYTES => {
                    door.passed.set(door.passed.get() + 1);
                    *door.early.borrow_mut() = Some(early);
                }
                _ => return Poll::Ready(()),
            }
        }
        *door.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Without fields that are the protocol's: those of a connection, and of content that is not there.
fn speakable(mut early: Box<Early>) -> Box<Early> {
    early.fields.retain(|name| !is_framing(name.as_bytes()));
    early
}

fn size(fields: &FieldList) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len()).sum()
}

impl Door {
    /// Takes the interim response that waits to be sent, and lets the handler go on.
    #[inline]
    pub fn take(&self) -> Option<Box<Early>> {
        let early = self.early.borrow_mut().take()?;
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
        Some(early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early(name: &'static str, value: impl Into<String>) -> Box<Early> {
        let mut fields = FieldList::default();
        fields.add(name, value.into());
        let status = Status::EARLY_HINTS;
        Box::new(Early { status, fields })
    }

    #[test]
    fn each_waits_for_the_one_before_and_there_are_not_many() {
        let mut interim = Interim::default();
        let door = interim.door();
        let mut context = Context::from_waker(Waker::noop());
        for number in 0..HINTS_MAX {
            let mut first = Some(early("link", number.to_string()));
            assert!(interim.poll_tell(&mut context, &mut first).is_pending() && first.is_none());
            let mut second = Some(early("link", "too soon"));
            assert!(interim.poll_tell(&mut context, &mut second).is_pending() && second.is_some());
            let told = door.take().expect("hints");
            assert_eq!(told.fields.value("link"), Some(&*number.to_string()));
            assert!(door.take().is_none());
            assert!(interim.poll_tell(&mut context, &mut first).is_ready());
        }
        let mut more = Some(early("link", "one more"));
        assert!(interim.poll_tell(&mut context, &mut more).is_ready());
        assert!(door.take().is_none(), "and it is told to nobody");
    }

    #[test]
    fn what_is_no_hint_is_left_out() {
        for (name, value, told) in [
            ("link", "x".repeat(HINTS_BYTES - 4), true),
            ("link", "x".repeat(HINTS_BYTES - 3), false),
            ("Content-Length", "5".to_owned(), true),
        ] {
            let mut interim = Interim::default();
            let door = interim.door();
            let mut all = Some(early(name, value));
            let polled = interim.poll_tell(&mut Context::from_waker(Waker::noop()), &mut all);
            let hints = door.take();
            assert_eq!((polled.is_pending(), hints.is_some()), (told, told), "{name}");
            assert!(hints.is_none_or(|hints| hints.fields.value("content-length").is_none()));
        }
    }

    #[test]
    fn hints_are_joined_and_come_before_all_else() {
        let mut waiting = None;
        let mut join = |status: u16, value: &'static str| {
            let status = Status::new(status).expect("a status");
            Early::join(&mut waiting, status, early("link", value).fields);
            let told = waiting.as_ref();
            told.map(|early| {
                (
                    early.status.code(),
                    early.fields.iter().map(|(_, value)| value).collect::<String>(),
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
