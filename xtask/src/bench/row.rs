//! A row of the bench: the requests, the load and the measured lanes.

use super::lane::Lane;
use super::load::Load;
use super::run::Run;
use super::table::Table;
use crate::Failure;

pub use super::page::{GIB, KIB, MIB, Page};

/// One row: the same measurement for several lanes.
pub struct Row {
    pub name: &'static str,
    /// Rows of one section share a heading and a plot.
    pub section: &'static str,
    pub title: &'static str,
    /// Measured lanes. The first lane is the unit of the ratios.
    pub lanes: &'static [Lane],
    pub work: Work,
}

pub enum Work {
    /// Loads the server from one core and measures its CPU time per request on another core.
    Load(Timed),
    /// Computes figures that are not measured under load.
    Count(Counting),
}

/// A row under load.
pub struct Timed {
    pub load: Load,
    pub page: Page,
}

/// Function that returns a table with figures of each lane.
pub type Counting = fn(&Run, &[Lane]) -> Result<Table, Failure>;

/// Returns a row under load.
pub const fn load(
    section: &'static str,
    lanes: &'static [Lane],
    (name, title, load, page): (&'static str, &'static str, Load, Page),
) -> Row {
    row(section, lanes, name, title, Work::Load(Timed { load, page }))
}

/// Returns a row with figures that are not measured under load.
pub const fn count(
    section: &'static str,
    lanes: &'static [Lane],
    (name, title, counting): (&'static str, &'static str, Counting),
) -> Row {
    row(section, lanes, name, title, Work::Count(counting))
}

const fn row(
    section: &'static str,
    lanes: &'static [Lane],
    name: &'static str,
    title: &'static str,
    work: Work,
) -> Row {
    Row {
        name,
        section,
        title,
        lanes,
        work,
    }
}

impl Row {
    /// Returns true if costs are per MiB instead of per request.
    pub fn counts_bytes(&self) -> bool {
        matches!(&self.work, Work::Load(work) if work.load.counts_bytes())
    }
}
