//! A DATA frame of a request that has come in part.

/// Data of one frame that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// 0 when nothing is under way.
    pub stream: u32,
    pub slot: u16,
    pub end_stream: bool,
    pub left: u32,
    pub padding: u8,
}

impl Content {
    pub const NONE: Content = Content {
        stream: 0,
        slot: 0,
        end_stream: false,
        left: 0,
        padding: 0,
    };

    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.stream != 0
    }
}
