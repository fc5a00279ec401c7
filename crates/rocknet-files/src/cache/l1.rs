//! The first level of the file cache, one in each worker. It maps raw request paths to cached entries, and to endpoints
//! that respond immediately, without locks or atomic counters.

use std::cell::OnceCell;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rocknet_io::queue::SharedBytes;

use crate::entry::{Content, Entry, PREFERRED_CODINGS, Variant};
use crate::entry_kind::EntryKind;
use crate::tree::Tree;
use rocknet_handler::Handler;
use rocknet_handler::guard::Guard;
use rocknet_handler::preload::Preloads;
use rocknet_handler::route::Route;

/// Maximum number of paths per worker, because the worker iterates over all paths in each tick of its timers.
const MAX_PATHS: usize = 8192;
/// Divisor of `cache.memory`: paths and their values use at most 1/64, within `MIN_BYTES` and `MAX_BYTES`. Clients can
/// write one path in many ways (`/%61`), so the limit on entries in the shared cache does not bound this level.
const MEMORY_SHARE: u64 = 64;
/// Minimum of the limit on the bytes of all paths.
const MIN_BYTES: usize = 64 << 10;
/// Maximum of the limit on the bytes of all paths.
const MAX_BYTES: usize = 4 << 20;
/// Maximum bytes of missing paths with their entries, enough for about 150 paths. The entries count, because the shared
/// cache may have evicted them already.
const MAX_MISSING_BYTES: usize = 512 << 10;
/// Maximum bytes of entries inserted between two ticks. Above this limit, entries that the shared cache has evicted are
/// dropped immediately. Otherwise a client that requests many files could make the workers keep more memory until the
/// next tick than the cache is allowed to use.
const MAX_ADDED_BYTES: u64 = 8 << 20;
/// Minimum of the number of paths that the table is considered to need. It is higher than the number of paths if there
/// are few, so that a small table is never shrunk.
const MIN_NEEDED: usize = 64;
/// Maximum length of a path in bytes. With longer paths, a client could fill memory with paths that are never requested
/// again.
const MAX_PATH_LENGTH: usize = 512;

/// Flag in the number of a site that has rules. It marks paths after rewriting. Only requests to which the rules have
/// been applied look up such paths.
pub const AFTER_RULES: u32 = 1 << 31;

/// First level of the file cache of one worker.
pub struct L1Cache {
    paths: HashTable<Slot>,
    hasher: RandomState,
    /// Bytes of all slots.
    bytes: usize,
    /// Maximum of `bytes`.
    max_bytes: usize,
    /// Bytes of the slots of missing paths.
    missing_bytes: usize,
    /// Bytes of the entries inserted since retired entries were last dropped.
    added_bytes: u64,
}

/// A path with its lookup result.
struct Slot {
    /// Number of the site, with [`AFTER_RULES`] for a path after rewriting.
    site: u32,
    path: Box<[u8]>,
    hit: Hit,
    /// Memory charged for the slot, in bytes.
    bytes: u32,
    is_missing: bool,
    /// True if the slot was used since the last eviction.
    used: bool,
}

/// Result of a lookup by raw path.
#[derive(Clone)]
pub enum Hit {
    /// A cached entry.
    Entry(Rc<CachedEntry>),
    /// An endpoint that responds immediately.
    Endpoint(Rc<CachedEndpoint>),
}

/// Slots from which an eviction chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvictScope {
    All,
    Missing,
}

/// An endpoint whose handler responds without waiting.
pub struct CachedEndpoint {
    /// Settings of the path.
    pub route: Arc<Route>,
    /// Handler, whose method `Handler::handle_now` is called.
    pub handler: Arc<dyn Handler>,
    /// File tree of the error pages.
    pub pages: Option<Arc<Tree>>,
    /// Path of the request, decoded and normalized.
    pub path: Box<str>,
    /// True if a file can have this path; false for a path such as `/a%2Fb`.
    pub is_file_path: bool,
}

impl Hit {
    /// Returns true if no guard applies to requests for this path.
    #[inline]
    pub fn is_open(&self) -> bool {
        match self {
            Hit::Entry(cached) => cached.is_open,
            Hit::Endpoint(endpoint) => endpoint.route.is_unguarded,
        }
    }

    fn is_retired(&self) -> bool {
        match self {
            Hit::Entry(cached) => cached.entry.is_retired(),
            // The endpoint is valid for its configuration, and a reload replaces the whole first level.
            Hit::Endpoint(_) => false,
        }
    }

    fn is_missing(&self) -> bool {
        match self {
            Hit::Entry(cached) => cached.entry.kind() == EntryKind::Missing,
            Hit::Endpoint(_) => false,
        }
    }

