//! Parses the response heads of CGI, FastCGI, SCGI and uwsgi programs (RFC 3875 §6), and defines the error for a
//! variable that one of these protocols cannot encode.
//!
//! A head consists of field lines and an empty line. One of the fields may be `Status`. An HTTP status line may come
//! first where [`StatusLine`] allows it.

use std::fmt;

use memchr::memchr;

use crate::bytes::{VALUE, all, is_token, trim};
use crate::decimal;
use crate::status::Status;

/// Maximum size of a head in bytes: enough for applications that set dozens of cookies. The caller of [`find_head_end`]
/// enforces it.
pub const MAX_HEAD_SIZE: usize = 64 * 1024;
/// Maximum number of fields of a head, not counting `Status`. It bounds the list of fields, which a head of very short
/// lines could make many times larger than the head.
pub const MAX_FIELDS: usize = 256;

/// Returns the position after the head in the received bytes of a response; `None` if the head is incomplete. `from` is
/// the number of bytes that earlier calls have searched. The last three of them are searched again, because the end of
/// the head may begin there.
pub fn find_head_end(bytes: &[u8], from: usize) -> Option<usize> {
    // The last bytes before `from` may be CR LF CR.
    let mut at = from.saturating_sub(3);
    if at == 0 {
        // A head without fields consists of its empty line.
        match bytes {
            [b'\n', ..] => return Some(1),
            [b'\r', b'\n', ..] => return Some(2),
            _ => {}
        }
    }
    while let Some(position) = memchr(b'\n', bytes.get(at..)?) {
        at += position + 1;
        match &bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Error of a variable that the protocol cannot encode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VariableError {
    /// The variable exceeds the limit of the protocol, by itself or together with the variables before it.
    TooLong,
    /// The variable contains NUL, which separates variables in SCGI.
    Nul,
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VariableError::TooLong => "the variables of the request are longer than the application's protocol allows",
            VariableError::Nul => "a variable contains a NUL byte",
        })
    }
}

impl std::error::Error for VariableError {}

/// Policy for responses that begin with an HTTP status line. uWSGI and some SCGI applications send a status line. A CGI
/// program that does the same expects its output to reach the client unparsed (RFC 3875 §5), which is not supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusLine {
    /// A status line is parsed.
    Allowed,
    /// A status line is an error, like any other line that is not a field.
    Refused,
}

/// Head of the response of an application or CGI program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgiHead<'a> {
    /// Status from the status line, else from the `Status` field, else 302 if there is a `Location`, else 200.
    pub status: Status,
    /// Length of the body in bytes, if the head has exactly one Content-Length and its value is valid.
    pub length: Option<u64>,
    /// Names and values of all fields except `Status`, in their order.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
}

/// Error in the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgiHeadError {
    /// A line that is not a field, most often output that the program wrote before the head.
    Line,
    /// A control character other than HTAB in a value.
    Value,
    /// A status that is malformed or below 200, or more than one `Status` field.
    Status,
    /// More than [`MAX_FIELDS`] fields.
    TooManyFields,
}

impl fmt::Display for CgiHeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CgiHeadError::Line => "a line before the body is not a header field",
            CgiHeadError::Value => "the value of a header field contains a control character",
            CgiHeadError::Status => "the status is malformed or repeated, or is not a number from 200 to 999",
            CgiHeadError::TooManyFields => "there are too many header fields",
        })
    }
}

impl std::error::Error for CgiHeadError {}

