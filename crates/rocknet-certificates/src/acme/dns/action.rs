//! The two actions of a DNS-01 challenge.

/// An action on the TXT record of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Publishes the record.
    Present,
    /// Removes the record.
    Cleanup,
}

impl Action {
    /// Returns the first argument of the operator's program.
    pub fn word(self) -> &'static str {
        match self {
            Action::Present => "present",
            Action::Cleanup => "cleanup",
        }
    }
}
