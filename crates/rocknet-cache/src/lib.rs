//! Response cache: stores the responses of any handler in memory and on disk, by the rules of HTTP caching (RFC 9111).
//!
//! ```text
//! CacheHandler (handler.rs) ── request ─▶ key.rs ─▶ store/memory.rs ── fresh ─▶ respond.rs ─▶ Response
//!      │                                              │ stale or missing
//!      │   flight.rs: one request for a key is forwarded, others wait
//!      │   disk.rs: a response that is not in memory is read from disk
//!      ▼                                              ▼
//!   inner handler ◀── forward.rs ── policy.rs: may the response be stored? ── fill.rs: body, while it is sent
//! ```
//! Responses are stored as the handler returns them. The filters of the route are applied to each response that is
//! sent.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod ambiguity;
pub mod cache_control;
mod cached_route;
mod cookies;
pub mod counters;
pub mod disk;
mod disk_lookup;
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
mod reuse;
mod revalidate;
mod status;
mod storable;
pub mod store;
mod stored;
mod structured;
mod tags;
mod url_changes;
mod vary;

pub use handler::CacheHandler;

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use counters::Counted;
use disk::DiskStore;
use fill::{FillBudget, SiteFills};
use flight::Flights;
use purge::{Purge, PurgeSet};
use rocknet_handler::outcomes::SiteCounters;
use store::{MemoryStore, Resource};
use stored::StoredResponse;
use url_changes::UrlChanges;

/// Stored responses of a server, and requests in progress. All workers share it, and it outlives configurations.
pub struct Responses {
    /// Memory store of all sites without a store of their own.
    pub memory: Arc<MemoryStore>,
    /// Memory stores of the other sites, by the name of the site. Only the routes own a store, so it is freed with the
    /// last configuration that has them.
    own: Mutex<HashMap<Box<str>, Weak<MemoryStore>>>,
    /// Requests that are being forwarded.
    pub flights: Arc<Flights>,
    /// Limit on the memory for bodies that are being received or read from disk.
    budget: Arc<FillBudget>,
    /// Share of each site in this limit, by the name of the site. Only the routes own the values.
    fills: Mutex<HashMap<Box<str>, Weak<SiteFills>>>,
    /// Counters of requests to cached routes, by site.
    pub counters: SiteCounters<Counted>,
    /// Number that each purge and each invalidation increases, so that responses requested before are recognized.
    changes: AtomicU64,
    /// Last changes of URLs whose responses have keys made by templates, by the name of the site. A table has a fixed
    /// size, so a change of one URL also invalidates the URLs with the same hash. Each site has a table of its own, so
    /// that such a change affects no other site. The table outlives the configuration of the site, as the responses do.
    url_changes: Mutex<HashMap<Box<str>, Arc<UrlChanges>>>,
    /// Responses on disk, if the configuration has a size for them.
    disk: ArcSwapOption<DiskStore>,
}

impl Default for Responses {
    fn default() -> Responses {
        Responses {
            memory: Arc::new(MemoryStore::new(0)),
            own: Mutex::default(),
            flights: Arc::default(),
            budget: Arc::default(),
            fills: Mutex::default(),
            counters: SiteCounters::default(),
            changes: AtomicU64::new(0),
            url_changes: Mutex::default(),
            disk: ArcSwapOption::empty(),
        }
    }
}

impl Responses {
    /// Returns the number that each purge and each invalidation increases.
    fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Returns the memory store of a site. `size`: capacity in bytes of a store of its own, if the site has one.
    pub(crate) fn memory_of(&self, site: &str, size: Option<u64>) -> Arc<MemoryStore> {
        let Some(size) = size else {
            return Arc::clone(&self.memory);
        };
        let mut own = self.own();
        own.retain(|_, memory| memory.strong_count() > 0);
        if let Some(memory) = own.get(site).and_then(Weak::upgrade) {
            return memory;
        }
        let memory = Arc::new(MemoryStore::new(size));
        own.insert(site.into(), Arc::downgrade(&memory));
        memory
    }

    /// Returns the share of a site in the limit on bodies that are being received.
    pub(crate) fn fills_of(&self, site: &str) -> Arc<SiteFills> {
        let mut fills = self.fills.lock().unwrap_or_else(PoisonError::into_inner);
        fills.retain(|_, fills| fills.strong_count() > 0);
        if let Some(fills) = fills.get(site).and_then(Weak::upgrade) {
            return fills;
        }
        let of_site = Arc::new(SiteFills::new(&self.budget));
        fills.insert(site.into(), Arc::downgrade(&of_site));
        of_site
    }

