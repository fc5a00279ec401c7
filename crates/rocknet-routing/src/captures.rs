//! Texts of a request that the conditions of a redirect or rule matched, for the captures of its target. With the path
//! `/old/*` and the target `/new/{*}`, the text for `{*}` is `a/b` if `/old/a/b` is requested.

use std::borrow::Cow;
use std::ops::Range;

use rocknet_config::captures::Capture;
use rocknet_config::model::RegexPattern;

/// Matched texts of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Captures<'r> {
    /// Range of the decoded path that the star matched. Empty for a regular expression, whose target cannot contain
    /// `{*}`.
    star: Range<usize>,
    /// Ranges of the decoded path: the whole match of the path's regular expression, and its groups.
    groups: Vec<Option<Range<usize>>>,
    /// Texts of the named groups, in the order of the `names` that the functions take; empty if none was set.
    names: Vec<CapturedText<'r>>,
}

/// A text that a group matched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CapturedText<'r> {
    /// The group took no part in the match.
    #[default]
    Missing,
    /// Range of the decoded path.
    Path(Range<usize>),
    /// Percent-encoded text, such as the value of a query parameter.
    Encoded(Cow<'r, [u8]>),
    /// Text that is not encoded, such as the value of a header field.
    Plain(Cow<'r, [u8]>),
}

impl<'r> Captures<'r> {
    /// Returns the captures of a pattern without groups.
    pub(crate) fn of_star(star: Range<usize>) -> Captures<'r> {
        Captures {
            star,
            ..Captures::default()
        }
    }

    /// Returns the captures of a path that a regular expression matches; `None` if it does not match. `names`: names of
    /// groups in the target.
    pub(crate) fn of_path(regex: &RegexPattern, path: &str, names: &[String]) -> Option<Captures<'r>> {
        let groups = regex.captures(path.as_bytes())?;
        let mut captures = Captures::default();
        for (number, name) in regex.names() {
            if let Some(Some(range)) = groups.get(number) {
                captures.set(names, name, CapturedText::Path(range.clone()));
            }
        }
        captures.groups = groups;
        Some(captures)
    }

    /// Adds the named groups of a regular expression that matched a value. `text` converts a part of the value.
    #[allow(clippy::ptr_arg, reason = "the lifetime of a borrowed value is kept")]
    pub(crate) fn add(
        &mut self,
        regex: &RegexPattern,
        value: &Cow<'r, [u8]>,
        names: &[String],
        text: fn(Cow<'r, [u8]>) -> CapturedText<'r>,
    ) {
        if names.is_empty() || regex.names().next().is_none() {
            return;
        }
        let groups = regex.captures(value).unwrap_or_default();
        for (number, name) in regex.names() {
            if let Some(Some(range)) = groups.get(number) {
                self.set(names, name, text(part(value, range.clone())));
            }
        }
    }

    fn set(&mut self, names: &[String], name: &str, text: CapturedText<'r>) {
        let Some(at) = names.iter().position(|known| known == name) else {
            return;
        };
        self.names.resize(names.len(), CapturedText::Missing);
        // The first condition that has the name takes precedence.
        if self.names[at] == CapturedText::Missing {
            self.names[at] = text;
        }
    }

    /// Returns the text of a capture.
    pub(crate) fn text(&self, capture: Capture) -> CapturedText<'_> {
        match capture {
            Capture::Star => CapturedText::Path(self.star.clone()),
            Capture::Group(number) => match self.groups.get(number) {
                Some(Some(range)) => CapturedText::Path(range.clone()),
                _ => CapturedText::Missing,
            },
            Capture::Name(at) => self.names.get(at).cloned().unwrap_or_default(),
        }
    }
}

/// Returns a range of a value, without a copy if the value is borrowed.
#[allow(clippy::ptr_arg, reason = "the lifetime of a borrowed value is kept")]
fn part<'r>(value: &Cow<'r, [u8]>, range: Range<usize>) -> Cow<'r, [u8]> {
    match value {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
        Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
    }
}
