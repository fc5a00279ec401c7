//! DATA frame of a request that has arrived in part.

/// Position within a DATA frame whose payload has not arrived completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenDataFrame {
    /// Number of the stream; 0 if no frame is open.
    pub stream: u32,
    /// Slot of the stream in the stream table.
    pub slot: u16,
    /// Set if the frame ends the request.
    pub end_stream: bool,
    /// Data bytes that have not arrived.
    pub remaining: u32,
    /// Padding bytes after the data.
    pub padding: u8,
}

impl OpenDataFrame {
    pub const NONE: OpenDataFrame = OpenDataFrame {
        stream: 0,
        slot: 0,
        end_stream: false,
        remaining: 0,
        padding: 0,
    };

    /// Returns true if a DATA frame is open.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.stream != 0
    }
}
