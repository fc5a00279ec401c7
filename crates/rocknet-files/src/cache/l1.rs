//! Each worker's own view of the cache: raw request paths to entries, or to who answers at once, without locks or atomic counts.

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
use rocknet_handler::preload::Preloads;
use rocknet_handler::route::Route;

/// Paths one worker remembers, so that looking through them at each tick stays short.
const MAX_PATHS: usize = 8192;
/// Bytes of these paths and of what leads from them to entries: this part of `cache.memory`, within these bounds. Clients can
/// write one path in many ways (`/%61`), so what a worker remembers of it has a bound beside that of the entries.
const MEMORY_SHARE: u64 = 64;
const MIN_BYTES: usize = 64 << 10;
const MAX_BYTES: usize = 4 << 20;
/// The same for missing paths, with the entries: the shared cache may have forgotten those already. About 150 paths.
const MAX_MISSING_BYTES: usize = 512 << 10;
/// Content of entries that are put in between two ticks. Then those that the shared cache has evicted are let go at once:
/// until the next tick, a client that walks through many files could hold more of them than the cache.
const MAX_ADDED_BYTES: u64 = 8 << 20;
/// Below this many places the table is not made smaller.
const MIN_TABLE: usize = 64;
/// Longer paths are not remembered: they would let a client fill memory with what nobody asks for again.
const MAX_PATH_LENGTH: usize = 512;

/// Set in the number of a site that has rules: its paths are those that its rules lead to, and nobody who has not met the
/// rules finds them.
pub const AFTER_RULES: u32 = 1 << 31;

/// What this worker knows of the answers to raw paths.
pub struct L1Cache {
    paths: HashTable<Slot>,
    hasher: RandomState,
    /// Of all slots together.
    bytes: usize,
    max_bytes: usize,
    /// Of those that lead to nothing.
    missing_bytes: usize,
    /// Of entries put in since those that are gone were let go.
    added_bytes: u64,
}

struct Slot {
    site: u32,
    path: Box<[u8]>,
    hit: Hit,
    /// Memory that it counts for.
    bytes: u32,
    is_missing: bool,
    /// Used since the last clearing out.
    used: bool,
}

/// Where a path leads.
#[derive(Clone)]
pub enum Hit {
    Entry(Rc<CachedEntry>),
    Endpoint(Rc<CachedEndpoint>),
}

/// Which slots have to make room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvictScope {
    All,
    Missing,
}

/// A route whose handler answers without a wait.
pub struct CachedEndpoint {
    pub route: Arc<Route>,
    pub handler: Arc<dyn Handler>,
    /// Files that error pages come from.
    pub pages: Option<Arc<Tree>>,
    /// Decoded and normalised.
    pub path: Box<str>,
    /// Whether a file can have this path.
    pub is_file_path: bool,
}

impl Hit {
    /// Returns true if requests that lead here need no check.
    #[inline]
    pub fn is_open(&self) -> bool {
        match self {
            Hit::Entry(cached) => cached.is_open,
            Hit::Endpoint(place) => place.route.is_unguarded,
        }
    }

    fn is_retired(&self) -> bool {
        match self {
            Hit::Entry(cached) => cached.entry.is_retired(),
            // It goes with its configuration, and the whole front with that.
            Hit::Endpoint(_) => false,
        }
    }

    fn is_missing(&self) -> bool {
        match self {
            Hit::Entry(cached) => cached.entry.kind() == EntryKind::Missing,
            Hit::Endpoint(_) => false,
        }
    }

    /// Memory that a slot for `path` takes. Entries are counted where they are kept, but for those of missing paths, of
    /// which many may have been forgotten there.
    fn bytes(&self, path: &[u8]) -> usize {
        // A table that has just grown is half empty.
        let slot = 2 * size_of::<Slot>() + path.len();
        let hit = match self {
            Hit::Entry(cached) => {
                let own = size_of::<CachedEntry>()
                    + cached.path.len()
                    + cached.contents.len() * size_of::<VariantContent>() * 2;
                own + if self.is_missing() {
                    cached.entry.size() as usize
                } else {
                    0
                }
            }
            Hit::Endpoint(place) => size_of::<CachedEndpoint>() + place.path.len(),
        };
        slot + hit + 4 * size_of::<usize>()
    }

