//! Interim answers: what a handler tells the client before it has its answer, as 103 (Early Hints, RFC 8297).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rocknet_proto::fields::is_framing;

use crate::dispatch::Outcome;
use crate::response::FieldList;

/// Interim answers to one request: servers send one or two, and each costs the client a look.
pub const HINTS_MAX: u8 = 8;

/// Fields of one of them, in bytes of names and values: as much as a head may have by default.
pub const HINTS_BYTES: usize = 16 * 1024;

/// The handler's side. 103 alone goes through it: 100 is the protocol's own matter, and 101 no interim answer.
#[derive(Default)]
pub struct Interim(Rc<Door>);

/// One interim answer at most is on its way from the handler to the protocol.
#[derive(Default)]
pub struct Door {
    /// Boxed: few requests have any, and each has this.
    fields: RefCell<Option<Box<FieldList>>>,
    waker: RefCell<Option<Waker>>,
    passed: Cell<u8>,
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
        let mut fields = Some(Box::new(fields));
        poll_fn(|context| self.poll_early_hints(context, &mut fields)).await;
    }

    /// As [`Interim::early_hints`], for those who do something else meanwhile. The fields are taken out of their place when
    /// there is room for them.
    pub fn poll_early_hints(&mut self, context: &mut Context<'_>, fields: &mut Option<Box<FieldList>>) -> Poll<()> {
        let door = &self.0;
        if door.fields.borrow().is_none() {
            match fields.take().map(speakable) {
                Some(fields) if door.passed.get() < HINTS_MAX && size(&fields) <= HINTS_BYTES => {
                    door.passed.set(door.passed.get() + 1);
                    *door.fields.borrow_mut() = Some(fields);
                }
                _ => return Poll::Ready(()),
            }
        }
        *door.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Without fields that are the protocol's: those of a connection, and of content that is not there.
fn speakable(mut fields: Box<FieldList>) -> Box<FieldList> {
    fields.retain(|name| !is_framing(name.as_bytes()));
    fields
}

fn size(fields: &FieldList) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// The protocol's side: an answer in the making.
pub struct Making {
    answer: Pin<Box<dyn Future<Output = Outcome>>>,
    /// `None`: nobody who makes it has anything to tell before.
    door: Option<Rc<Door>>,
}

impl Making {
    pub fn new(answer: impl Future<Output = Outcome> + 'static) -> Making {
        Making {
            answer: Box::pin(answer),
            door: None,
        }
    }

    /// By a handler that has the other side of this door.
    pub fn telling(mut self, door: Rc<Door>) -> Making {
        self.door = Some(door);
        self
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        self.answer.as_mut().poll(context)
    }

    /// What is to be told now, to be asked for after each poll. Who takes it polls again.
    #[inline]
    pub fn hints(&self) -> Option<FieldList> {
        let door = self.door.as_ref()?;
        let fields = door.fields.borrow_mut().take()?;
        if let Some(waker) = door.waker.borrow_mut().take() {
            waker.wake();
        }
        Some(*fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &'static str, value: impl Into<String>) -> Box<FieldList> {
        let mut fields = Box::<FieldList>::default();
        fields.add(name, value.into());
        fields
    }

    #[test]
    fn each_waits_for_the_one_before_and_there_are_not_many() {
        let mut interim = Interim::default();
        let making = Making::new(std::future::pending()).telling(interim.door());
        let mut context = Context::from_waker(Waker::noop());
        for number in 0..HINTS_MAX {
            let mut first = Some(fields("link", number.to_string()));
            assert!(interim.poll_early_hints(&mut context, &mut first).is_pending() && first.is_none());
            let mut second = Some(fields("link", "too soon"));
            assert!(interim.poll_early_hints(&mut context, &mut second).is_pending() && second.is_some());
            let told = making.hints().expect("hints");
            assert_eq!(told.value("link"), Some(&*number.to_string()));
            assert!(making.hints().is_none());
            assert!(interim.poll_early_hints(&mut context, &mut first).is_ready());
        }
        let mut more = Some(fields("link", "one more"));
        assert!(interim.poll_early_hints(&mut context, &mut more).is_ready());
        assert!(making.hints().is_none(), "and it is told to nobody");
    }

    #[test]
    fn what_is_no_hint_is_left_out() {
        for (name, value, told) in [
            ("link", "x".repeat(HINTS_BYTES - 4), true),
            ("link", "x".repeat(HINTS_BYTES - 3), false),
            ("Content-Length", "5".to_owned(), true),
        ] {
            let mut interim = Interim::default();
            let making = Making::new(std::future::pending()).telling(interim.door());
            let mut all = Some(fields(name, value));
            let polled = interim.poll_early_hints(&mut Context::from_waker(Waker::noop()), &mut all);
            let hints = making.hints();
            assert_eq!((polled.is_pending(), hints.is_some()), (told, told), "{name}");
            assert!(hints.is_none_or(|hints| hints.value("content-length").is_none()));
        }
    }
}
