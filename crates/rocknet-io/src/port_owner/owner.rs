//! A process that listens on a socket, with its number and name.

use std::fmt;

/// A process that listens on an address that another process requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    /// Process ID.
    pub pid: u32,
    /// The short name that the kernel keeps for a process, without control characters.
    pub name: String,
}

impl PortOwner {
    /// Returns whether the owner is the calling process.
    pub fn is_this_process(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}
