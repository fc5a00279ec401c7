//! Each worker's own view of the cache: raw request paths to entries, or to who answers at once, without locks or atomic counts.

use std::cell::OnceCell;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rocknet_io::queue::SharedBytes;

use crate::entry::{Content, ENCODED, Entry, Variant};
use crate::kind::Kind;
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
pub const BEHIND_RULES: u32 = 1 << 31;

/// What this worker knows of the answers to raw paths.
pub struct Front {
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
    lead: Lead,
    /// Memory that it counts for.
    bytes: u32,
    is_missing: bool,
    /// Used since the last clearing out.
    used: bool,
}

/// Where a path leads.
#[derive(Clone)]
pub enum Lead {
    Entry(Rc<Known>),
    Place(Rc<Place>),
}

/// Which slots have to make room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Any,
    Missing,
}

/// A route whose handler answers without a wait.
pub struct Place {
    pub route: Arc<Route>,
    pub handler: Arc<dyn Handler>,
    /// Files that error pages come from.
    pub pages: Option<Arc<Tree>>,
    /// Decoded and normalised.
    pub path: Box<str>,
    /// Whether a file can have this path.
    pub is_file_path: bool,
}

impl Lead {
    /// Returns true if requests that lead here need no check.
    #[inline]
    pub fn is_open(&self) -> bool {
        match self {
            Lead::Entry(known) => known.is_open,
            Lead::Place(place) => place.route.is_unguarded,
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            Lead::Entry(known) => known.entry.is_gone(),
            // It goes with its configuration, and the whole front with that.
            Lead::Place(_) => false,
        }
    }

    fn is_missing(&self) -> bool {
        match self {
            Lead::Entry(known) => known.entry.kind() == Kind::Missing,
            Lead::Place(_) => false,
        }
    }

    /// Memory that a slot for `path` takes. Entries are counted where they are kept, but for those of missing paths, of
    /// which many may have been forgotten there.
    fn bytes(&self, path: &[u8]) -> usize {
        // A table that has just grown is half empty.
        let slot = 2 * size_of::<Slot>() + path.len();
        let lead = match self {
            Lead::Entry(known) => {
                let own =
                    size_of::<Known>() + known.path.len() + known.contents.len() * size_of::<VariantContent>() * 2;
                own + if self.is_missing() {
                    known.entry.size() as usize
                } else {
                    0
                }
            }
            Lead::Place(place) => size_of::<Place>() + place.path.len(),
        };
        slot + lead + 4 * size_of::<usize>()
    }

    /// Leads to what is to be used instead, if there is something.
    #[cold]
    fn follow(&mut self) {
        if let Lead::Entry(known) = self
            && let Some(entry) = known.entry.instead()
        {
            *known = Rc::new(Known::new(entry, Arc::clone(&known.tree), Arc::clone(&known.path)));
        }
    }
}