    /// Leads to what is to be used instead, if there is something.
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

/// A cached entry with what this worker needs to send it without touching a shared count.
pub struct CachedEntry {
    pub entry: Arc<Entry>,
    pub tree: Arc<Tree>,
    /// Decoded and normalised.
    pub path: Arc<str>,
    /// As [`Route::is_open`], at hand.
    is_open: bool,
    /// What goes along with it.
    pub preloads: Option<Arc<Preloads>>,
    /// Of the plain form and each coded one, in the order of `PREFERRED_CODINGS`.
    contents: [OnceCell<SharedBytes>; 1 + PREFERRED_CODINGS.len()],
}

struct VariantContent(Bytes);

impl AsRef<[u8]> for VariantContent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl CachedEntry {
    pub fn new(entry: Arc<Entry>, tree: Arc<Tree>, path: Arc<str>) -> CachedEntry {
        CachedEntry {
            preloads: tree.route.preloads(&path).cloned(),
            is_open: tree.route.is_unguarded,
            entry,
            tree,
            path,
            contents: Default::default(),
        }
    }

    /// The content of `variant`, which is one of the entry's, if it is in memory.
    #[inline]
    pub fn content(&self, variant: &Variant) -> Option<&SharedBytes> {
        let Content::Memory(bytes) = &variant.content else {
            return None;
        };
        let place = PREFERRED_CODINGS
            .iter()
            .position(|cached| *cached == variant.coding)
            .map_or(0, |place| place + 1);
        Some(self.contents[place].get_or_init(|| Rc::new(VariantContent(bytes.clone()))))
    }
}

impl Default for L1Cache {
    fn default() -> L1Cache {
        L1Cache::new(u64::MAX)
    }
}

impl L1Cache {
    /// `memory`: bytes of the shared cache.
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

    /// Whether an answer to a path is remembered.
    pub fn is_cacheable(path: &[u8]) -> bool {
        path.len() <= MAX_PATH_LENGTH
    }

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

    /// Forgets everything, and gives the memory back.
    pub fn clear(&mut self) {
        self.paths = HashTable::new();
        (self.bytes, self.missing_bytes, self.added_bytes) = (0, 0, 0);
    }

    /// Lets go of entries that are gone from the cache, so that their memory is free.
    pub fn drop_retired(&mut self) {
        self.added_bytes = 0;
        self.retain(|slot| !slot.hit.is_retired());
    }

    /// Keeps what was used since the last time, at most half.
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
        // Shrinks the table after a flood. Twice the needed size is left, so that this happens seldom.
        let needed = self.paths.len().max(MIN_TABLE);
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
mod tests {
    use rocknet_config::model::Settings;
    use rocknet_proto::status::Status;

    use super::*;
    use crate::entry::Found;

