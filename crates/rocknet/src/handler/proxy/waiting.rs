//! Requests that wait until a server has room: a queue with an end, high priority before low, and nobody for ever.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use rocknet_config::model::Priority;
use rocknet_io::wheel::Deadline;

use crate::blocking::queue::{Queue, Ticket};
use crate::clock::uptime_ms;

/// Those who wait at one place, whichever worker they belong to. The queue bounds itself, for each priority.
#[derive(Default)]
pub struct Waiting {
    queue: Mutex<Queue<Arc<Turn>>>,
    count: AtomicUsize,
}

/// One who waits.
#[derive(Default)]
struct Turn {
    has_come: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// A place was left: whoever is next may look for one.
    pub fn call_next(&self) {
        if self.is_empty() {
            return;
        }
        let mut queue = lock(&self.queue);
        let Some((_, turn)) = queue.pop(now()) else { return };
        self.count.fetch_sub(1, Ordering::Relaxed);
        // Whoever leaves finds himself in the queue, or called: the lock is held until both are so.
        turn.has_come.store(true, Ordering::Release);
        drop(queue);
        if let Some(waker) = lock(&turn.waker).take() {
            waker.wake();
        }
    }

    /// Waits to be called. False: too many wait already, or the deadline came first.
    pub async fn wait(&self, priority: Priority, deadline: &Deadline) -> bool {
        let turn = Arc::new(Turn::default());
        let ticket = lock(&self.queue).push(priority, Arc::clone(&turn), now());
        let Ok(ticket) = ticket else { return false };
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut leaving = Leaving {
            waiting: self,
            ticket,
            is_called: false,
        };
        poll_fn(|context| {
            *lock(&turn.waker) = Some(context.waker().clone());
            if turn.has_come.load(Ordering::Acquire) {
                leaving.is_called = true;
                return Poll::Ready(true);
            }
            match deadline.poll_past(context.waker()) {
                true => Poll::Ready(false),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// Takes one who leaves out of the queue; if he was called meanwhile, the next is.
struct Leaving<'w> {
    waiting: &'w Waiting,
    ticket: Ticket,
    is_called: bool,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.is_called {
            return;
        }
        let cancelled = lock(&self.waiting.queue).cancel(self.ticket);
        if cancelled.is_some() {
            self.waiting.count.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.waiting.call_next();
        }
    }
}

fn now() -> Duration {
    Duration::from_millis(uptime_ms())
}

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use rocknet_io::wheel::Wheel;

    use super::*;

    #[test]
    fn who_waits_is_called_by_priority_or_gives_up_and_passes_it_on() {
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let waiting = Waiting::default();
        let deadline = || {
            let deadline = wheel.deadline();
            deadline.set(5);
            deadline
        };
        let (one, two, three) = (deadline(), deadline(), deadline());
        let mut context = Context::from_waker(Waker::noop());
        let mut low = Box::pin(waiting.wait(Priority::Low, &one));
        let mut high = Box::pin(waiting.wait(Priority::High, &two));
        assert!(low.as_mut().poll(&mut context).is_pending());
        assert!(high.as_mut().poll(&mut context).is_pending());
        waiting.call_next();
        assert!(low.as_mut().poll(&mut context).is_pending());
        assert_eq!(high.as_mut().poll(&mut context), Poll::Ready(true));
        // One who was called and left without a word has called the next.
        let mut other = Box::pin(waiting.wait(Priority::High, &three));
        assert!(other.as_mut().poll(&mut context).is_pending());
        waiting.call_next();
        drop(other);
        assert_eq!(low.as_mut().poll(&mut context), Poll::Ready(true));
        assert!(waiting.is_empty());
        // Nobody calls.
        let deadline = deadline();
        let mut late = pin!(waiting.wait(Priority::Normal, &deadline));
        assert!(late.as_mut().poll(&mut context).is_pending());
        for _ in 0..6 {
            wheel.advance();
        }
        assert_eq!(late.as_mut().poll(&mut context), Poll::Ready(false));
        assert!(waiting.is_empty());
        waiting.call_next();
    }
}
