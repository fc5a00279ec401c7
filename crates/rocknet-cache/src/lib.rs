//! Response cache: stores the responses of any handler in memory, by the rules of HTTP caching (RFC 9111).
//!
//! ```text
//! CacheHandler (handler.rs) ── request ─▶ key.rs ─▶ store/memory.rs ── fresh ─▶ respond.rs ─▶ Response
//!      │                                              │ stale or missing
//!      │   flight.rs: one request for a key is forwarded, others wait
//!      ▼                                              ▼
//!   inner handler ◀── forward.rs ── policy.rs: may the response be stored? ── fill.rs: body, while it is sent
//! ```
//! Responses are stored as the handler returns them. The filters of the route are applied to each response that is
//! sent.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod cache_control;
mod cached_route;
mod cookies;
pub mod counters;
mod fill;
pub mod flight;
mod forward;
pub mod fuzzing;
pub mod handler;
mod invalidation;
mod key;
mod litespeed;
mod plan;
pub mod policy;
pub mod purge;
mod respond;
mod revalidate;
mod status;
mod storable;
pub mod store;
mod stored;
mod structured;
mod tags;
mod vary;

pub use handler::CacheHandler;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use counters::Counters;
use fill::FillBudget;
use flight::Flights;
use purge::{Purge, PurgeSet};
use store::MemoryStore;

/// Stored responses of a server, and requests in progress. All workers share it, and it outlives configurations.
pub struct Responses {
    /// Responses in memory.
    pub memory: Arc<MemoryStore>,
    /// Requests that are being forwarded.
    pub flights: Arc<Flights>,
    /// Limit on bodies that are being received.
    pub(crate) budget: Arc<FillBudget>,
    /// Counters of requests to cached routes.
    pub counters: Counters,
    /// Number of purges and invalidations.
    changes: AtomicU64,
}

impl Default for Responses {
    fn default() -> Responses {
        Responses {
            memory: Arc::new(MemoryStore::new(0)),
            flights: Arc::default(),
            budget: Arc::default(),
            counters: Counters::default(),
            changes: AtomicU64::new(0),
        }
    }
}

impl Responses {
    /// Returns the number of purges and invalidations so far.
    fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Drops what is stored under a key, and what is being received for it. Returns true if something was stored.
    fn invalidate(&self, key: &[u8]) -> bool {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.flights.invalidate(key);
        self.memory.remove(key)
    }

    /// Drops the resources that one of the purges selects, and does not store responses for them that are under way.
    /// Returns the number of resources that were dropped.
    pub fn purge(&self, purges: &[Purge]) -> usize {
        let purges = PurgeSet::of(purges);
        let may_select = |key: &[u8]| key::parts(key).is_some_and(|parts| purges.may_select(&parts));
        self.changes.fetch_add(1, Ordering::SeqCst);
        // A response that is stored after this line was requested after the purge, or is dropped below.
        self.flights.invalidate_all(may_select);
        let dropped = Cell::new(0);
        self.memory.retain(|key, resource| {
            let tags = resource.variants.iter().flat_map(|stored| stored.tags.iter());
            let tags = tags.map(|tag| &**tag);
            let is_selected = key::parts(key).is_some_and(|parts| purges.selects(&parts, tags));
            if is_selected {
                dropped.set(dropped.get() + 1);
            }
            !is_selected
        });
        dropped.get()
    }
}
