//! Limits of requests that the server applies, with their tables and counters. Reloads keep them: a limit with the same
//! site, route, amount and key continues with its table. Upgrades pass the tables to the new process.

mod bandwidth;
mod key;
mod secrets;
mod transfer;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rocknet_config::model::{Amount, Limit};
use rocknet_control::status::LimitedRequests;
use rocknet_handler::guard::Guard;
use rocknet_limit::{BandwidthTable, Budget, ConnectionTable, KeySeed, RateTable};

pub use key::LimitKey;
pub use secrets::LimitSecrets;

/// Maximum number of requests that wait for their turn at one limit, which bounds their memory. A request beyond it is
/// refused.
const MAX_WAITING: usize = 4_096;

/// Limits of a server.
pub struct LimitRegistry {
    /// Seed of the hashes of keys, which clients cannot know.
    seed: KeySeed,
    /// Maximum memory, which the tables of rates and of bandwidths share. A table of connections needs no maximum,
    /// because it has entries only for requests in progress.
    budget: Arc<Budget>,
    states: Mutex<HashMap<LimitId, Weak<LimitState>>>,
    guards: Mutex<HashMap<GuardId, Weak<dyn Guard>>>,
}

/// Identifies a limit across reloads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LimitId {
    /// Site.
    pub site: Arc<str>,
    /// Pattern of the route that has the limit.
    pub route: Arc<str>,
    /// Amount that is limited.
    pub amount: Amount,
    /// Key as configured: requests with the same value of its placeholders count together. `None`: the key is the
    /// client.
    pub key: Option<String>,
}

/// Identifies the guard that applies limits: the site, the pattern of the route in which the limits are written, and
/// their settings. A route that inherits the limits of its site has the guard of the site.
pub type GuardId = (Arc<str>, Arc<str>, String);

/// Tables and counters of one limit. Only the table for its kind of amount is used.
pub struct LimitState {
    /// The limit.
    pub id: LimitId,
    /// Buckets of the keys, for a rate.
    pub rates: RateTable,
    /// Requests in progress by key, for a number of connections.
    pub connections: Arc<ConnectionTable>,
    /// Bytes and responses by key, for a bandwidth.
    pub bandwidth: Arc<BandwidthTable>,
    /// Number of requests that were refused.
    pub refused: AtomicU64,
    /// Number of requests that had to wait.
    pub delayed: AtomicU64,
    /// Number of requests that would have been refused or delayed without `dry_run`.
    pub dry_run: AtomicU64,
    /// Number of requests that wait now.
    waiting: AtomicUsize,
}

/// Place of a request that waits for its turn. It is free again once the value is dropped.
pub struct WaitingPlace(Arc<LimitState>);

impl LimitRegistry {
    /// Creates the registry. `seed`: secret seed of the hashes of keys.
    pub fn new(seed: KeySeed) -> LimitRegistry {
        LimitRegistry {
            seed,
            budget: Arc::default(),
            states: Mutex::default(),
            guards: Mutex::default(),
        }
    }

    /// Returns the seed of the hashes.
    pub fn seed(&self) -> &KeySeed {
        &self.seed
    }

    /// Returns the state of a limit of a route, which is kept while a configuration uses it.
    pub fn state(&self, site: &Arc<str>, route: &Arc<str>, limit: &Limit) -> Arc<LimitState> {
        let id = LimitId {
            site: Arc::clone(site),
            route: Arc::clone(route),
            amount: limit.amount,
            key: limit.key.clone(),
        };
        let mut states = lock(&self.states);
        if let Some(state) = states.get(&id).and_then(Weak::upgrade) {
            return state;
        }
        let state = Arc::new(LimitState {
            id: id.clone(),
            rates: RateTable::new(&self.budget),
            connections: Arc::default(),
            bandwidth: Arc::new(BandwidthTable::new(&self.budget)),
            refused: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            dry_run: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        });
        insert(&mut states, id, Arc::downgrade(&state));
        state
    }

