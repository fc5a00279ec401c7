//! All CGI programs of one server: permits and running programs.

use std::time::Instant;

use super::permits::Permits;
use super::reaper::Reaper;

/// The permits for CGI programs of one server, and the reaper of its running programs.
#[derive(Default)]
pub struct Processes {
    pub(super) permits: Permits,
    pub(super) reaper: Reaper,
}

impl Processes {
    /// Kills every running program with its process group, and rejects new programs. Returns whether the reaper thread
    /// ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.reaper.stop(deadline)
    }
}
