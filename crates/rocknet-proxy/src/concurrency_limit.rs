//! The requests at one server: their number, the priorities that there is room for, and the queues that wait for room.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use rocknet_config::model::Priority;

use rocknet_blocking::queue::Urgency;
use rocknet_handler::clock::TimeSource;

/// One of so many places of a limited server is not for requests of low priority, as long as others come: a request that waits
/// for one of low priority to end waits about as long as for a response, however high its own priority is. Of a few places none
/// is spared.
const RESERVED_FRACTION: usize = 4;

/// Without any other request for so long, those of low priority may have all places: as long as people look at a page.
const RESERVED_MS: u64 = 10_000;

/// The way in which a place counts.
#[derive(Clone, Copy)]
pub enum PermitKind {
    Request { is_low: bool },
    Tunnel,
}

/// A queue of requests that wait for a place at one of several servers.
pub trait WaitQueue: Send + Sync {
    /// Returns the number of requests that one server may have at once.
    fn limit(&self) -> usize;

    /// Returns the urgency of the first request of these priorities that a place at the server of this id suits.
    fn urgency(&self, server: u32, priorities: &[Priority], now: Duration) -> Option<Urgency>;

    /// Gives that request a place, if it and the room are still there, and returns the task to wake.
    fn grant(&self, server: u32, priorities: &[Priority], now: Duration) -> Option<Option<Waker>>;
}

/// The places at a server. Many routes may share it, with limits of their own.
pub struct ConcurrencyLimit {
    /// Id of the server.
    id: u32,
    time: TimeSource,
    /// Requests that are with it, or on their way to it, in the lower half; in the upper half the part of low priority.
    in_flight: AtomicU64,
    /// Tunnels with it that no limit counts; they are load all the same.
    tunnels: AtomicUsize,
    /// When one came that is not of low priority, in milliseconds of uptime; 0: never.
    higher_ms: AtomicU64,
    /// Requests that wait: of low priority, and others.
    waiting: [AtomicUsize; 2],
    /// Queues in which they wait.
    queues: Mutex<Vec<Weak<dyn WaitQueue>>>,
}

impl ConcurrencyLimit {
    pub fn new(id: u32, time: TimeSource) -> ConcurrencyLimit {
        ConcurrencyLimit {
            id,
            time,
            in_flight: AtomicU64::new(0),
            tunnels: AtomicUsize::new(0),
            higher_ms: AtomicU64::new(0),
            waiting: Default::default(),
            queues: Mutex::default(),
        }
    }

    /// Returns the number of requests and tunnels that are with the server.
    pub fn load(&self) -> usize {
        load(self.in_flight.load(Ordering::SeqCst)) + self.tunnels.load(Ordering::SeqCst)
    }

    /// Returns whether a new request finds room. It passes no request that waits, but those of low priority.
    pub fn has_capacity(&self, max: usize, priority: Priority, now_ms: u64) -> bool {
        let [low, others] = &self.waiting;
        let is_waited_for = others.load(Ordering::SeqCst) > 0 || is_low(priority) && low.load(Ordering::SeqCst) > 0;
        self.has_room(max, priority, now_ms) && !(is_waited_for && self.is_due_to_waiting(priority, now_ms))
    }

    /// Returns whether a request that waits could have the room. Its route may allow fewer requests here than that of a new
    /// request: then it is in no way.
    fn is_due_to_waiting(&self, priority: Priority, now_ms: u64) -> bool {
        let now = Duration::from_millis(now_ms);
        let could = |queue: &Weak<dyn WaitQueue>| {
            let queue = queue.upgrade()?;
            let mut priorities = self.priorities(queue.limit(), now_ms);
            if !is_low(priority) {
                priorities = &priorities[..priorities.len().min(2)];
            }
            queue.urgency(self.id, priorities, now)
        };
        lock(&self.queues).iter().any(|queue| could(queue).is_some())
    }

    /// Returns whether there is room for a request among `most`, without regard to those that wait.
    fn has_room(&self, max: usize, priority: Priority, now_ms: u64) -> bool {
        let in_flight = self.in_flight.load(Ordering::SeqCst);
        fits(in_flight, max, is_low(priority), self.is_reserved(now_ms))
    }

