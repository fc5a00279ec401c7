//! Line of a log at which the user reads, found again among other lines.

use crate::screen::LogLine;

/// The first line in view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingPlace {
    number: u64,
    /// Number of lines before it with the same number: a line for lost lines has that of the line after it.
    rank: usize,
}

impl ReadingPlace {
    /// Returns the place at an index of the lines; `None` for lines without numbers, which do not change.
    pub fn of(lines: &[LogLine], index: usize) -> Option<ReadingPlace> {
        let number = lines.get(index)?.number;
        let before = lines[..index].iter().rev();
        let rank = before.take_while(|line| line.number == number).count();
        (number > 0).then_some(ReadingPlace { number, rank })
    }

    /// Returns the index of the line in other lines, or of the next one if the line is not among them. `None` if no
    /// later line is among them.
    pub fn index_in(&self, lines: &[LogLine]) -> Option<usize> {
        let first = lines.iter().position(|line| line.number >= self.number)?;
        let same = lines.get(first + self.rank).filter(|line| line.number == self.number);
        Some(if same.is_some() { first + self.rank } else { first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: &[u64]) -> Vec<LogLine> {
        let line = |&number| LogLine {
            number,
            ..LogLine::default()
        };
        numbers.iter().map(line).collect()
    }

    #[test]
    fn the_line_is_found_among_other_lines() {
        for (before, index, after, expected) in [
            // Lines were removed at the beginning.
            (&[1, 2, 3, 4][..], 2, &[3, 4, 5][..], Some(0)),
            (&[1, 2, 3, 4], 3, &[2, 3, 4, 5], Some(2)),
            // A filter leaves lines out, also the line itself.
            (&[1, 2, 3, 4], 1, &[1, 4], Some(1)),
            (&[1, 4], 1, &[1, 2, 3, 4], Some(3)),
            // Lines were removed that the filter had left out already.
            (&[10, 900, 1_800], 1, &[900, 1_800], Some(0)),
            (&[1, 2], 1, &[1], None),
            // The line for lost lines before it, and the line itself.
            (&[1, 2, 2], 1, &[2, 2, 3], Some(0)),
            (&[1, 2, 2], 2, &[2, 2, 3], Some(1)),
            (&[1, 2, 2], 2, &[2, 3], Some(0)),
        ] {
            let place = ReadingPlace::of(&lines(before), index).unwrap();
            assert_eq!(place.index_in(&lines(after)), expected, "{before:?} {index} {after:?}");
        }
        assert_eq!(ReadingPlace::of(&lines(&[0, 0]), 1), None);
        assert_eq!(ReadingPlace::of(&lines(&[]), 0), None);
    }
}
