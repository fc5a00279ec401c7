//! Which entries go first: the oldest, unless they were used since they were put here.

use std::collections::{HashSet, VecDeque};

use super::owner::Key;

/// Places that may be out of date before it is worth looking them all through.
const SLACK: usize = 64;

/// Keys in the order in which they came, each with the time of its coming.
#[derive(Default)]
pub struct Order {
    places: VecDeque<Place>,
}

pub struct Place {
    pub key: Key,
    pub since: u64,
}

impl Order {
    pub fn push(&mut self, key: Key, since: u64) {
        self.places.push_back(Place { key, since });
    }

    pub fn pop(&mut self) -> Option<Place> {
        self.places.pop_front()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&Key) -> bool) {
        self.places.retain(|place| keep(&place.key));
    }

    /// Replaced entries leave their old places behind: all but the first of each key go, once they are the most.
    pub fn tidy(&mut self, entries: usize, mut keep: impl FnMut(&Key) -> bool) {
        if self.places.len() > 2 * entries + SLACK {
            let mut seen = HashSet::new();
            self.places
                .retain(|place| keep(&place.key) && seen.insert(place.key.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        (number, "/".into())
    }

    #[test]
    fn places_left_behind_go_once_they_are_many() {
        let mut order = Order::default();
        for time in 0..SLACK as u64 + 10 {
            order.push(key(time as u32 % 3), time);
            order.tidy(3, |key| key.0 != 2);
        }
        assert!(order.len() <= 2 * 3 + SLACK, "{}", order.len());
        assert_eq!(order.pop().map(|place| (place.key.0, place.since)), Some((0, 0)));
        assert_eq!(order.pop().map(|place| (place.key.0, place.since)), Some((1, 1)));
    }
}
