//! What the kernel answers: each completion finds the one it is for.

use rustix::io::Errno;

use super::kernel::Completion;
use super::receive_mode::MUCH;
use super::slot::{End, Receiving};
use super::state::State;
use super::user_data::{Kind, untag};

impl State {
    /// Takes the completions; tells how many connections have something to take back.
    pub fn reap(&mut self) -> usize {
        let mut returned = 0;
        loop {
            let Some(completion) = self.kernel.next() else {
                return returned;
            };
            let Some((kind, place)) = untag(completion.number) else {
                continue;
            };
            let result = completion.result;
            match kind {
                Kind::CancelReceive => self.not_cancelled(place, result),
                Kind::CancelWrite => {}
                Kind::Send => returned += usize::from(self.came_back(place, result)),
                Kind::Errand => {
                    self.operations -= 1;
                    self.wakers.extend(self.errands.ended(place, result));
                }
                Kind::Epoll => {
                    self.operations -= 1;
                    self.watching = false;
                    self.wakers.extend(self.keeper.take());
                }
                Kind::Write => {
                    self.operations -= 1;
                    if let Some(known) = self.places.get_mut(place) {
                        known.writing = false;
                        self.wake(place);
                    }
                }
                Kind::Receive => self.received(place, &completion),
            }
        }
    }

    /// A send that did not go well: true if there is something to take back.
    fn came_back(&mut self, place: usize, result: i32) -> bool {
        let Some(known) = self.places.get_mut(place) else {
            return false;
        };
        match usize::try_from(result) {
            Err(_) if Errno::from_raw_os_error(-result) != Errno::AGAIN => {
                known.refused = Some(Errno::from_raw_os_error(-result));
            }
            sent => known.unsent = self.outbox.rest(known.letter, sent.unwrap_or(0)).to_vec(),
        }
        let returned = !known.unsent.is_empty();
        self.wakers.extend(known.waker.take());
        returned
    }

    fn received(&mut self, place: usize, completion: &Completion) {
        let result = completion.result;
        let Some(known) = self.places.get_mut(place) else {
            return;
        };
        if !completion.more {
            self.operations -= 1;
            known.receiving = Receiving::Idle;
        }
        if known.only_waits {
            // An error as well: what there is to know of it the next receive tells.
            known.bulk.has_something();
            self.wake(place);
            return;
        }
        match (completion.buffer, usize::try_from(result)) {
            (Some(id), Ok(length)) if length > 0 && !known.gone => {
                if known.filled.is_empty() {
                    self.held.push(place);
                }
                known.filled.extend(self.buffers.filled(id, length));
                known.may_have_ended = known.is_local;
            }
            (Some(id), _) => self.buffers.give_back_empty(id),
            (None, Ok(_)) => {}
            (None, Err(_)) => match Errno::from_raw_os_error(-result) {
                Errno::NOBUFS if !known.gone => {
                    self.starved.push(place);
                    return;
                }
                // Ours, or nothing that another try does not mend.
                Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR => {}
                error => known.end = Some(End::Failed(error)),
            },
        }
        // The end is told without a buffer, or by one with nothing in it.
        if result == 0 {
            known.end = Some(End::Closed);
        }
        if !known.bulk.is_on() && known.filled_bytes() >= MUCH {
            known.bulk.begin();
            if known.receiving == Receiving::Armed {
                self.cancel_receiving(place);
            }
        }
        self.wake(place);
    }

    /// Whoever waits for a place looks again; one that nobody asks for any more is free with its last operation.
    fn wake(&mut self, place: usize) {
        let Some(known) = self.places.get_mut(place) else {
            return;
        };
        if known.is_free() {
            self.places.remove(place);
        } else {
            self.wakers.extend(known.waker.take());
        }
    }

    /// Only a cancellation that failed is told. What it was for has ended by itself, and its completion came first; or
    /// the kernel had it in hand at that moment and found nothing to cancel: then it still waits.
    fn not_cancelled(&mut self, place: usize, result: i32) {
        let Some(known) = self.places.get_mut(place) else {
            return;
        };
        let told = Errno::from_raw_os_error(-result);
        if known.receiving == Receiving::Cancelled && matches!(told, Errno::NOENT | Errno::ALREADY) {
            known.receiving = Receiving::Armed;
            if known.gone {
                self.cancel_receiving(place);
            }
        }
    }
}
