//! Positions in the log. Segments are numbered upwards, so positions are in the order of the writes.

/// Position of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Position {
    /// Number of the segment.
    pub segment: u32,
    /// Offset in the segment in bytes.
    pub offset: u32,
}

impl Position {
    /// Returns the position as a number in the same order.
    pub fn to_number(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.offset)
    }
}
