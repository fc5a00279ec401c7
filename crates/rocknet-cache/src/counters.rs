//! Counters of the cache by site, added up on request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_handler::services::Services;

/// Number of sets of counters. Workers are spread over them, so that few workers share a line of the CPU's cache.
const SETS: usize = 16;

/// Outcome of a request to a cached route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// A fresh response was sent.
    Hit,
    /// A stale response was sent.
    Stale,
    /// The response to another request was sent.
    Collapsed,
    /// A GET request for a whole response was forwarded.
    Miss,
    /// The request bypassed the cache, or was forwarded with HEAD or for a range.
    Bypass,
}

/// Number of outcomes.
const OUTCOMES: usize = 5;

/// One set of counters, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Set([AtomicU64; OUTCOMES]);

/// Maximum number of sites with counters of their own. Each needs 2 KiB, and counters of former sites are kept, so that
/// totals never decrease.
const MAX_SITES: usize = 2000;

/// Name under which further sites are counted. No site has it.
const OTHER: &str = "(other)";

/// Counters of all sites.
#[derive(Debug, Default)]
pub struct SiteCounters(Mutex<BTreeMap<Arc<str>, Arc<Counters>>>);

impl SiteCounters {
    /// Returns the counters of a site. A route keeps them, so that no request needs this lookup.
    pub(crate) fn of_site(&self, site: &Arc<str>) -> Arc<Counters> {
        let mut sites = self.lock();
        let has_room = sites.len() < MAX_SITES || sites.contains_key(site);
        let name = if has_room { Arc::clone(site) } else { OTHER.into() };
        Arc::clone(sites.entry(name).or_default())
    }

    /// Returns the counters of each site.
    pub fn by_site(&self) -> Vec<(Arc<str>, Arc<Counters>)> {
        let sites = self.lock();
        let of_site = |(site, counters): (&Arc<str>, &Arc<Counters>)| (Arc::clone(site), Arc::clone(counters));
        sites.iter().map(of_site).collect()
    }

    /// Returns the number of requests to all sites with an outcome.
    pub fn sum(&self, outcome: Counted) -> u64 {
        self.lock().values().map(|counters| counters.sum(outcome)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Counters>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters of one site, of all workers.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_sites_is_bounded_and_none_is_forgotten() {
        let all = SiteCounters::default();
        let name = |number: usize| Arc::<str>::from(format!("site {number}"));
        for number in 0..MAX_SITES + 10 {
            let counters = all.of_site(&name(number));
            counters.0[number % SETS].0[Counted::Hit as usize].fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(all.by_site().len(), MAX_SITES + 1);
        assert_eq!(all.sum(Counted::Hit), MAX_SITES as u64 + 10);
        assert_eq!(all.of_site(&OTHER.into()).sum(Counted::Hit), 10);
        assert_eq!(all.of_site(&name(7)).sum(Counted::Hit), 1);
    }
}
