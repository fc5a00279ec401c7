//! Receiving much: who brings two buffers or more in a turn is received for by calls, straight into the memory that
//! its task offers; the ring tells only when there is something.
//!
//! Beside an operation that stays this saves the copy, and nothing has to be cancelled to leave bytes in the socket: as
//! long as the task does not ask, nothing is received.

use std::io;
use std::task::{Context, Poll};

use rustix::io::Errno;

use super::Driver;
use super::buffers::BUFFER;
use super::place::{End, Receiving};
use super::state::State;
use crate::pipe::Pipe;

/// Bytes that came in a turn, or at once, from which on a call costs less than buffers and copies.
pub(super) const MUCH: usize = 2 * BUFFER;
/// Receives of less than a buffer, one after the other, after which the operation that stays is the cheaper one again.
/// Ends of answers and of uploads come alone.
const LITTLE_IN_A_ROW: u8 = 8;
/// What a receive of up to 64 KiB counts among the steps of connections.
const STEPS: u32 = 8;

/// Whether a connection is received for in bulk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulk {
    on: bool,
    /// The last call took all there was: the next thing is to wait.
    empty: bool,
    /// How many receives in a row brought little.
    little: u8,
}

impl Bulk {
    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn begin(&mut self) {
        *self = Bulk {
            on: true,
            ..Bulk::default()
        };
    }

    /// There is something, or an end.
    pub fn has_something(&mut self) {
        self.empty = false;
    }

    /// A call brought so much of what was asked for.
    fn brought(&mut self, got: usize, asked: usize) {
        self.empty = got < asked;
        self.count(got, asked);
    }

    /// A call moved so much into a pipe; how much there is beyond nobody knows.
    fn moved(&mut self, got: usize) {
        self.count(got, BUFFER);
    }

    fn count(&mut self, got: usize, asked: usize) {
        if got >= BUFFER.min(asked) {
            self.little = 0;
            return;
        }
        self.little += 1;
        self.on = self.little < LITTLE_IN_A_ROW;
    }
}

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
        if !known.has_all_in_its_socket() || known.bulk.empty {
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
        if !known.bulk.empty && known.receiving == Receiving::Idle {
            match self.kernel.receive(known.socket, buffer) {
                Ok(got) => {
                    known.bulk.brought(got, buffer.len());
                    if got == 0 {
                        known.end = Some(End::Closed);
                    }
                    return Poll::Ready(Ok(got));
                }
                Err(Errno::AGAIN) => known.bulk.empty = true,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_little_comes_again_and_again() {
        let mut bulk = Bulk::default();
        assert!(!bulk.is_on());
        bulk.begin();
        for _ in 0..3 {
            for _ in 1..LITTLE_IN_A_ROW {
                bulk.brought(10, 65_536);
            }
            // The end of one answer, and then another.
            bulk.brought(BUFFER, 65_536);
            // Who offers little is not brought little.
            bulk.brought(1, 1);
        }
        for _ in 1..LITTLE_IN_A_ROW {
            bulk.brought(10, 65_536);
            assert!(bulk.is_on());
        }
        bulk.brought(10, 65_536);
        assert!(!bulk.is_on());
    }

    #[test]
    fn it_waits_when_all_was_taken() {
        let mut bulk = Bulk::default();
        bulk.begin();
        assert!(!bulk.empty);
        bulk.brought(100, 100);
        assert!(!bulk.empty);
        bulk.brought(99, 100);
        assert!(bulk.empty);
        bulk.has_something();
        assert!(!bulk.empty);
    }
}
