//! Hashes keys and variants, and numbers the lists of request fields that select responses (`Vary`). Few lists are in
//! use, so an entry of the index has only the number of its list.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;
use rocknet_proto::fields::Fields;

use crate::vary::{Selector, Variation};

/// Maximum number of lists. A response that needs another list is not written to disk.
const MAX_LISTS: usize = 1024;

/// Hashes keys and variants with a secret seed.
#[derive(Debug, Clone)]
pub(super) struct Hashes(FixedState);

impl Hashes {
    pub fn new(seed: u64) -> Hashes {
        Hashes(FixedState::with_seed(seed))
    }

    /// Returns the hash of a key.
    pub fn of_key(&self, key: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// Returns the tag of a variant: a hash of its request fields with their values.
    pub fn of_variation(&self, variation: &Variation) -> u32 {
        let mut hasher = self.0.build_hasher();
        for (name, value) in variation.selectors() {
            hasher.write_usize(name.len());
            hasher.write(name);
            hasher.write_usize(value.as_ref().map_or(usize::MAX, Vec::len));
            hasher.write(value.as_deref().unwrap_or_default());
        }
        hasher.finish() as u32
    }
}

/// All lists of request fields. The first one is empty, for responses that depend on no field.
#[derive(Debug)]
pub(super) struct NameLists(Vec<Box<[Box<[u8]>]>>);

impl Default for NameLists {
    fn default() -> NameLists {
        NameLists(vec![Box::default()])
    }
}

impl NameLists {
    /// Returns the number of the list of a response, which is added if it is new; `None` if there are too many lists.
    pub fn number(&mut self, variation: &Variation) -> Option<u16> {
        let selectors = variation.selectors();
        let is_same = |list: &[Box<[u8]>]| list.iter().eq(selectors.iter().map(|(name, _)| name));
        let known = self.0.iter().position(|list| is_same(list));
        let number = match known {
            Some(number) => number,
            None if self.0.len() == MAX_LISTS => return None,
            None => {
                self.0.push(selectors.iter().map(|(name, _)| name.clone()).collect());
                self.0.len() - 1
            }
        };
        u16::try_from(number).ok()
    }

    /// Returns the variation that a request with these fields selects among the responses that depend on list `number`.
    /// Returns `None` if there is no list with this number.
    pub fn variation(&self, number: u16, request: &Fields<'_>) -> Option<Variation> {
        let list = self.0.get(usize::from(number))?;
        let selectors: Vec<Selector> = list.iter().map(|name| Variation::selector(name, request)).collect();
        Some(Variation::from_selectors(selectors))
    }
}
