//! Responses in memory, within a maximum size. The eviction policy of `quick_cache` (S3-FIFO and clock) keeps resources
//! that were used more than once, so that a crawler does not displace them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use rocknet_proto::fields::Fields;

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
}

impl Resource {
    /// Returns the response that a request with these fields selects; the newest if there are several.
    pub fn select(&self, request: &Fields<'_>) -> Option<&Arc<StoredResponse>> {
        self.variants
            .iter()
            .rev()
            .find(|stored| stored.variation.matches(request))
    }
}

/// Size of resources.
#[derive(Debug, Clone)]
struct Size;

impl Weighter<Box<[u8]>, Arc<Resource>> for Size {
    fn weight(&self, key: &Box<[u8]>, resource: &Arc<Resource>) -> u64 {
        let variants = resource.variants.iter().map(|stored| stored.memory_size());
        // Never 0, because resources of weight 0 are not evicted.
        (key.len() + size_of::<Resource>() + 64 + variants.sum::<usize>()) as u64
    }
}

/// Returns the number of shards of a store with this capacity.
fn shards(capacity: u64) -> u64 {
    // A power of two, as `quick_cache` needs it.
    let most = (capacity / MIN_SHARD).clamp(1, MAX_SHARDS);
    1 << most.ilog2()
}

type Resources = Cache<Box<[u8]>, Arc<Resource>, Size, RandomState, DefaultLifecycle<Box<[u8]>, Arc<Resource>>>;

/// Responses in memory.
pub struct MemoryStore {
    /// Created with the first response, so that a server without cached routes needs no memory.
    resources: OnceLock<Resources>,
    /// Maximum size in bytes.
    capacity: AtomicU64,
}

impl MemoryStore {
    /// Creates a store. `capacity`: maximum size in bytes.
    pub fn new(capacity: u64) -> MemoryStore {
        MemoryStore {
            resources: OnceLock::new(),
            capacity: AtomicU64::new(capacity),
        }
    }

    /// Changes the maximum size. Responses beyond it are dropped.
    pub fn set_capacity(&self, capacity: u64) {
        if self.capacity.swap(capacity, Ordering::Relaxed) != capacity
            && let Some(resources) = self.resources.get()
        {
            resources.set_capacity(capacity);
        }
    }

    /// Returns the maximum size in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Returns the maximum size of one resource with all its responses, in bytes.
    pub fn max_resource(&self) -> u64 {
        let capacity = self.capacity();
        capacity / shards(capacity) / 10 * 9
    }

    /// Returns the size of all responses in bytes.
    pub fn size(&self) -> u64 {
        self.resources.get().map_or(0, Resources::weight)
    }

    /// Returns the number of resources.
    pub fn len(&self) -> usize {
        self.resources.get().map_or(0, Resources::len)
    }

    /// Returns true if there are no resources.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the resource of a key.
    pub fn get(&self, key: &[u8]) -> Option<Arc<Resource>> {
        self.resources.get()?.get(key)
    }

    /// Stores a response in place of the variant with the same selecting fields.
    pub fn put(&self, key: &[u8], stored: &Arc<StoredResponse>) {
        let mut variants: Vec<_> = match self.get(key) {
            Some(resource) => {
                let variants = resource.variants.iter();
                variants
                    .filter(|other| other.variation != stored.variation)
                    .cloned()
                    .collect()
            }
            None => Vec::new(),
        };
        if variants.len() == MAX_VARIANTS {
            variants.remove(0);
        }
        variants.push(Arc::clone(stored));
        // A resource that is larger than a part of the store would be dropped as a whole.
        let max = self.max_resource();
        let mut size: u64 = variants.iter().map(|stored| stored.memory_size() as u64).sum();
        while size > max && variants.len() > 1 {
            size -= variants.remove(0).memory_size() as u64;
        }
        if size > max {
            return;
        }
        self.insert(
            key,
            Resource {
                variants,
                uncacheable_until_ms: 0,
            },
        );
    }

    /// Remembers until an uptime that the responses for a key are not stored.
    pub fn mark_uncacheable(&self, key: &[u8], until_ms: u64) {
        let variants = self
            .get(key)
            .map_or_else(Vec::new, |resource| resource.variants.clone());
        self.insert(
            key,
            Resource {
                variants,
                uncacheable_until_ms: until_ms,
            },
        );
    }

    /// Drops the responses for a key. Returns true if there were some.
    pub fn remove(&self, key: &[u8]) -> bool {
        let removed = self.resources.get().and_then(|resources| resources.remove(key));
        removed.is_some_and(|(_, resource)| !resource.variants.is_empty())
    }

    /// Drops all resources for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&[u8], &Resource) -> bool) {
        if let Some(resources) = self.resources.get() {
            resources.retain(|key, resource| keep(key, resource));
        }
    }

    fn insert(&self, key: &[u8], resource: Resource) {
        let capacity = self.capacity();
        if capacity == 0 {
            return;
        }
        let resources = self.resources.get_or_init(|| {
            let options = OptionsBuilder::new()
                .estimated_items_capacity(usize::try_from(capacity / TYPICAL_SIZE).unwrap_or(usize::MAX))
                .weight_capacity(capacity)
                .shards(shards(capacity) as usize)
                .build();
            let options = options.expect("the number of resources and the capacity are set");
            Cache::with_options(options, Size, RandomState::default(), DefaultLifecycle::default())
        });
        resources.insert(key.into(), Arc::new(resource));
    }
}