    /// Counts a request in, if there is room.
    pub fn try_acquire(&self, max: usize, priority: Priority, now_ms: u64) -> Option<PermitKind> {
        let is_low = is_low(priority);
        if !is_low {
            self.higher_ms.store(now_ms.max(1), Ordering::Relaxed);
        }
        let is_reserved = is_low && self.is_reserved(now_ms);
        let more = |in_flight| fits(in_flight, max, is_low, is_reserved).then_some(in_flight + one(is_low));
        let in_flight = self.in_flight.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        in_flight.is_ok().then_some(PermitKind::Request { is_low })
    }

    /// Counts a request or tunnel out. Room that it had is offered to those that wait.
    pub fn release(&self, kind: PermitKind) {
        match kind {
            PermitKind::Request { is_low } => {
                self.in_flight.fetch_sub(one(is_low), Ordering::SeqCst);
                self.grant_to_waiting();
            }
            PermitKind::Tunnel => {
                self.tunnels.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Counts a request as a tunnel from here on, which is load of the server but takes no room from requests.
    pub fn convert_to_tunnel(&self, kind: PermitKind) -> PermitKind {
        if let PermitKind::Request { is_low } = kind {
            self.tunnels.fetch_add(1, Ordering::SeqCst);
            self.in_flight.fetch_sub(one(is_low), Ordering::SeqCst);
            self.grant_to_waiting();
        }
        PermitKind::Tunnel
    }

    /// Gives room to requests that wait, in whichever queue: to the highest priority first, and of equals to the oldest.
    pub fn grant_to_waiting(&self) {
        // A request that leaves gives up its place, then looks at `awaited`; one that waits counts itself there, then looks for a
        // place. One of them sees the other.
        if self.waiting.iter().all(|count| count.load(Ordering::SeqCst) == 0) {
            return;
        }
        let mut granted = Vec::new();
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        loop {
            let now_ms = self.time.uptime_ms();
            let now = Duration::from_millis(now_ms);
            let urgency = |queue: Arc<dyn WaitQueue>| {
                let priorities = self.priorities(queue.limit(), now_ms);
                Some((queue.urgency(self.id, priorities, now)?, queue))
            };
            let all = queues.iter().filter_map(Weak::upgrade).filter_map(urgency);
            let Some((_, queue)) = all.min_by_key(|(urgency, _)| *urgency) else {
                break;
            };
            // Where the request or the room has just gone, the next iteration sees it.
            granted.extend(queue.grant(self.id, self.priorities(queue.limit(), now_ms), now));
        }
        drop(queues);
        granted.into_iter().flatten().for_each(Waker::wake);
    }

    /// Returns the priorities that there is room for.
    fn priorities(&self, max: usize, now_ms: u64) -> &'static [Priority] {
        let all = &[Priority::High, Priority::Normal, Priority::Low];
        match (
            self.has_room(max, Priority::High, now_ms),
            self.has_room(max, Priority::Low, now_ms),
        ) {
            (false, _) => &[],
            (true, false) => &all[..2],
            (true, true) => all,
        }
    }

    /// Counts a request in that waits for a place here.
    pub fn add_waiting(&self, priority: Priority) {
        self.waiting[usize::from(!is_low(priority))].fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a request out that waited.
    pub fn remove_waiting(&self, priority: Priority) {
        self.waiting[usize::from(!is_low(priority))].fetch_sub(1, Ordering::SeqCst);
    }

    /// Offers room to the requests of a queue from now on.
    pub fn register_queue(&self, queue: Weak<dyn WaitQueue>) {
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(queue);
    }

    fn is_reserved(&self, now_ms: u64) -> bool {
        let higher_ms = self.higher_ms.load(Ordering::Relaxed);
        higher_ms != 0 && now_ms.saturating_sub(higher_ms) < RESERVED_MS
    }
}

fn fits(in_flight: u64, max: usize, is_low: bool, is_reserved: bool) -> bool {
    let reserved = if is_reserved { max / RESERVED_FRACTION } else { 0 };
    load(in_flight) < max && (!is_low || low(in_flight) < max - reserved)
}

const HALF: u32 = 32;

fn one(is_low: bool) -> u64 {
    1 + (u64::from(is_low) << HALF)
}

fn load(in_flight: u64) -> usize {
    (in_flight & u64::from(u32::MAX)) as usize
}

fn low(in_flight: u64) -> usize {
    (in_flight >> HALF) as usize
}

fn is_low(priority: Priority) -> bool {
    priority == Priority::Low
}

/// Nothing that can panic runs while this is locked.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