/// A cached entry with what this worker needs to send it without touching a shared count.
pub struct Known {
    pub entry: Arc<Entry>,
    pub tree: Arc<Tree>,
    /// Decoded and normalised.
    pub path: Arc<str>,
    /// As [`Route::is_open`], at hand.
    is_open: bool,
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
    pub fn new(entry: Arc<Entry>, tree: Arc<Tree>, path: Arc<str>) -> Known {
        Known {
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
        let place = ENCODED
            .iter()
            .position(|known| *known == variant.coding)
            .map_or(0, |place| place + 1);
        Some(self.contents[place].get_or_init(|| Rc::new(VariantContent(bytes.clone()))))
    }
}

impl Default for Front {
    fn default() -> Front {
        Front::new(u64::MAX)
    }
}

impl Front {
    /// `memory`: bytes of the shared cache.
    pub fn new(memory: u64) -> Front {
        let share = usize::try_from(memory / MEMORY_SHARE).unwrap_or(MAX_BYTES);
        Front {
            paths: HashTable::new(),
            hasher: RandomState::default(),
            bytes: 0,
            max_bytes: share.clamp(MIN_BYTES, MAX_BYTES),
            missing_bytes: 0,
            added_bytes: 0,
        }
    }

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
            let (bytes, missing) = (slot.bytes as usize, slot.missing_bytes());
            slot.bytes = u32::try_from(slot.lead.bytes(&slot.path)).unwrap_or(u32::MAX);
            slot.is_missing = slot.lead.is_missing();
            self.bytes = self.bytes - bytes + slot.bytes as usize;
            self.missing_bytes = self.missing_bytes - missing + slot.missing_bytes();
        }
        Some(&slot.lead)
    }

    pub fn keep(&mut self, site: u32, path: &[u8], lead: Lead) {
        if !Front::remembers(path) {
            return;
        }
        self.forget(site, path);
        if let Lead::Entry(known) = &lead {
            if !known.entry.kind().keeps(path.len()) {
                return;
            }
            self.added_bytes = self.added_bytes.saturating_add(known.entry.size());
            if self.added_bytes > MAX_ADDED_BYTES {
                self.drop_gone();
            }
        }
        let (bytes, is_missing) = (lead.bytes(path), lead.is_missing());
        if is_missing && self.missing_bytes + bytes > MAX_MISSING_BYTES {
            self.clear_out(Room::Missing);
        }
        if self.paths.len() >= MAX_PATHS || self.bytes + bytes > self.max_bytes {
            self.clear_out(Room::Any);
        }
        let slot = Slot {
            site,
            path: path.into(),
            lead,
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

    pub fn forget(&mut self, site: u32, path: &[u8]) {
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
    pub fn drop_gone(&mut self) {
        self.added_bytes = 0;
        self.retain(|slot| !slot.lead.is_gone());
    }

    /// Keeps what was used since the last time, at most half.
    fn clear_out(&mut self, room: Room) {
        let (mut paths, mut bytes) = match room {
            Room::Any => (MAX_PATHS / 2, self.max_bytes / 2),
            Room::Missing => (MAX_PATHS, MAX_MISSING_BYTES / 2),
        };
        self.retain(|slot| {
            if room == Room::Missing && !slot.is_missing {
                return true;
            }
            let size = slot.bytes as usize;
            let keep = slot.used && paths > 0 && bytes >= size && !slot.lead.is_gone();
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

    fn entry() -> Rc<Known> {
        let entry = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), 0));
        Rc::new(Known::new(
            entry,
            Arc::new(Tree::standalone(&Settings::default(), 0).expect("a tree")),
            "/".into(),
        ))
    }

    fn known() -> Lead {
        Lead::Entry(entry())
    }

    fn missing() -> Lead {
        let entry = Entry::new(Found::Failed(Status::NOT_FOUND), Vec::new(), 0);
        Lead::Entry(Rc::new(Known::new(
            Arc::new(entry),
            Arc::new(Tree::standalone(&Settings::default(), 0).expect("a tree")),
            "/".into(),
        )))
    }

    /// Compares the counted bytes with the slots.
    fn check_sums(front: &Front) {
        let sum: usize = front.paths.iter().map(|slot| slot.lead.bytes(&slot.path)).sum();
        let missing = front.paths.iter().filter(|slot| slot.lead.is_missing());
        let missing: usize = missing.map(|slot| slot.lead.bytes(&slot.path)).sum();
        assert_eq!((front.bytes, front.missing_bytes), (sum, missing));
    }

    #[test]
    fn missing_paths_are_remembered_while_short_and_few_and_displace_no_others() {
        let mut front = Front::default();
        for number in 0..1000 {
            front.keep(0, format!("/there/{number}").as_bytes(), known());
        }
        for number in 0..MAX_PATHS {
            let path = format!("/{number}/{}", "x".repeat(200));
            front.keep(0, path.as_bytes(), missing());
            assert!(front.find(0, path.as_bytes()).is_some());
            assert!(front.missing_bytes <= MAX_MISSING_BYTES, "{}", front.missing_bytes);
        }
        check_sums(&front);
        for number in 0..1000 {
            assert!(front.find(0, format!("/there/{number}").as_bytes()).is_some());
        }
        for (length, is_kept) in [(256, true), (257, false)] {
            let path = vec![b'y'; length];
            front.keep(0, &path, missing());
            assert_eq!(
                front.find(0, &path).is_some(),
                is_kept,
                "a missing path of {length} bytes"
            );
            front.keep(0, &path, known());
            assert!(front.find(0, &path).is_some());
            front.keep(0, &path, missing());
            assert_eq!(
                front.find(0, &path).is_some(),
                is_kept,
                "what is there no more is forgotten"
            );
        }
        check_sums(&front);
    }

    #[test]
    fn bytes_are_bounded_with_keys_and_given_back() {
        for (memory, most) in [
            (0, MIN_BYTES),
            (64 << 20, 1 << 20),
            (256 << 20, MAX_BYTES),
            (1 << 40, MAX_BYTES),
        ] {
            let (mut front, mut largest) = (Front::new(memory), 0);
            for number in 0..MAX_PATHS {
                front.keep(0, format!("/{number:0500}").as_bytes(), known());
                largest = largest.max(front.bytes);
            }
            check_sums(&front);
            assert!((most - 4096..=most).contains(&largest), "{largest} bytes of {memory}");
            let capacity = front.paths.capacity();
            front.paths.iter().for_each(|slot| {
                if let Lead::Entry(known) = &slot.lead {
                    known.entry.retire();
                }
            });
            front.drop_gone();
            check_sums(&front);
            assert_eq!(front.bytes, 0);
            assert!(front.paths.capacity() <= capacity.min(8 * MIN_TABLE));
        }
    }

    #[test]
    fn entries_that_are_gone_are_let_go_before_the_tick_if_much_comes() {
        let mut front = Front::default();
        let first = entry();
        front.keep(0, b"/first", Lead::Entry(Rc::clone(&first)));
        first.entry.retire();
        let size = first.entry.size();
        for number in 0..MAX_ADDED_BYTES / size {
            front.keep(0, format!("/{number}").as_bytes(), known());
        }
        assert!(front.find(0, b"/first").is_none());
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
