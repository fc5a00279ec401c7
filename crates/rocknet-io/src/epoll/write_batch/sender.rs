//! One link's share in what leaves together: what it has put there, and what came back to it.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::Waker;

use super::{Outgoing, Ticket, current};

/// To be dropped before the socket is closed: what was put has left then, and what came back is nobody's.
pub(crate) struct Sender {
    /// `None`: this thread has no such place.
    outgoing: Option<Rc<Outgoing>>,
    /// What lies there of this link, or came back from there, if anything.
    ticket: Ticket,
}

impl Sender {
    pub fn of_thread() -> Sender {
        Sender {
            outgoing: current(),
            ticket: Ticket::default(),
        }
    }

    /// As [`Outgoing::step`].
    #[inline]
    pub fn step(&self, steps: u32) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.step(steps);
        }
    }

    /// Takes all the bytes or none, of always the same socket.
    #[inline]
    pub fn put(&mut self, socket: BorrowedFd<'_>, waker: &Waker, bytes: &[u8]) -> bool {
        let Some(outgoing) = &self.outgoing else { return false };
        outgoing.put(socket, waker, bytes, &mut self.ticket)
    }

    /// Has what was put leave now, or come back.
    #[inline]
    pub fn flush(&self) {
        if let Some(outgoing) = &self.outgoing
            && outgoing.holds(self.ticket)
        {
            outgoing.leave();
        }
    }

    /// What was put has left. False: some of it came back, and is to be taken first.
    pub fn has_left(&self) -> bool {
        self.flush();
        let outgoing = self.outgoing.as_ref();
        outgoing.is_none_or(|outgoing| !outgoing.has_returned(self.ticket))
    }

    /// What did not leave.
    #[inline]
    pub fn take_returned(&self) -> Option<Vec<u8>> {
        self.outgoing.as_ref()?.take_returned(self.ticket)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.flush();
        drop(self.take_returned());
    }
}
