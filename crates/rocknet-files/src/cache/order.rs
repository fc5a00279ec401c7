//! Bounds one amount of all kept entries (bytes, open files): entries in the order in which they came, each with its share.

use std::collections::BTreeMap;

use super::key::Key;

/// Entries that share a limit, oldest first.
///
/// A map by number and not a queue, so that an entry which is forgotten leaves no key behind: with paths of 8 KiB such keys
/// would take more memory than what is kept.
pub(super) struct Order {
    places: BTreeMap<Number, Place>,
    next: Number,
    used: u64,
    limit: u64,
    most: usize,
}

/// Identifies a place; 64 bits, so that no number is used twice.
pub(super) type Number = u64;

pub(super) struct Place {
    pub key: Key,
    /// Uptime at which the entry was put here.
    pub since: u64,
    pub share: u64,
}

/// Memory that a place takes: nodes of the map are at least half full.
pub(super) const PLACE_BYTES: usize = 2 * (size_of::<Number>() + size_of::<Place>());

impl Order {
    pub fn new(limit: u64) -> Order {
        Order::with_most(limit, usize::MAX)
    }

    /// As [`Order::new`], with a bound on the number of places as well.
    pub fn with_most(limit: u64, most: usize) -> Order {
        Order {
            places: BTreeMap::new(),
            next: 0,
            used: 0,
            limit,
            most,
        }
    }

    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    pub fn push(&mut self, key: Key, since: u64, share: u64) -> Number {
        let number = self.next;
        self.next += 1;
        self.used += share;
        self.places.insert(number, Place { key, since, share });
        number
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Place> {
        let (_, place) = self.places.pop_first()?;
        self.used -= place.share;
        Some(place)
    }

    pub fn remove(&mut self, number: Number) {
        if let Some(place) = self.places.remove(&number) {
            self.used -= place.share;
        }
    }

    /// Adds to the share of an entry.
    pub fn grow(&mut self, number: Number, more: u64) {
        if let Some(place) = self.places.get_mut(&number) {
            place.share += more;
            self.used += more;
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Sum of all shares.
    pub fn used(&self) -> u64 {
        self.used
    }

    pub fn is_over(&self) -> bool {
        self.used > self.limit || self.places.len() > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        (number, "/".into())
    }

    #[test]
    fn shares_are_counted_and_nothing_stays_of_what_is_removed() {
        let mut order = Order::with_most(100, 3);
        let numbers: Vec<Number> = (0..3).map(|n| order.push(key(n), u64::from(n), 30)).collect();
        assert_eq!((order.used(), order.len(), order.is_over()), (90, 3, false));
        order.grow(numbers[1], 10);
        assert!(!order.is_over(), "the limit is just met");
        order.grow(numbers[1], 1);
        assert!(order.is_over());
        order.remove(numbers[1]);
        order.remove(numbers[1]);
        assert_eq!((order.used(), order.len()), (60, 2));
        order.push(key(3), 3, 0);
        assert!(!order.is_over(), "as many places as there may be");
        order.push(key(4), 4, 0);
        assert!(order.is_over(), "one more");
        let keys: Vec<u32> = std::iter::from_fn(|| order.pop()).map(|place| place.key.0).collect();
        assert_eq!(keys, [0, 2, 3, 4]);
        assert_eq!(order.used(), 0);
    }
}