impl<'a> CgiHead<'a> {
    /// Parses a head; `head` ends at the position that [`find_head_end`] returned. `policy` applies to a status line
    /// before the fields.
    ///
    /// # Errors
    ///
    /// Fails if the head is invalid.
    pub fn parse(head: &'a [u8], policy: StatusLine) -> Result<CgiHead<'a>, CgiHeadError> {
        let (mut status, mut length, mut length_count) = (None, None, 0);
        let mut has_location = false;
        let mut fields = Vec::new();
        let mut rest = head;
        let line_status = match (policy, memchr(b'\n', head)) {
            (StatusLine::Allowed, Some(end)) if head.starts_with(b"HTTP/") => {
                rest = &head[end + 1..];
                Some(parse_status_line(
                    head[..end].strip_suffix(b"\r").unwrap_or(&head[..end]),
                )?)
            }
            _ => None,
        };
        while let Some(end) = memchr(b'\n', rest) {
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            rest = &rest[end + 1..];
            if line.is_empty() {
                break;
            }
            let colon = memchr(b':', line).ok_or(CgiHeadError::Line)?;
            let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
            if !is_token(name) {
                return Err(CgiHeadError::Line);
            }
            if !all(value, VALUE) {
                return Err(CgiHeadError::Value);
            }
            if name.eq_ignore_ascii_case(b"Status") {
                if status.replace(parse_final_status(value)?).is_some() {
                    return Err(CgiHeadError::Status);
                }
                continue;
            }
            if fields.len() == MAX_FIELDS {
                return Err(CgiHeadError::TooManyFields);
            }
            has_location |= name.eq_ignore_ascii_case(b"Location");
            if name.eq_ignore_ascii_case(b"Content-Length") {
                length_count += 1;
                length = decimal::parse(value);
            }
            fields.push((name, value));
        }
        // A `Location` without a status is a redirect (RFC 3875 §6.2.3). A `Location` with a path of the site is also
        // sent to the client as a redirect, although §6.2.2 asks the server to serve that path itself. So the server
        // never executes another resource on behalf of the program.
        let default_status = if has_location { Status::FOUND } else { Status::OK };
        Ok(CgiHead {
            status: line_status.or(status).unwrap_or(default_status),
            length: length.filter(|_| length_count == 1),
            fields,
        })
    }
}

/// Parses a status line such as `HTTP/1.1 404 Not Found`.
fn parse_status_line(line: &[u8]) -> Result<Status, CgiHeadError> {
    if !all(line, VALUE) {
        return Err(CgiHeadError::Status);
    }
    let space = memchr(b' ', line).ok_or(CgiHeadError::Status)?;
    parse_final_status(trim(&line[space..]))
}

/// Parses a final status such as `404 Not Found`; the reason phrase is ignored.
fn parse_final_status(value: &[u8]) -> Result<Status, CgiHeadError> {
    let digits = value.split(|&byte| byte == b' ').next().unwrap_or_default();
    if digits.len() != 3 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(CgiHeadError::Status);
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    Status::new(code)
        .filter(|status| status.code() >= 200)
        .ok_or(CgiHeadError::Status)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status code, and names and values of fields.
    type Expected<'e> = (u16, &'e [(&'e str, &'e str)]);

