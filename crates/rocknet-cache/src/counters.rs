//! Counters of the cache, added up on request.

use std::sync::atomic::{AtomicU64, Ordering};

use rocknet_handler::services::Services;

/// Number of sets of counters. Workers are spread over them, so that few workers share a line of the CPU's cache.
const SETS: usize = 16;

/// Outcome of a request that used the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// A fresh response was sent.
    Hit,
    /// A stale response was sent.
    Stale,
    /// The response to another request was sent.
    Collapsed,
    /// The request was forwarded.
    Miss,
    /// The request did not use the cache.
    Bypass,
}

/// Number of outcomes.
const OUTCOMES: usize = 5;

/// One set of counters, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Set([AtomicU64; OUTCOMES]);

/// Counters of all workers.
#[derive(Debug, Default)]
pub struct Counters([Set; SETS]);

impl Counters {
    /// Counts a request of the worker with these services.
    pub fn count(&self, services: &Services, outcome: Counted) {
        // The address of the services differs for each worker, so no number has to be kept.
        let worker = std::ptr::from_ref(services).addr() / size_of::<Set>();
        self.0[worker % SETS].0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests with an outcome.
    pub fn sum(&self, outcome: Counted) -> u64 {
        self.0
            .iter()
            .map(|set| set.0[outcome as usize].load(Ordering::Relaxed))
            .sum()
    }
}
