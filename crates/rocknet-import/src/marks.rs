//! Marks of placeholders in the replacement of a rewrite.
//!
//! A replacement has variables, which become placeholders, and references such as `$1`. The variables are translated
//! first, and then `regex::rewrite` translates the references. It refuses braces, so marks stand in place of the braces
//! of placeholders until it has returned.

/// Beginning and end of a marked placeholder. A replacement that contains the beginning already is not translated.
pub(crate) const MARKS: (&str, &str) = ("\u{1}", "\u{2}");

/// Returns a placeholder with marks in place of its braces.
pub(crate) fn marked(name: &str) -> String {
    format!("{}{name}{}", MARKS.0, MARKS.1)
}

/// Returns a text with braces in place of the marks.
pub(crate) fn unmarked(text: &str) -> String {
    text.replace(MARKS.0, "{").replace(MARKS.1, "}")
}
