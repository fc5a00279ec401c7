//! From the numbers of streams to their places in the table.

/// From numbers to places: open addressing with the next free slot, at most half full. A client chooses the numbers and may
/// have them collide, but never more of them than it has streams.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Number and place; number 0 is an empty slot.
    slots: Vec<(u32, u16)>,
    used: usize,
}

/// Slots of the first table.
const SLOTS_MIN: usize = 8;

impl Numbers {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            used: 0,
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<(u32, u16)>()
    }

    /// Where a number would best stand: those of a client are every other one.
    #[inline]
    fn home(&self, number: u32) -> usize {
        (number >> 1) as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<u16> {
        self.slot(number).map(|slot| self.slots[slot].1)
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<usize> {
        if self.slots.is_empty() || number == 0 {
            return None;
        }
        let mut slot = self.home(number);
        loop {
            match self.slots[slot].0 {
                0 => return None,
                found if found == number => return Some(slot),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, number: u32, place: u16) {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let mut slot = self.home(number);
        while self.slots[slot].0 != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = (number, place);
        self.used += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0, 0); (self.slots.len() * 2).max(SLOTS_MIN)];
        let old = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for (number, place) in old.into_iter().filter(|(number, _)| *number != 0) {
            self.insert(number, place);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, number: u32) {
        let Some(mut hole) = self.slot(number) else { return };
        let mask = self.slots.len() - 1;
        self.used -= 1;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let (found, _) = self.slots[slot];
            if found == 0 {
                break;
            }
            // Whoever stands behind the hole on its way from home moves into it, so that no search ends too early.
            if (slot.wrapping_sub(self.home(found)) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[slot];
                hole = slot;
            }
        }
        self.slots[hole] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Numbers that collide and wrap, against the map of the standard library.
        #[test]
        fn numbers_are_found_as_in_any_map(steps in prop::collection::vec((1u32..60, any::<bool>()), 0..300)) {
            let (mut numbers, mut map) = (Numbers::new(), HashMap::new());
            for (step, (number, adds)) in steps.into_iter().enumerate() {
                let number = number * 16 - 1;
                if adds && !map.contains_key(&number) {
                    numbers.insert(number, step as u16);
                    map.insert(number, step as u16);
                } else if !adds {
                    numbers.remove(number);
                    map.remove(&number);
                }
                prop_assert_eq!(numbers.used, map.len());
                for number in (1..60).map(|number| number * 16 - 1) {
                    prop_assert_eq!(numbers.find(number), map.get(&number).copied());
                }
            }
        }
    }
}
