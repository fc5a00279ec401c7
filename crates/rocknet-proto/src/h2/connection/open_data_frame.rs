//! A DATA frame of a request that has come in part.

/// Data of one frame that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenDataFrame {
    /// 0 when nothing is under way.
    pub stream: u32,
    pub slot: u16,
    pub end_stream: bool,
    pub remaining: u32,
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

    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.stream != 0
    }
}
