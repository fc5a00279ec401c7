//! Receiving much: who brings two buffers or more in a turn is received for by calls, straight into the memory that
//! its task offers; the ring tells only when there is something.
//!
//! Beside an operation that stays this saves the copy, and nothing has to be cancelled to leave bytes in the socket: as
//! long as the task does not ask, nothing is received.

use std::io;
use std::task::{Context, Poll};

use rustix::io::Errno;

use super::Driver;
use super::receive_mode::MUCH;
use super::slot::{End, Receiving};
use super::state::State;
use crate::pipe::Pipe;

/// What a receive of up to 64 KiB counts among the steps of connections.
const STEPS: u32 = 8;

impl Driver {
    /// A first call brought so much of what was asked for: more is likely to follow.
    pub(super) fn brought(&self, place: usize, got: usize, asked: usize) {
        if got == asked && got >= MUCH {
            self.with_state(|state| state.places[place].bulk.begin());
        }
    }

    /// Moves into a pipe what is received in bulk. 0: it is not, or there is nothing; or the end, which receiving tells.
    pub(super) fn fill(&self, place: usize, pipe: &mut Pipe) -> io::Result<usize> {
        let moved = self.with_state(|state| state.fill(place, pipe))?;
        if moved > 0 {
            self.step(STEPS);
        }
        Ok(moved)
    }

    /// For a place whose operation has ended, and from which nothing is left to be taken.
    pub(super) fn receive_in_bulk(
        &self,
        context: &Context<'_>,
        place: usize,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let received = self.with_state(|state| state.receive_in_bulk(context, place, buffer));
        if received.is_ready() {
            self.step(STEPS);
        }
        received
    }
}

impl State {
    fn fill(&mut self, place: usize, pipe: &mut Pipe) -> io::Result<usize> {
        let known = &mut self.places[place];
        if !known.has_all_in_its_socket() || known.bulk.is_empty() {
            return Ok(0);
        }
        let filled = self.kernel.fill(known.socket, pipe);
        match filled {
            Ok(0) => {}
            Ok(moved) => known.bulk.moved(moved),
            // Said once by the kernel, and from now on here.
            Err(ref error) => known.end = Some(End::Failed(Errno::from_io_error(error).unwrap_or(Errno::IO))),
        }
        filled
    }

    fn receive_in_bulk(&mut self, context: &Context<'_>, place: usize, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let known = &mut self.places[place];
        if !known.bulk.is_empty() && known.receiving == Receiving::Idle {
            match self.kernel.receive(known.socket, buffer) {
                Ok(got) => {
                    known.bulk.brought(got, buffer.len());
                    if got == 0 {
                        known.end = Some(End::Closed);
                    }
                    return Poll::Ready(Ok(got));
                }
                Err(Errno::AGAIN) => known.bulk.has_nothing(),
                Err(Errno::INTR) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) => {
                    known.end = Some(End::Failed(error));
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
        known.wait(context.waker());
        if known.receiving == Receiving::Idle {
            self.arm(place);
        }
        Poll::Pending
    }
}
