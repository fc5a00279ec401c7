//! What a look-up opens a name for.

use rustix::fs::OFlags;

use super::system;

/// What the descriptor is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    StatOnly,
}

impl Access {
    pub fn flags(self) -> OFlags {
        match self {
            // Non-blocking: opening a FIFO must not wait for a writer before `fstat` can tell that it is one.
            Self::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY,
            Self::StatOnly => system::STAT_ONLY | OFlags::CLOEXEC,
        }
    }
}
