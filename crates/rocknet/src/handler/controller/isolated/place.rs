//! Calls that run at once in one process: counted, and those beyond the bound wait by the priority of their route.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rocknet_config::model::Priority;
use rocknet_io::wheel::Deadline;

use super::waiting::Waiting;

/// Calls at once: each takes a thread of the process, and may wait there for a database as long as it likes.
pub const AT_ONCE: usize = 64;

/// The threads of a library's process.
#[derive(Default)]
pub struct Places {
    taken: AtomicUsize,
    waiting: Waiting,
}

/// One of them, taken until this is dropped.
pub struct Place(Arc<Places>);

impl Places {
    /// A place, waited for where all are taken. `None`: too many wait already, or the deadline came first.
    pub async fn enter(self: &Arc<Places>, priority: Priority, deadline: &Deadline) -> Option<Place> {
        // Nobody passes those who wait.
        if self.waiting.is_empty()
            && let Some(place) = self.try_enter()
        {
            return Some(place);
        }
        loop {
            let called = Box::pin(self.waiting.wait(priority, deadline, || self.has_room())).await?;
            let place = self.try_enter();
            // Where there was none, others are still inside, and the next of them to leave calls again.
            called.take();
            if place.is_some() {
                return place;
            }
        }
    }

    fn has_room(&self) -> bool {
        self.taken.load(Ordering::SeqCst) < AT_ONCE
    }

    fn try_enter(self: &Arc<Places>) -> Option<Place> {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        // Counted already, so that leaving it counts it down.
        if before >= AT_ONCE {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        self.0.waiting.call_next();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use rocknet_io::wheel::Wheel;

    use super::*;

    #[test]
    fn so_many_are_let_in_and_who_is_too_many_waits_for_one_that_leaves() {
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let (places, deadline) = (Arc::new(Places::default()), wheel.deadline());
        deadline.set(5);
        let mut context = Context::from_waker(Waker::noop());
        let mut enter = || {
            let mut entering = Box::pin(places.enter(Priority::Normal, &deadline));
            match entering.as_mut().poll(&mut context) {
                Poll::Ready(place) => place,
                Poll::Pending => None,
            }
        };
        let mut inside: Vec<Place> = (0..AT_ONCE).filter_map(|_| enter()).collect();
        assert_eq!(inside.len(), AT_ONCE);
        assert!(enter().is_none());
        let mut waits = pin!(places.enter(Priority::Normal, &deadline));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        inside.pop();
        assert!(matches!(waits.as_mut().poll(&mut context), Poll::Ready(Some(_))));
    }
}
