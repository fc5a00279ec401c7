//! Close state of a tunnel's client side, on which its deadline depends.

/// Directions that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloseState {
    /// The client has ended its direction.
    pub received: bool,
    /// The server has ended its direction to the client.
    pub sent: bool,
}

impl CloseState {
    /// Returns true if exactly one direction has ended.
    pub fn is_half_closed(self) -> bool {
        self.received != self.sent
    }
}
