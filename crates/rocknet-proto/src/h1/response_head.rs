//! Parses the head of a response: status line and fields (RFC 9112 §4).

use memchr::memchr;

use super::lines::{ParseError, read_fields};
use super::response_error::ResponseError;
use crate::bytes::{VALUE, all, find_control};
use crate::fields::ByteSpan;
use crate::limits::Limits;
use crate::request::Version;
use crate::response::ResponseIndex;
use crate::status::Status;

/// Parses one head from the front of the window and returns the position after it. The window holds the unread bytes up
/// to the size limit of heads.
pub(crate) fn read_head(
    window: &[u8],
    limits: &Limits,
    index: &mut ResponseIndex,
) -> Result<usize, ParseError<ResponseError>> {
    index.clear();
    let at = read_status_line(window, index)?;
    let end =
        read_fields(window, at, &mut index.fields, limits.fields).map_err(|error| error.map(ResponseError::Field))?;
    index.head_size = end as u32;
    Ok(end)
}

/// Parses the status line and returns the position after it.
///
/// ```text
/// status-line = HTTP-version SP status-code SP [ reason-phrase ] CRLF
/// ```
///
/// The second SP may be missing together with the phrase: some servers omit it, and the line is not ambiguous.
fn read_status_line(window: &[u8], index: &mut ResponseIndex) -> Result<usize, ParseError<ResponseError>> {
    // `HTTP/1.1 200` has twelve bytes.
    let Some(line) = window.first_chunk::<12>() else {
        return Err(diagnose(window));
    };
    let version = match &line[..9] {
        b"HTTP/1.1 " => Version::Http11,
        b"HTTP/1.0 " => Version::Http10,
        _ => return Err(diagnose(window)),
    };
    let digits = [line[9], line[10], line[11]];
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(diagnose(window));
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    let Some(status) = Status::new(code) else {
        return Err(diagnose(window));
    };
    let start = match window.get(12) {
        Some(b' ') => 13,
        Some(b'\r') => 12,
        _ => return Err(diagnose(window)),
    };
    let mut end = find_control(window, start);
    while let Some(b'\t') = window.get(end) {
        end = find_control(window, end + 1);
    }
    let Some(b"\r\n") = window.get(end..end + 2) else {
        return Err(diagnose(window));
    };
    (index.version, index.status, index.reason) = (version, status, ByteSpan::new(start, end));
    Ok(end + 2)
}

/// Returns the error in the status line, or `Incomplete` if the line has no LF yet.
#[cold]
fn diagnose(window: &[u8]) -> ParseError<ResponseError> {
    let Some(end) = memchr(b'\n', window) else {
        return ParseError::Incomplete;
    };
    let Some((b'\r', line)) = window[..end].split_last() else {
        return ParseError::Invalid(ResponseError::StatusLineEnd);
    };
    let error = match line {
        _ if line.contains(&b'\r') => ResponseError::StatusLineEnd,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b' ', ..]
            if major.is_ascii_digit() && minor.is_ascii_digit() && all(line, VALUE) =>
        {
            if line.starts_with(b"HTTP/1.1 ") || line.starts_with(b"HTTP/1.0 ") {
                ResponseError::StatusLine
            } else {
                ResponseError::Version
            }
        }
        _ => ResponseError::StatusLine,
    };
    ParseError::Invalid(error)
}
