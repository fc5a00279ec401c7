//! A program that listens, by its number and name.

use std::fmt;

/// A program that listens where another wants to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    pub pid: u32,
    /// The short name that the system keeps of a process, without control characters.
    pub name: String,
}

impl PortOwner {
    /// Whether the holder is this very process.
    pub fn is_this_process(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}
