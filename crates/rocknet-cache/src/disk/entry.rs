//! Entry of the index: a response on disk.

use super::position::Position;

/// Maximum number of sites, which have 15 bits in an entry. Responses of further ones are not written to disk.
pub(super) const MAX_SITES: usize = 1 << 15;

/// A response on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Hash of the key.
    pub hash: u64,
    pub position: Position,
    /// Length of the record in bytes.
    pub length: u32,
    /// Tag of the variant: a hash of the request fields that select the response, with their values.
    pub variant: u32,
    /// Time in seconds since 1970 after which the response has no use; the maximum if it can be validated.
    pub expires: u32,
    /// Number of the list with the names of the request fields that select the response (names.rs).
    pub names: u16,
    pub mark: Mark,
}

/// Number of a site, and a flag that is set once the response was used. Together they have 16 bits, so that an
/// [`Entry`] has 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u16);

impl Mark {
    /// Bit of the flag. All numbers of sites are lower.
    const HIT: u16 = MAX_SITES as u16;

    /// Creates the mark of a response that was not used yet.
    pub fn of_site(number: u16) -> Mark {
        Mark(number & !Mark::HIT)
    }

    /// Returns the number of the site.
    pub fn site(self) -> u16 {
        self.0 & !Mark::HIT
    }

    /// Returns true if the response was used since it was written.
    pub fn is_hit(self) -> bool {
        self.0 & Mark::HIT != 0
    }

    /// Records that the response was used.
    pub fn set_hit(&mut self) {
        self.0 |= Mark::HIT;
    }
}
