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
#[derive(Default)]
pub struct Flight {
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
    /// Tasks that wait. A task keeps its place.
    waiting: Vec<Option<Waker>>,
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
    /// Joins the requests for a key.
    pub fn join(self: &Arc<Flights>, key: &[u8]) -> Joined {
        match lock(&self.flights).entry(key.into()) {
            Entry::Occupied(entry) => Joined::Waits(Arc::clone(entry.get())),
            Entry::Vacant(entry) => {
                let flight = Arc::clone(entry.insert(Arc::default()));
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
    /// Waits until the forwarded request has ended, or until the deadline. Returns its response if it may be used for
    /// other requests.
    pub async fn landed(&self, deadline: &Deadline) -> Option<Arc<StoredResponse>> {
        let mut place = None;
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.has_landed {
                return Poll::Ready(state.response.clone());
            }
            if deadline.poll_past(context.waker()) {
                if let Some(place) = place {
                    state.waiting[place] = None;
                }
                return Poll::Ready(None);
            }
            let waker = Some(context.waker().clone());
            match place {
                Some(place) => state.waiting[place] = waker,
                None => {
                    place = Some(state.waiting.len());
                    state.waiting.push(waker);
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Leader {
    /// Returns true if the resource was changed while the request was forwarded.
    pub fn is_invalidated(&self) -> bool {
        lock(&self.flight.state).is_invalidated
    }

    /// Returns true if other requests wait.
    pub fn has_waiting(&self) -> bool {
        !lock(&self.flight.state).waiting.is_empty()
    }

    /// Ends the wait of the others with a response that they may use.
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
