//! Marks of placeholders in a replacement whose captures are translated later.

/// Beginning and end of a marked placeholder. A configuration that contains them is not translated.
pub(crate) const MARKS: (&str, &str) = ("\u{1}", "\u{2}");

/// Returns a placeholder with marks in place of its braces.
pub(crate) fn marked(name: &str) -> String {
    format!("{}{name}{}", MARKS.0, MARKS.1)
}

/// Returns a text with braces in place of the marks.
pub(crate) fn unmarked(text: &str) -> String {
    text.replace(MARKS.0, "{").replace(MARKS.1, "}")
}
