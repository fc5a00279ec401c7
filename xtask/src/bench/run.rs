//! A run of the bench: its rounds, its lanes and its site.

use super::content::Site;
use super::lane::Lane;

/// Properties of the run that a row needs.
pub struct Run {
    pub rounds: usize,
    pub quick: bool,
    /// Selected lanes; empty for all.
    pub lanes: Vec<String>,
    /// Document root, with a folder beside it for the files of each server.
    pub site: Site,
}

impl Run {
    /// Returns true if the lane is selected. Floors are always selected.
    pub fn wants(&self, lane: &Lane) -> bool {
        self.lanes.is_empty() || lane.server.is_floor() || self.lanes.iter().any(|name| lane.is_called(name))
    }

    /// Returns the selected lanes of a row whose programs are installed.
    pub fn chosen(&self, lanes: &[Lane]) -> Vec<Lane> {
        let here = |lane: &&Lane| self.wants(lane) && lane.server.path().is_some();
        lanes.iter().filter(here).copied().collect()
    }
}
