//! A group of rows, with its goals.

use crate::bench::goals::Goal;
use crate::bench::row::Row;

/// Rows that are measured together and reported on one page.
pub struct Group {
    /// Name on the command line and in file names.
    pub name: &'static str,
    pub title: &'static str,
    pub rows: &'static [Row],
    pub goals: &'static [Goal],
}
