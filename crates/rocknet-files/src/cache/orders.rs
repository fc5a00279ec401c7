//! All bounds that the kept entries share: bytes and number of all, open files, and the bytes of kinds that clients choose.

use super::key::{Key, MAX_ENTRIES};
use super::order::{Number, Order};
use super::weight::weight;
use crate::entry::Entry;
use crate::kind::Kind;

/// Names a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    StandIns,
    Missing,
    Files,
    All,
}

impl Which {
    /// All after the kinds: what these give back is not taken from others.
    pub const EACH: [Which; 4] = [Which::StandIns, Which::Missing, Which::Files, Which::All];
}

/// The places of one entry.
pub(super) type Places = [Option<Number>; Which::EACH.len()];

pub(super) struct Orders([Order; Which::EACH.len()]);

impl Orders {
    pub fn new(memory: u64, files: u64) -> Orders {
        Orders(Which::EACH.map(|which| match which {
            Which::StandIns => Order::new(Kind::StandIn.limit(memory)),
            Which::Missing => Order::new(Kind::Missing.limit(memory)),
            Which::Files => Order::new(files),
            Which::All => Order::with_most(memory.max(1), MAX_ENTRIES),
        }))
    }

    pub fn set_memory(&mut self, memory: u64) {
        self.of_mut(Which::StandIns).set_limit(Kind::StandIn.limit(memory));
        self.of_mut(Which::Missing).set_limit(Kind::Missing.limit(memory));
        self.of_mut(Which::All).set_limit(memory.max(1));
    }

    pub fn of(&self, which: Which) -> &Order {
        &self.0[which as usize]
    }

    pub fn of_mut(&mut self, which: Which) -> &mut Order {
        &mut self.0[which as usize]
    }

    /// Puts an entry into each order that counts it.
    pub fn push(&mut self, key: &Key, entry: &Entry, now: u64) -> Places {
        let (bytes, files, kind) = (weight(&key.1, entry), entry.descriptors(), entry.kind());
        Which::EACH.map(|which| {
            let share = match which {
                Which::StandIns if kind == Kind::StandIn => bytes,
                Which::Missing if kind == Kind::Missing => bytes,
                Which::Files if files > 0 => files,
                Which::All => bytes,
                _ => return None,
            };
            Some(self.of_mut(which).push(key.clone(), now, share))
        })
    }

    pub fn remove(&mut self, places: &Places) {
        for (order, place) in self.0.iter_mut().zip(places) {
            if let Some(number) = place {
                order.remove(*number);
            }
        }
    }

    /// Adds bytes to an entry.
    pub fn grow(&mut self, places: &Places, bytes: u64) {
        for which in [Which::StandIns, Which::Missing, Which::All] {
            if let Some(number) = places[which as usize] {
                self.of_mut(which).grow(number, bytes);
            }
        }
    }
}
