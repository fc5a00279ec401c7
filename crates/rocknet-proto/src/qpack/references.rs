//! Sections that were sent but not acknowledged, whose references keep entries in the dynamic table (RFC 9204 §2.1).

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::QpackError;

/// Maximum number of unacknowledged sections with references: one for each stream that a client may open by default.
/// Further sections do not use the dynamic table, so a client that never acknowledges cannot use more memory.
pub(super) const MAX_SECTIONS: usize = 128;

/// References of one unacknowledged section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SectionReferences {
    pub stream: u64,
    /// Required Insert Count: one more than the absolute index of the newest entry referred to.
    pub required: u64,
    /// Absolute index of the oldest entry referred to.
    pub oldest: u64,
}

/// Unacknowledged sections, oldest first, and the insertions that the client has acknowledged.
#[derive(Debug)]
pub(super) struct References {
    sections: VecDeque<SectionReferences>,
    /// Known Received Count (RFC 9204 §2.1.4).
    known_received: u64,
}

impl References {
    pub(super) const fn new() -> Self {
        Self {
            sections: VecDeque::new(),
            known_received: 0,
        }
    }

    #[inline]
    pub(super) fn known_received(&self) -> u64 {
        self.known_received
    }

    pub(super) fn is_full(&self) -> bool {
        self.sections.len() >= MAX_SECTIONS
    }

    pub(super) fn push(&mut self, section: SectionReferences) {
        self.sections.push_back(section);
    }

    /// Returns the lowest absolute index that must not be evicted. It is the lower index of two entries: the oldest
    /// entry that is referred to, and the oldest entry that the client has not acknowledged. Entries are evicted in the
    /// order of their insertion (RFC 9204 §2.1.1).
    pub(super) fn pinned(&self) -> u64 {
        let oldest = self.sections.iter().map(|section| section.oldest).min();
        oldest.map_or(self.known_received, |oldest| oldest.min(self.known_received))
    }

    /// Returns whether a section of this stream is allowed to refer to entries that the client may not have received.
    /// At most `max` streams may be blocked at once (RFC 9204 §2.1.2).
    pub(super) fn may_block(&self, stream: u64, max: u64) -> bool {
        let mut streams: SmallVec<[u64; 16]> = SmallVec::new();
        for section in self
            .sections
            .iter()
            .filter(|section| section.required > self.known_received)
        {
            // The stream counts as blocked already, so a further section adds none. With a `max` of 0, no stream may
            // be blocked.
            if section.stream == stream {
                return max > 0;
            }
            if !streams.contains(&section.stream) {
                streams.push(section.stream);
            }
        }
        (streams.len() as u64) < max
    }

    /// Applies a Section Acknowledgment to the oldest section of the stream (RFC 9204 §4.4.1).
    pub(super) fn acknowledge(&mut self, stream: u64) -> Result<(), QpackError> {
        let position = self.sections.iter().position(|section| section.stream == stream);
        let section = position
            .and_then(|position| self.sections.remove(position))
            .ok_or(QpackError::Acknowledgment)?;
        self.known_received = self.known_received.max(section.required);
        Ok(())
    }

    /// Applies a Stream Cancellation. Cancelled streams without references are valid (RFC 9204 §4.4.2).
    pub(super) fn cancel(&mut self, stream: u64) {
        self.sections.retain(|section| section.stream != stream);
    }

    /// Applies an Insert Count Increment (RFC 9204 §4.4.3). `inserted` is the number of entries sent.
    pub(super) fn increment(&mut self, entries: u64, inserted: u64) -> Result<(), QpackError> {
        if entries == 0 || entries > inserted - self.known_received {
            return Err(QpackError::Increment);
        }
        self.known_received += entries;
        Ok(())
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.sections.capacity() * size_of::<SectionReferences>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns unacknowledged sections, each given as its stream, its Required Insert Count, and the absolute index of
    /// the oldest entry that it refers to.
    fn references(sections: &[(u64, u64, u64)]) -> References {
        let mut references = References::new();
        for &(stream, required, oldest) in sections {
            references.push(SectionReferences {
                stream,
                required,
                oldest,
            });
        }
        references
    }

    #[test]
    fn acknowledgments_release_the_oldest_section_of_a_stream() {
        let mut references = references(&[(0, 5, 3), (4, 2, 1), (0, 3, 2)]);
        assert_eq!(references.pinned(), 0);
        assert_eq!(references.acknowledge(0), Ok(()));
        assert_eq!((references.known_received(), references.pinned()), (5, 1));
        references.cancel(4);
        references.cancel(4);
        assert_eq!(references.pinned(), 2);
        assert_eq!(references.acknowledge(0), Ok(()));
        assert_eq!((references.known_received(), references.pinned()), (5, 5));
        for stream in [0, 4, 8] {
            assert_eq!(references.acknowledge(stream), Err(QpackError::Acknowledgment));
        }
    }

    #[test]
    fn increments_do_not_exceed_the_entries_sent() {
        let mut references = References::new();
        assert_eq!(references.increment(0, 4), Err(QpackError::Increment));
        assert_eq!(references.increment(3, 4), Ok(()));
        assert_eq!(references.increment(2, 4), Err(QpackError::Increment));
        assert_eq!(references.increment(1, 4), Ok(()));
        assert_eq!(references.increment(u64::MAX, 4), Err(QpackError::Increment));
        assert_eq!(references.known_received(), 4);
    }

    #[test]
    fn streams_that_may_block_are_counted_once() {
        let mut references = references(&[(0, 5, 0), (0, 6, 0), (4, 2, 1), (8, 7, 0)]);
        assert_eq!(references.increment(2, 10), Ok(()));
        // Streams 0 and 8 may be blocked; stream 4 cannot be.
        for (stream, max, expected) in [
            (0, 0, false),
            (0, 1, true),
            (8, 2, true),
            (4, 2, false),
            (12, 2, false),
            (12, 3, true),
        ] {
            assert_eq!(references.may_block(stream, max), expected, "{stream} {max}");
        }
        assert_eq!(references.acknowledge(8), Ok(()));
        assert!(references.may_block(12, 1));
    }
}
