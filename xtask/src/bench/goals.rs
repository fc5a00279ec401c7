//! Performance goals of RockNet: figures of the results, and the limits that they must not exceed.

/// A figure with the limit that it must not exceed.
pub struct Goal {
    pub text: &'static str,
    pub limit: f64,
    pub figure: Figure,
}

/// Source of a goal's figure: rows and lanes by name.
#[derive(Clone, Copy)]
pub enum Figure {
    /// CPU time per request of (row, lane) in microseconds.
    Cost(&'static str, &'static str),
    /// CPU time of (row, lane) as a ratio to that of the floor.
    Ratio(&'static str, &'static str),
    /// CPU time of (row, lane) as a ratio to that of another lane in the row.
    Beside(&'static str, &'static str, &'static str),
    /// CPU time per request of (row, lane) minus that of another lane in the row, in microseconds.
    More(&'static str, &'static str, &'static str),
    /// Requests per second of a row and lane, as a ratio to those of another row and lane.
    Rates((&'static str, &'static str), (&'static str, &'static str)),
    /// Figure of (row, lane) in this column of a counted row. The first column has the number 0.
    Counted(&'static str, &'static str, usize),
    /// Figure of (row, lane) in a column of a counted row, as a ratio to that of another lane.
    CountedBeside(&'static str, &'static str, &'static str, usize),
}

pub const fn goal(text: &'static str, limit: f64, figure: Figure) -> Goal {
    Goal { text, limit, figure }
}

#[cfg(test)]
impl Figure {
    /// Returns every row and lane that the figure names.
    pub fn sources(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Cost(row, lane) | Self::Ratio(row, lane) | Self::Counted(row, lane, _) => vec![(row, lane)],
            Self::CountedBeside(row, lane, other, _)
            | Self::Beside(row, lane, other)
            | Self::More(row, lane, other) => vec![(row, lane), (row, other)],
            Self::Rates(one, other) => vec![one, other],
        }
    }
}
