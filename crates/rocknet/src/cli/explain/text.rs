//! Renders the explanation as text for a terminal.

use std::fmt::Write as _;

use rocknet_control::explanation::{ConfigPosition, UrlExplanation};

use super::super::terminal_text::printable;

/// Renders the result: the destination of the URL and the problems, followed by three columns with key, value and
/// configuration line.
pub(super) fn render(explanation: &UrlExplanation) -> String {
    // A configuration that was built in memory has no file. Its positions have the line 0 and are shown as empty text.
    let line = |position: &ConfigPosition| match position.line {
        0 => String::new(),
        line => format!("{}:{line}", position.file.display()),
    };
    let at = |position: &Option<ConfigPosition>| position.as_ref().map(line).unwrap_or_default();
    let mut rows = vec![(
        "site".to_owned(),
        explanation.site.clone(),
        at(&explanation.site_position),
    )];
    if let Some(route) = &explanation.route {
        rows.push(("route".to_owned(), route.clone(), at(&explanation.route_position)));
    }
    for setting in &explanation.settings {
        let location = setting.position.as_ref().map_or("default".to_owned(), line);
        rows.push((setting.key.clone(), setting.value.clone(), location));
    }
    // Width in characters of the longest cell of a column.
    let longest = |cell: fn(&(String, String, String)) -> &String| {
        rows.iter()
            .map(|row| cell(row).chars().count())
            .max()
            .unwrap_or_default()
            .min(MAX_COLUMN)
    };
    let (keys, values) = (longest(|row| &row.0).max(LEADS_TO.len()), longest(|row| &row.1));
    let mut out = format!("{LEADS_TO:keys$}  {}\n", printable(&explanation.leads_to));
    for problem in &explanation.problems {
        let _ = writeln!(out, "{PROBLEM:keys$}  {}", printable(problem));
    }
    out.push('\n');
    for (key, value, location) in &rows {
        let _ = writeln!(
            out,
            "{:keys$}  {:values$}  {}",
            printable(key),
            printable(value),
            printable(location)
        );
    }
    out
}

// Keys of the lines before the table.
const LEADS_TO: &str = "leads to";
const PROBLEM: &str = "problem";

/// Maximum width to which the cells of a column are padded, so that one long value does not push the next column off
/// the screen.
const MAX_COLUMN: usize = 60;
