//! One link's share in what leaves together: what it has put there, and what came back to it.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::Waker;

use super::{WriteBatch, WriteTicket, current};

/// To be dropped before the socket is closed: what was put has left then, and what came back is nobody's.
pub(crate) struct BatchSender {
    /// `None`: this thread has no such place.
    batch: Option<Rc<WriteBatch>>,
    /// What lies there of this link, or came back from there, if anything.
    ticket: WriteTicket,
}

impl BatchSender {
    pub fn for_current_thread() -> BatchSender {
        BatchSender {
            batch: current(),
            ticket: WriteTicket::default(),
        }
    }

    /// As [`WriteBatch::step`].
    #[inline]
    pub fn step(&self, steps: u32) {
        if let Some(batch) = &self.batch {
            batch.step(steps);
        }
    }

    /// Takes all the bytes or none, of always the same socket.
    #[inline]
    pub fn push(&mut self, socket: BorrowedFd<'_>, waker: &Waker, bytes: &[u8]) -> bool {
        let Some(batch) = &self.batch else { return false };
        batch.push(socket, waker, bytes, &mut self.ticket)
    }

    /// Has what was put leave now, or come back.
    #[inline]
    pub fn flush(&self) {
        if let Some(batch) = &self.batch
            && batch.is_pending(self.ticket)
        {
            batch.flush();
        }
    }

    /// What was put has left. False: some of it came back, and is to be taken first.
    pub fn flush_completely(&self) -> bool {
        self.flush();
        let batch = self.batch.as_ref();
        batch.is_none_or(|batch| !batch.has_unsent(self.ticket))
    }

    /// What did not leave.
    #[inline]
    pub fn take_unsent(&self) -> Option<Vec<u8>> {
        self.batch.as_ref()?.take_unsent(self.ticket)
    }
}

impl Drop for BatchSender {
    fn drop(&mut self) {
        self.flush();
        drop(self.take_unsent());
    }
}
