//! How far a server is on its way out of a connection.

/// Whether and how far the server is about to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DrainState {
    Active,
    /// The client is told, and may have requests under way.
    Announced,
    /// Streams above `last` are not answered.
    Final {
        last: u32,
    },
}

impl DrainState {
    #[inline]
    pub fn refuses(self, number: u32) -> bool {
        matches!(self, Self::Final { last } if number > last)
    }
}
