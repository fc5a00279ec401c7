//! Concurrency limit of one upstream: counts requests in flight, keeps a reserve that low priority may not use, and
//! grants freed capacity to waiting requests.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use rocknet_config::model::Priority;

use rocknet_blocking::queue::Urgency;
use rocknet_handler::clock::TimeSource;

/// Divisor of the limit: a quarter of the permits is the reserve, which requests of low priority must not use while
/// requests of higher priority arrive.
///
/// Without a reserve, requests of low priority could hold all permits. A request of higher priority would then wait
/// until one of their responses is complete. There is no reserve if the limit is below this number.
const RESERVE_DIVISOR: usize = 4;

/// Time in milliseconds without a request above low priority after which low priority may use the reserve: about as
/// long as a user looks at a page.
const RESERVED_MS: u64 = 10_000;

/// Kind of a permit.
#[derive(Clone, Copy)]
pub enum PermitKind {
    /// Counts against the limit. `is_low` is true for a request of low priority.
    Request { is_low: bool },
    /// Counts as load of the upstream, but not against the limit.
    Tunnel,
}

/// Queue of requests. Each of them waits for a permit at any of several upstreams.
pub trait WaitQueue: Send + Sync {
    /// Returns the maximum number of concurrent requests at one upstream.
    fn limit(&self) -> usize;

    /// Returns the urgency of the most urgent request of these priorities that may use the upstream with this id;
    /// `None` if there is no such request. `now` is the uptime.
    fn urgency(&self, upstream_id: u32, priorities: &[Priority], now: Duration) -> Option<Urgency>;

    /// Grants a permit at the upstream with this id to the most urgent request of these priorities.
    ///
    /// Returns the waker of that request, or `Some(None)` if it has none. Returns `None` if nothing was granted,
    /// because no request or no capacity is left.
    fn grant(&self, upstream_id: u32, priorities: &[Priority], now: Duration) -> Option<Option<Waker>>;
}

/// Requests in flight at an upstream. Several routes may share the upstream, each with its own limit. In all methods,
/// `now_ms` is the uptime in milliseconds.
pub struct ConcurrencyLimit {
    /// Id of the upstream.
    id: u32,
    time: TimeSource,
    /// Number of requests in flight in the lower 32 bits; number of those with low priority in the upper 32 bits.
    in_flight: AtomicU64,
    /// Number of tunnels that the limit does not count. They are part of the load.
    tunnels: AtomicUsize,
    /// Time of the last request above low priority, in milliseconds of uptime; 0 before the first one.
    higher_ms: AtomicU64,
    /// Number of waiting requests: first of low priority, then of all other priorities.
    waiting: [AtomicUsize; 2],
    /// Queues that hold the waiting requests.
    queues: Mutex<Vec<Weak<dyn WaitQueue>>>,
}

impl ConcurrencyLimit {
    /// Returns a limit without requests for the upstream `id`.
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

    /// Returns the number of requests and tunnels in flight.
    pub fn load(&self) -> usize {
        load(self.in_flight.load(Ordering::SeqCst)) + self.tunnels.load(Ordering::SeqCst)
    }

    /// Returns true if a new request may start under the limit `max`. A new request must not overtake waiting requests
    /// that could use the same capacity. Requests above low priority may overtake waiting requests of low priority.
    pub fn has_capacity(&self, max: usize, priority: Priority, now_ms: u64) -> bool {
        let [low, others] = &self.waiting;
        let has_waiting = others.load(Ordering::SeqCst) > 0 || is_low(priority) && low.load(Ordering::SeqCst) > 0;
        self.has_room(max, priority, now_ms) && !(has_waiting && self.is_due_to_waiting(priority, now_ms))
    }

    /// Returns true if a waiting request could use the free capacity. A request cannot use it if its queue has a lower
    /// limit that is reached. If `priority` is above low, waiting requests of low priority do not count.
    fn is_due_to_waiting(&self, priority: Priority, now_ms: u64) -> bool {
        let now = Duration::from_millis(now_ms);
        let usable = |queue: &Weak<dyn WaitQueue>| {
            let queue = queue.upgrade()?;
            let mut priorities = self.priorities(queue.limit(), now_ms);
            if !is_low(priority) {
                // The third priority is `Low`.
                priorities = &priorities[..priorities.len().min(2)];
            }
            queue.urgency(self.id, priorities, now)
        };
        lock(&self.queues).iter().any(|queue| usable(queue).is_some())
    }

