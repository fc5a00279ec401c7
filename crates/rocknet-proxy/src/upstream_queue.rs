//! Queue of requests that wait for capacity at an upstream. It is bounded and ordered by priority, and each request has
//! a deadline.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use rocknet_config::model::Priority;
use rocknet_io::wheel::Deadline;

use crate::concurrency_limit::WaitQueue;
use crate::permit::Permit;
use crate::upstream::Upstream;
use rocknet_blocking::oneshot_slot::OneshotSlot;
use rocknet_blocking::queue::{Queue, Ticket, Urgency};
use rocknet_handler::breaker::Rules;

/// Number of ticks after which a waiting request itself checks for capacity, because nothing wakes it when a breaker
/// admits requests again. With ticks of 250 ms, this is one second.
const RECHECK_TICKS: u32 = 4;

/// Requests of all workers that wait for the same upstreams. For each priority the number of requests is bounded.
pub struct UpstreamQueue {
    /// Upstreams, each with a flag that is true for a backup.
    upstreams: Vec<(Arc<Upstream>, bool)>,
    /// Maximum number of concurrent requests at one upstream.
    max_requests: usize,
    queue: Mutex<Queue<Arc<WaitingRequest>>>,
    /// Number of waiting requests that exclude an upstream.
    excluding: AtomicUsize,
}

/// Request that waits in the queue.
struct WaitingRequest {
    /// Id of the upstream that the request excludes, because it was tried before; `None` if no upstream is excluded.
    excluded: Option<u32>,
    /// Rules of the breaker for this request.
    rules: Rules,
    permit: OneshotSlot<Permit>,
}

impl UpstreamQueue {
    /// Returns an empty queue. Capacity is granted to its requests only after [`UpstreamQueue::register`] was called.
    pub fn new(upstreams: Vec<(Arc<Upstream>, bool)>, max_requests: usize) -> UpstreamQueue {
        UpstreamQueue {
            upstreams,
            max_requests,
            queue: Mutex::default(),
            excluding: AtomicUsize::new(0),
        }
    }

    /// Registers the queue at all its upstreams, which then grant it free capacity.
    pub fn register(self: &Arc<UpstreamQueue>) {
        for upstream in self.upstreams() {
            let queue = Arc::downgrade(self);
            upstream.limit.register_queue(queue);
        }
    }

    /// Returns the upstreams of the queue.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.upstreams.iter().map(|(upstream, _)| upstream)
    }

    /// Returns a predicate for the requests that may now be sent to the upstream with this id, or `None` if no request
    /// may be sent to it.
    ///
    /// A request is sent to an upstream only if the request excludes all better upstreams. Three properties make an
    /// upstream worse, the most important first: it is unhealthy or drained, the breaker has paused it, or it is a
    /// backup.
    fn eligible(&self, upstream_id: u32, now: Duration) -> Option<impl Fn(&Arc<WaitingRequest>) -> bool> {
        let rank = |(upstream, is_backup): &(Arc<Upstream>, bool)| {
            let is_out = upstream.is_unhealthy() || upstream.is_drained();
            (is_out, !upstream.is_available(millis(now)), *is_backup)
        };
        let own = self.upstreams.iter().find(|(other, _)| other.id == upstream_id);
        let own_rank = own.map(rank);
        let mut better = self
            .upstreams
            .iter()
            .filter(|other| Some(rank(other)) < own_rank)
            .map(|(other, _)| other.id);
        let (better, another) = (better.next(), better.next());
        // A request excludes at most one upstream, so two better upstreams rule out every request.
        let is_any_eligible = better.is_none() || another.is_none() && self.excluding.load(Ordering::SeqCst) > 0;
        is_any_eligible.then_some(move |request: &Arc<WaitingRequest>| {
            request.excluded != Some(upstream_id) && (better.is_none() || better == request.excluded)
        })
    }

    /// Waits up to `ticks` for a permit at one of the upstreams other than `excluded`. `deadline` is a timer of the
    /// caller, which this method sets.
    ///
    /// Returns `None` if too many requests wait already, or if no permit was granted in time.
    pub async fn wait(
        &self,
        priority: Priority,
        excluded: Option<u32>,
        rules: Rules,
        deadline: &Deadline,
        ticks: u32,
    ) -> Option<Permit> {
        let request = Arc::new(WaitingRequest {
            excluded,
            rules,
            permit: OneshotSlot::default(),
        });
        let uptime_ms = self.upstreams().next().map_or(0, |first| first.time.uptime_ms());
        let now = Duration::from_millis(uptime_ms);
        let ticket = lock(&self.queue).push(priority, Arc::clone(&request), now).ok()?;
        self.excluding
            .fetch_add(usize::from(excluded.is_some()), Ordering::SeqCst);
        self.upstreams
            .iter()
            .for_each(|(upstream, _)| upstream.limit.add_waiting(priority));
        let guard = QueueGuard {
            queue: self,
            request,
            priority,
            ticket,
        };
        let mut remaining = ticks;
        loop {
            // Another request may have released its permit before this request was in the queue.
            self.upstreams
                .iter()
                .for_each(|(upstream, _)| upstream.limit.grant_to_waiting());
            let step = remaining.min(RECHECK_TICKS);
            deadline.set(step);
            let permit = guard.request.permit.wait(deadline).await;
            remaining -= step;
            if permit.is_some() || remaining == 0 {
                return permit;
            }
        }
    }
}

