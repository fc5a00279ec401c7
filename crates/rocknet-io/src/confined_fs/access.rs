//! Access mode in which a lookup opens the last component.

use rustix::fs::OFlags;

use super::system;

/// Operations that the opened descriptor has to permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    StatOnly,
}

impl Access {
    pub fn flags(self) -> OFlags {
        match self {
            // Non-blocking, because opening a FIFO must not wait for a writer before `fstat` identifies it.
            Self::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY,
            Self::StatOnly => system::STAT_ONLY | OFlags::CLOEXEC,
        }
    }
}
