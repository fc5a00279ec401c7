//! Reads the figures of goals from the results.

use super::Results;
use crate::bench::goals::Figure;

impl Results {
    /// Returns the figure, or `None` if its row was not run or a lane has no figures.
    pub fn value(&self, figure: Figure) -> Option<f64> {
        Some(match figure {
            Figure::Cost(row, lane) => self.us(row, lane)?,
            Figure::Ratio(row, lane) => self.ratio(row, lane)?,
            Figure::Beside(row, lane, other) => self.us(row, lane)? / self.us(row, other)?,
            Figure::More(row, lane, other) => self.us(row, lane)? - self.us(row, other)?,
            Figure::Rates(one, other) => self.rate(one.0, one.1)? / self.rate(other.0, other.1)?,
            Figure::Counted(row, lane, column) => self.figure(row, lane, column)?,
            Figure::CountedBeside(row, lane, other, column) => {
                self.figure(row, lane, column)? / self.figure(row, other, column)?
            }
        })
    }
}
