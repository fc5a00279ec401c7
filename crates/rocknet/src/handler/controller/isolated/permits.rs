//! Limits the number of concurrent calls in one process. Further calls wait, ordered by the priority of their route.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_config::model::Priority;
use rocknet_io::wheel::Deadline;

use crate::blocking::oneshot_slot::OneshotSlot;
use crate::blocking::queue::{Queue, Ticket};
use crate::clock::uptime_ms;

/// Maximum number of concurrent calls. Each call occupies a thread of the process and may block there, for example on a
/// database.
pub const MAX_CALLS: usize = 64;

/// The permits for calls in the process of a library.
#[derive(Default)]
pub struct CallPermits(Mutex<PermitQueue>);

/// Number of permits in use, and the queue of waiting calls, whose length is limited per priority. A call waits only if
/// no permit is free.
#[derive(Default)]
struct PermitQueue {
    in_use: usize,
    waiting: Queue<Arc<OneshotSlot<CallPermit>>>,
}

/// Permit for one call. Dropping it grants the permit to the next waiting call.
pub struct CallPermit(Arc<CallPermits>);

impl CallPermits {
    /// Returns a permit, and waits if all are in use. `None` if the queue is full or the deadline passes first.
    pub async fn acquire(self: &Arc<CallPermits>, priority: Priority, deadline: &Deadline) -> Option<CallPermit> {
        let waiting = {
            let mut queue = self.queue();
            if queue.in_use < MAX_CALLS {
                queue.in_use += 1;
                return Some(CallPermit(Arc::clone(self)));
            }
            let slot = Arc::new(OneshotSlot::default());
            WaitingCall {
                permits: self,
                ticket: queue.waiting.push(priority, Arc::clone(&slot), now()).ok()?,
                slot,
            }
        };
        // Boxed, because few calls wait, and the future of each call would otherwise have room for the wait.
        Box::pin(waiting.slot.wait(deadline)).await
    }

    /// Locks the queue. Poisoning is ignored, because no code that can panic runs while the queue is locked.
    fn queue(&self) -> MutexGuard<'_, PermitQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        let waker = match queue.waiting.pop(now()) {
            // Queue and slot change under the same lock, so a cancelled call is either still queued or already has its
            // permit.
            Some((_, slot)) => slot.set(CallPermit(Arc::clone(&self.0))),
            None => {
                queue.in_use -= 1;
                None
            }
        };
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A call in the queue. Dropping it removes the call from the queue, and releases a permit that was granted but not yet
/// taken.
struct WaitingCall<'p> {
    permits: &'p CallPermits,
    slot: Arc<OneshotSlot<CallPermit>>,
    ticket: Ticket,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.permits.queue().waiting.cancel(self.ticket);
        drop(self.slot.take());
    }
}

fn now() -> Duration {
    Duration::from_millis(uptime_ms())
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use rocknet_io::wheel::Wheel;

    use super::*;
    use Priority::{High, Low, Normal};

    /// A call that acquires a permit, with a timer wheel that only the test advances.
    struct Call<'p> {
        wheel: Rc<Wheel>,
        /// Pending call of [`CallPermits::acquire`].
        acquires: Pin<Box<dyn Future<Output = Option<CallPermit>> + 'p>>,
    }

    /// Creates a call whose deadline is 5 ticks ahead. It joins the queue when it is first polled.
    fn call(permits: &Arc<CallPermits>, priority: Priority) -> Call<'_> {
        // A tick of 10 ms, and memory for 4 deadlines. Neither value matters here.
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let deadline = wheel.deadline();
        deadline.set(5);
        Call {
            wheel,
            acquires: Box::pin(async move { permits.acquire(priority, &deadline).await }),
        }
    }

    impl Call<'_> {
        fn poll_once(&mut self) -> Poll<Option<CallPermit>> {
            self.acquires.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        }

        fn is_waiting(&mut self) -> bool {
            self.poll_once().is_pending()
        }

        fn permit(&mut self) -> CallPermit {
            match self.poll_once() {
                Poll::Ready(permit) => permit.expect("a permit before the deadline"),
                Poll::Pending => panic!("no permit was granted"),
            }
        }
    }

    /// Acquires all permits.
    fn acquire_all(permits: &Arc<CallPermits>) -> Vec<CallPermit> {
        (0..MAX_CALLS).map(|_| call(permits, Normal).permit()).collect()
    }

    #[test]
    fn a_released_permit_goes_to_the_highest_priority_first() {
        let permits = Arc::default();
        let mut held = acquire_all(&permits);
        let (mut low, mut first, mut high) = (call(&permits, Low), call(&permits, High), call(&permits, High));
        assert!(low.is_waiting() && first.is_waiting() && high.is_waiting());
        held.pop();
        // The permit is granted to `first` before its future is polled.
        let mut late = call(&permits, High);
        assert!(late.is_waiting() && low.is_waiting() && high.is_waiting());
        held.push(first.permit());
        held.pop();
        // `late` leaves the queue without a permit, and `high` releases the one that was granted to it.
        drop(late);
        drop(high);
        held.push(low.permit());
        assert_eq!((held.len(), permits.queue().in_use), (MAX_CALLS, MAX_CALLS));
        drop(held);
        assert_eq!(permits.queue().in_use, 0);
    }

    #[test]
    fn a_call_past_its_deadline_leaves_the_queue() {
        let permits = Arc::default();
        let mut held = acquire_all(&permits);
        let mut late = call(&permits, Normal);
        assert!(late.is_waiting());
        for _ in 0..6 {
            late.wheel.advance();
        }
        assert!(matches!(late.poll_once(), Poll::Ready(None)));
        held.pop();
        held.push(call(&permits, Low).permit());
        assert_eq!(permits.queue().in_use, MAX_CALLS);
    }
}
