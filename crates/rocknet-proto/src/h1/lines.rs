//! Parses the field lines of a head or a trailer section. Valid lines take one pass. Only an invalid or incomplete line
//! is read again, to find its error or to detect that its LF is missing.
//!
//! A line is accepted or refused only after its LF has been received. Only its own bytes and the number of lines before
//! it matter, so the result does not depend on how the bytes were split.

use memchr::memchr;

use crate::bytes::{TOKEN, all, find_colon, find_control};
use crate::fields::{ByteSpan, FieldIndex, KnownField};
use crate::limits::FIELDS_CEILING;
use crate::refusal::FieldError;

/// Reason why parsing stopped before the end of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParseError<E> {
    /// The current line has no LF yet.
    Incomplete,
    /// The current line is complete and has this error.
    Invalid(E),
}

impl<E> ParseError<E> {
    /// Converts the error of `Invalid`.
    pub(crate) fn map<G>(self, into: impl FnOnce(E) -> G) -> ParseError<G> {
        match self {
            Self::Incomplete => ParseError::Incomplete,
            Self::Invalid(error) => ParseError::Invalid(into(error)),
        }
    }
}

/// Parses field lines from `at` up to and including the empty line, and returns the position after it. `window` holds
/// the unread bytes up to the size limit of the section, and `limit` is the maximum number of lines.
///
/// ```text
/// field-line = field-name ":" OWS field-value OWS          RFC 9112 §5, without obs-fold
/// ```
#[inline]
pub(crate) fn read_fields(
    window: &[u8],
    mut at: usize,
    index: &mut FieldIndex,
    limit: usize,
) -> Result<usize, ParseError<FieldError>> {
    loop {
        let line = at;
        if let Some(b"\r\n") = window.get(line..line + 2) {
            return Ok(line + 2);
        }
        // If this line has no colon, the search may find that of a later line. The name then contains a line end, so it
        // is not a token.
        let Some(colon) = find_colon(window, line) else {
            return Err(diagnose(window, line));
        };
        let length = colon - line;
        let known = KnownField::from_prefix(&window[line..], length);
        if known.is_none() && (length == 0 || !all(&window[line..colon], TOKEN)) {
            return Err(diagnose(window, line));
        }
        let mut start = colon + 1;
        while let Some(b' ' | b'\t') = window.get(start) {
            start += 1;
        }
        let mut end = find_control(window, start);
        while let Some(b'\t') = window.get(end) {
            end = find_control(window, end + 1);
        }
        let Some(b"\r\n") = window.get(end..end + 2) else {
            return Err(diagnose(window, line));
        };
        at = end + 2;
        while end > start && matches!(window[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        // The index cannot hold more than `FIELDS_CEILING` lines.
        if index.len() >= limit.min(FIELDS_CEILING) {
            return Err(ParseError::Invalid(FieldError::TooMany));
        }
        index.push(ByteSpan::new(line, colon), known, ByteSpan::new(start, end));
    }
}

/// Returns the error in the line that begins at `line`, or `Incomplete` if the line has no LF yet.
#[cold]
fn diagnose(window: &[u8], line: usize) -> ParseError<FieldError> {
    let rest = window.get(line..).unwrap_or_default();
    let Some(end) = memchr(b'\n', rest) else {
        return ParseError::Incomplete;
    };
    ParseError::Invalid(classify(&rest[..end]))
}

/// Returns the error of an invalid line, which is passed without its LF.
fn classify(line: &[u8]) -> FieldError {
    let Some((b'\r', line)) = line.split_last() else {
        return FieldError::BareLf;
    };
    if let [b' ' | b'\t', ..] = line {
        return FieldError::Folded;
    }
    if memchr(b'\r', line).is_some() {
        return FieldError::BareCr;
    }
    let Some(colon) = memchr(b':', line) else {
        return FieldError::MissingColon;
    };
    match &line[..colon] {
        [] => FieldError::EmptyName,
        [.., b' ' | b'\t'] => FieldError::SpaceBeforeColon,
        name if !all(name, TOKEN) => FieldError::NameNotToken,
        _ => FieldError::ControlInValue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldError::*;

    /// Parses `bytes` with a limit of three lines, and compares the names and values of the fields, or the error.
    fn check(bytes: &[u8], expected: Result<&[(&str, &str)], FieldError>) {
        let mut index = FieldIndex::default();
        let shown = String::from_utf8_lossy(bytes);
        match (read_fields(bytes, 0, &mut index, 3), expected) {
            (Ok(end), Ok(fields)) => {
                assert_eq!(end, bytes.len(), "{shown:?}");
                let found: Vec<_> = index.view(bytes).iter().collect();
                let fields: Vec<_> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
                assert_eq!(found, fields, "{shown:?}");
            }
            (Err(ParseError::Invalid(error)), Err(expected)) => assert_eq!(error, expected, "{shown:?}"),
            (found, expected) => panic!("{shown:?}: {found:?}, not {expected:?}"),
        }
        // Every proper prefix of a line is incomplete, even if the line is invalid.
        let first_line = memchr(b'\n', bytes).unwrap_or(0);
        for cut in 0..first_line {
            index.clear();
            assert_eq!(
                read_fields(&bytes[..cut], 0, &mut index, 3),
                Err(ParseError::Incomplete),
                "{shown:?} cut at {cut}"
            );
        }
    }

    #[test]
    fn values_may_contain_obs_text() {
        let bytes = b"a: \xff\x80\r\n\r\n";
        let mut index = FieldIndex::default();
        assert_eq!(read_fields(bytes, 0, &mut index, 1), Ok(bytes.len()));
        assert_eq!(index.view(bytes).by_name(b"A").next(), Some(b"\xff\x80".as_slice()));
    }

    #[test]
    fn validates_lines() {
        check(b"\r\n", Ok(&[]));
        check(b"a:\r\n\r\n", Ok(&[("a", "")]));
        check(b"te: \t x\t\r\n\r\n", Ok(&[("te", "x")]));
        check(
            b"Host:h\r\nx-longer-name-than-8:  a b\tc  \r\n\r\n",
            Ok(&[("Host", "h"), ("x-longer-name-than-8", "a b\tc")]),
        );
        check(b"a: :b:\r\n\r\n", Ok(&[("a", ":b:")]));
        check(b"a:1\r\nb:2\r\nc:3\r\n\r\n", Ok(&[("a", "1"), ("b", "2"), ("c", "3")]));
        check(b"a:1\r\nb:2\r\nc:3\r\nd:4\r\n\r\n", Err(TooMany));
        check(b"\n", Err(BareLf));
        check(b"a: b\n\r\n", Err(BareLf));
        check(b"a: b\rc\r\n\r\n", Err(BareCr));
        check(b"a: b\r\r\n\r\n", Err(BareCr));
        check(b"\rx\r\n\r\n", Err(BareCr));
        check(b"a: b\0c\r\n\r\n", Err(ControlInValue));
        check(b"a: b\x0b\r\n\r\n", Err(ControlInValue));
        check(b"a: b\x7f\r\n\r\n", Err(ControlInValue));
        check(b" a: b\r\n\r\n", Err(Folded));
        check(b"\ta: b\r\n\r\n", Err(Folded));
        check(b"a: b\r\n c\r\n\r\n", Err(Folded));
        check(b"abc\r\n\r\n", Err(MissingColon));
        check(b"abc\r\na: b\r\n\r\n", Err(MissingColon));
        check(b": b\r\n\r\n", Err(EmptyName));
        check(b"a : b\r\n\r\n", Err(SpaceBeforeColon));
        check(b"Content-Length\t: 1\r\n\r\n", Err(SpaceBeforeColon));
        check(b"a b: c\r\n\r\n", Err(NameNotToken));
        check(b"a\0b: c\r\n\r\n", Err(NameNotToken));
        check(b"Content\rLength: 1\r\n\r\n", Err(BareCr));
        check("n\u{e4}me: c\r\n\r\n".as_bytes(), Err(NameNotToken));
        check(b"a(b): c\r\n\r\n", Err(NameNotToken));
    }
}
