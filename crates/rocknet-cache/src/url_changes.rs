//! Invalidation of responses by URL, if a template such as `{host}?page={query.page}` has made their keys. Such a key
//! cannot be derived from the URL.
//!
//! All changes of stored resources are numbered. A table of the site has the number of the last change of each URL. A
//! response has the number of changes when it was requested, and is not used if the last change of its URL is later.
//! URLs share the places of the table by their hash. The URLs of one place are invalidated together, which costs only
//! the requests that fetch their responses again.

use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

/// Number of places of a site, a power of two: 64 KiB.
const PLACES: usize = 1 << 13;

/// Numbers of the last changes of the URLs of a site.
#[derive(Debug, Default)]
pub(crate) struct UrlChanges {
    /// Created with the first change.
    places: OnceLock<Box<[AtomicU64]>>,
    hasher: RandomState,
}

impl UrlChanges {
    /// Notes a change. `url`: host and path, as [`url`](crate::key::url) returns them. `change`: number of the change.
    pub fn note(&self, url: &[u8], change: u64) {
        let places = self
            .places
            .get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        places[self.place(url)].fetch_max(change, Ordering::SeqCst);
    }

    /// Returns the number of the last change of a URL; 0 without one.
    pub fn last(&self, url: &[u8]) -> u64 {
        let places = self.places.get();
        places.map_or(0, |places| places[self.place(url)].load(Ordering::SeqCst))
    }

    fn place(&self, url: &[u8]) -> usize {
        self.hasher.hash_one(url) as usize % PLACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_url_is_kept() {
        let changes = UrlChanges::default();
        assert_eq!(changes.last(b"h\0/"), 0);
        changes.note(b"h\0/", 5);
        changes.note(b"h\0/", 3);
        assert_eq!(changes.last(b"h\0/"), 5);
        let others = (0..100).filter(|number| changes.last(format!("h\0/{number}").as_bytes()) > 0);
        assert!(others.count() < 5);
    }

    /// A site keeps its changes while no configuration names it, and they concern no other site.
    #[test]
    fn changes_belong_to_one_site() {
        let responses = crate::Responses::default();
        responses.url_changes_of("a").note(b"h\0/", 7);
        assert_eq!(responses.url_changes_of("a").last(b"h\0/"), 7);
        let other = responses.url_changes_of("b");
        assert!((0..PLACES).all(|number| other.last(number.to_string().as_bytes()) == 0));
        assert_eq!(other.last(b"h\0/"), 0);
    }
}
