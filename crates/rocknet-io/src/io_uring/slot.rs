//! What the driver knows of one connection: its operations, what has arrived, and who waits for it.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::task::Waker;

use rustix::io::Errno;

use super::provided_buffers::{FilledBuffer, ProvidedBuffers};
use super::receive_mode::ReceiveMode;
use super::write_batch::WriteIndex;

/// Where the receiving operation of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveState {
    Idle,
    Armed,
    /// Told to end; its last completion is still to come.
    Cancelled,
}

/// How a connection's incoming bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveEnd {
    Closed,
    Failed(Errno),
}

pub(super) struct ConnectionSlot {
    /// Open as long as anything was asked for it that has not been handed over.
    pub socket: RawFd,
    pub waker: Option<Waker>,
    pub receiving: ReceiveState,
    pub receive_mode: ReceiveMode,
    /// The receiving operation brings no bytes: it waits for them, and the task receives by itself.
    pub poll_only: bool,
    /// A Unix socket, of which the kernel may keep the end to itself; see [`Kernel::has_ended`](super::kernel::Kernel::has_ended).
    pub is_unix: bool,
    /// Bytes of a Unix socket arrived since its end was last looked for.
    pub may_have_ended: bool,
    /// Waits for room in the socket.
    pub awaits_writable: bool,
    /// What arrived in this turn.
    pub filled: VecDeque<FilledBuffer>,
    /// What arrived earlier and was not taken: copied, so that the buffers serve others.
    pub stash: Vec<u8>,
    pub stash_read: usize,
    pub end: Option<ReceiveEnd>,
    /// What waits in the outbox to leave.
    pub pending_write: WriteIndex,
    /// What came back from there.
    pub unsent: Vec<u8>,
    /// Why nothing more can be sent.
    pub send_error: Option<Errno>,
    /// Nobody is interested any more; the place is free when its operations have ended.
    pub is_released: bool,
}

impl ConnectionSlot {
    pub fn new(socket: RawFd, is_unix: bool) -> ConnectionSlot {
        ConnectionSlot {
            socket,
            waker: None,
            receiving: ReceiveState::Idle,
            receive_mode: ReceiveMode::default(),
            poll_only: false,
            is_unix,
            may_have_ended: false,
            awaits_writable: false,
            filled: VecDeque::new(),
            stash: Vec::new(),
            stash_read: 0,
            end: None,
            pending_write: None,
            unsent: Vec::new(),
            send_error: None,
            is_released: false,
        }
    }

    pub fn can_be_removed(&self) -> bool {
        self.is_released && self.receiving == ReceiveState::Idle && !self.awaits_writable
    }

    pub fn wait(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(current) if current.will_wake(waker) => {}
            current => *current = Some(waker.clone()),
        }
    }

    /// It is received for in bulk, and nothing of what has arrived, or of what was to be sent, is anywhere but in its socket.
    pub fn holds_no_bytes(&self) -> bool {
        self.receive_mode.is_large()
            && self.receiving == ReceiveState::Idle
            && self.filled.is_empty()
            && self.stash.is_empty()
            && self.end.is_none()
            && self.pending_write.is_none()
            && self.unsent.is_empty()
            && self.send_error.is_none()
    }

    /// Bytes that arrived in this turn and have not been taken.
    pub fn filled_bytes(&self) -> usize {
        self.filled.iter().map(FilledBuffer::len).sum()
    }

    /// Copies what has arrived to the front of `buffer`.
    pub fn take(&mut self, buffers: &mut ProvidedBuffers, buffer: &mut [u8]) -> usize {
        let mut at = 0;
        if !self.stash.is_empty() {
            let left = &self.stash[self.stash_read..];
            at = left.len().min(buffer.len());
            buffer[..at].copy_from_slice(&left[..at]);
            self.stash_read += at;
            if self.stash_read < self.stash.len() {
                return at;
            }
            (self.stash, self.stash_read) = (Vec::new(), 0);
        }
        while let Some(filled) = self.filled.front() {
            if filled.len() > buffer.len() - at {
                if at == 0 {
                    // Offered less than one of our buffers holds.
                    self.stash_filled(buffers);
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
    pub fn stash_filled(&mut self, buffers: &mut ProvidedBuffers) -> bool {
        let any = !self.filled.is_empty();
        for filled in self.filled.drain(..) {
            self.stash.extend_from_slice(buffers.bytes(&filled));
            buffers.give_back(filled);
        }
        any
    }
}
