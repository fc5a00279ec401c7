//! Receiving much: who brings two buffers or more in a turn is received for by calls, straight into the memory that
//! its task offers; the ring tells only when there is something.
//!
//! Beside an operation that stays this saves the copy, and nothing has to be cancelled to leave bytes in the socket: as
//! long as the task does not ask, nothing is received.

use std::io;
use std::task::{Context, Poll};

use rustix::io::Errno;

use super::Driver;
use super::receive_mode::LARGE_RECEIVE_BYTES;
use super::slot::{ReceiveEnd, ReceiveState};
use super::state::RingState;
use crate::pipe::Pipe;

/// What a receive of up to 64 KiB counts among the steps of connections.
const STEPS: u32 = 8;

impl Driver {
    /// A first call brought so much of what was asked for: more is likely to follow.
    pub(super) fn note_first_receive(&self, index: usize, got: usize, asked: usize) {
        if got == asked && got >= LARGE_RECEIVE_BYTES {
            self.with_state(|state| state.slots[index].receive_mode.enter_large());
        }
    }

    /// Moves into a pipe what is received in bulk. 0: it is not, or there is nothing; or the end, which receiving tells.
    pub(super) fn fill_pipe(&self, index: usize, pipe: &mut Pipe) -> io::Result<usize> {
        let moved = self.with_state(|state| state.fill_pipe(index, pipe))?;
        if moved > 0 {
            self.step(STEPS);
        }
        Ok(moved)
    }

    /// For a place whose operation has ended, and from which nothing is left to be taken.
    pub(super) fn receive_large(
        &self,
        context: &Context<'_>,
        index: usize,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let received = self.with_state(|state| state.receive_large(context, index, buffer));
        if received.is_ready() {
            self.step(STEPS);
        }
        received
    }
}

impl RingState {
    fn fill_pipe(&mut self, index: usize, pipe: &mut Pipe) -> io::Result<usize> {
        let slot = &mut self.slots[index];
        if !slot.holds_no_bytes() || slot.receive_mode.is_drained() {
            return Ok(0);
        }
        let filled = self.kernel.fill_pipe(slot.socket, pipe);
        match filled {
            Ok(0) => {}
            Ok(moved) => slot.receive_mode.record_spliced(moved),
            // Said once by the kernel, and from now on here.
            Err(ref error) => slot.end = Some(ReceiveEnd::Failed(Errno::from_io_error(error).unwrap_or(Errno::IO))),
        }
        filled
    }

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
        slot.wait(context.waker());
        if slot.receiving == ReceiveState::Idle {
            self.arm(index);
        }
        Poll::Pending
    }
}
