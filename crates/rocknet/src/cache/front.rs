//! Each worker's own view of the cache: raw request paths to entries, or to who answers at once, without locks or atomic counts.

use std::cell::OnceCell;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rocknet_io::queue::SharedBytes;

use super::entry::{Content, ENCODED, Entry, Variant};
use crate::preload::Preloads;
use crate::scope::Scope;

/// Paths one worker remembers. A path costs about 200 bytes beside the entry it leads to, so this is about 1.6 MB.
const MAX_PATHS: usize = 8192;
/// Longer paths are not remembered: they would let a client fill memory with what nobody asks for again.
const MAX_PATH_LENGTH: usize = 512;

/// Set in the number of a site that has rules: its paths are those that its rules lead to, and nobody who has not met the
/// rules finds them.
pub const BEHIND_RULES: u32 = 1 << 31;

/// What this worker knows of the answers to raw paths.
#[derive(Default)]
pub struct Front {
    paths: HashTable<Slot>,
    hasher: RandomState,
}

struct Slot {
    site: u32,
    path: Box<[u8]>,
    lead: Lead,
    /// Used since the last clearing out.
    used: bool,
}

/// Where a path leads.
#[derive(Clone)]
pub enum Lead {
    Entry(Rc<Known>),
    Place(Rc<Place>),
}

/// A route whose answer needs no look at anything else.
pub struct Place {
    pub scope: Arc<Scope>,
    /// Decoded and normalised.
    pub path: Box<str>,
}

impl Lead {
    fn is_gone(&self) -> bool {
        match self {
            Lead::Entry(known) => known.entry.is_gone(),
            // It goes with its configuration, and the whole front with that.
            Lead::Place(_) => false,
        }
    }

    /// Leads to what is to be used instead, if there is something.
    #[cold]
    fn follow(&mut self) {
        if let Lead::Entry(known) = self
            && let Some(entry) = known.entry.instead()
        {
            *known = Rc::new(Known::new(entry, Arc::clone(&known.scope), known.path.clone()));
        }
    }
}

/// A cached entry with what this worker needs to send it without touching a shared count.
pub struct Known {
    pub entry: Arc<Entry>,
    pub scope: Arc<Scope>,
    /// Decoded and normalised.
    pub path: Box<str>,
    /// What goes along with it.
    pub preloads: Option<Arc<Preloads>>,
    /// Of the plain form and each coded one, in the order of `ENCODED`.
    contents: [OnceCell<SharedBytes>; 1 + ENCODED.len()],
}

struct VariantContent(Bytes);

impl AsRef<[u8]> for VariantContent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Known {
    pub fn new(entry: Arc<Entry>, scope: Arc<Scope>, path: Box<str>) -> Known {
        Known {
            preloads: scope.preloads(&path).cloned(),
            entry,
            scope,
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
        let place = ENCODED
            .iter()
            .position(|known| *known == variant.coding)
            .map_or(0, |place| place + 1);
        Some(self.contents[place].get_or_init(|| Rc::new(VariantContent(bytes.clone()))))
    }
}

impl Front {
    /// Whether an answer to a path is remembered.
    pub fn remembers(path: &[u8]) -> bool {
        path.len() <= MAX_PATH_LENGTH
    }

    #[inline]
    pub fn find(&mut self, site: u32, path: &[u8]) -> Option<&Lead> {
        let hash = self.hasher.hash_one((site, path));
        let slot = self
            .paths
            .find_mut(hash, |slot| slot.site == site && *slot.path == *path)?;
        slot.used = true;
        if slot.lead.is_gone() {
            slot.lead.follow();
        }
        Some(&slot.lead)
    }

    pub fn keep(&mut self, site: u32, path: &[u8], lead: Lead) {
        if !Front::remembers(path) {
            return;
        }
        let hash = self.hasher.hash_one((site, path));
        if let Some(slot) = self
            .paths
            .find_mut(hash, |slot| slot.site == site && *slot.path == *path)
        {
            slot.lead = lead;
            return;
        }
        if self.paths.len() >= MAX_PATHS {
            self.clear_out();
        }
        let hasher = &self.hasher;
        let slot = Slot {
            site,
            path: path.into(),
            lead,
            used: false,
        };
        self.paths
            .insert_unique(hash, slot, |slot| hasher.hash_one((slot.site, &*slot.path)));
    }

    pub fn forget(&mut self, site: u32, path: &[u8]) {
        let hash = self.hasher.hash_one((site, path));
        if let Ok(slot) = self
            .paths
            .find_entry(hash, |slot| slot.site == site && *slot.path == *path)
        {
            slot.remove();
        }
    }

    pub fn clear(&mut self) {
        self.paths.clear();
    }

    /// Lets go of entries that are gone from the cache, so that their memory is free.
    pub fn drop_gone(&mut self) {
        self.paths.retain(|slot| !slot.lead.is_gone());
    }

    /// Keeps what was used since the last time, at most half.
    fn clear_out(&mut self) {
        let mut room = MAX_PATHS / 2;
        self.paths.retain(|slot| {
            let keep = slot.used && room > 0 && !slot.lead.is_gone();
            slot.used = false;
            room -= usize::from(keep);
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Found;
    use super::*;

    fn entry() -> Rc<Known> {
        let entry = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), 0));
        Rc::new(Known::new(entry, Arc::new(Scope::empty()), "/".into()))
    }

    fn known() -> Lead {
        Lead::Entry(entry())
    }

    #[test]
    fn is_bounded_and_keeps_what_is_used() {
        let mut front = Front::default();
        front.keep(0, b"/favourite", known());
        for number in 0..MAX_PATHS * 3 {
            front.keep(1, format!("/{number}").as_bytes(), known());
            assert!(front.find(0, b"/favourite").is_some(), "lost at {number}");
            assert!(front.paths.len() <= MAX_PATHS);
        }
        assert!(front.find(1, b"/favourite").is_none());
        assert!(front.find(0, b"/favouritee").is_none());
    }

    #[test]
    fn forgets() {
        let mut front = Front::default();
        let entry = entry();
        front.keep(0, b"/a", Lead::Entry(Rc::clone(&entry)));
        front.keep(0, b"/b", known());
        front.forget(0, b"/b");
        assert!(front.find(0, b"/b").is_none());
        entry.entry.retire();
        front.drop_gone();
        assert!(front.find(0, b"/a").is_none());
        front.keep(0, &[b'x'; MAX_PATH_LENGTH + 1], known());
        assert!(front.paths.is_empty());
        front.keep(0, &[b'x'; MAX_PATH_LENGTH], known());
        assert!(front.find(0, &[b'x'; MAX_PATH_LENGTH]).is_some());
    }
}
