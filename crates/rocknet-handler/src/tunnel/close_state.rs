//! How far a tunnel's client has ended its side, and ours: what its deadline depends on.

/// Which directions are over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloseState {
    /// The client sends nothing more.
    pub received: bool,
    /// Nothing more is sent to the client.
    pub sent: bool,
}

impl CloseState {
    /// One side is over, and the other is not.
    pub fn is_half_closed(self) -> bool {
        self.received != self.sent
    }
}
