//! Differences between two versions of a text, line by line. Their number is bounded, so that the window can show them.

use similar::{ChangeTag, TextDiff};

/// Number of equal lines that are shown around each difference.
const CONTEXT: usize = 3;

/// Maximum number of lines of each version that are compared, after the equal ones at the beginning. The time of the
/// comparison grows with the square of the number of differences.
const MAX_COMPARED: usize = 2_000;

/// Maximum number of lines that are shown.
const MAX_SHOWN: usize = 400;

/// Line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// Heading of the lines below it: the number of the first line in the new version.
    Place(usize),
    Same(String),
    Removed(String),
    Added(String),
}

/// Differences between two versions of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    pub lines: Vec<DiffLine>,
    /// Number of lines that are not shown or not compared, because there are too many.
    pub left_out: usize,
}

impl Difference {
    /// Compares two versions. Ends of lines are not compared, so texts that differ only in these have no differences.
    pub fn of(old: &str, new: &str) -> Difference {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let equal = |(one, other): &(&&str, &&str)| one == other;
        let begin = old.iter().zip(&new).take_while(equal).count();
        let rest = old.len().min(new.len()) - begin;
        let end = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take(rest)
            .take_while(equal)
            .count();
        let (first, last) = (begin.saturating_sub(CONTEXT), end.saturating_sub(CONTEXT));
        let (old, new) = (&old[first..old.len() - last], &new[first..new.len() - last]);
        let compared = |lines: &[&str]| lines.len().min(MAX_COMPARED);
        let mut left_out = old.len().max(new.len()).saturating_sub(MAX_COMPARED);
        let (old, new) = (&old[..compared(old)], &new[..compared(new)]);
        let diff = TextDiff::from_slices(old, new);
        let mut lines = Vec::new();
        for group in diff.grouped_ops(CONTEXT) {
            let place = group.first().map_or(0, |op| op.new_range().start);
            lines.push(DiffLine::Place(first + place + 1));
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let line = change.value().to_owned();
                lines.push(match change.tag() {
                    ChangeTag::Equal => DiffLine::Same(line),
                    ChangeTag::Delete => DiffLine::Removed(line),
                    ChangeTag::Insert => DiffLine::Added(line),
                });
            }
        }
        left_out += lines.len().saturating_sub(MAX_SHOWN);
        lines.truncate(MAX_SHOWN);
        Difference { lines, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::DiffLine::{Added, Place, Removed, Same};
    use super::*;

    #[test]
    fn lines_around_a_difference_are_shown() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = old.replace("5\n", "five\n");
        let same = |text: &str| Same(text.to_owned());
        let expected = vec![
            Place(2),
            same("2"),
            same("3"),
            same("4"),
            Removed("5".to_owned()),
            Added("five".to_owned()),
            same("6"),
            same("7"),
            same("8"),
        ];
        assert_eq!(Difference::of(old, &new).lines, expected);
        assert_eq!(Difference::of(old, old), Difference::default());
        assert_eq!(Difference::of("a\r\nb", "a\nb\n"), Difference::default());
        // Lines that repeat are at the beginning or at the end, not in both.
        assert_eq!(
            Difference::of("a\na\n", "a\na\na\n").lines.last(),
            Some(&Added("a".to_owned()))
        );
        assert_eq!(Difference::of("", "a").lines, [Place(1), Added("a".to_owned())]);
    }

    #[test]
    fn large_differences_are_cut() {
        let numbers = |from: usize, to: usize| (from..to).map(|number| format!("{number}\n")).collect::<String>();
        let difference = Difference::of(&numbers(0, 9_000), &numbers(10_000, 19_000));
        assert_eq!(difference.lines.len(), MAX_SHOWN);
        // Of each version, 7,000 lines are not compared. The place and 4,000 lines are, and 400 of these are shown.
        assert_eq!(difference.left_out, 7_000 + 4_001 - MAX_SHOWN);
    }
}
