//! Request coalescing: while one request for a key is forwarded, others for the same key wait for its response.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use rocknet_io::wheel::Deadline;

use crate::stored::StoredResponse;

/// Keys for which a request is being forwarded.
#[derive(Default)]
pub struct Flights {
    flights: Mutex<HashMap<Box<[u8]>, Arc<Flight>>>,
}

/// One forwarded request, and the requests that wait for it.
pub struct Flight {
    /// Uptime in milliseconds when the request was forwarded.
    started_ms: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// True once the request has ended.
    has_landed: bool,
    /// The response, if others may use it.
    response: Option<Arc<StoredResponse>>,
    /// True if the resource was changed meanwhile, so that the response may be out of date.
    is_invalidated: bool,
    /// Places of tasks that wait; `None`: the place is free.
    waiting: Vec<Option<Waker>>,
    /// Free places.
    free: Vec<usize>,
}

/// A request that waits. Dropping it frees its place.
struct Waiter<'f> {
    flight: &'f Flight,
    place: Option<usize>,
}

/// Role of a request.
pub enum Joined {
    /// The request is forwarded, and others wait for it.
    Leads(Leader),
    /// The request waits.
    Waits(Arc<Flight>),
}

/// The request that is forwarded. Dropping it lets the others continue on their own.
pub struct Leader {
    flights: Arc<Flights>,
    key: Box<[u8]>,
    flight: Arc<Flight>,
}

/// Locks a mutex. A panic leaves no state of this module inconsistent, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Flights {
    /// Joins the requests for a key. `now_ms`: uptime in milliseconds.
    pub fn join(self: &Arc<Flights>, key: &[u8], now_ms: u64) -> Joined {
        match lock(&self.flights).entry(key.into()) {
            Entry::Occupied(entry) => Joined::Waits(Arc::clone(entry.get())),
            Entry::Vacant(entry) => {
                let flight = Arc::new(Flight {
                    started_ms: now_ms,
                    state: Mutex::default(),
                });
                entry.insert(Arc::clone(&flight));
                Joined::Leads(Leader {
                    flights: Arc::clone(self),
                    key: key.into(),
                    flight,
                })
            }
        }
    }

    /// Marks the response that is expected for a key as out of date, so that it is not stored.
    pub fn invalidate(&self, key: &[u8]) {
        if let Some(flight) = lock(&self.flights).get(key) {
            lock(&flight.state).is_invalidated = true;
        }
    }

    /// Marks all expected responses for whose keys `is_affected` returns true as out of date.
    pub fn invalidate_all(&self, is_affected: impl Fn(&[u8]) -> bool) {
        for (_, flight) in lock(&self.flights).iter().filter(|(key, _)| is_affected(key)) {
            lock(&flight.state).is_invalidated = true;
        }
    }
}

impl Flight {
    /// Returns the time in milliseconds since the request was forwarded.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.started_ms)
    }

    /// Waits until the forwarded request has ended, or until the deadline. Returns its response if it may be used for
    /// other requests.
    pub async fn landed(&self, deadline: &Deadline) -> Option<Arc<StoredResponse>> {
        let mut waiter = Waiter {
            flight: self,
            place: None,
        };
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.has_landed {
                return Poll::Ready(state.response.clone());
            }
            if deadline.poll_past(context.waker()) {
                return Poll::Ready(None);
            }
            let place = *waiter.place.get_or_insert_with(|| state.place());
            state.waiting[place] = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl State {
    /// Returns a free place.
    fn place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() - 1
        })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = lock(&self.flight.state);
        // The places are gone once the request has ended.
        if let Some(waker) = state.waiting.get_mut(place) {
            *waker = None;
            state.free.push(place);
        }
    }
}

impl Leader {
    /// Returns true if the resource was changed while the request was forwarded.
    pub fn is_invalidated(&self) -> bool {
        lock(&self.flight.state).is_invalidated
    }

    /// Returns true if other requests wait or have waited.
    pub fn has_waiting(&self) -> bool {
        !lock(&self.flight.state).waiting.is_empty()
    }

    /// Ends the wait of the others with a response that they may use. They are woken when `self` is dropped.
    pub fn land(self, response: Arc<StoredResponse>) {
        let mut state = lock(&self.flight.state);
        if !state.is_invalidated {
            state.response = Some(response);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        lock(&self.flights.flights).remove(&self.key);
        let waiting = {
            let mut state = lock(&self.flight.state);
            state.has_landed = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;
    use std::time::Duration;

    use rocknet_io::wheel::Wheel;

    use super::*;

    #[test]
    fn requests_that_leave_free_their_places() {
        let flights = Arc::new(Flights::default());
        let Joined::Leads(leader) = flights.join(b"key", 1_000) else {
            panic!("the first request leads");
        };
        let Joined::Waits(flight) = flights.join(b"key", 3_000) else {
            panic!("the second request waits");
        };
        assert_eq!(flight.age_ms(3_000), 2_000);
        assert!(!leader.has_waiting());
        let wheel = Wheel::new(Duration::from_millis(10), 1);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            let deadlines = [wheel.deadline(), wheel.deadline()];
            deadlines.iter().for_each(|deadline| deadline.set(1));
            let mut first = Box::pin(flight.landed(&deadlines[0]));
            let mut second = Box::pin(flight.landed(&deadlines[1]));
            assert!(first.as_mut().poll(&mut context).is_pending());
            assert!(second.as_mut().poll(&mut context).is_pending());
            // One client leaves, and the other one waits for too long.
            drop(first);
            assert!((0..3).map(|_| wheel.advance()).sum::<usize>() >= 1);
            assert!(matches!(second.as_mut().poll(&mut context), Poll::Ready(None)));
        }
        assert_eq!(lock(&flight.state).waiting.len(), 2);
        assert!(leader.has_waiting());
        drop(leader);
        assert!(matches!(flights.join(b"key", 0), Joined::Leads(_)));
    }
}
