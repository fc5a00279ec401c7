//! Map from stream numbers to slots.

/// Hash map from stream numbers to slots, with linear probing and at most half full. A client chooses the numbers and
/// can make them collide, but the limit of concurrent streams bounds the number of entries.
#[derive(Debug)]
pub(super) struct SlotIndex {
    /// Number and slot; number 0 marks an empty bucket.
    buckets: Vec<(u32, u16)>,
    /// Number of buckets that are not empty.
    used: usize,
}

/// Number of buckets of the first table. The number is always a power of two, so that a mask finds the bucket.
const MIN_BUCKETS: usize = 8;

impl SlotIndex {
    pub(super) const fn new() -> Self {
        Self {
            buckets: Vec::new(),
            used: 0,
        }
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.buckets.capacity() * size_of::<(u32, u16)>()
    }

    /// Returns the preferred bucket of a number. The lowest bit is left out, because all numbers of a client are odd.
    #[inline]
    fn home(&self, number: u32) -> usize {
        (number >> 1) as usize & (self.buckets.len() - 1)
    }

    /// Returns the slot of a number; `None` if the map does not have the number.
    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<u16> {
        self.bucket(number).map(|bucket| self.buckets[bucket].1)
    }

    /// Returns the bucket that holds a number; `None` if the map does not have the number.
    #[inline]
    fn bucket(&self, number: u32) -> Option<usize> {
        if self.buckets.is_empty() || number == 0 {
            return None;
        }
        let mut bucket = self.home(number);
        loop {
            match self.buckets[bucket].0 {
                0 => return None,
                found if found == number => return Some(bucket),
                _ => bucket = (bucket + 1) & (self.buckets.len() - 1),
            }
        }
    }

    /// Adds a number, which the map must not have yet.
    #[inline]
    pub(super) fn insert(&mut self, number: u32, slot: u16) {
        if self.used * 2 >= self.buckets.len() {
            self.grow();
        }
        let mut bucket = self.home(number);
        while self.buckets[bucket].0 != 0 {
            bucket = (bucket + 1) & (self.buckets.len() - 1);
        }
        self.buckets[bucket] = (number, slot);
        self.used += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0, 0); (self.buckets.len() * 2).max(MIN_BUCKETS)];
        let old = std::mem::replace(&mut self.buckets, larger);
        self.used = 0;
        for (number, slot) in old.into_iter().filter(|(number, _)| *number != 0) {
            self.insert(number, slot);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, number: u32) {
        let Some(mut hole) = self.bucket(number) else { return };
        let mask = self.buckets.len() - 1;
        self.used -= 1;
        let mut bucket = hole;
        loop {
            bucket = (bucket + 1) & mask;
            let (found, _) = self.buckets[bucket];
            if found == 0 {
                break;
            }
            // An entry that probed past the hole moves into it, so that no lookup stops too early.
            if (bucket.wrapping_sub(self.home(found)) & mask) >= (bucket.wrapping_sub(hole) & mask) {
                self.buckets[hole] = self.buckets[bucket];
                hole = bucket;
            }
        }
        self.buckets[hole] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Compares the map with the standard library's, for numbers that collide and wrap.
        #[test]
        fn agrees_with_a_hash_map(steps in prop::collection::vec((1u32..60, any::<bool>()), 0..300)) {
            let (mut index, mut map) = (SlotIndex::new(), HashMap::new());
            for (step, (number, adds)) in steps.into_iter().enumerate() {
                let number = number * 16 - 1;
                if adds && !map.contains_key(&number) {
                    index.insert(number, step as u16);
                    map.insert(number, step as u16);
                } else if !adds {
                    index.remove(number);
                    map.remove(&number);
                }
                prop_assert_eq!(index.used, map.len());
                for number in (1..60).map(|number| number * 16 - 1) {
                    prop_assert_eq!(index.find(number), map.get(&number).copied());
                }
            }
        }
    }
}