    /// Returns the memory of a slot for `path` in bytes. The shared cache counts the memory of entries, but it may have
    /// evicted many entries of missing paths, so their memory is counted here.
    fn bytes(&self, path: &[u8]) -> usize {
        // A table that has just grown is half empty.
        let slot = 2 * size_of::<Slot>() + path.len();
        let hit = match self {
            Hit::Entry(cached) => {
                // Each content counts twice, for its reference counts and rounding by the allocator.
                let own = size_of::<CachedEntry>()
                    + cached.path.len()
                    + cached.contents.len() * size_of::<VariantContent>() * 2;
                own + if self.is_missing() {
                    cached.entry.size() as usize
                } else {
                    0
                }
            }
            Hit::Endpoint(endpoint) => size_of::<CachedEndpoint>() + endpoint.path.len(),
        };
        // Reference counts of the value and of its path.
        slot + hit + 4 * size_of::<usize>()
    }

    /// Exchanges a retired entry for its replacement, if there is one.
    #[cold]
    fn follow_replacement(&mut self) {
        if let Hit::Entry(cached) = self
            && let Some(entry) = cached.entry.replacement()
        {
            *cached = Rc::new(CachedEntry::new(
                entry,
                Arc::clone(&cached.tree),
                Arc::clone(&cached.path),
            ));
        }
    }
}

/// Guards of a path, each once.
pub type GuardList = Box<[Arc<dyn Guard>]>;

/// A cached entry with the data that this worker needs to send it without changing a shared reference count.
pub struct CachedEntry {
    /// The shared entry.
    pub entry: Arc<Entry>,
    /// Tree that the path belongs to.
    pub tree: Arc<Tree>,
    /// Path in the tree, decoded and normalized.
    pub path: Arc<str>,
    /// Copy of `Route::is_unguarded`.
    is_open: bool,
    /// Guards that have to admit a request for the raw path, without and with TLS; found at the first request. `None`
    /// if only the whole pipeline can find them. An entry belongs to one raw path, which decides about the guards.
    pub guards: [OnceCell<Option<GuardList>>; 2],
    /// Resources that are sent with the entry.
    pub preloads: Option<Arc<Preloads>>,
    /// Content of the plain variant, and of each encoded variant in the order of `PREFERRED_CODINGS`.
    contents: [OnceCell<SharedBytes>; 1 + PREFERRED_CODINGS.len()],
}

/// Content of a variant. An `Rc` of this value counts references in this worker only.
struct VariantContent(Bytes);

impl AsRef<[u8]> for VariantContent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl CachedEntry {
    /// Wraps the entry of `path` in `tree`.
    pub fn new(entry: Arc<Entry>, tree: Arc<Tree>, path: Arc<str>) -> CachedEntry {
        CachedEntry {
            preloads: tree.route.preloads(&path).cloned(),
            is_open: tree.route.is_unguarded,
            guards: Default::default(),
            entry,
            tree,
            path,
            contents: Default::default(),
        }
    }

    /// Returns the content of `variant`, which belongs to the entry, if it is in memory.
    #[inline]
    pub fn content(&self, variant: &Variant) -> Option<&SharedBytes> {
        let Content::Memory(bytes) = &variant.content else {
            return None;
        };
        let index = PREFERRED_CODINGS
            .iter()
            .position(|cached| *cached == variant.coding)
            .map_or(0, |index| index + 1);
        Some(self.contents[index].get_or_init(|| Rc::new(VariantContent(bytes.clone()))))
    }
}

impl Default for L1Cache {
    fn default() -> L1Cache {
        L1Cache::new(u64::MAX)
    }
}

impl L1Cache {
    /// Creates an empty first level. `memory` is the maximum size of the shared cache in bytes.
    pub fn new(memory: u64) -> L1Cache {
        let share = usize::try_from(memory / MEMORY_SHARE).unwrap_or(MAX_BYTES);
        L1Cache {
            paths: HashTable::new(),
            hasher: RandomState::default(),
            bytes: 0,
            max_bytes: share.clamp(MIN_BYTES, MAX_BYTES),
            missing_bytes: 0,
            added_bytes: 0,
        }
    }

    /// Returns true if a path is short enough to be cached.
    pub fn is_cacheable(path: &[u8]) -> bool {
        path.len() <= MAX_PATH_LENGTH
    }

