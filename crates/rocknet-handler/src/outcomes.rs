//! Counters of requests by site and outcome. All workers add to them, and they are added up when they are read.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::services::Services;

/// Outcomes that requests of one kind may have.
pub trait CountedOutcome: Copy + 'static {
    /// Names of the outcomes by index, at most 16.
    const NAMES: &'static [&'static str];

    /// Returns the index of the outcome.
    fn index(self) -> usize;
}

/// Number of sets of counters. Workers are spread over them, so that few workers share a line of the CPU's cache.
const SETS: usize = 16;

/// Maximum number of outcomes: as many counters as two cache lines have room for.
const MAX_OUTCOMES: usize = 16;

/// One set of counters, in cache lines of its own. Processors fetch two lines at once.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CounterSet([AtomicU64; MAX_OUTCOMES]);

/// Maximum number of sites with counters of their own. Each needs 2 KiB, and counters of former sites are kept, so that
/// totals never decrease.
const MAX_SITES: usize = 2000;

/// Name under which further sites are counted. No site has it.
const OTHER: &str = "(other)";

/// Counters of one site, of all workers.
#[derive(Debug)]
pub struct OutcomeCounters<O> {
    sets: [CounterSet; SETS],
    outcomes: PhantomData<fn(O)>,
}

/// Counters of all sites.
#[derive(Debug)]
pub struct SiteCounters<O>(Mutex<BTreeMap<Arc<str>, Arc<OutcomeCounters<O>>>>);

/// Requests to a site: its name, and the number of requests for each outcome.
pub type SiteOutcomes = (Arc<str>, Vec<(&'static str, u64)>);

impl<O> Default for OutcomeCounters<O> {
    fn default() -> OutcomeCounters<O> {
        OutcomeCounters {
            sets: Default::default(),
            outcomes: PhantomData,
        }
    }
}

impl<O: CountedOutcome> OutcomeCounters<O> {
    /// Counts a request of the worker with these services.
    pub fn count(&self, services: &Services, outcome: O) {
        // The address of the services differs for each worker, so no number has to be kept. The division drops the low
        // bits, which are alike because of the alignment.
        let worker = std::ptr::from_ref(services).addr() / size_of::<CounterSet>();
        self.add(worker, outcome);
    }

    fn add(&self, worker: usize, outcome: O) {
        if let Some(counter) = self.sets[worker % SETS].0.get(outcome.index()) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of requests with an outcome.
    pub fn sum(&self, outcome: O) -> u64 {
        self.sum_at(outcome.index())
    }

    fn sum_at(&self, index: usize) -> u64 {
        let counters = self.sets.iter().filter_map(|set| set.0.get(index));
        counters.map(|counter| counter.load(Ordering::Relaxed)).sum()
    }
}

impl<O> Default for SiteCounters<O> {
    fn default() -> SiteCounters<O> {
        SiteCounters(Mutex::default())
    }
}

impl<O: CountedOutcome> SiteCounters<O> {
    /// Returns the counters of a site. A route keeps them, so that no request needs this lookup.
    pub fn of_site(&self, site: &Arc<str>) -> Arc<OutcomeCounters<O>> {
        let mut sites = self.lock();
        let has_room = sites.len() < MAX_SITES || sites.contains_key(site);
        let name = if has_room { Arc::clone(site) } else { OTHER.into() };
        Arc::clone(sites.entry(name).or_default())
    }

    /// Returns the requests to each site.
    pub fn by_site(&self) -> Vec<SiteOutcomes> {
        let sites = self.lock();
        let of_site = |(site, counters): (&Arc<str>, &Arc<OutcomeCounters<O>>)| {
            let names = O::NAMES.iter().enumerate();
            let outcomes = names.map(|(index, name)| (*name, counters.sum_at(index)));
            (Arc::clone(site), outcomes.collect())
        };
        sites.iter().map(of_site).collect()
    }

    /// Returns the number of requests to all sites with an outcome.
    pub fn sum(&self, outcome: O) -> u64 {
        self.lock().values().map(|counters| counters.sum(outcome)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<OutcomeCounters<O>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Answer {
        Yes,
        No,
    }

    impl CountedOutcome for Answer {
        const NAMES: &'static [&'static str] = &["yes", "no"];

        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn the_number_of_sites_is_bounded_and_none_is_forgotten() {
        let all = SiteCounters::<Answer>::default();
        let name = |number: usize| Arc::<str>::from(format!("site {number}"));
        for number in 0..MAX_SITES + 10 {
            all.of_site(&name(number)).add(number, Answer::Yes);
        }
        assert_eq!(all.by_site().len(), MAX_SITES + 1);
        assert_eq!(all.sum(Answer::Yes), MAX_SITES as u64 + 10);
        assert_eq!(all.of_site(&OTHER.into()).sum(Answer::Yes), 10);
        assert_eq!(all.of_site(&name(7)).sum(Answer::Yes), 1);
    }

    #[test]
    fn the_counts_of_all_workers_are_added_up() {
        let all = SiteCounters::<Answer>::default();
        let site = Arc::<str>::from("a");
        for worker in 0..2 * SETS {
            all.of_site(&site).add(worker, Answer::No);
        }
        all.of_site(&site).add(3, Answer::Yes);
        let expected = vec![("yes", 1), ("no", 2 * SETS as u64)];
        assert_eq!(all.by_site(), [(site, expected)]);
    }
}
