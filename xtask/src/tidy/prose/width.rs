//! Checks the width of lines that are comments: at most 120 columns, which `rustfmt` does not enforce.

use super::finding::{Finding, Rule};

/// Maximum columns of a line, as in `rustfmt.toml`.
const MAX_COLUMNS: usize = 120;

/// Returns the lines of comments that are too wide. A line without a space after its mark, such as an address, cannot
/// be wrapped.
pub fn check(text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let columns = line.chars().count();
            let comment = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']);
            let is_too_wide = columns > MAX_COLUMNS && comment.trim().contains(' ');
            is_too_wide.then(|| Finding {
                rule: Rule::Width,
                line: index + 1,
                text: format!("a comment of {columns} columns: wrap it at {MAX_COLUMNS}"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_comment_lines_are_violations() {
        let words = |columns: usize| format!("{:x<columns$}", "// a ");
        let rows = [
            (words(MAX_COLUMNS), 0),
            (words(MAX_COLUMNS + 1), 1),
            (format!("    {}", words(MAX_COLUMNS - 3)), 1),
            (format!("// {:x<130}", "https://a.test/"), 0),
            (format!("let a = \"{:x<130} // b c\";", ""), 0),
            (format!("/// {}", "\u{e4} ".repeat(58)), 0),
        ];
        for (text, expected) in rows {
            assert_eq!(check(&text).len(), expected, "{text}");
        }
    }
}
