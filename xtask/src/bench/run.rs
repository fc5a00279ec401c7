//! A run of the bench: how long, of which lanes, and over which site.

use super::content::Site;
use super::lane::Lane;

/// All that a row needs to know of the run it is part of.
pub struct Run {
    pub rounds: usize,
    pub quick: bool,
    /// The lanes that were asked for; all when empty.
    pub lanes: Vec<String>,
    /// The document root, and beside it a folder for each server's own files.
    pub site: Site,
}

impl Run {
    /// Whether a lane was asked for: the floors always are.
    pub fn wants(&self, lane: &Lane) -> bool {
        self.lanes.is_empty() || lane.server.is_floor() || self.lanes.iter().any(|name| lane.is_called(name))
    }

    /// Those of a row's lanes that were asked for and whose programs are here.
    pub fn chosen(&self, lanes: &[Lane]) -> Vec<Lane> {
        let here = |lane: &&Lane| self.wants(lane) && lane.server.path().is_some();
        lanes.iter().filter(here).copied().collect()
    }
}
