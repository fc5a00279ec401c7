//! Responses in memory, within a maximum size. The eviction policy of `quick_cache`
//! ([decision 33](../../../../docs/decisions/0033-responses-in-memory.md)) keeps resources that were used more than
//! once, so that a crawler does not displace them.
//!
//! Keys are spread over shards. Changes of a shard are made one at a time, so that no purge falls between the check
//! that a response is current and its insertion.
//!
//! A resource never changes; a change of its responses replaces it. A resource is retired whenever it leaves the store,
//! so a worker with a reference to it sees without a lookup that it is no longer valid.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use rocknet_proto::fields::Fields;

use crate::policy::NotStored;
use crate::stored::StoredResponse;

/// Maximum number of responses of one resource, which differ in the fields of `Vary`. The oldest one is dropped, so a
/// client that invents values of such a field cannot fill the store.
pub const MAX_VARIANTS: usize = 32;

/// Typical size of a resource in bytes, from which the number of resources is estimated.
const TYPICAL_SIZE: u64 = 16 * 1024;

/// Minimum size of a shard in bytes. A resource must fit into one shard.
const MIN_SHARD: u64 = 64 * 1024 * 1024;

/// Maximum number of shards, each with a lock of its own.
const MAX_SHARDS: u64 = 64;

/// All stored responses for one key.
#[derive(Debug, Default)]
pub struct Resource {
    /// Responses, the newest last.
    pub variants: Vec<Arc<StoredResponse>>,
    /// Until this uptime in milliseconds, requests do not wait for each other, because responses were not stored.
    pub uncacheable_until_ms: u64,
    /// Set once the resource has left the store: it was replaced, removed or evicted.
    is_retired: AtomicBool,
}

impl Resource {
    /// Creates the resource with these responses.
    fn new(variants: Vec<Arc<StoredResponse>>, uncacheable_until_ms: u64) -> Resource {
        Resource {
            variants,
            uncacheable_until_ms,
            is_retired: AtomicBool::new(false),
        }
    }

    /// Returns true once the resource has left the store.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// Returns the response that a request with these fields selects; the newest if there are several.
    pub fn select(&self, request: &Fields<'_>) -> Option<&Arc<StoredResponse>> {
        self.variants
            .iter()
            .rev()
            .find(|stored| stored.variation.matches(request))
    }
}

/// A resource in the store, or a copy for a caller.
struct Entry {
    resource: Arc<Resource>,
    /// Retires the resource when the store drops it; `None` in copies.
    _retire: Option<Retire>,
}

