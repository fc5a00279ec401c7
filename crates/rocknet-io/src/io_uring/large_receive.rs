//! Large receives: a connection that sends much data is read by `recv(2)` directly into the task's buffer, and the ring
//! only waits for readiness. A connection enters this mode if it fills two provided buffers in one turn of the ring, or
//! if its first receive fills a large buffer.
//!
//! Compared with a multishot receive, this saves a copy. Nothing is received until the task calls `poll_receive`. The
//! data of a task that does not receive therefore remains in the socket, and no operation has to be cancelled to keep
//! it there.

use std::io;
use std::task::{Context, Poll};

use rustix::io::Errno;

use super::Driver;
use super::receive_mode::LARGE_RECEIVE_BYTES;
use super::slot::{ReceiveEnd, ReceiveState};
use super::state::RingState;
use crate::pipe::Pipe;

/// Work of one large receive, or of one move into a pipe, in the steps that [`Driver::count_steps`] counts. A large
/// receive may read 64 KiB. An ordinary receive, which counts as one step, usually copies one provided buffer.
const STEPS: u32 = 8;

impl Driver {
    /// Turns large receives on if the first receive of a connection filled a buffer of at least
    /// [`LARGE_RECEIVE_BYTES`], because more data is then likely to follow. `got` is the number of bytes received, and
    /// `wanted` the size of the buffer.
    pub(super) fn note_first_receive(&self, index: usize, got: usize, wanted: usize) {
        if got == wanted && got >= LARGE_RECEIVE_BYTES {
            self.with_state(|state| state.slots[index].receive_mode.enter_large());
        }
    }

    /// Moves bytes of a connection with large receives into a pipe, and returns their number. Returns 0 for other
    /// connections, if there is no data, and at the end of the stream, which `poll_receive` then reports.
    pub(super) fn fill_pipe(&self, index: usize, pipe: &mut Pipe) -> io::Result<usize> {
        let moved = self.with_state(|state| state.fill_pipe(index, pipe))?;
        if moved > 0 {
            self.count_steps(STEPS);
        }
        Ok(moved)
    }

    /// Receives by `recv(2)`, for a connection whose slot contains no received bytes. Waits for readiness if the socket
    /// is empty.
    pub(super) fn receive_large(
        &self,
        context: &Context<'_>,
        index: usize,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let received = self.with_state(|state| state.receive_large(context, index, buffer));
        if received.is_ready() {
            self.count_steps(STEPS);
        }
        received
    }
}

impl RingState {
    /// Implements [`Driver::fill_pipe`], but does not count the work.
    fn fill_pipe(&mut self, index: usize, pipe: &mut Pipe) -> io::Result<usize> {
        let slot = &mut self.slots[index];
        if !slot.may_fill_pipe() || slot.receive_mode.is_drained() {
            return Ok(0);
        }
        let filled = self.kernel.fill_pipe(slot.socket, pipe);
        match filled {
            Ok(0) => {}
            Ok(moved) => slot.receive_mode.record_spliced(moved),
            // Stores the error, because the kernel returns it only once.
            Err(ref error) => slot.end = Some(ReceiveEnd::Failed(Errno::from_io_error(error).unwrap_or(Errno::IO))),
        }
        filled
    }

    /// Implements [`Driver::receive_large`], but does not count the work.
    fn receive_large(&mut self, context: &Context<'_>, index: usize, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let slot = &mut self.slots[index];
        if !slot.receive_mode.is_drained() && slot.receiving == ReceiveState::Idle {
            match self.kernel.receive(slot.socket, buffer) {
                Ok(got) => {
                    slot.receive_mode.record(got, buffer.len());
                    if got == 0 {
                        slot.end = Some(ReceiveEnd::Closed);
                    }
                    return Poll::Ready(Ok(got));
                }
                Err(Errno::AGAIN) => slot.receive_mode.set_drained(),
                Err(Errno::INTR) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) => {
                    slot.end = Some(ReceiveEnd::Failed(error));
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
        slot.set_waker(context.waker());
        if slot.receiving == ReceiveState::Idle {
            self.arm(index);
        }
        Poll::Pending
    }
}
