//! Access of one link to the write batch of its thread.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::Waker;

use super::{WriteBatch, WriteTicket, current};

/// Adds the writes of one socket to the write batch of this thread. It must be dropped before the socket is closed:
/// dropping it flushes the batch and discards the bytes that the socket does not accept.
pub(crate) struct BatchSender {
    /// `None` if this thread has no batch.
    batch: Option<Rc<WriteBatch>>,
    /// Last write of this link. It is still in the batch, has been sent, or has been returned as unsent.
    ticket: WriteTicket,
}

impl BatchSender {
    /// Returns a sender for the batch of this thread.
    pub fn for_current_thread() -> BatchSender {
        BatchSender {
            batch: current(),
            ticket: WriteTicket::default(),
        }
    }

    /// Counts the work of a receive or send of this link, in the steps of [`WriteBatch::count_steps`]. The batch is
    /// sent after [`STEPS_PER_FLUSH`](super::STEPS_PER_FLUSH) steps.
    #[inline]
    pub fn count_steps(&self, steps: u32) {
        if let Some(batch) = &self.batch {
            batch.count_steps(steps);
        }
    }

    /// Adds a write. If the previous write of this link is still in the batch, the batch is sent first, because it
    /// holds one write per socket. `socket` must be the same in all calls.
    ///
    /// Returns false, and adds nothing, if the thread has no batch, if the write exceeds
    /// [`MAX_WRITE_BYTES`](super::MAX_WRITE_BYTES), or if an unsent part of the previous write has not been taken.
    #[inline]
    pub fn push(&mut self, socket: BorrowedFd<'_>, waker: &Waker, bytes: &[u8]) -> bool {
        let Some(batch) = &self.batch else { return false };
        batch.push(socket, waker, bytes, &mut self.ticket)
    }

    /// Sends the whole batch now, if the write of this link is still in it.
    #[inline]
    pub fn flush(&self) {
        if let Some(batch) = &self.batch
            && batch.is_pending(self.ticket)
        {
            batch.flush();
        }
    }

    /// Flushes like [`BatchSender::flush`]. Returns false if the socket did not accept all of this link's write; the
    /// caller then has to take the unsent part before it sends anything else.
    pub fn flush_and_check(&self) -> bool {
        self.flush();
        let batch = self.batch.as_ref();
        batch.is_none_or(|batch| !batch.has_unsent(self.ticket))
    }

    /// Removes and returns the part of the last write that the socket did not accept.
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
