//! The CGI programs of one server.

use std::time::Instant;

use super::permits::Permits;
use super::reaper::Reaper;

/// CGI programs of one server: their permits, and the reaper of those that run.
#[derive(Default)]
pub struct Processes {
    pub(super) permits: Permits,
    pub(super) reaper: Reaper,
}

impl Processes {
    /// Kills every running program with its process group, and rejects new programs. Returns whether all had ended at
    /// `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.reaper.stop(deadline)
    }
}