    fn entry() -> Rc<CachedEntry> {
        let entry = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), 0));
        Rc::new(CachedEntry::new(
            entry,
            Arc::new(Tree::standalone(&Settings::default(), 0).expect("a tree")),
            "/".into(),
        ))
    }

    fn hit() -> Hit {
        Hit::Entry(entry())
    }

    fn missing_hit() -> Hit {
        let entry = Entry::new(Found::Failed(Status::NOT_FOUND), Vec::new(), 0);
        Hit::Entry(Rc::new(CachedEntry::new(
            Arc::new(entry),
            Arc::new(Tree::standalone(&Settings::default(), 0).expect("a tree")),
            "/".into(),
        )))
    }

    /// Compares the counted bytes with the slots.
    fn check_sums(cache: &L1Cache) {
        let sum: usize = cache.paths.iter().map(|slot| slot.hit.bytes(&slot.path)).sum();
        let missing = cache.paths.iter().filter(|slot| slot.hit.is_missing());
        let missing: usize = missing.map(|slot| slot.hit.bytes(&slot.path)).sum();
        assert_eq!((cache.bytes, cache.missing_bytes), (sum, missing));
    }

    #[test]
    fn missing_paths_are_remembered_while_short_and_few_and_displace_no_others() {
        let mut cache = L1Cache::default();
        for number in 0..1000 {
            cache.insert(0, format!("/there/{number}").as_bytes(), hit());
        }
        for number in 0..MAX_PATHS {
            let path = format!("/{number}/{}", "x".repeat(200));
            cache.insert(0, path.as_bytes(), missing_hit());
            assert!(cache.get(0, path.as_bytes()).is_some());
            assert!(cache.missing_bytes <= MAX_MISSING_BYTES, "{}", cache.missing_bytes);
        }
        check_sums(&cache);
        for number in 0..1000 {
            assert!(cache.get(0, format!("/there/{number}").as_bytes()).is_some());
        }
        for (length, is_kept) in [(256, true), (257, false)] {
            let path = vec![b'y'; length];
            cache.insert(0, &path, missing_hit());
            assert_eq!(
                cache.get(0, &path).is_some(),
                is_kept,
                "a missing path of {length} bytes"
            );
            cache.insert(0, &path, hit());
            assert!(cache.get(0, &path).is_some());
            cache.insert(0, &path, missing_hit());
            assert_eq!(
                cache.get(0, &path).is_some(),
                is_kept,
                "what is there no more is forgotten"
            );
        }
        check_sums(&cache);
    }

    #[test]
    fn bytes_are_bounded_with_keys_and_given_back() {
        for (memory, most) in [
            (0, MIN_BYTES),
            (64 << 20, 1 << 20),
            (256 << 20, MAX_BYTES),
            (1 << 40, MAX_BYTES),
        ] {
            let (mut cache, mut largest) = (L1Cache::new(memory), 0);
            for number in 0..MAX_PATHS {
                cache.insert(0, format!("/{number:0500}").as_bytes(), hit());
                largest = largest.max(cache.bytes);
            }
            check_sums(&cache);
            assert!((most - 4096..=most).contains(&largest), "{largest} bytes of {memory}");
            let capacity = cache.paths.capacity();
            cache.paths.iter().for_each(|slot| {
                if let Hit::Entry(cached) = &slot.hit {
                    cached.entry.retire();
                }
            });
            cache.drop_retired();
            check_sums(&cache);
            assert_eq!(cache.bytes, 0);
            assert!(cache.paths.capacity() <= capacity.min(8 * MIN_TABLE));
        }
    }

    #[test]
    fn entries_that_are_gone_are_let_go_before_the_tick_if_much_comes() {
        let mut cache = L1Cache::default();
        let first = entry();
        cache.insert(0, b"/first", Hit::Entry(Rc::clone(&first)));
        first.entry.retire();
        let size = first.entry.size();
        for number in 0..MAX_ADDED_BYTES / size {
            cache.insert(0, format!("/{number}").as_bytes(), hit());
        }
        assert!(cache.get(0, b"/first").is_none());
    }

    #[test]
    fn is_bounded_and_keeps_what_is_used() {
        let mut cache = L1Cache::default();
        cache.insert(0, b"/favourite", hit());
        for number in 0..MAX_PATHS * 3 {
            cache.insert(1, format!("/{number}").as_bytes(), hit());
            assert!(cache.get(0, b"/favourite").is_some(), "lost at {number}");
            assert!(cache.paths.len() <= MAX_PATHS);
        }
        assert!(cache.get(1, b"/favourite").is_none());
        assert!(cache.get(0, b"/favouritee").is_none());
    }

    #[test]
    fn forgets() {
        let mut cache = L1Cache::default();
        let entry = entry();
        cache.insert(0, b"/a", Hit::Entry(Rc::clone(&entry)));
        cache.insert(0, b"/b", hit());
        cache.remove(0, b"/b");
        assert!(cache.get(0, b"/b").is_none());
        entry.entry.retire();
        cache.drop_retired();
        assert!(cache.get(0, b"/a").is_none());
        cache.insert(0, &[b'x'; MAX_PATH_LENGTH + 1], hit());
        assert!(cache.paths.is_empty());
        cache.insert(0, &[b'x'; MAX_PATH_LENGTH], hit());
        assert!(cache.get(0, &[b'x'; MAX_PATH_LENGTH]).is_some());
    }
}
