//! Purges that apply to responses on disk. A response is compared with the purges after its position when it is read,
//! as Varnish does with its bans, because the index has neither keys nor tags.

use std::collections::HashSet;

use super::position::Position;
use crate::key::{self, KeyParts};
use crate::purge::Purge;

/// Maximum number of purges. Beyond it, the older half of them is forgotten, and all responses that this half could
/// select are dropped.
const MAX_PURGES: usize = 4096;

/// Purges in the order of their positions, the newest last.
#[derive(Debug, Default)]
pub(super) struct PurgeList {
    all: Vec<(Position, Purge)>,
    /// The same purges, so that only a repeated purge needs a search in `all`.
    known: HashSet<Purge>,
}

impl PurgeList {
    /// Adds a purge. An earlier one with the same selection is replaced. Returns a position if all responses before it
    /// have to be dropped, because there are too many purges.
    pub fn add(&mut self, position: Position, purge: Purge) -> Option<Position> {
        if !self.known.insert(purge.clone()) {
            self.all.retain(|(_, other)| *other != purge);
        }
        self.all.push((position, purge));
        if self.all.len() <= MAX_PURGES {
            return None;
        }
        let until = self.all[MAX_PURGES / 2].0;
        for (_, old) in self.all.drain(..=MAX_PURGES / 2) {
            self.known.remove(&old);
        }
        Some(until)
    }

    /// Forgets the purges before a position, before which no response is left.
    pub fn forget_before(&mut self, position: Position) {
        let old = self.all.partition_point(|(other, _)| *other < position);
        for (_, old) in self.all.drain(..old) {
            self.known.remove(&old);
        }
    }

    pub fn clear(&mut self) {
        *self = PurgeList::default();
    }

    /// Returns true if a purge after the position of a response selects it.
    pub fn select(&self, position: Position, key: &[u8], url: Option<&[u8]>, tags: &[Box<str>]) -> bool {
        let newer = self.all.partition_point(|(other, _)| *other <= position);
        let newer = &self.all[newer..];
        if newer.is_empty() {
            return false;
        }
        // A response whose key is malformed counts as selected, so that it is not used.
        let Some(parts) = key::parts(key) else { return true };
        let parts: KeyParts<'_> = match url {
            Some(url) => parts.with_url(url),
            None => parts,
        };
        newer.iter().any(|(_, purge)| purge.selects(&parts, tags))
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segment: u32) -> Position {
        Position { segment, offset: 0 }
    }

    #[test]
    fn only_later_purges_select_a_response() {
        let mut list = PurgeList::default();
        let key = b"s\0sh\0/a?b\0";
        let tags: [Box<str>; 1] = ["t".into()];
        assert!(!list.select(at(1), key, None, &tags));
        assert_eq!(list.add(at(5), Purge::tag("t")), None);
        assert_eq!(list.add(at(6), Purge::url("https://h/a", true).expect("a purge")), None);
        for (position, key, tags, expected) in [
            (4, &key[..], &tags[..], true),
            (5, key, &tags, true),
            (6, key, &tags, false),
            (5, b"s\0sh\0/c\0", &tags, false),
            (4, b"s\0sh\0/c\0", &tags, true),
            (4, b"s\0sh\0/c\0", &[], false),
            (4, b"s\0si\0/a\0", &[], false),
            (4, b"s\0ph\0/ab\0", &[], true),
        ] {
            assert_eq!(
                list.select(at(position), key, None, tags),
                expected,
                "{position} {key:?} {tags:?}"
            );
        }
        // With a template, the URL is that of the request, and a query makes no difference.
        let template = b"s\0S\0text\0";
        assert!(list.select(at(4), template, Some(b"h\0/ab"), &[]));
        assert!(!list.select(at(4), template, Some(b"h\0/b"), &[]));
        list.forget_before(at(6));
        assert_eq!(list.len(), 1);
        // A repeated purge moves.
        assert_eq!(list.add(at(9), Purge::url("https://h/a", true).expect("a purge")), None);
        assert_eq!(list.len(), 1);
        assert!(list.select(at(8), key, None, &[]));
    }

    #[test]
    fn too_many_purges_drop_old_responses() {
        let mut list = PurgeList::default();
        for number in 0..MAX_PURGES as u32 {
            assert_eq!(list.add(at(number), Purge::tag(&number.to_string())), None);
        }
        let until = list.add(at(MAX_PURGES as u32), Purge::tag("more"));
        assert_eq!(until, Some(at(MAX_PURGES as u32 / 2)));
        assert_eq!(list.len(), MAX_PURGES / 2);
        let last = (MAX_PURGES / 2 + 1).to_string();
        let selects = |tag: &str| list.select(at(0), b"s\0sh\0/\0", None, &[tag.into()]);
        assert!(selects(&last) && !selects("0"));
    }
}