impl WaitQueue for UpstreamQueue {
    fn limit(&self) -> usize {
        self.max_requests
    }

    fn urgency(&self, upstream_id: u32, priorities: &[Priority], now: Duration) -> Option<Urgency> {
        if priorities.is_empty() {
            return None;
        }
        let eligible = self.eligible(upstream_id, now)?;
        lock(&self.queue).urgency_of(priorities, now, eligible)
    }

    fn grant(&self, upstream_id: u32, priorities: &[Priority], now: Duration) -> Option<Option<Waker>> {
        let eligible = self.eligible(upstream_id, now)?;
        let upstream = self.upstreams().find(|own| own.id == upstream_id)?;
        let mut queue = lock(&self.queue);
        let priority = queue.urgency_of(priorities, now, &eligible)?.priority;
        let permit = upstream.try_acquire(self.max_requests, priority, millis(now))?;
        let (_, request) = queue.pop_where(&[priority], now, &eligible)?;
        upstream.request_started(millis(now), request.rules);
        // The lock is held until the permit is stored. Therefore a request that is cancelled is either still in the
        // queue or has a permit to give back.
        Some(request.permit.set(permit))
    }
}

/// Removes a request from the queue when its wait ends or is cancelled. If it was granted a permit in the meantime, the
/// permit is granted to another request.
struct QueueGuard<'w> {
    queue: &'w UpstreamQueue,
    request: Arc<WaitingRequest>,
    priority: Priority,
    ticket: Ticket,
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        lock(&self.queue.queue).cancel(self.ticket);
        let upstreams = self.queue.upstreams.iter();
        upstreams.for_each(|(upstream, _)| upstream.limit.remove_waiting(self.priority));
        let excludes = self.request.excluded.is_some();
        self.queue.excluding.fetch_sub(usize::from(excludes), Ordering::SeqCst);
        drop(self.request.permit.take());
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Locks `mutex`. Poisoning is ignored, because no code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{Context, Poll};

    use rocknet_config::model::{Host, Upstream as To};
    use rocknet_io::wheel::Wheel;

    use super::*;
    use Priority::{High, Low, Normal};
    use rocknet_handler::clock::{TimeSource, uptime_ms};

    /// Rules that take an upstream out of rotation after one failure, for longer than a test runs.
    const RULES: Rules = Rules {
        fails: 1,
        window_ms: 3_600_000,
    };

    /// Returns an upstream with this id and port.
    fn server(number: u16) -> Arc<Upstream> {
        let to = To::at(Host::Address([127, 0, 0, 8].into(), number));
        Arc::new(Upstream::new(number.into(), &to, None, TimeSource::default()))
    }

    fn queue_for(upstreams: &[&Arc<Upstream>], max_requests: usize) -> Arc<UpstreamQueue> {
        let sharing = upstreams.iter().map(|server| (Arc::clone(server), false));
        let queue = Arc::new(UpstreamQueue::new(sharing.collect(), max_requests));
        queue.register();
        queue
    }

    /// Takes a permit without waiting; `None` if there is no capacity.
    fn take(server: &Arc<Upstream>, max_requests: usize, priority: Priority) -> Option<Permit> {
        server.try_acquire(max_requests, priority, uptime_ms())
    }

    /// Waiting request with a timer wheel that only the test advances.
    struct Client<'w> {
        wheel: Rc<Wheel>,
        waits: Pin<Box<dyn Future<Output = Option<Permit>> + 'w>>,
    }

    /// Starts a request that waits up to six ticks; no permit is free at its start.
    fn client<'w>(queue: &'w UpstreamQueue, priority: Priority, excluded: Option<u32>) -> Client<'w> {
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let deadline = wheel.deadline();
        let mut client = Client {
            wheel,
            waits: Box::pin(async move { queue.wait(priority, excluded, RULES, &deadline, 6).await }),
        };
        assert!(client.permit().is_none());
        client
    }

    impl Client<'_> {
        fn poll_permit(&mut self) -> Poll<Option<Permit>> {
            self.waits.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        }

        /// Returns the permit if it has been granted. Fails the test if the wait has timed out.
        fn permit(&mut self) -> Option<Permit> {
            match self.poll_permit() {
                Poll::Ready(permit) => Some(permit.expect("a permit before the deadline")),
                Poll::Pending => None,
            }
        }
    }

    #[test]
    fn a_freed_permit_is_granted_to_the_highest_priority_of_all_queues() {
        let (shared, other) = (server(1), server(2));
        let (narrow, wide) = (queue_for(&[&shared], 1), queue_for(&[&shared, &other], 1));
        // Both upstreams are at their limit.
        let (here, there) = (take(&shared, 1, Low), take(&other, 1, Low));
        let mut low = client(&narrow, Low, None);
        let mut normal = client(&narrow, Normal, None);
        let mut high = client(&wide, High, None);
        let late = client(&wide, High, None);
        drop(here);
        // The permit is reserved for the waiting request before that request is polled.
        assert!(!shared.limit.has_capacity(1, High, uptime_ms()) && normal.permit().is_none());
        let permit = high.permit().expect("the highest priority");
        assert_eq!(permit.upstream.id, shared.id);
        drop(permit);
        // A request that is dropped without being polled passes its permit on.
        assert!(normal.permit().is_none());
        drop(late);
        assert!(low.permit().is_none());
        drop(normal.permit().expect("the permit of the next request"));
        drop(low.permit().expect("the permit of the last request"));
        drop(there);
        assert_eq!((shared.limit.load(), other.limit.load()), (0, 0));
        assert!(shared.limit.has_capacity(1, Low, uptime_ms()) && other.limit.has_capacity(1, Low, uptime_ms()));
    }

    #[test]
    fn an_unlimited_tunnel_counts_as_load_but_holds_no_permit() {
        let shared = server(13);
        let queue = queue_for(&[&shared], 1);
        let tunnel = take(&shared, 1, Normal).expect("free capacity");
        let mut next = client(&queue, Normal, None);
        let tunnel = tunnel.into_unlimited();
        let permit = next.permit().expect("the capacity of the tunnel");
        assert!(shared.limit.load() == 2 && take(&shared, 1, Normal).is_none());
        drop(tunnel);
        assert!(shared.limit.load() == 1 && take(&shared, 1, Normal).is_none());
        drop(permit);
        assert!(shared.limit.load() == 0 && take(&shared, 1, Normal).is_some());
    }

    #[test]
    fn low_priority_uses_the_reserve_only_without_other_requests() {
        let shared = server(3);
        let queue = queue_for(&[&shared], 8);
        let mut alone: Vec<_> = (0..8)
            .map(|_| take(&shared, 8, Low).expect("the reserve is free without other requests"))
            .collect();
        assert!(take(&shared, 8, Low).is_none());
        let mut high = client(&queue, High, None);
        alone.pop();
        let first = high.permit().expect("a released permit");
        // A quarter of the limit is reserved, so low priority gets six of eight permits.
        alone.truncate(5);
        alone.extend(take(&shared, 8, Low));
        assert_eq!(alone.len(), 6);
        let mut low = client(&queue, Low, None);
        // Waiting requests of low priority block no other request.
        assert!(!shared.limit.has_capacity(8, Low, uptime_ms()) && shared.limit.has_capacity(8, Normal, uptime_ms()));
        let second = take(&shared, 8, Normal).expect("a reserved permit");
        assert!(take(&shared, 8, High).is_none());
        drop(first);
        assert!(low.permit().is_none());
        alone.pop();
        let third = low.permit().expect("a permit released by low priority");
        assert!(take(&shared, 8, Low).is_none());
        // The reserve is kept for ten seconds. A millisecond is added, because an uptime of zero is stored as one.
        let later = uptime_ms() + 10_001;
        assert!(shared.try_acquire(8, Low, later).is_some());
        drop((second, third));
        // A limit of three has no reserve.
        assert!(take(&server(4), 3, High).is_some());
        let few: Vec<_> = (0..3).map_while(|_| take(&server(4), 3, Low)).collect();
        assert_eq!(few.len(), 3);
    }

    #[test]
    fn waiting_requests_avoid_paused_unhealthy_and_excluded_upstreams() {
        let (one, two) = (server(5), server(6));
        let queue = queue_for(&[&one, &two], 1);
        let full = take(&two, 1, Low);
        one.failed(uptime_ms(), RULES);
        let mut client_of_paused = client(&queue, Low, None);
        drop(full);
        let full = client_of_paused.permit().expect("a permit of the other upstream");
        assert_eq!(full.upstream.id, two.id);
        // If all upstreams are paused, waiting requests are sent to them nevertheless.
        two.failed(uptime_ms(), RULES);
        let busy = take(&one, 1, Low);
        let mut second_client = client(&queue, Low, None);
        drop(busy);
        assert_eq!(second_client.permit().map(|permit| permit.upstream.id), Some(one.id));
        for server in [&one, &two] {
            server.succeeded(uptime_ms());
        }
        // An excluded upstream stays free for other requests.
        let mut excluding = client(&queue, High, Some(one.id));
        let held = take(&one, 1, Low).expect("free capacity");
        let mut any = client(&queue, Low, None);
        drop(held);
        assert!(excluding.permit().is_none());
        let held = any
            .permit()
            .expect("a permit of the upstream that the first request excludes");
        drop(full);
        drop(excluding.permit().expect("the upstream that is not excluded"));
        // Waiting requests use an upstream as soon as it becomes healthy.
        drop(held);
        let full = take(&two, 1, Low);
        one.set_unhealthy(true);
        let mut patient = client(&queue, Low, None);
        one.set_unhealthy(false);
        assert_eq!(patient.permit().map(|permit| permit.upstream.id), Some(one.id));
        drop(full);
    }

    #[test]
    fn a_backup_gets_waiting_requests_only_without_other_upstreams() {
        let (share, backup) = (server(11), server(12));
        let upstreams = [(Arc::clone(&share), false), (Arc::clone(&backup), true)];
        let queue = Arc::new(UpstreamQueue::new(upstreams.into(), 1));
        queue.register();
        let (busy, full) = (take(&share, 1, Low), take(&backup, 1, Low));
        let mut patient = client(&queue, Normal, None);
        // A request that excludes the active upstream can use only the backup.
        let mut tried = client(&queue, Low, Some(share.id));
        drop(full);
        let full = tried.permit().expect("the backup");
        assert_eq!(full.upstream.id, backup.id);
        assert!(patient.permit().is_none());
        drop(full);
        assert!(patient.permit().is_none(), "the active upstream is only at its limit");
        drop(busy);
        let busy = patient.permit().expect("the freed permit of the active upstream");
        assert_eq!(busy.upstream.id, share.id);
        // A paused active upstream ranks below an available backup, and above a paused backup.
        let mut patient = client(&queue, Normal, None);
        share.failed(uptime_ms(), RULES);
        backup.limit.grant_to_waiting();
        assert_eq!(patient.permit().map(|permit| permit.upstream.id), Some(backup.id));
        backup.failed(uptime_ms(), RULES);
        let mut patient = client(&queue, Normal, None);
        assert!(patient.permit().is_none());
        drop(busy);
        assert_eq!(patient.permit().map(|permit| permit.upstream.id), Some(share.id));
    }

    #[test]
    fn a_request_at_its_own_limit_does_not_block_other_queues() {
        let shared = server(8);
        let (narrow, wide) = (queue_for(&[&shared], 1), queue_for(&[&shared], 2));
        let held = take(&shared, 1, Normal);
        let mut modest = client(&narrow, High, None);
        assert!(!shared.limit.has_capacity(1, High, uptime_ms()) && shared.limit.has_capacity(2, Normal, uptime_ms()));
        let second = take(&shared, 2, Normal);
        let mut greedy = client(&wide, Normal, None);
        drop(held);
        let third = greedy.permit();
        assert!(third.is_some() && modest.permit().is_none());
        drop(second);
        // A new request may overtake a waiting request whose own limit is reached.
        assert!(modest.permit().is_none() && shared.limit.has_capacity(2, Low, uptime_ms()));
        drop(third);
        assert!(modest.permit().is_some());
    }

    #[test]
    fn waiting_requests_find_an_upstream_whose_pause_has_ended() {
        let (one, two) = (server(9), server(10));
        let queue = queue_for(&[&one, &two], 1);
        let full = take(&two, 1, Low);
        let short = Rules {
            fails: 1,
            window_ms: 50,
        };
        one.failed(uptime_ms(), short);
        let mut patient = client(&queue, Normal, None);
        while !one.is_available(uptime_ms()) {
            std::thread::yield_now();
        }
        assert!(patient.permit().is_none());
        for _ in 0..=RECHECK_TICKS {
            patient.wheel.advance();
        }
        assert_eq!(patient.permit().map(|permit| permit.upstream.id), Some(one.id));
        // After an upstream responds again, all waiting requests are granted permits.
        let trial = take(&one, 2, Low);
        one.failed(uptime_ms(), RULES);
        let more = queue_for(&[&one, &two], 2);
        let held = take(&two, 2, Low);
        let mut two_wait = [client(&more, Low, None), client(&more, Low, None)];
        one.succeeded(uptime_ms());
        assert!(two_wait[0].permit().is_some() && two_wait[1].permit().is_some());
        drop((full, trial, held));
    }

    #[test]
    fn a_waiting_request_times_out_and_leaves_the_queue() {
        let shared = server(7);
        let queue = queue_for(&[&shared], 1);
        let held = take(&shared, 1, Normal);
        let mut late = client(&queue, Normal, None);
        let mut ticks = 0;
        let permit = loop {
            match late.poll_permit() {
                Poll::Ready(permit) => break permit,
                Poll::Pending => ticks += 1,
            }
            late.wheel.advance();
        };
        // The request waits six ticks in two parts (four and two), each of which may end a tick late.
        assert!(permit.is_none() && (6..=8).contains(&ticks), "{ticks}");
        drop(held);
        assert!(shared.limit.has_capacity(1, Low, uptime_ms()));
    }
}
