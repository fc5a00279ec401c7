//! State of a drag over the window, outside its fields.

use std::time::{Duration, Instant};

/// Time for which the area remains the target after the pointer is reported to have left it. A file manager sends the
/// drop directly after that; see [`drops::area`](super::drops::area).
const LEAVE_GRACE: Duration = Duration::from_millis(500);

/// A drag, as the area of the window sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drag {
    /// No drag is over the area.
    #[default]
    None,
    /// A drag is over the area.
    Over,
    /// The pointer was reported to have left the area, at this time. The drop may follow.
    Left(Instant),
}

impl Drag {
    /// Returns the state after the pointer is reported to have left the area at `now`.
    pub fn left(self, now: Instant) -> Drag {
        match self {
            Drag::Over => Drag::Left(now),
            Drag::Left(at) if now.saturating_duration_since(at) < LEAVE_GRACE => self,
            Drag::Left(_) | Drag::None => Drag::None,
        }
    }
}
