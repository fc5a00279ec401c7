//! Calls that run at once in one process: counted, and those beyond the bound wait by the priority of their route.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_config::model::Priority;
use rocknet_io::wheel::Deadline;

use crate::blocking::oneshot_slot::OneshotSlot;
use crate::blocking::queue::{Queue, Ticket};
use crate::clock::uptime_ms;

/// Calls at once: each takes a thread of the process, and may wait there for a database as long as it likes.
pub const AT_ONCE: usize = 64;

/// The threads of a library's process.
#[derive(Default)]
pub struct Places(Mutex<Line>);

/// The queue bounds itself, for each priority. Nobody waits while there is room.
#[derive(Default)]
struct Line {
    taken: usize,
    queue: Queue<Arc<OneshotSlot<Place>>>,
}

/// One of them, until this is dropped; whoever is next then has it.
pub struct Place(Arc<Places>);

impl Places {
    /// A place, waited for where all are taken. `None`: too many wait already, or the deadline came first.
    pub async fn enter(self: &Arc<Places>, priority: Priority, deadline: &Deadline) -> Option<Place> {
        let leaving = {
            let mut line = self.line();
            if line.taken < AT_ONCE {
                line.taken += 1;
                return Some(Place(Arc::clone(self)));
            }
            let turn = Arc::new(OneshotSlot::default());
            Leaving {
                places: self,
                ticket: line.queue.push(priority, Arc::clone(&turn), now()).ok()?,
                turn,
            }
        };
        Box::pin(leaving.turn.wait(deadline)).await
    }

    /// Nothing that can panic runs while it is locked.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut line = self.0.line();
        let waker = match line.queue.pop(now()) {
            // Whoever leaves finds himself in the queue, or has a place: the lock is held until both are so.
            Some((_, turn)) => turn.set(Place(Arc::clone(&self.0))),
            None => {
                line.taken -= 1;
                None
            }
        };
        drop(line);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Takes one who leaves out of the queue; if he has a place that he does not know of, it is given on.
struct Leaving<'p> {
    places: &'p Places,
    turn: Arc<OneshotSlot<Place>>,
    ticket: Ticket,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.places.line().queue.cancel(self.ticket);
        drop(self.turn.take());
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

    /// One who enters, by a wheel that nobody turns but the test.
    struct Call<'p> {
        wheel: Rc<Wheel>,
        enters: Pin<Box<dyn Future<Output = Option<Place>> + 'p>>,
    }

    fn call(places: &Arc<Places>, priority: Priority) -> Call<'_> {
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let deadline = wheel.deadline();
        deadline.set(5);
        Call {
            wheel,
            enters: Box::pin(async move { places.enter(priority, &deadline).await }),
        }
    }

    impl Call<'_> {
        fn look(&mut self) -> Poll<Option<Place>> {
            self.enters.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        }

        fn waits(&mut self) -> bool {
            self.look().is_pending()
        }

        fn place(&mut self) -> Place {
            match self.look() {
                Poll::Ready(place) => place.expect("a place before the deadline"),
                Poll::Pending => panic!("he has none"),
            }
        }
    }

    fn full(places: &Arc<Places>) -> Vec<Place> {
        (0..AT_ONCE).map(|_| call(places, Normal).place()).collect()
    }

    #[test]
    fn a_place_that_is_left_goes_to_the_highest_and_nobody_passes() {
        let places = Arc::default();
        let mut inside = full(&places);
        let (mut low, mut first, mut high) = (call(&places, Low), call(&places, High), call(&places, High));
        assert!(low.waits() && first.waits() && high.waits());
        inside.pop();
        // It is his before he looks.
        let mut late = call(&places, High);
        assert!(late.waits() && low.waits() && high.waits());
        inside.push(first.place());
        inside.pop();
        // One who leaves without having looked gives it on, and one who leaves the queue is not given any.
        drop(late);
        drop(high);
        inside.push(low.place());
        assert_eq!((inside.len(), places.line().taken), (AT_ONCE, AT_ONCE));
        drop(inside);
        assert_eq!(places.line().taken, 0);
    }

    #[test]
    fn who_waits_in_vain_gives_up_and_is_forgotten() {
        let places = Arc::default();
        let mut inside = full(&places);
        let mut late = call(&places, Normal);
        assert!(late.waits());
        for _ in 0..6 {
            late.wheel.advance();
        }
        assert!(matches!(late.look(), Poll::Ready(None)));
        inside.pop();
        inside.push(call(&places, Low).place());
        assert_eq!(places.line().taken, AT_ONCE);
    }
}
