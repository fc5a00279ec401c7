//! The two actions of a DNS-01 challenge.

/// Publishes or removes a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Present,
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
