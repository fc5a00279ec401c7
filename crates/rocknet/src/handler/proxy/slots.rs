//! The requests at one server: how many there are, whom there is room for, and who has the place of one that leaves.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rocknet_config::model::Priority;

use super::upstream::Upstream;
use super::waiting::Waiting;

/// One of so many places of a limited server is not for requests of low priority, as long as others come: who waits for one
/// of low priority to end waits about as long as for an answer, however far in front he is. Of a few places none is spared.
const SPARED: usize = 4;

/// Without any other request for so long, those of low priority may have all places: as long as people look at a page.
const SPARED_MS: u64 = 10_000;

/// What is known of the places at a server. Many routes may share it, with limits of their own.
#[derive(Default)]
pub struct Slots {
    /// Requests that are with it, or on their way to it, in the lower half; in the upper one those of low priority of these.
    taken: AtomicU64,
    /// Tunnels with it that no limit counts; they are load all the same.
    tunnels: AtomicUsize,
    /// When one came that is not of low priority, in milliseconds of uptime; 0: never.
    higher_ms: AtomicU64,
    /// Those who wait: of low priority, and others.
    awaited: [AtomicUsize; 2],
    /// Where they do.
    queues: Mutex<Vec<Weak<Waiting>>>,
}

/// One request at one server. Its place is given on, or given back, when it is dropped.
pub struct Place {
    pub upstream: Arc<Upstream>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Request { is_low: bool },
    Tunnel,
}