impl Entry {
    /// Creates the entry for the store. `count`: number of resources in the store with responses.
    fn new(resource: Resource, count: &Arc<AtomicUsize>) -> Entry {
        let count = (!resource.variants.is_empty()).then(|| Arc::clone(count));
        if let Some(count) = &count {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let resource = Arc::new(resource);
        Entry {
            _retire: Some(Retire {
                resource: Arc::clone(&resource),
                count,
            }),
            resource,
        }
    }
}

impl Clone for Entry {
    fn clone(&self) -> Entry {
        Entry {
            resource: Arc::clone(&self.resource),
            _retire: None,
        }
    }
}

/// Retires a resource when it is dropped, and counts resources with responses.
struct Retire {
    resource: Arc<Resource>,
    /// Number of resources in the store with responses, if this one has some.
    count: Option<Arc<AtomicUsize>>,
}

impl Drop for Retire {
    fn drop(&mut self) {
        self.resource.retire();
        if let Some(count) = &self.count {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Measures resources for the eviction policy, in bytes.
#[derive(Debug, Clone)]
struct Size;

impl Weighter<Box<[u8]>, Entry> for Size {
    fn weight(&self, key: &Box<[u8]>, entry: &Entry) -> u64 {
        let variants = entry.resource.variants.iter().map(|stored| stored.memory_size());
        // Includes an estimate of 64 bytes for the entry in the table. Never 0, because resources of weight 0 are not
        // evicted.
        (key.len() + size_of::<Resource>() + 64 + variants.sum::<usize>()) as u64
    }
}

/// Returns the number of shards of a store with this capacity.
fn shards(capacity: u64) -> u64 {
    // A power of two, so that `Shards::of` selects a shard by the bits of the hash.
    let most = (capacity / MIN_SHARD).clamp(1, MAX_SHARDS);
    1 << most.ilog2()
}

type Resources = Cache<Box<[u8]>, Entry, Size, RandomState, DefaultLifecycle<Box<[u8]>, Entry>>;

/// A part of the store.
struct Shard {
    resources: Resources,
    /// Held while resources are added, replaced or removed, but not for lookups.
    changes: Mutex<()>,
}

/// All shards of a store. Their number is a power of two.
struct Shards {
    shards: Box<[Shard]>,
    hasher: RandomState,
}

impl Shards {
    fn new(capacity: u64) -> Shards {
        let count = shards(capacity);
        let shard = |_| {
            let items = usize::try_from(capacity / count / TYPICAL_SIZE).unwrap_or(usize::MAX);
            let options = OptionsBuilder::new()
                .estimated_items_capacity(items.max(1))
                .weight_capacity(capacity / count)
                .shards(1)
                .build();
            let options = options.expect("the number of resources and the capacity are set");
            let lifecycle = DefaultLifecycle::default();
            Shard {
                resources: Cache::with_options(options, Size, RandomState::default(), lifecycle),
                changes: Mutex::default(),
            }
        };
        Shards {
            shards: (0..count).map(shard).collect(),
            hasher: RandomState::default(),
        }
    }

    /// Returns the shard of a key.
    fn of(&self, key: &[u8]) -> &Shard {
        let hash = self.hasher.hash_one(key) as usize;
        &self.shards[hash & (self.shards.len() - 1)]
    }

    /// Returns the maximum size of one resource, in bytes: 9/10 of a shard. `quick_cache` refuses entries above 97 %.
    fn max_resource(&self) -> u64 {
        self.shards[0].resources.capacity() / 10 * 9
    }
}

impl Shard {
    /// Changes resources while no other thread does so.
    fn change<R>(&self, change: impl FnOnce(&Resources) -> R) -> R {
        // The lock protects no data that a panic could leave inconsistent.
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        change(&self.resources)
    }
}

/// Responses in memory.
pub struct MemoryStore {
    /// Created with the first response, so that a server without cached routes needs no memory.
    shards: ArcSwapOption<Shards>,
    /// Held shared while resources are changed, and exclusively while the shards are replaced.
    layout: RwLock<()>,
    /// Maximum size in bytes.
    capacity: AtomicU64,
    /// Number of resources with responses. Keys that are only marked as uncacheable do not count.
    count: Arc<AtomicUsize>,
}

impl MemoryStore {
    /// Creates a store. `capacity`: maximum size in bytes.
    pub fn new(capacity: u64) -> MemoryStore {
        MemoryStore {
            shards: ArcSwapOption::empty(),
            layout: RwLock::default(),
            capacity: AtomicU64::new(capacity),
            count: Arc::default(),
        }
    }

    /// Changes the maximum size. Responses beyond it are dropped.
    pub fn set_capacity(&self, capacity: u64) {
        if self.capacity() == capacity {
            return;
        }
        let _layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        self.capacity.store(capacity, Ordering::Relaxed);
        let Some(old) = self.shards.load_full() else { return };
        // Another thread may use the old shards for a moment longer, and no purge finds their resources any more. They
        // are therefore all retired.
        let retire_all = |old: &Shards| {
            let entries = old.shards.iter().flat_map(|shard| shard.resources.iter());
            entries.for_each(|(_, entry)| entry.resource.retire());
        };
        if capacity == 0 {
            self.shards.store(None);
            return retire_all(&old);
        }
        let count = shards(capacity);
        if old.shards.len() as u64 == count {
            let resize = |shard: &Shard| shard.resources.set_capacity(capacity / count);
            old.shards.iter().for_each(resize);
            return;
        }
        // The new number of shards changes the shard of each key.
        let new = Shards::new(capacity);
        for (key, entry) in old.shards.iter().flat_map(|shard| shard.resources.iter()) {
            let Resource {
                variants,
                uncacheable_until_ms,
                ..
            } = &*entry.resource;
            let entry = Entry::new(Resource::new(variants.clone(), *uncacheable_until_ms), &self.count);
            new.of(&key).resources.insert(key, entry);
        }
        self.shards.store(Some(Arc::new(new)));
        retire_all(&old);
    }

    /// Returns the maximum size in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Returns the size of all responses in bytes, with the keys that are only marked as uncacheable.
    pub fn size(&self) -> u64 {
        self.sum(Resources::weight)
    }

    /// Returns the number of resources with responses.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns true if there are no resources with responses.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sum<N: std::iter::Sum>(&self, of: impl Fn(&Resources) -> N) -> N {
        let shards = self.shards.load();
        let shards = shards.iter().flat_map(|shards| shards.shards.iter());
        shards.map(|shard| of(&shard.resources)).sum()
    }

    /// Returns the resource of a key.
    pub fn get(&self, key: &[u8]) -> Option<Arc<Resource>> {
        let entry = self.shards.load().as_ref()?.of(key).resources.get(key)?;
        Some(entry.resource)
    }

    /// Returns true if there is a resource for a key. It does not count as used.
    pub fn contains(&self, key: &[u8]) -> bool {
        let shards = self.shards.load();
        shards
            .as_ref()
            .is_some_and(|shards| shards.of(key).resources.contains_key(key))
    }

    /// Stores a response in place of the variant with the same selecting fields. `is_current` returns false if the
    /// resource was changed after the response was requested. No purge of the resource falls between this check and
    /// the insertion.
    ///
    /// # Errors
    ///
    /// Returns the reason why the response was not stored.
    pub fn put(
        &self,
        key: &[u8],
        stored: &Arc<StoredResponse>,
        is_current: impl FnOnce() -> bool,
    ) -> Result<(), NotStored> {
        let Some((_layout, shards)) = self.for_insert() else {
            return Err(NotStored::NoMemory);
        };
        let max = shards.max_resource();
        shards.of(key).change(|resources| {
            if !is_current() {
                return Err(NotStored::Purged);
            }
            let entry = resources.get(key);
            let variants = entry.iter().flat_map(|entry| &entry.resource.variants);
            let mut variants: Vec<_> = variants
                .filter(|other| other.variation != stored.variation)
                .cloned()
                .collect();
            if variants.len() == MAX_VARIANTS {
                variants.remove(0);
            }
            variants.push(Arc::clone(stored));
            // Drops the oldest variants, because the shard refuses a resource above the maximum with all its variants.
            let mut size: u64 = variants.iter().map(|stored| stored.memory_size() as u64).sum();
            while size > max && variants.len() > 1 {
                size -= variants.remove(0).memory_size() as u64;
            }
            if size > max {
                return Err(NotStored::Body);
            }
            // A stored response ends the mark of `mark_uncacheable`.
            let uncacheable_until_ms = 0;
            let resource = Resource::new(variants, uncacheable_until_ms);
            resources.insert(key.into(), Entry::new(resource, &self.count));
            Ok(())
        })
    }

    /// Stores a response from disk, which is older than those in memory. If a request with these fields selects one of
    /// those, it returns that response instead. `is_current`: as for [`MemoryStore::put`].
    ///
    /// # Errors
    ///
    /// Returns the reason why the response was not stored.
    pub fn put_older(
        &self,
        key: &[u8],
        stored: &Arc<StoredResponse>,
        request: &Fields<'_>,
        is_current: impl FnOnce() -> bool,
    ) -> Result<Option<Arc<StoredResponse>>, NotStored> {
        let Some((_layout, shards)) = self.for_insert() else {
            return Err(NotStored::NoMemory);
        };
        let max = shards.max_resource();
        shards.of(key).change(|resources| {
            if !is_current() {
                return Err(NotStored::Purged);
            }
            let resource = resources.get(key).map(|entry| entry.resource);
            if let Some(newer) = resource.as_ref().and_then(|resource| resource.select(request)) {
                return Ok(Some(Arc::clone(newer)));
            }
            let newer = resource.iter().flat_map(|resource| &resource.variants);
            let variants: Vec<_> = std::iter::once(stored).chain(newer).cloned().collect();
            let size: u64 = variants.iter().map(|stored| stored.memory_size() as u64).sum();
            // At both limits, the oldest variant is dropped. Here that is the response from disk itself.
            if variants.len() > MAX_VARIANTS || size > max {
                return Err(NotStored::Body);
            }
            let uncacheable_until_ms = resource.map_or(0, |resource| resource.uncacheable_until_ms);
            let resource = Resource::new(variants, uncacheable_until_ms);
            resources.insert(key.into(), Entry::new(resource, &self.count));
            Ok(None)
        })
    }

    /// Marks a key whose responses are not stored, so that requests do not wait for each other. `until_ms`: uptime in
    /// milliseconds at which the mark ends.
    pub fn mark_uncacheable(&self, key: &[u8], until_ms: u64) {
        let Some((_layout, shards)) = self.for_insert() else {
            return;
        };
        shards.of(key).change(|resources| {
            let variants = resources
                .get(key)
                .map_or_else(Vec::new, |entry| entry.resource.variants.clone());
            resources.insert(key.into(), Entry::new(Resource::new(variants, until_ms), &self.count));
        });
    }

    /// Drops the responses for a key. Returns true if there were some.
    pub fn remove(&self, key: &[u8]) -> bool {
        let _layout = self.layout();
        let shards = self.shards.load();
        let Some(shards) = &*shards else { return false };
        let removed = shards.of(key).change(|resources| resources.remove(key));
        removed.is_some_and(|(_, entry)| !entry.resource.variants.is_empty())
    }

    /// Drops all resources for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&[u8], &Resource) -> bool) {
        let _layout = self.layout();
        if let Some(shards) = &*self.shards.load() {
            let retain = |resources: &Resources| resources.retain(|key, entry| keep(key, &entry.resource));
            shards.shards.iter().for_each(|shard| shard.change(retain));
        }
    }

    fn layout(&self) -> RwLockReadGuard<'_, ()> {
        self.layout.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the shards, and creates them before the first response. They are not replaced while the guard lives.
    /// Returns `None` if the capacity is 0.
    fn for_insert(&self) -> Option<(RwLockReadGuard<'_, ()>, Arc<Shards>)> {
        loop {
            let layout = self.layout();
            let capacity = self.capacity();
            if capacity == 0 {
                return None;
            }
            if let Some(shards) = self.shards.load_full() {
                return Some((layout, shards));
            }
            drop(layout);
            let _layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
            if self.shards.load().is_none() && self.capacity() > 0 {
                self.shards.store(Some(Arc::new(Shards::new(self.capacity()))));
            }
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
