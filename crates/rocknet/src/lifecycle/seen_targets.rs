//! Targets that the client of a connection has requested, or that were pushed or announced to it. They are not pushed
//! or announced again.

use std::collections::HashSet;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use rocknet_proto::request::Request;

use crate::preload::Preloads;

/// Maximum number of remembered targets for each connection, at eight bytes each. When the set is full, every target
/// counts as seen.
pub const SEEN_MAX: usize = 4096;

/// Set of targets. It is created for the first page with resources to push or announce, because most connections need
/// no set.
pub struct SeenTargets {
    /// Digests of authority and target.
    targets: HashSet<u64>,
    hasher: RandomState,
}

impl SeenTargets {
    /// Creates the set with the target of a page.
    pub fn of_page(page: &Request<'_>) -> SeenTargets {
        let mut seen = SeenTargets {
            targets: HashSet::new(),
            hasher: RandomState::default(),
        };
        seen.is_new(page.authority, page.target);
        seen
    }

    /// Adds a target to the set. Returns false if the set contains it already, or is full.
    pub fn is_new(&mut self, authority: &[u8], target: &[u8]) -> bool {
        let digest = self.hasher.hash_one((authority, target));
        self.targets.len() < SEEN_MAX && self.targets.insert(digest)
    }

    /// Adds the resources of a page to the set. Returns true if one of them is new.
    pub fn has_new(&mut self, authority: &[u8], preloads: &Preloads) -> bool {
        let new = preloads.targets.iter().filter(|target| self.is_new(authority, target));
        // Counted, because `any` would stop at the first new target, and the remaining ones would not be added.
        new.count() > 0
    }
}

#[cfg(test)]
mod tests {
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    #[test]
    fn each_target_is_new_once() {
        let page = OwnedRequest::synthetic_get(Version::Http2, b"h", b"/", &[]);
        let mut seen = SeenTargets::of_page(&page.view());
        // The last row differs from the first one only in the boundary between authority and target.
        for (authority, target, new) in [
            ("h", "/a", true),
            ("h", "/a", false),
            ("h", "/", false),
            ("g", "/", true),
            ("h/", "a", true),
        ] {
            let found = seen.is_new(authority.as_bytes(), target.as_bytes());
            assert_eq!(found, new, "{authority} {target}");
        }
        // Of these two resources, only `/b` is new.
        let preloads = Preloads::new(&["/a".to_owned(), "/b".to_owned()]).expect("not empty");
        assert!(seen.has_new(b"h", &preloads), "/b is new");
        assert!(!seen.has_new(b"h", &preloads));
        for number in 0..SEEN_MAX as u32 {
            seen.is_new(b"h", &number.to_be_bytes());
        }
        assert!(!seen.is_new(b"h", b"/one-more"), "the set is full");
    }
}
