//! One application server and the connections to it: those in use are counted, those at rest are kept for the next.
//!
//! What is kept is shared by all workers. A connection at rest holds one process of php-fpm, of which there may be five:
//! if each worker kept its own, processes would wait for workers that are idle while others wait for a process.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use rocknet_config::model::Php;
use rocknet_io::wheel::{Deadline, Wheel};
use tokio::sync::SemaphorePermit;

use super::socket::{Idle, Socket};
use super::trouble::Trouble;
use crate::clock::uptime_ms;
use crate::php as own;

/// Connections at rest to one application server: less than the five processes that php-fpm has where nobody says
/// otherwise, so that some are left for its other clients.
const MAX_IDLE: usize = 4;
/// A connection that rests longer gives its process back. Under load none rests so long.
const IDLE_MS: u64 = 1000;
/// Requests that are with one application server, or on their way to it. php-fpm has a queue of 511; what is beyond waits
/// here, and each holds a descriptor.
const MAX_REQUESTS: usize = 1024;
/// Longest wait for a connection: a server that is full has a place in that time, or is too slow for those who ask.
const CONNECT: Duration = Duration::from_secs(3);
/// One that was reached in this time and is gone is being started again, most likely: that is waited for.
const RESTART_MS: u64 = 10_000;

pub struct Backend {
    place: Php,
    idle: Mutex<VecDeque<(Idle, u64)>>,
    requests: AtomicUsize,
    /// When it was reached the last time, in milliseconds of uptime, with one added so that 0 means never.
    reached_ms: AtomicU64,
}

/// All that are in use by some snapshot.
static ALL: Mutex<BTreeMap<Php, Weak<Backend>>> = Mutex::new(BTreeMap::new());
/// Connections at rest, in all of them: mostly none, and then there is nothing to look at.
static RESTING: AtomicUsize = AtomicUsize::new(0);

/// Closes what has rested too long. To be called by each worker at each tick.
pub fn tick() {
    let now = uptime_ms();
    close_all(|since| now.saturating_sub(since) >= IDLE_MS);
}

/// Closes what rests. To be called by a worker that ticks no more: the others would do it if there were any.
pub fn rest() {
    close_all(|_| true);
}

fn close_all(is_old: impl Fn(u64) -> bool) {
    if RESTING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let all: Vec<Arc<Backend>> = lock(&ALL).values().filter_map(Weak::upgrade).collect();
    for backend in all {
        backend.close_idle(&is_old);
    }
}

