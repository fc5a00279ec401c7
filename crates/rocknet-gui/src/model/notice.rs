//! Notice about the outcome of an act. It disappears by itself, except for a failure.

use std::time::Duration;

/// Time that a notice stays.
const SHOWN: Duration = Duration::from_secs(8);

/// Time that a notice stays if its change can be taken back, because it is read before acting.
const SHOWN_LONG: Duration = Duration::from_secs(20);

/// Notice at the lower edge of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub is_failure: bool,
    /// True if it offers to take the change back.
    pub can_undo: bool,
    until: Duration,
}

impl Notice {
    /// Creates a notice that appears now.
    pub fn new(text: String, is_failure: bool, can_undo: bool, now: Duration) -> Notice {
        let shown = if can_undo { SHOWN_LONG } else { SHOWN };
        Notice {
            text,
            is_failure,
            can_undo,
            until: now + shown,
        }
    }

    /// Returns true if the notice has to disappear. A failure stays until the user dismisses it, or the outcome of a
    /// later act replaces it.
    pub fn is_over(&self, now: Duration) -> bool {
        !self.is_failure && now >= self.until
    }
}
