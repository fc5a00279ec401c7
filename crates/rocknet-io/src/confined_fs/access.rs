//! Access mode in which a lookup opens the last component.

use rustix::fs::OFlags;

use super::system;

/// Operations that the opened descriptor has to permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading a file, or listing a directory.
    Read,
    /// Only `fstat`.
    StatOnly,
}

impl Access {
    /// Returns the flags of `openat(2)` for the last component.
    pub fn flags(self) -> OFlags {
        match self {
            // Non-blocking, because opening a FIFO must not wait for a writer before `fstat` identifies it. NOCTTY,
            // because a terminal must not become the controlling terminal of the server.
            Self::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY,
            Self::StatOnly => system::STAT_ONLY | OFlags::CLOEXEC,
        }
    }
}
