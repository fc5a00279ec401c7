//! A row of the bench: requests, load and the lanes that take part.

use super::lane::Lane;
use super::load::Load;
use super::run::Run;
use super::table::Table;
use crate::Failure;

pub use super::page::{GIB, KIB, MIB, Page};

/// One row: the same measurement for all its lanes.
pub struct Row {
    pub name: &'static str,
    /// Rows of one section share a heading and a plot.
    pub section: &'static str,
    pub title: &'static str,
    /// Lanes that take part; the first one is the unit of the ratios.
    pub lanes: &'static [Lane],
    pub work: Work,
}

pub enum Work {
    /// Load from one core, and the server's CPU time per request on the other.
    Load(Timed),
    /// A count instead of a time.
    Count(Counting),
}

/// A row under load.
pub struct Timed {
    pub load: Load,
    pub page: Page,
}

/// Function that counts something for each of the lanes.
pub type Counting = fn(&Run, &[Lane]) -> Result<Table, Failure>;

/// A row under load, written as `(name, title, load, page)`.
pub const fn load(
    section: &'static str,
    lanes: &'static [Lane],
    (name, title, load, page): (&'static str, &'static str, Load, Page),
) -> Row {
    row(section, lanes, name, title, Work::Load(Timed { load, page }))
}

/// A row that counts, written as `(name, title, counting)`.
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
