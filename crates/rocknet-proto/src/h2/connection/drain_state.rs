//! State of a graceful shutdown, and the streams that it refuses.

/// Progress of a graceful shutdown (RFC 9113 §6.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DrainState {
    /// No shutdown has begun.
    Active,
    /// The first GOAWAY is written; the client may have requests in flight.
    Announced,
    /// The final GOAWAY is written; streams above `last` are ignored.
    Final { last: u32 },
}

impl DrainState {
    /// Returns whether the final GOAWAY excludes this stream.
    #[inline]
    pub fn refuses(self, number: u32) -> bool {
        matches!(self, Self::Final { last } if number > last)
    }
}
