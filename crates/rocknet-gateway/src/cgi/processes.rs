//! The processes of one server that run programs.

use std::time::Instant;

use super::permits::Permits;
use super::reaper::Reaper;

/// The programs of one server that run or wait for a place.
#[derive(Default)]
pub struct Processes {
    pub(super) permits: Permits,
    pub(super) reaper: Reaper,
}

impl Processes {
    /// Kills every program that runs, with its process group, and starts none from now on. Returns whether all of them had
    /// ended at `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.reaper.stop(deadline)
    }
}
