//! The file cache of one worker: its first level, and its access to the shared cache.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use super::l1::{CachedEntry, Hit, L1Cache};
use super::{FileCache, is_unchanged};
use crate::encode::EncoderLimit;
use crate::entry::{Found, REFRESH_AFTER_MS, STALE_AFTER_MS};
use crate::script::Script;
use crate::tree::Tree;
use rocknet_handler::exchange::CacheKey;
use rocknet_handler::services::WorkerLocal;

/// The file cache of one worker.
pub struct WorkerCache {
    cache: FileCache,
    /// Limits how many files are encoded at the same time while they are sent, over all workers.
    pub encoder_limit: EncoderLimit,
    l1: RefCell<L1Cache>,
    /// Number of the configuration to which the first level belongs.
    generation: Cell<u64>,
}

impl WorkerCache {
    /// Creates the cache of a worker. `memory` is the configured size of the shared cache in bytes.
    pub fn new(cache: FileCache, encoder_limit: EncoderLimit, memory: u64, generation: u64) -> WorkerCache {
        WorkerCache {
            cache,
            encoder_limit,
            l1: RefCell::new(L1Cache::new(memory)),
            generation: Cell::new(generation),
        }
    }

    /// Returns the shared cache.
    pub fn cache(&self) -> &FileCache {
        &self.cache
    }

    /// Borrows the first level.
    #[inline]
    pub fn l1(&self) -> RefMut<'_, L1Cache> {
        self.l1.borrow_mut()
    }

    /// Drops all paths of the previous configuration. `generation` is the number of the new configuration, and `memory`
    /// its size of the shared cache in bytes.
    pub fn reset(&self, memory: u64, generation: u64) {
        *self.l1.borrow_mut() = L1Cache::new(memory);
        self.generation.set(generation);
    }

    /// Looks up `path` in `tree`, in the shared cache or on disk. `raw` is the path as in the request, under which the
    /// first level caches the entry. Returns `None` if the server is overloaded.
    pub async fn look_up(&self, key: CacheKey, raw: &[u8], tree: Arc<Tree>, path: Arc<str>) -> Option<Rc<CachedEntry>> {
        self.cache.status().count_miss();
        // A path that is too long for the first level is read from the shared cache at each request, so it is most
        // likely there. For other paths, this worker first tries the disk without blocking, which takes less time than
        // a query to the cache thread.
        let entry = match L1Cache::is_cacheable(raw) {
            true => self.cache.look_up(&tree, &path).await,
            false => self.cache.look_up_shared(&tree, &path).await,
        }?;
        let cached = Rc::new(CachedEntry::new(entry, tree, path));
        // The configuration may have been replaced meanwhile. In the new one, sites have different numbers.
        if !cached.entry.is_retired() && self.generation.get() == key.generation {
            self.l1().insert(key.site, raw, Hit::Entry(Rc::clone(&cached)));
        }
        Some(cached)
    }

    /// Returns the script for a raw path from the first level, if the entry is not stale. `now_ms` is the uptime in
    /// milliseconds.
    pub fn cached_script(&self, key: CacheKey, raw: &[u8], now_ms: u64) -> Option<Arc<Script>> {
        if self.generation.get() != key.generation {
            return None;
        }
        let mut l1 = self.l1();
        let Hit::Entry(cached) = l1.get(key.site, raw)? else {
            return None;
        };
        let Found::Script(script) = &cached.entry.found else {
            return None;
        };
        let age = cached.entry.age_ms(now_ms);
        if cached.entry.is_retired() || age >= STALE_AFTER_MS {
            l1.remove(key.site, raw);
            return None;
        }
        if age >= REFRESH_AFTER_MS {
            self.revalidate(cached);
        }
        cached.entry.touch(now_ms);
        Some(Arc::clone(script))
    }

    /// Revalidates an entry: first without blocking, then through the cache thread if the file has changed or the check
    /// would block. Does nothing if a revalidation is in progress. Both ways end it: `is_unchanged` marks an entry as
    /// checked if it returns true, and the cache thread marks or replaces it.
    #[cold]
    pub fn revalidate(&self, cached: &CachedEntry) {
        let is_first = !cached
            .entry
            .revalidating
            .swap(true, std::sync::atomic::Ordering::AcqRel);
        if is_first && !is_unchanged(&cached.entry, &cached.tree, &cached.path) {
            self.cache.revalidate(&cached.tree, &cached.path);
        }
    }
}

impl WorkerLocal for WorkerCache {
    fn tick(&self, _now_ms: u64) {
        self.l1().drop_retired();
    }

    fn release(&self) {
        self.l1().clear();
    }
}