    /// Returns the table with the last changes of the URLs of a site.
    pub(crate) fn url_changes_of(&self, site: &str) -> Arc<UrlChanges> {
        let mut all = self.url_changes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(site.into()).or_default())
    }

    /// Changes the capacities of the memory stores, in bytes, when a configuration comes into effect. `shared`:
    /// capacity of the shared store. `own`: sites with a store of their own, and its capacity.
    pub fn set_sizes<'s>(&self, shared: u64, own: impl Iterator<Item = (&'s str, u64)>) {
        self.memory.set_capacity(shared);
        for (site, size) in own {
            let memory = self.own().get(site).and_then(Weak::upgrade);
            if let Some(memory) = memory {
                memory.set_capacity(size);
            }
        }
    }

    /// Returns the store on disk.
    pub fn disk(&self) -> Option<Arc<DiskStore>> {
        self.disk.load_full()
    }

    /// Sets the folder and the maximum size in bytes of the store on disk. Size 0 turns the store off. A folder that is
    /// not used any longer is emptied, because later changes of resources are not recorded there. `quotas`: sites with
    /// a quota on disk, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the thread that writes cannot be started.
    pub fn set_disk<'s>(
        self: &Arc<Responses>,
        folder: &Path,
        size: u64,
        quotas: impl Iterator<Item = (&'s str, u64)>,
    ) -> std::io::Result<()> {
        if let Some(disk) = self.disk() {
            if size > 0 && disk.folder() == folder {
                disk.set_capacity(size);
                disk.set_quotas(quotas);
                return Ok(());
            }
            self.disk.store(None);
            disk.discard();
        }
        if size > 0 {
            let responses = Arc::downgrade(self);
            let is_in_memory = move |key: &[u8]| {
                let responses = responses.upgrade();
                responses.is_some_and(|responses| responses.memories().iter().any(|memory| memory.contains(key)))
            };
            let disk = DiskStore::start(folder.to_owned(), size, is_in_memory)?;
            disk.set_quotas(quotas);
            self.disk.store(Some(Arc::new(disk)));
        }
        Ok(())
    }

    /// Closes the store on disk after `time`, so that another process can use its folder before this process ends.
    pub fn release_disk_after(&self, time: Duration) {
        if let Some(disk) = self.disk() {
            disk.close_after(time);
        }
    }

    /// Ends the thread of the store on disk. Returns true if it has ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.disk.swap(None).is_none_or(|disk| disk.stop(deadline))
    }

    /// Returns the number of resources with responses in memory, and their size in bytes.
    pub fn usage(&self) -> (usize, u64) {
        let usage = |memory: &Arc<MemoryStore>| (memory.len(), memory.size());
        let all = self.memories();
        let add = |(addresses, bytes), (more, size)| (addresses + more, bytes + size);
        all.iter().map(usage).fold((0, 0), add)
    }

    fn memories(&self) -> Vec<Arc<MemoryStore>> {
        let own = self.own();
        let own = own.values().filter_map(Weak::upgrade);
        std::iter::once(Arc::clone(&self.memory)).chain(own).collect()
    }

    fn own(&self) -> MutexGuard<'_, HashMap<Box<str>, Weak<MemoryStore>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the responses for a key, and does not store those that are under way. Returns true if `memory` had some.
    fn invalidate(&self, memory: &MemoryStore, key: &[u8]) -> bool {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.flights.invalidate(key);
        if let Some(disk) = self.disk() {
            disk.remove(key);
            // A response that was read from disk before this line is not stored in memory, or is dropped below.
            self.changes.fetch_add(1, Ordering::SeqCst);
            self.flights.invalidate(key);
        }
        memory.remove(key)
    }

    /// Invalidates all responses of a site to a URL whose keys are made by a template. `changes`: those of the site.
    /// `url`: host and path, as [`key::url`] returns them.
    fn invalidate_url(&self, changes: &UrlChanges, site: &str, url: &[u8]) {
        changes.note(url, self.next_change());
        if let Some(disk) = self.disk() {
            disk.change_url(site, url);
            // A response that was read from disk before this line has a smaller number.
            changes.note(url, self.next_change());
        }
    }

    /// Returns the number of a new change.
    fn next_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Drops the resources that one of the purges selects, and does not store responses for them that are under way.
    /// Returns the number of resources that were dropped.
    pub fn purge(&self, purges: &[Purge]) -> usize {
        let all = purges;
        let purges = PurgeSet::of(all);
        let may_select = |key: &[u8]| key::parts(key).is_some_and(|parts| purges.may_select(&parts));
        self.changes.fetch_add(1, Ordering::SeqCst);
        // A response that is stored after this line was requested after the purge, or is dropped below.
        self.flights.invalidate_all(may_select);
        if let Some(disk) = self.disk() {
            disk.purge(all);
            // A response that was read from disk before this line is not stored in memory, or is dropped below.
            self.changes.fetch_add(1, Ordering::SeqCst);
            self.flights.invalidate_all(may_select);
        }
        let dropped = Cell::new(0);
        let is_selected = |key: &[u8], resource: &Resource| {
            let Some(parts) = key::parts(key) else { return false };
            let selects = |stored: &StoredResponse| {
                let tags = stored.tags.iter().map(|tag| &**tag);
                match &stored.url {
                    Some(url) => purges.selects(&parts.with_url(url), tags),
                    None => purges.selects(&parts, tags),
                }
            };
            resource.variants.iter().any(|stored| selects(stored))
        };
        for memory in self.memories() {
            memory.retain(|key, resource| {
                let is_selected = is_selected(key, resource);
                if is_selected {
                    dropped.set(dropped.get() + 1);
                }
                !is_selected
            });
        }
        dropped.get()
    }
}
