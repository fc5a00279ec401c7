//! A row of the bench: what is asked of the servers, how, and of which of them.

use super::Run;
use super::counted::Table;
use super::lane::Lane;
use super::load::Load;
use crate::Failure;

/// One row: a question that is put to all its lanes alike.
pub struct Row {
    pub name: &'static str,
    /// Rows of one section share a heading and a plot.
    pub section: &'static str,
    pub title: &'static str,
    /// Who takes part. The first one is the unit of the ratios.
    pub lanes: &'static [Lane],
    pub work: Work,
}

pub enum Work {
    /// Load from one core, the server's CPU time per request on the other.
    Load(Timed),
    /// Something counted instead of timed.
    Count(Counting),
}

/// A row under load.
pub struct Timed {
    pub load: Load,
    pub page: Page,
}

/// Counts something of each of these lanes.
pub type Counting = fn(&Run, &[Lane]) -> Result<Table, Failure>;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// 13 bytes of HTML.
    Hello,
    /// A file of so many bytes.
    File(u64),
    /// The same 13 bytes, written by a script of PHP.
    Script,
    /// What no site has.
    Missing,
    /// Where content of so many bytes is posted to: answered by a handler, or by a redirect once the content has been read,
    /// which is the one answer to a POST that servers of files can give.
    Post(u64),
}

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

/// A row under load, written as `(name, title, load, page)`.
pub const fn load(
    section: &'static str,
    lanes: &'static [Lane],
    (name, title, load, page): (&'static str, &'static str, Load, Page),
) -> Row {
    row(section, lanes, name, title, Work::Load(Timed { load, page }))
}

/// A row that counts, written as `(name, title, what counts)`.
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
    /// Costs are per MiB, not per request.
    pub fn counts_bytes(&self) -> bool {
        matches!(&self.work, Work::Load(work) if work.load.counts_bytes())
    }
}
