//! What the driver knows of one connection: its operations, what has arrived, and who waits for it.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::task::Waker;

use rustix::io::Errno;

use super::provided_buffers::{Buffers, Filled};
use super::receive_mode::Bulk;
use super::write_batch::Number;

/// Where the receiving operation of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    Idle,
    Armed,
    /// Told to end; its last completion is still to come.
    Cancelled,
}

/// How a connection's incoming bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Failed(Errno),
}

pub(super) struct Place {
    /// Open as long as anything was asked for it that has not been handed over.
    pub socket: RawFd,
    pub waker: Option<Waker>,
    pub receiving: Receiving,
    pub bulk: Bulk,
    /// The receiving operation brings no bytes: it waits for them, and the task receives by itself.
    pub only_waits: bool,
    /// A Unix socket, of which the kernel may keep the end to itself; see [`Kernel::has_ended`](super::kernel::Kernel::has_ended).
    pub is_local: bool,
    /// Bytes of a Unix socket arrived since its end was last looked for.
    pub may_have_ended: bool,
    /// Waits for room in the socket.
    pub writing: bool,
    /// What arrived in this turn.
    pub filled: VecDeque<Filled>,
    /// What arrived earlier and was not taken: copied, so that the buffers serve others.
    pub stash: Vec<u8>,
    pub taken: usize,
    pub end: Option<End>,
    /// What waits in the outbox to leave.
    pub letter: Number,
    /// What came back from there.
    pub unsent: Vec<u8>,
    /// Why nothing more can be sent.
    pub refused: Option<Errno>,
    /// Nobody is interested any more; the place is free when its operations have ended.
    pub gone: bool,
}

impl Place {
    pub fn new(socket: RawFd, is_local: bool) -> Place {
        Place {
            socket,
            waker: None,
            receiving: Receiving::Idle,
            bulk: Bulk::default(),
            only_waits: false,
            is_local,
            may_have_ended: false,
            writing: false,
            filled: VecDeque::new(),
            stash: Vec::new(),
            taken: 0,
            end: None,
            letter: None,
            unsent: Vec::new(),
            refused: None,
            gone: false,
        }
    }

    pub fn is_free(&self) -> bool {
        self.gone && self.receiving == Receiving::Idle && !self.writing
    }

    pub fn wait(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) if known.will_wake(waker) => {}
            known => *known = Some(waker.clone()),
        }
    }

    /// It is received for in bulk, and nothing of what has arrived, or of what was to be sent, is anywhere but in its socket.
    pub fn has_all_in_its_socket(&self) -> bool {
        self.bulk.is_on()
            && self.receiving == Receiving::Idle
            && self.filled.is_empty()
            && self.stash.is_empty()
            && self.end.is_none()
            && self.letter.is_none()
            && self.unsent.is_empty()
            && self.refused.is_none()
    }

    /// Bytes that arrived in this turn and have not been taken.
    pub fn filled_bytes(&self) -> usize {
        self.filled.iter().map(Filled::len).sum()
    }

    /// Copies what has arrived to the front of `buffer`.
    pub fn take(&mut self, buffers: &mut Buffers, buffer: &mut [u8]) -> usize {
        let mut at = 0;
        if !self.stash.is_empty() {
            let left = &self.stash[self.taken..];
            at = left.len().min(buffer.len());
            buffer[..at].copy_from_slice(&left[..at]);
            self.taken += at;
            if self.taken < self.stash.len() {
                return at;
            }
            (self.stash, self.taken) = (Vec::new(), 0);
        }
        while let Some(filled) = self.filled.front() {
            if filled.len() > buffer.len() - at {
                if at == 0 {
                    // Offered less than one of our buffers holds.
                    self.put_by(buffers);
                    return self.take(buffers, buffer);
                }
                break;
            }
            buffer[at..at + filled.len()].copy_from_slice(buffers.bytes(filled));
            at += filled.len();
            if let Some(filled) = self.filled.pop_front() {
                buffers.give_back(filled);
            }
        }
        at
    }

    /// Moves what nobody took into memory of the connection's own; false if there was nothing.
    pub fn put_by(&mut self, buffers: &mut Buffers) -> bool {
        let any = !self.filled.is_empty();
        for filled in self.filled.drain(..) {
            self.stash.extend_from_slice(buffers.bytes(&filled));
            buffers.give_back(filled);
        }
        any
    }
}