    /// Returns true if the limit `max` and the reserve permit one more request, regardless of waiting requests.
    fn has_room(&self, max: usize, priority: Priority, now_ms: u64) -> bool {
        let in_flight = self.in_flight.load(Ordering::SeqCst);
        fits(in_flight, max, is_low(priority), self.is_reserved(now_ms))
    }

    /// Counts a new request if the limit `max` and the reserve permit it, regardless of waiting requests; otherwise
    /// returns `None`.
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

    /// Removes a request or tunnel from the counts, and grants the freed capacity to waiting requests.
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

    /// Counts a request as a tunnel from now on: as part of the load, but not against the limit.
    pub fn convert_to_tunnel(&self, kind: PermitKind) -> PermitKind {
        if let PermitKind::Request { is_low } = kind {
            self.tunnels.fetch_add(1, Ordering::SeqCst);
            self.in_flight.fetch_sub(one(is_low), Ordering::SeqCst);
            self.grant_to_waiting();
        }
        PermitKind::Tunnel
    }

    /// Grants free capacity to the waiting requests of all queues: first by priority, then by age.
    pub fn grant_to_waiting(&self) {
        // A request that ends releases its permit and then reads `waiting`. A request that waits increments `waiting`
        // and then tries to acquire. With `SeqCst`, at least one of the two observes the other's change.
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
            // The smallest value is the most urgent one.
            let Some((_, queue)) = all.min_by_key(|(urgency, _)| *urgency) else {
                break;
            };
            // If the request or the capacity is gone by now, nothing is granted and the next iteration checks again.
            granted.extend(queue.grant(self.id, self.priorities(queue.limit(), now_ms), now));
        }
        drop(queues);
        granted.into_iter().flatten().for_each(Waker::wake);
    }

    /// Returns the priorities that have capacity under the limit `max`, highest first.
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

    /// Adds a request to the count of waiting requests.
    pub fn add_waiting(&self, priority: Priority) {
        self.waiting[usize::from(!is_low(priority))].fetch_add(1, Ordering::SeqCst);
    }

    /// Removes a request from the count of waiting requests.
    pub fn remove_waiting(&self, priority: Priority) {
        self.waiting[usize::from(!is_low(priority))].fetch_sub(1, Ordering::SeqCst);
    }

    /// Registers a queue whose requests are granted free capacity from now on.
    pub fn register_queue(&self, queue: Weak<dyn WaitQueue>) {
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(queue);
    }

    /// Returns true if low priority may not use the reserve now.
    fn is_reserved(&self, now_ms: u64) -> bool {
        let higher_ms = self.higher_ms.load(Ordering::Relaxed);
        higher_ms != 0 && now_ms.saturating_sub(higher_ms) < RESERVED_MS
    }
}

/// Returns true if one more request may be in flight under the limit `max`. `in_flight` is a value of
/// `ConcurrencyLimit::in_flight`.
fn fits(in_flight: u64, max: usize, is_low: bool, is_reserved: bool) -> bool {
    let reserved = if is_reserved { max / RESERVE_DIVISOR } else { 0 };
    load(in_flight) < max && (!is_low || low(in_flight) < max - reserved)
}

/// Position of the low-priority count in `ConcurrencyLimit::in_flight`, in bits.
const LOW_SHIFT: u32 = 32;

/// Returns the value that one request adds to `ConcurrencyLimit::in_flight`.
fn one(is_low: bool) -> u64 {
    1 + (u64::from(is_low) << LOW_SHIFT)
}

/// Returns the number of all requests in a value of `ConcurrencyLimit::in_flight`.
fn load(in_flight: u64) -> usize {
    (in_flight & u64::from(u32::MAX)) as usize
}

/// Returns the number of requests of low priority in a value of `ConcurrencyLimit::in_flight`.
fn low(in_flight: u64) -> usize {
    (in_flight >> LOW_SHIFT) as usize
}

fn is_low(priority: Priority) -> bool {
    priority == Priority::Low
}

/// Locks `mutex`. Poisoning is ignored, because no code that can panic runs under the lock.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