/// Counts a request for as long as it lives.
pub struct Place(Arc<Backend>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection in use.
pub struct Connected {
    pub socket: Socket,
    pub is_new: bool,
    /// Taken by it for as long as it lives.
    pub place: Taken,
}

/// What is counted.
pub enum Taken {
    Request(#[allow(dead_code, reason = "counts by being dropped")] Place),
    Process(#[allow(dead_code, reason = "counts by being dropped")] SemaphorePermit<'static>),
}

impl Backend {
    /// The one there is for this place: scopes of one configuration and of the next share it.
    pub fn of(place: &Php) -> Arc<Backend> {
        let mut all = lock(&ALL);
        if let Some(backend) = all.get(place).and_then(Weak::upgrade) {
            return backend;
        }
        all.retain(|_, backend| backend.strong_count() > 0);
        let backend = Arc::new(Backend::new(place.clone()));
        all.insert(place.clone(), Arc::downgrade(&backend));
        backend
    }

    fn new(place: Php) -> Backend {
        Backend {
            place,
            idle: Mutex::default(),
            requests: AtomicUsize::new(0),
            reached_ms: AtomicU64::new(0),
        }
    }

    pub fn place(&self) -> &Php {
        &self.place
    }

    /// A connection that was kept and still stands.
    pub fn kept(self: &Arc<Backend>) -> Option<Connected> {
        loop {
            // The youngest first: the older ones may go when there is little to do.
            let (idle, _) = lock(&self.idle).pop_back()?;
            RESTING.fetch_sub(1, Ordering::Relaxed);
            if let Some(socket) = idle.wake() {
                return Some(Connected {
                    socket,
                    is_new: false,
                    place: Taken::Request(self.enter().ok()?),
                });
            }
        }
    }

    fn kept_longest(&self) -> Option<Idle> {
        let (idle, _) = lock(&self.idle).pop_front()?;
        RESTING.fetch_sub(1, Ordering::Relaxed);
        Some(idle)
    }

    /// Keeps a connection whose request is over.
    pub fn keep(&self, connected: Connected) {
        let Connected { socket, place, .. } = connected;
        drop(place);
        self.reached_ms.store(uptime_ms() + 1, Ordering::Relaxed);
        let Ok(idle) = socket.rest() else { return };
        let mut all = lock(&self.idle);
        if all.len() < MAX_IDLE {
            all.push_back((idle, uptime_ms()));
            RESTING.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A new connection, waited for where the server is full or is being started again.
    pub async fn connect(self: &Arc<Backend>, wheel: &Rc<Wheel>) -> Result<Connected, Trouble> {
        let place = self.enter()?;
        // A new one wants a process. One that rests gives its own, or all could rest while this one waits.
        drop(self.kept_longest());
        let (deadline, pause) = (wheel.deadline(), wheel.deadline());
        deadline.set(wheel.ticks(CONNECT));
        // What came of it before tells more than that the time is over.
        let mut refused = None;
        loop {
            let connected = match within(&deadline, Socket::connect(&self.place)).await {
                Some(connected) => connected,
                None => {
                    let error = refused.take().unwrap_or_else(|| ErrorKind::TimedOut.into());
                    return Err(past_time(error));
                }
            };
            let error = match connected {
                Ok(socket) => {
                    self.reached_ms.store(uptime_ms() + 1, Ordering::Relaxed);
                    let is_new = true;
                    let place = Taken::Request(place);
                    return Ok(Connected { socket, is_new, place });
                }
                Err(error) => error,
            };
            if !self.may_come(&error) {
                return Err(Trouble::Unreachable(error));
            }
            pause.set(1);
            if within(&deadline, past(&pause)).await.is_none() {
                return Err(past_time(error));
            }
            refused = Some(error);
        }
    }

    fn enter(self: &Arc<Backend>) -> Result<Place, Trouble> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        // Counted already, so that leaving it counts it down.
        let place = Place(Arc::clone(self));
        if before < MAX_REQUESTS {
            Ok(place)
        } else {
            Err(Trouble::Full)
        }
    }

    /// Whether it is worth trying again a moment later.
    fn may_come(&self, error: &io::Error) -> bool {
        match error.kind() {
            // A socket file says so when its queue is full.
            ErrorKind::WouldBlock => true,
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                // Our own is being started, unless that is known to have failed.
                if let Php::Own { socket, .. } = &self.place {
                    return own::trouble(socket).is_none();
                }
                let reached = self.reached_ms.load(Ordering::Relaxed);
                reached != 0 && uptime_ms().saturating_sub(reached) < RESTART_MS
            }
            _ => false,
        }
    }

    fn close_idle(&self, is_old: impl Fn(u64) -> bool) {
        let mut idle = lock(&self.idle);
        let before = idle.len();
        idle.retain(|(_, since)| !is_old(*since));
        RESTING.fetch_sub(before - idle.len(), Ordering::Relaxed);
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.close_idle(|_| true);
    }
}

/// Why there was no connection all the time.
fn past_time(error: io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::WouldBlock => Trouble::Full,
        _ => Trouble::Unreachable(error),
    }
}

/// What `future` gives before the deadline; `None`: it is past.
pub async fn within<F: Future>(deadline: &Deadline, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

async fn past(deadline: &Deadline) {
    poll_fn(|context| match deadline.poll_past(context.waker()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
