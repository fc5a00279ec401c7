//! The file cache as one worker sees it: the shared cache, and in front of it what the worker remembers itself.

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

/// One for each worker.
pub struct WorkerCache {
    cache: FileCache,
    /// Files of the server that are encoded while they are sent.
    pub encoder_limit: EncoderLimit,
    l1: RefCell<L1Cache>,
    /// Number of the configuration that the front belongs to.
    generation: Cell<u64>,
}

impl WorkerCache {
    /// `memory`: bytes of the shared cache, as configured.
    pub fn new(cache: FileCache, encoder_limit: EncoderLimit, memory: u64, generation: u64) -> WorkerCache {
        WorkerCache {
            cache,
            encoder_limit,
            l1: RefCell::new(L1Cache::new(memory)),
            generation: Cell::new(generation),
        }
    }

    pub fn cache(&self) -> &FileCache {
        &self.cache
    }

    #[inline]
    pub fn l1(&self) -> RefMut<'_, L1Cache> {
        self.l1.borrow_mut()
    }

    /// Forgets the paths of the configuration before.
    pub fn reset(&self, memory: u64, generation: u64) {
        *self.l1.borrow_mut() = L1Cache::new(memory);
        self.generation.set(generation);
    }

    /// Asks the cache, and through it the disk, for `path` in `tree`. `raw`: the path as the request has it, by which the
    /// front remembers the entry. `None`: the server has too much to do.
    pub async fn look_up(&self, key: CacheKey, raw: &[u8], tree: Arc<Tree>, path: Arc<str>) -> Option<Rc<CachedEntry>> {
        self.cache.status().count_miss();
        let entry = match L1Cache::is_cacheable(raw) {
            true => self.cache.look_up(&tree, &path).await,
            false => self.cache.look_up_shared(&tree, &path).await,
        }?;
        let cached = Rc::new(CachedEntry::new(entry, tree, path));
        // The configuration may have been replaced meanwhile: sites have other numbers then.
        if !cached.entry.is_retired() && self.generation.get() == key.generation {
            self.l1().insert(key.site, raw, Hit::Entry(Rc::clone(&cached)));
        }
        Some(cached)
    }

    /// Returns the script that a raw path led to so short a time ago that no new look is due.
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

    /// Revalidates an entry: first without waiting, then through the owner of the cache if that is inconclusive.
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
