//! The two actions of a DNS-01 proof.

/// Puts a record up or takes it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Present,
    Cleanup,
}

impl Action {
    /// Returns the word that a program is called with.
    pub fn word(self) -> &'static str {
        match self {
            Action::Present => "present",
            Action::Cleanup => "cleanup",
        }
    }
}
