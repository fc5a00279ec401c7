//! Counters that one worker changes while other threads read them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number that one thread changes and any thread can read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`. Must not be called by two threads at the same time: the addition is a load and a store without a
    /// lock prefix, so that an update could be lost.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Subtracts `less`, which the same thread has added earlier.
    pub fn subtract(&self, less: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_sub(less), Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters that can be added up over workers.
pub trait Merge {
    /// Adds the counts of `other`. No other thread may add to `self` meanwhile.
    fn merge(&self, other: &Self);
}

impl Merge for Counter {
    fn merge(&self, other: &Counter) {
        self.add(other.get());
    }
}

impl<T: Merge, const N: usize> Merge for [T; N] {
    fn merge(&self, other: &[T; N]) {
        for (own, more) in self.iter().zip(other) {
            own.merge(more);
        }
    }
}

/// Counters of one worker by a key, or the sums of all workers that have ended.
#[derive(Debug)]
pub struct CounterMap<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V> Default for CounterMap<K, V> {
    fn default() -> CounterMap<K, V> {
        CounterMap(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V: Default + Merge> CounterMap<K, V> {
    /// Returns the counters of a key, which the first call creates. Callers keep the result, because this method locks
    /// a mutex.
    #[cold]
    pub fn of(&self, key: &K) -> Arc<V> {
        let mut map = self.lock();
        match map.get(key) {
            Some(counters) => Arc::clone(counters),
            None => Arc::clone(map.entry(key.clone()).or_default()),
        }
    }

    /// Adds the counts of all keys to `sums`.
    pub fn add_to(&self, sums: &mut HashMap<K, V>) {
        for (key, counters) in &*self.lock() {
            sums.entry(key.clone()).or_default().merge(counters);
        }
    }

    /// Calls a function with the counters of each key.
    pub fn for_each(&self, function: impl FnMut(&Arc<V>)) {
        self.lock().values().for_each(function);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone, V: Default + Merge> Merge for CounterMap<K, V> {
    fn merge(&self, other: &CounterMap<K, V>) {
        for (key, counters) in &*other.lock() {
            self.of(key).merge(counters);
        }
    }
}
