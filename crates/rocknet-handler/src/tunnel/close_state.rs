//! Close state of a tunnel's client side. The tunnel's deadline depends on it.

/// Directions that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloseState {
    /// True if the client has ended its direction.
    pub received: bool,
    /// True if the server has ended its direction to the client.
    pub sent: bool,
}

impl CloseState {
    /// Returns true if exactly one direction has ended.
    pub fn is_half_closed(self) -> bool {
        self.received != self.sent
    }
}