impl Place {
    /// Keeps being load of the server, but takes no room from requests any more.
    pub fn beyond_limit(mut self) -> Place {
        if let Kind::Request { is_low } = self.kind {
            self.upstream.slots.tunnels.fetch_add(1, Ordering::SeqCst);
            self.upstream.slots.taken.fetch_sub(one(is_low), Ordering::SeqCst);
            self.kind = Kind::Tunnel;
            self.upstream.offer();
        }
        self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let slots = &self.upstream.slots;
        match self.kind {
            Kind::Request { is_low } => {
                slots.taken.fetch_sub(one(is_low), Ordering::SeqCst);
                self.upstream.offer();
            }
            Kind::Tunnel => {
                slots.tunnels.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Upstream {
    pub fn load(&self) -> usize {
        load(self.slots.taken.load(Ordering::SeqCst)) + self.slots.tunnels.load(Ordering::SeqCst)
    }

    /// Whether somebody who has just come finds room: nobody passes those who wait, but those of low priority.
    pub fn admits_more(&self, most: usize, priority: Priority, now_ms: u64) -> bool {
        let [low, others] = &self.slots.awaited;
        let is_awaited = others.load(Ordering::SeqCst) > 0 || is_low(priority) && low.load(Ordering::SeqCst) > 0;
        self.has_room(most, priority, now_ms) && !(is_awaited && self.is_owed(priority, now_ms))
    }

    /// Whether somebody who waits could have the room. His route may allow fewer requests here than that of one who has just
    /// come: then he is in nobody's way.
    fn is_owed(&self, priority: Priority, now_ms: u64) -> bool {
        let now = Duration::from_millis(now_ms);
        let could = |waiting: &Weak<Waiting>| {
            let waiting = waiting.upgrade()?;
            let mut priorities = self.priorities(waiting.most, now_ms);
            if !is_low(priority) {
                priorities = &priorities[..priorities.len().min(2)];
            }
            waiting.urgency(self, priorities, now)
        };
        lock(&self.slots.queues).iter().any(|waiting| could(waiting).is_some())
    }

    /// Which requests there is room for among `most`, those that wait looked away from.
    fn has_room(&self, most: usize, priority: Priority, now_ms: u64) -> bool {
        let taken = self.slots.taken.load(Ordering::SeqCst);
        fits(taken, most, is_low(priority), self.slots.are_spared(now_ms))
    }

    /// Counts a request in, if there is room.
    pub fn take(self: &Arc<Upstream>, most: usize, priority: Priority, now_ms: u64) -> Option<Place> {
        let is_low = is_low(priority);
        if !is_low {
            self.slots.higher_ms.store(now_ms.max(1), Ordering::Relaxed);
        }
        let are_spared = is_low && self.slots.are_spared(now_ms);
        let more = |taken| fits(taken, most, is_low, are_spared).then_some(taken + one(is_low));
        let taken = self.slots.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.is_ok().then(|| Place {
            upstream: Arc::clone(self),
            kind: Kind::Request { is_low },
        })
    }

    /// Gives room to those who wait, wherever they do: to the highest first, and of equals to the one that came first.
    pub fn offer(self: &Arc<Upstream>) {
        // Who leaves gives up his place, then looks whether anybody waits; who waits says so, then looks for a place.
        if self.slots.awaited.iter().all(|count| count.load(Ordering::SeqCst) == 0) {
            return;
        }
        let mut called = Vec::new();
        let mut queues = lock(&self.slots.queues);
        queues.retain(|waiting| waiting.strong_count() > 0);
        loop {
            let now_ms = self.time.uptime_ms();
            let now = Duration::from_millis(now_ms);
            let urgency = |waiting: Arc<Waiting>| {
                let priorities = self.priorities(waiting.most, now_ms);
                Some((waiting.urgency(self, priorities, now)?, waiting))
            };
            let all = queues.iter().filter_map(Weak::upgrade).filter_map(urgency);
            let Some((_, waiting)) = all.min_by_key(|(urgency, _)| *urgency) else {
                break;
            };
            // Where he has just gone, or the room, the next look tells.
            called.extend(waiting.call(self, self.priorities(waiting.most, now_ms), now));
        }
        drop(queues);
        called.into_iter().flatten().for_each(std::task::Waker::wake);
    }

    /// Whom there is room for.
    fn priorities(&self, most: usize, now_ms: u64) -> &'static [Priority] {
        let all = &[Priority::High, Priority::Normal, Priority::Low];
        match (
            self.has_room(most, Priority::High, now_ms),
            self.has_room(most, Priority::Low, now_ms),
        ) {
            (false, _) => &[],
            (true, false) => &all[..2],
            (true, true) => all,
        }
    }

    /// Counts those in who wait for a place here.
    pub fn await_slot(&self, priority: Priority) {
        self.slots.awaited[usize::from(!is_low(priority))].fetch_add(1, Ordering::SeqCst);
    }

    /// And out.
    pub fn give_up_slot(&self, priority: Priority) {
        self.slots.awaited[usize::from(!is_low(priority))].fetch_sub(1, Ordering::SeqCst);
    }

    /// Has those who wait there hear of room.
    pub fn tell_of_room(&self, waiting: &Arc<Waiting>) {
        let mut queues = lock(&self.slots.queues);
        queues.retain(|waiting| waiting.strong_count() > 0);
        queues.push(Arc::downgrade(waiting));
    }
}

impl Slots {
    fn are_spared(&self, now_ms: u64) -> bool {
        let higher_ms = self.higher_ms.load(Ordering::Relaxed);
        higher_ms != 0 && now_ms.saturating_sub(higher_ms) < SPARED_MS
    }
}

fn fits(taken: u64, most: usize, is_low: bool, are_spared: bool) -> bool {
    let spared = if are_spared { most / SPARED } else { 0 };
    load(taken) < most && (!is_low || low(taken) < most - spared)
}

const HALF: u32 = 32;

fn one(is_low: bool) -> u64 {
    1 + (u64::from(is_low) << HALF)
}

fn load(taken: u64) -> usize {
    (taken & u64::from(u32::MAX)) as usize
}

fn low(taken: u64) -> usize {
    (taken >> HALF) as usize
}

fn is_low(priority: Priority) -> bool {
    priority == Priority::Low
}

/// Nothing that can panic runs while this is locked.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
