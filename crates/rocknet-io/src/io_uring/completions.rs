//! What the kernel answers: each completion finds the one it is for.

use rustix::io::Errno;

use super::kernel::Completion;
use super::receive_mode::LARGE_RECEIVE_BYTES;
use super::slot::{ReceiveEnd, ReceiveState};
use super::state::RingState;
use super::user_data::{OperationKind, decode};

impl RingState {
    /// Takes the completions; tells how many connections have something to take back.
    pub fn reap(&mut self) -> usize {
        let mut returned = 0;
        loop {
            let Some(completion) = self.kernel.next() else {
                return returned;
            };
            let Some((kind, index)) = decode(completion.user_data) else {
                continue;
            };
            let result = completion.result;
            match kind {
                OperationKind::CancelReceive => self.cancel_failed(index, result),
                OperationKind::CancelWritable => {}
                OperationKind::Send => returned += usize::from(self.send_failed(index, result)),
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

    /// A send that did not go well: true if there is something to take back.
    fn send_failed(&mut self, index: usize, result: i32) -> bool {
        let Some(slot) = self.slots.get_mut(index) else {
            return false;
        };
        match usize::try_from(result) {
            Err(_) if Errno::from_raw_os_error(-result) != Errno::AGAIN => {
                slot.send_error = Some(Errno::from_raw_os_error(-result));
            }
            sent => {
                slot.unsent = self
                    .write_batch
                    .unsent_part(slot.pending_write, sent.unwrap_or(0))
                    .to_vec()
            }
        }
        let returned = !slot.unsent.is_empty();
        self.wakers.extend(slot.waker.take());
        returned
    }

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
            // An error as well: what there is to know of it the next receive tells.
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
                slot.may_have_ended = slot.is_unix;
            }
            (Some(id), _) => self.buffers.give_back_empty(id),
            (None, Ok(_)) => {}
            (None, Err(_)) => match Errno::from_raw_os_error(-result) {
                Errno::NOBUFS if !slot.is_released => {
                    self.starved.push(index);
                    return;
                }
                // Ours, or nothing that another try does not mend.
                Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR => {}
                error => slot.end = Some(ReceiveEnd::Failed(error)),
            },
        }
        // The end is told without a buffer, or by one with nothing in it.
        if result == 0 {
            slot.end = Some(ReceiveEnd::Closed);
        }
        if !slot.receive_mode.is_large() && slot.filled_bytes() >= LARGE_RECEIVE_BYTES {
            slot.receive_mode.enter_large();
            if slot.receiving == ReceiveState::Armed {
                self.cancel_receiving(index);
            }
        }
        self.wake(index);
    }

    /// Whoever waits for a place looks again; one that nobody asks for any more is free with its last operation.
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

    /// Only a cancellation that failed is told. What it was for has ended by itself, and its completion came first; or
    /// the kernel had it in hand at that moment and found nothing to cancel: then it still waits.
    fn cancel_failed(&mut self, index: usize, result: i32) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let told = Errno::from_raw_os_error(-result);
        if slot.receiving == ReceiveState::Cancelled && matches!(told, Errno::NOENT | Errno::ALREADY) {
            slot.receiving = ReceiveState::Armed;
            if slot.is_released {
                self.cancel_receiving(index);
            }
        }
    }
}
