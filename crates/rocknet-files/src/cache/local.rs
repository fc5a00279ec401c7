//! The file cache as one worker sees it: the shared cache, and in front of it what the worker remembers itself.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use super::front::{Front, Known, Lead};
use super::{Cache, still_holds};
use crate::encode::Streams;
use crate::entry::{Found, REFRESH_AFTER_MS, STALE_AFTER_MS};
use crate::script::Script;
use crate::tree::Tree;
use rocknet_handler::exchange::CacheKey;
use rocknet_handler::services::WorkerLocal;

/// One for each worker.
pub struct WorkerCache {
    cache: Cache,
    /// Files of the server that are encoded while they are sent.
    pub streams: Streams,
    front: RefCell<Front>,
    /// Number of the configuration that the front belongs to.
    generation: Cell<u64>,
}

impl WorkerCache {
    /// `memory`: bytes of the shared cache, as configured.
    pub fn new(cache: Cache, streams: Streams, memory: u64, generation: u64) -> WorkerCache {
        WorkerCache {
            cache,
            streams,
            front: RefCell::new(Front::new(memory)),
            generation: Cell::new(generation),
        }
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    #[inline]
    pub fn front(&self) -> RefMut<'_, Front> {
        self.front.borrow_mut()
    }

    /// Forgets the paths of the configuration before.
    pub fn renew(&self, memory: u64, generation: u64) {
        *self.front.borrow_mut() = Front::new(memory);
        self.generation.set(generation);
    }

    /// Asks the cache, and through it the disk, for `path` in `tree`. `raw`: the path as the request has it, by which the
    /// front remembers the entry. `None`: the server has too much to do.
    pub async fn look_up(&self, key: CacheKey, raw: &[u8], tree: Arc<Tree>, path: Arc<str>) -> Option<Rc<Known>> {
        self.cache.status().count_miss();
        let entry = match Front::remembers(raw) {
            true => self.cache.look_up(&tree, &path).await,
            false => self.cache.ask(&tree, &path).await,
        }?;
        let known = Rc::new(Known::new(entry, tree, path));
        // The configuration may have been replaced meanwhile: sites have other numbers then.
        if !known.entry.is_gone() && self.generation.get() == key.generation {
            self.front().keep(key.site, raw, Lead::Entry(Rc::clone(&known)));
        }
        Some(known)
    }

    /// Returns the script that a raw path led to so short a time ago that no new look is due.
    pub fn script(&self, key: CacheKey, raw: &[u8], now_ms: u64) -> Option<Arc<Script>> {
        if self.generation.get() != key.generation {
            return None;
        }
        let mut front = self.front();
        let Lead::Entry(known) = front.find(key.site, raw)? else {
            return None;
        };
        let Found::Script(script) = &known.entry.found else {
            return None;
        };
        let age = known.entry.age_ms(now_ms);
        if known.entry.is_gone() || age >= STALE_AFTER_MS {
            front.forget(key.site, raw);
            return None;
        }
        if age >= REFRESH_AFTER_MS {
            self.refresh(known);
        }
        known.entry.touch(now_ms);
        Some(Arc::clone(script))
    }

    /// Revalidates an entry: first without waiting, then through the owner of the cache if that is inconclusive.
    #[cold]
    pub fn refresh(&self, known: &Known) {
        let is_mine = !known.entry.checking.swap(true, std::sync::atomic::Ordering::AcqRel);
        if is_mine && !still_holds(&known.entry, &known.tree, &known.path) {
            self.cache.refresh(&known.tree, &known.path);
        }
    }
}

impl WorkerLocal for WorkerCache {
    fn tick(&self, _now_ms: u64) {
        self.front().drop_gone();
    }

    fn release(&self) {
        self.front().clear();
    }
}
