//! A group of rows, with its goals.

use crate::bench::goals::Goal;
use crate::bench::row::Row;

/// Rows that are measured together and told on one page.
pub struct Group {
    /// How it is called on the command line and in the names of its files.
    pub name: &'static str,
    pub title: &'static str,
    pub rows: &'static [Row],
    pub goals: &'static [Goal],
}