    /// Parses `head`, treating a status line as an error, and compares the result with `expected`.
    fn check(head: &str, expected: Result<Expected<'_>, CgiHeadError>) {
        let parsed = CgiHead::parse(head.as_bytes(), StatusLine::Refused);
        let found = parsed.map(|head| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let fields: Vec<_> = head.fields.iter().map(|(n, v)| (text(n), text(v))).collect();
            (head.status.code(), fields)
        });
        let expected = expected.map(|(code, fields)| {
            let fields: Vec<_> = fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            (code, fields)
        });
        assert_eq!(found, expected, "{head:?}");
    }

    #[test]
    fn only_valid_heads_are_parsed() {
        use CgiHeadError::*;
        check("\n", Ok((200, &[])));
        check(
            "Content-type: text/html\r\n\r\n",
            Ok((200, &[("Content-type", "text/html")])),
        );
        check("A:1\nB: 2 \n\n", Ok((200, &[("A", "1"), ("B", "2")])));
        check("Status: 404 Not Found\r\nA: b\r\n\r\n", Ok((404, &[("A", "b")])));
        check("status:503\n\n", Ok((503, &[])));
        check("Location: /x\r\n\r\n", Ok((302, &[("Location", "/x")])));
        check(
            "Location: /x\r\nStatus: 201 Made\r\n\r\n",
            Ok((201, &[("Location", "/x")])),
        );
        check("A: \u{e9}\tb\r\n\r\n", Ok((200, &[("A", "\u{e9}\tb")])));
        check("<br>Warning\r\n\r\n", Err(Line));
        check("A: b\r\n c\r\n\r\n", Err(Line));
        check("A : b\r\n\r\n", Err(Line));
        check(": b\r\n\r\n", Err(Line));
        check("A: b\rX: c\r\n\r\n", Err(Value));
        check("A: b\0\r\n\r\n", Err(Value));
        check("Status: 100 Continue\r\n\r\n", Err(Status));
        check("Status: 20\r\n\r\n", Err(Status));
        check("Status: 2000\r\n\r\n", Err(Status));
        check("Status: fine\r\n\r\n", Err(Status));
        check("Status: 200\r\nStatus: 200\r\n\r\n", Err(Status));
        let most = "A: b\n".repeat(MAX_FIELDS);
        assert!(CgiHead::parse(format!("{most}\n").as_bytes(), StatusLine::Refused).is_ok());
        check(&format!("{most}A: b\n\n"), Err(TooManyFields));
    }

    #[test]
    fn a_status_line_sets_the_status_where_allowed() {
        // Head, policy, and the status code with the number of fields, or the error.
        for (head, policy, expected) in [
            (
                "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n",
                StatusLine::Allowed,
                Ok((404, 1)),
            ),
            ("HTTP/1.0 200\n\n", StatusLine::Allowed, Ok((200, 0))),
            // The status line comes first, so it takes precedence.
            (
                "HTTP/1.1 404 Not Found\r\nStatus: 200 OK\r\n\r\n",
                StatusLine::Allowed,
                Ok((404, 0)),
            ),
            (
                "HTTP/1.1 201 Made\r\nLocation: /x\r\n\r\n",
                StatusLine::Allowed,
                Ok((201, 1)),
            ),
            ("Status: 404\r\nA: b\r\n\r\n", StatusLine::Allowed, Ok((404, 1))),
            (
                "A: b\r\nHTTP/1.1 200 OK\r\n\r\n",
                StatusLine::Allowed,
                Err(CgiHeadError::Line),
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\n",
                StatusLine::Allowed,
                Err(CgiHeadError::Status),
            ),
            ("HTTP/1.1\r\n\r\n", StatusLine::Allowed, Err(CgiHeadError::Status)),
            (
                "HTTP/1.1 2000 OK\r\n\r\n",
                StatusLine::Allowed,
                Err(CgiHeadError::Status),
            ),
            (
                "HTTP/1.1 200 O\0K\r\n\r\n",
                StatusLine::Allowed,
                Err(CgiHeadError::Status),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", StatusLine::Refused, Err(CgiHeadError::Line)),
        ] {
            let found = CgiHead::parse(head.as_bytes(), policy).map(|head| (head.status.code(), head.fields.len()));
            assert_eq!(found, expected, "{head:?}");
        }
    }

    #[test]
    fn a_length_is_used_if_it_is_valid_and_declared_once() {
        for (fields, length) in [
            ("Content-Length: 12\n", Some(12)),
            ("content-length:0\n", Some(0)),
            ("", None),
            ("Content-Length: 12\nContent-Length: 12\n", None),
            ("Content-Length: 1 2\n", None),
            ("Content-Length: +12\n", None),
            ("Content-Length: 12, 12\n", None),
            ("Content-Length:\n", None),
            ("Content-Length: 99999999999999999999\n", None),
        ] {
            let head = format!("{fields}\n");
            let head = CgiHead::parse(head.as_bytes(), StatusLine::Refused).unwrap();
            assert_eq!(head.length, length, "{fields:?}");
        }
    }

    #[test]
    fn the_head_end_is_found_in_any_split() {
        for (response, end) in [
            ("\nx", Some(1)),
            ("\r\nx", Some(2)),
            ("A: b\n\nx", Some(6)),
            ("A: b\r\n\r\nx\n\n", Some(8)),
            ("A: b\n\r\nx", Some(7)),
            ("A: b\r\nB: c\r\n", None),
            ("A: b\r\n\rx\n", None),
            ("", None),
        ] {
            let bytes = response.as_bytes();
            assert_eq!(find_head_end(bytes, 0), end, "{response:?}");
            // One call per received byte finds the same end.
            let found = (0..bytes.len()).find_map(|from| find_head_end(&bytes[..from + 1], from));
            assert_eq!(found, end, "{response:?} byte by byte");
        }
    }
}
