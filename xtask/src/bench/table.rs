//! Tables of counted figures: one line per server, one figure per column.

use super::lane::Lane;
use crate::Failure;
use serde::Serialize;

/// Figures of several servers under common headings.
#[derive(Serialize)]
pub struct Table {
    pub columns: Vec<String>,
    pub lines: Vec<TableLine>,
    /// Explanation of the measurement.
    pub note: &'static str,
    /// Pictures below the table.
    #[serde(skip)]
    pub pictures: Vec<Picture>,
}

/// A picture of a table.
pub struct Picture {
    /// End of the file name.
    pub name: String,
    pub title: String,
    pub svg: String,
}

#[derive(Serialize)]
pub struct TableLine {
    pub name: String,
    /// One figure per column; empty if the server failed.
    pub figures: Vec<f64>,
    /// Reason for missing figures.
    pub absent: Option<String>,
}

/// Builds a table with one line per server; a failure becomes the text of its line.
pub fn table(
    lanes: &[Lane],
    columns: &[&str],
    note: &'static str,
    figures: impl Fn(&Lane) -> Result<Vec<f64>, Failure>,
) -> Table {
    let mut lines = Vec::new();
    for lane in lanes {
        let line = match figures(lane) {
            Ok(figures) => TableLine {
                name: lane.name.into(),
                figures,
                absent: None,
            },
            Err(failure) => TableLine {
                name: lane.name.into(),
                figures: Vec::new(),
                absent: Some(failure.to_string()),
            },
        };
        println!(
            "{:12} {:?} {}",
            line.name,
            line.figures,
            line.absent.as_deref().unwrap_or("")
        );
        lines.push(line);
    }
    Table {
        columns: columns.iter().map(|&column| column.into()).collect(),
        lines,
        note,
        pictures: Vec::new(),
    }
}
