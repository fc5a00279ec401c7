//! Calls that wait until their process has room: a queue with an end, high priority before low, and nobody for ever.

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
    /// Those in the queue, and those who were called and have not looked yet.
    count: AtomicUsize,
}

/// One who was called. Nobody who comes later passes him while he looks for a place; where he takes none, the next may.
pub struct Called<'w> {
    waiting: &'w Waiting,
    takes: bool,
}

impl Called<'_> {
    /// He has found a place.
    pub fn take(mut self) {
        self.takes = true;
    }
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        self.waiting.count.fetch_sub(1, Ordering::Relaxed);
        if !self.takes {
            self.waiting.call_next();
        }
    }
}

/// One who waits.
#[derive(Default)]
struct Turn {
    has_come: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// A place was left: whoever is next may look for one.
    pub fn call_next(&self) {
        if self.is_empty() {
            return;
        }
        let mut queue = lock(&self.queue);
        let Some((_, turn)) = queue.pop(now()) else { return };
        // Whoever leaves finds himself in the queue, or called: the lock is held until both are so.
        turn.has_come.store(true, Ordering::Release);
        drop(queue);
        if let Some(waker) = lock(&turn.waker).take() {
            waker.wake();
        }
    }

    /// Waits to be called. `None`: too many wait already, or the deadline came first. `has_room`: whether there is a place
    /// after all, which somebody may have left who did not see that anybody waits.
    pub async fn wait(
        &self,
        priority: Priority,
        deadline: &Deadline,
        has_room: impl FnOnce() -> bool,
    ) -> Option<Called<'_>> {
        let turn = Arc::new(Turn::default());
        let ticket = lock(&self.queue).push(priority, Arc::clone(&turn), now());
        let Ok(ticket) = ticket else { return None };
        let before = self.count.fetch_add(1, Ordering::SeqCst);
        let mut leaving = Leaving {
            waiting: self,
            ticket,
            is_called: false,
        };
        // Who leaves gives up his place, then looks whether anybody waits; who waits says so, then looks for a place.
        if before == 0 && has_room() {
            self.call_next();
        }
        poll_fn(|context| {
            *lock(&turn.waker) = Some(context.waker().clone());
            if turn.has_come.load(Ordering::Acquire) {
                leaving.is_called = true;
                return Poll::Ready(Some(Called {
                    waiting: self,
                    takes: false,
                }));
            }
            match deadline.poll_past(context.waker()) {
                true => Poll::Ready(None),
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
        self.waiting.count.fetch_sub(1, Ordering::Relaxed);
        if cancelled.is_none() {
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
        let mut low = Box::pin(waiting.wait(Priority::Low, &one, || false));
        let mut high = Box::pin(waiting.wait(Priority::High, &two, || false));
        assert!(low.as_mut().poll(&mut context).is_pending());
        assert!(high.as_mut().poll(&mut context).is_pending());
        waiting.call_next();
        assert!(low.as_mut().poll(&mut context).is_pending());
        let Poll::Ready(Some(called)) = high.as_mut().poll(&mut context) else {
            panic!("he was called");
        };
        // One who was called and left without a word has called the next.
        let mut other = Box::pin(waiting.wait(Priority::High, &three, || false));
        assert!(other.as_mut().poll(&mut context).is_pending());
        waiting.call_next();
        drop(other);
        let Poll::Ready(Some(last)) = low.as_mut().poll(&mut context) else {
            panic!("he was called");
        };
        // Who was called and looks for a place is not passed; when all have one, nobody waits.
        assert!(!waiting.is_empty());
        called.take();
        assert!(!waiting.is_empty());
        last.take();
        assert!(waiting.is_empty());
        // One who was called and took no place leaves it to the next.
        let (mut first, mut second) = (
            Box::pin(waiting.wait(Priority::Normal, &one, || false)),
            Box::pin(waiting.wait(Priority::Normal, &two, || false)),
        );
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        waiting.call_next();
        let Poll::Ready(Some(called)) = first.as_mut().poll(&mut context) else {
            panic!("he was called");
        };
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(called);
        assert!(matches!(second.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        assert!(waiting.is_empty());
        // A place was left before anybody saw that he waits.
        let mut lucky = Box::pin(waiting.wait(Priority::Low, &one, || true));
        assert!(matches!(lucky.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        assert!(waiting.is_empty());
        // Nobody calls.
        let deadline = deadline();
        let mut late = pin!(waiting.wait(Priority::Normal, &deadline, || false));
        assert!(late.as_mut().poll(&mut context).is_pending());
        for _ in 0..6 {
            wheel.advance();
        }
        assert!(matches!(late.as_mut().poll(&mut context), Poll::Ready(None)));
        assert!(waiting.is_empty());
        waiting.call_next();
    }
}
