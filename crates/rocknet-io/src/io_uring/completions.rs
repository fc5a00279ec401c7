//! Dispatches completions to the connections and operations that they belong to.

use rustix::io::Errno;

use super::kernel::Completion;
use super::receive_mode::LARGE_RECEIVE_BYTES;
use super::slot::{ReceiveEnd, ReceiveState};
use super::state::RingState;
use super::user_data::{OperationKind, decode};

impl RingState {
    /// Processes all completions. Returns the number of connections whose sends were reported as short. The unsent
    /// bytes are in their slots until the connections take them back.
    pub fn reap(&mut self) -> usize {
        let mut unsent = 0;
        loop {
            let Some(completion) = self.kernel.next() else {
                return unsent;
            };
            let Some((kind, index)) = decode(completion.user_data) else {
                continue;
            };
            let result = completion.result;
            match kind {
                OperationKind::CancelReceive => self.cancel_failed(index, result),
                // A failed cancellation needs no action, because a wait for room ends with a completion of its own.
                OperationKind::CancelWritable => {}
                OperationKind::Send => unsent += usize::from(self.send_failed(index, result)),
                OperationKind::FileOperation => {
                    self.operations -= 1;
                    self.wakers.extend(self.file_operations.complete(index, result));
                }
                OperationKind::Epoll => {
                    self.operations -= 1;
                    self.is_watching_epoll = false;
                    self.wakers.extend(self.epoll_waker.take());
                }
                OperationKind::Writable => {
                    self.operations -= 1;
                    if let Some(slot) = self.slots.get_mut(index) {
                        slot.awaits_writable = false;
                        self.wake(index);
                    }
                }
                OperationKind::Receive => self.received(index, &completion),
            }
        }
    }

    /// Handles the completion of a send that was short or failed; a full send posts no completion. Returns true if the
    /// slot has unsent bytes for the connection to take back.
    fn send_failed(&mut self, index: usize, result: i32) -> bool {
        let Some(slot) = self.slots.get_mut(index) else {
            return false;
        };
        match usize::try_from(result) {
            Err(_) if Errno::from_raw_os_error(-result) != Errno::AGAIN => {
                slot.send_error = Some(Errno::from_raw_os_error(-result));
            }
            // EAGAIN means that no byte was sent.
            sent => {
                slot.unsent = self
                    .write_batch
                    .unsent_part(slot.pending_write, sent.unwrap_or(0))
                    .to_vec();
            }
        }
        let has_unsent = !slot.unsent.is_empty();
        self.wakers.extend(slot.waker.take());
        has_unsent
    }

    /// Handles a completion of a receive operation or readiness poll.
    fn received(&mut self, index: usize, completion: &Completion) {
        let result = completion.result;
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        if !completion.more {
            self.operations -= 1;
            slot.receiving = ReceiveState::Idle;
        }
        if slot.poll_only {
            // The operation was a readiness poll. An error also counts as readable, because the next `recv(2)` returns
            // it.
            slot.receive_mode.set_readable();
            self.wake(index);
            return;
        }
        match (completion.buffer, usize::try_from(result)) {
            (Some(id), Ok(length)) if length > 0 && !slot.is_released => {
                if slot.filled.is_empty() {
                    self.unread.push(index);
                }
                slot.filled.extend(self.buffers.filled(id, length));
                // A Unix socket may have ended without a completion (see `Kernel::has_ended`).
                slot.may_have_ended = slot.is_unix;
            }
            // The buffer is empty, or the slot is released and the data is discarded.
            (Some(id), _) => self.buffers.give_back_unread(id),
            (None, Ok(_)) => {}
            (None, Err(_)) => match Errno::from_raw_os_error(-result) {
                Errno::NOBUFS if !slot.is_released => {
                    // No buffer was free. The receive operation starts again in the next turn.
                    self.starved.push(index);
                    return;
                }
                // The slot is released, this driver has cancelled the operation, or another attempt will succeed.
                Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR => {}
                error => slot.end = Some(ReceiveEnd::Failed(error)),
            },
        }
        // The end of the stream is reported without a buffer, or with an empty one.
        if result == 0 {
            slot.end = Some(ReceiveEnd::Closed);
        }
        // A connection that receives this much in one turn switches to large receives.
        if !slot.receive_mode.is_large() && slot.filled_bytes() >= LARGE_RECEIVE_BYTES {
            slot.receive_mode.enter_large();
            if slot.receiving == ReceiveState::Armed {
                self.cancel_receiving(index);
            }
        }
        self.wake(index);
    }

    /// Wakes the task of a slot. Removes the slot instead if it is released and has no more operations.
    fn wake(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        if slot.can_be_removed() {
            self.slots.remove(index);
        } else {
            self.wakers.extend(slot.waker.take());
        }
    }

    /// Handles a failed cancellation; a successful one posts no completion. A cancellation fails in two cases. Either
    /// the operation had ended by itself: its completion arrived first, so the slot is no longer in the state
    /// `Cancelled`. Or the kernel was handling the operation at that moment, so the operation is still armed.
    fn cancel_failed(&mut self, index: usize, result: i32) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let error = Errno::from_raw_os_error(-result);
        if slot.receiving == ReceiveState::Cancelled && matches!(error, Errno::NOENT | Errno::ALREADY) {
            slot.receiving = ReceiveState::Armed;
            if slot.is_released {
                self.cancel_receiving(index);
            }
        }
    }
}
