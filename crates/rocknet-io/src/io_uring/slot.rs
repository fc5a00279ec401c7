//! Connection slot: operations, received data and waker of one connection.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::task::Waker;

use rustix::io::Errno;

use super::provided_buffers::{FilledBuffer, ProvidedBuffers};
use super::receive_mode::ReceiveMode;
use super::write_batch::WriteIndex;

/// State of a connection's receive operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveState {
    /// No operation is in flight.
    Idle,
    /// The operation is queued or in flight.
    Armed,
    /// Cancelled, but the last completion has not arrived.
    Cancelled,
}

/// Reason why a connection receives no more data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveEnd {
    /// The peer has shut down its sending side.
    Closed,
    /// Receiving has failed with this error.
    Failed(Errno),
}

/// State of one connection in the ring.
pub(super) struct ConnectionSlot {
    /// Descriptor of the socket. It remains open until every operation on it has been submitted; from submission on,
    /// the kernel holds its own reference.
    pub socket: RawFd,
    /// Waker of the task that waits for data, or for room in the socket.
    pub waker: Option<Waker>,
    pub receiving: ReceiveState,
    pub receive_mode: ReceiveMode,
    /// Mode of the armed operation: true if it was armed as a readiness poll. `receive_mode` may have changed since.
    pub poll_only: bool,
    /// True for a Unix socket, whose end the kernel may fail to report; see
    /// [`Kernel::has_ended`](super::kernel::Kernel::has_ended).
    pub is_unix: bool,
    /// True if data of a Unix socket has arrived since the last check for the end of its stream.
    pub may_have_ended: bool,
    /// True while an operation waits for room in the socket.
    pub awaits_writable: bool,
    /// Data that arrived in this turn of the ring.
    pub filled: VecDeque<FilledBuffer>,
    /// Data that arrived in earlier turns and was not received by the task. It was copied, so that its buffers can
    /// serve other connections.
    pub stash: Vec<u8>,
    /// Number of bytes of `stash` that the task has received.
    pub stash_read: usize,
    /// Reason why no more data will arrive; `None` while data may arrive.
    pub end: Option<ReceiveEnd>,
    /// Write of this connection in the batch; `None` if it has none.
    pub pending_write: Option<WriteIndex>,
    /// Bytes that the socket did not accept.
    pub unsent: Vec<u8>,
    /// Error that prevents all further sending.
    pub send_error: Option<Errno>,
    /// True once the link was dropped. The slot is then removed when its operations have ended.
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

    /// Returns whether the slot is released and has no operations.
    pub fn can_be_removed(&self) -> bool {
        self.is_released && self.receiving == ReceiveState::Idle && !self.awaits_writable
    }

    /// Stores the waker of the task.
    pub fn set_waker(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(current) if current.will_wake(waker) => {}
            current => *current = Some(waker.clone()),
        }
    }

    /// Returns whether data may be moved from the socket into a pipe. Large receives must be on, no receive operation
    /// may be active, and the slot must contain no received data, no batched or unsent write, no end and no error.
    pub fn may_fill_pipe(&self) -> bool {
        self.receive_mode.is_large()
            && self.receiving == ReceiveState::Idle
            && self.filled.is_empty()
            && self.stash.is_empty()
            && self.end.is_none()
            && self.pending_write.is_none()
            && self.unsent.is_empty()
            && self.send_error.is_none()
    }

    /// Returns the number of bytes that arrived in this turn of the ring and were not received by the task.
    pub fn filled_bytes(&self) -> usize {
        self.filled.iter().map(FilledBuffer::len).sum()
    }

    /// Moves received data to the front of `buffer`, and returns the number of bytes moved.
    pub fn take(&mut self, buffers: &mut ProvidedBuffers, buffer: &mut [u8]) -> usize {
        let mut at = 0;
        if !self.stash.is_empty() {
            let unread = &self.stash[self.stash_read..];
            at = unread.len().min(buffer.len());
            buffer[..at].copy_from_slice(&unread[..at]);
            self.stash_read += at;
            if self.stash_read < self.stash.len() {
                return at;
            }
            (self.stash, self.stash_read) = (Vec::new(), 0);
        }
        while let Some(filled) = self.filled.front() {
            if filled.len() > buffer.len() - at {
                if at == 0 {
                    // The data does not fit into the caller's buffer. It is stashed, because a provided buffer can only
                    // be taken whole.
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

    /// Copies data that the task has not received into memory of the connection, and gives its buffers back. Returns
    /// false if there was no such data.
    pub fn stash_filled(&mut self, buffers: &mut ProvidedBuffers) -> bool {
        let any = !self.filled.is_empty();
        for filled in self.filled.drain(..) {
            self.stash.extend_from_slice(buffers.bytes(&filled));
            buffers.give_back(filled);
        }
        any
    }
}