    /// Looks up a raw request path of a site. `site`: number of the site, with [`AFTER_RULES`] for a path after
    /// rewriting. A retired entry is exchanged for its replacement. Without a replacement, the retired entry itself is
    /// returned, and the caller must check it.
    #[inline]
    pub fn get(&mut self, site: u32, path: &[u8]) -> Option<&Hit> {
        let hash = self.hasher.hash_one((site, path));
        let slot = self
            .paths
            .find_mut(hash, |slot| slot.site == site && *slot.path == *path)?;
        slot.used = true;
        if slot.hit.is_retired() {
            slot.hit.follow_replacement();
            let (bytes, missing) = (slot.bytes as usize, slot.missing_bytes());
            slot.bytes = u32::try_from(slot.hit.bytes(&slot.path)).unwrap_or(u32::MAX);
            slot.is_missing = slot.hit.is_missing();
            self.bytes = self.bytes - bytes + slot.bytes as usize;
            self.missing_bytes = self.missing_bytes - missing + slot.missing_bytes();
        }
        Some(&slot.hit)
    }

    /// Inserts or replaces a path, and evicts others if a limit is exceeded. A path that is too long for the cache, or
    /// for the kind of its entry, is not inserted.
    pub fn insert(&mut self, site: u32, path: &[u8], hit: Hit) {
        if !L1Cache::is_cacheable(path) {
            return;
        }
        self.remove(site, path);
        if let Hit::Entry(cached) = &hit {
            if !cached.entry.kind().caches_path_of(path.len()) {
                return;
            }
            self.added_bytes = self.added_bytes.saturating_add(cached.entry.size());
            if self.added_bytes > MAX_ADDED_BYTES {
                self.drop_retired();
            }
        }
        let (bytes, is_missing) = (hit.bytes(path), hit.is_missing());
        if is_missing && self.missing_bytes + bytes > MAX_MISSING_BYTES {
            self.evict(EvictScope::Missing);
        }
        if self.paths.len() >= MAX_PATHS || self.bytes + bytes > self.max_bytes {
            self.evict(EvictScope::All);
        }
        let slot = Slot {
            site,
            path: path.into(),
            hit,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            is_missing,
            used: false,
        };
        let hasher = &self.hasher;
        let hash = hasher.hash_one((site, path));
        self.bytes += slot.bytes as usize;
        self.missing_bytes += slot.missing_bytes();
        self.paths
            .insert_unique(hash, slot, |slot| hasher.hash_one((slot.site, &*slot.path)));
    }

    /// Removes a path.
    pub fn remove(&mut self, site: u32, path: &[u8]) {
        let hash = self.hasher.hash_one((site, path));
        if let Ok(slot) = self
            .paths
            .find_entry(hash, |slot| slot.site == site && *slot.path == *path)
        {
            let (slot, _) = slot.remove();
            self.bytes -= slot.bytes as usize;
            self.missing_bytes -= slot.missing_bytes();
        }
    }

    /// Removes all paths, and frees the memory.
    pub fn clear(&mut self) {
        self.paths = HashTable::new();
        (self.bytes, self.missing_bytes, self.added_bytes) = (0, 0, 0);
    }

    /// Drops entries that the shared cache has retired, so that their memory is freed.
    pub fn drop_retired(&mut self) {
        self.added_bytes = 0;
        self.retain(|slot| !slot.hit.is_retired());
    }

    /// Evicts slots in `scope`. Keeps those that were used since the last eviction, up to half of the limits.
    fn evict(&mut self, scope: EvictScope) {
        let (mut paths, mut bytes) = match scope {
            EvictScope::All => (MAX_PATHS / 2, self.max_bytes / 2),
            EvictScope::Missing => (MAX_PATHS, MAX_MISSING_BYTES / 2),
        };
        self.retain(|slot| {
            if scope == EvictScope::Missing && !slot.is_missing {
                return true;
            }
            let size = slot.bytes as usize;
            let keep = slot.used && paths > 0 && bytes >= size && !slot.hit.is_retired();
            slot.used = false;
            if keep {
                paths -= 1;
                bytes -= size;
            }
            keep
        });
    }

    /// Keeps the slots for which `keep` returns true, and sums up their bytes.
    fn retain(&mut self, mut keep: impl FnMut(&mut Slot) -> bool) {
        let (mut bytes, mut missing_bytes) = (0, 0);
        self.paths.retain(|slot| {
            let keep = keep(slot);
            if keep {
                bytes += slot.bytes as usize;
                missing_bytes += slot.missing_bytes();
            }
            keep
        });
        (self.bytes, self.missing_bytes) = (bytes, missing_bytes);
        // After a flood of requests, the table may have room for more than 8 times as many paths as needed. It is then
        // shrunk, but keeps room for twice as many as needed, so that it rarely has to grow again.
        let needed = self.paths.len().max(MIN_NEEDED);
        if self.paths.capacity() > 8 * needed {
            let hasher = &self.hasher;
            self.paths
                .shrink_to(2 * needed, |slot| hasher.hash_one((slot.site, &*slot.path)));
        }
    }
}

impl Slot {
    fn missing_bytes(&self) -> usize {
        if self.is_missing { self.bytes as usize } else { 0 }
    }
}

#[cfg(test)]
mod tests;