    /// Returns the guard with this identity, or creates it. Routes that inherit the limits of their site share
    /// its guard, so that a request that leads to several of these routes counts once.
    pub fn guard(&self, id: GuardId, make: impl FnOnce() -> Arc<dyn Guard>) -> Arc<dyn Guard> {
        if let Some(guard) = lock(&self.guards).get(&id).and_then(Weak::upgrade) {
            return guard;
        }
        let guard = make();
        insert(&mut lock(&self.guards), id, Arc::downgrade(&guard));
        guard
    }

    /// Returns the numbers of requests above the limits in use.
    pub fn requests(&self) -> LimitedRequests {
        let mut sum = LimitedRequests::default();
        for state in lock(&self.states).values().filter_map(Weak::upgrade) {
            sum.refused += state.refused.load(Ordering::Relaxed);
            sum.delayed += state.delayed.load(Ordering::Relaxed);
        }
        sum
    }

    /// Returns the limits in use, sorted by site and route.
    pub fn all(&self) -> Vec<Arc<LimitState>> {
        let mut all: Vec<_> = lock(&self.states).values().filter_map(Weak::upgrade).collect();
        all.sort_by(|a, b| (&a.id.site, &a.id.route).cmp(&(&b.id.site, &b.id.route)));
        all
    }
}

impl LimitState {
    /// Returns a place for a request that has to wait; `None` if too many requests wait.
    pub fn wait(self: &Arc<Self>) -> Option<WaitingPlace> {
        let take = |waiting: usize| (waiting < MAX_WAITING).then_some(waiting + 1);
        let update = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        update.is_ok().then(|| WaitingPlace(Arc::clone(self)))
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Inserts an entry. Entries that are no longer in use are removed before the map would grow.
fn insert<K: Eq + Hash, V: ?Sized>(map: &mut HashMap<K, Weak<V>>, key: K, value: Weak<V>) {
    if map.len() == map.capacity() {
        map.retain(|_, value| value.strong_count() > 0);
    }
    map.insert(key, value);
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::{Excess, RateLimit, RateUnit, RequestRate};

    use super::*;

    fn limit(requests: u32) -> Limit {
        let per = RateUnit::Second;
        let rate = RequestRate { requests, per };
        let (burst, excess) = (requests, Excess::Immediate);
        Limit {
            amount: Amount::Rate(RateLimit { rate, burst, excess }),
            key: None,
            exempt: Vec::new(),
            dry_run: false,
        }
    }

    #[test]
    fn a_limit_keeps_its_state_while_it_is_in_use() {
        let registry = LimitRegistry::new(KeySeed::new(&[7; KeySeed::SIZE]));
        let (site, root, other): (Arc<str>, Arc<str>, Arc<str>) = ("a".into(), "/*".into(), "/b".into());
        let state = registry.state(&site, &root, &limit(1));
        let dry_run = Limit {
            dry_run: true,
            ..limit(1)
        };
        assert!(Arc::ptr_eq(&state, &registry.state(&site, &root, &dry_run)));
        assert!(!Arc::ptr_eq(&state, &registry.state(&site, &root, &limit(2))));
        assert!(!Arc::ptr_eq(&state, &registry.state(&site, &other, &limit(1))));
        assert_eq!(registry.all().len(), 1);
        for requests in 3..1_000 {
            registry.state(&site, &root, &limit(requests));
        }
        assert!(lock(&registry.states).len() < 100, "unused limits remain");
    }

    #[test]
    fn places_for_waiting_requests_are_bounded() {
        let registry = LimitRegistry::new(KeySeed::new(&[7; KeySeed::SIZE]));
        let state = registry.state(&"a".into(), &"/*".into(), &limit(1));
        let mut places: Vec<_> = (0..MAX_WAITING).map(|_| state.wait().unwrap()).collect();
        assert!(state.wait().is_none());
        places.pop();
        assert!(state.wait().is_some());
    }
}
