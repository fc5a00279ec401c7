//! What RockNet promises, as figures: each goal names figures of the results and the limit they must not exceed.

/// One promise.
pub struct Goal {
    pub text: &'static str,
    pub limit: f64,
    pub figure: Figure,
}

/// Where the figure of a goal is read: rows and lanes by their names.
#[derive(Clone, Copy)]
pub enum Figure {
    /// Microseconds of CPU time of (row, lane).
    Cost(&'static str, &'static str),
    /// CPU time of (row, lane), as a ratio to the floor.
    Ratio(&'static str, &'static str),
    /// CPU time of (row, lane), as a ratio to another lane's.
    Beside(&'static str, &'static str, &'static str),
    /// Microseconds of CPU time that (row, lane) takes more than another lane.
    More(&'static str, &'static str, &'static str),
    /// Requests per second of a row and lane, as a ratio to those of another.
    Rates((&'static str, &'static str), (&'static str, &'static str)),
    /// The figure of (row, lane) in this column of a counted row.
    Counted(&'static str, &'static str, usize),
    /// The figure of (row, lane) in a column of a counted row, as a ratio to another lane's.
    CountedBeside(&'static str, &'static str, &'static str, usize),
}

pub const fn goal(text: &'static str, limit: f64, figure: Figure) -> Goal {
    Goal { text, limit, figure }
}

#[cfg(test)]
impl Figure {
    /// Every row and lane that it names.
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
