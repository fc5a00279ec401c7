//! Writes heads and chunks. A field that could break out of its line is an error and is never written.

use std::fmt;

use crate::bytes::{TARGET, all, is_token, is_value};
use crate::decimal::{MAX_DIGITS, digits};
use crate::fields::{Field, FieldList, KnownField, KnownFieldSet};
use crate::status::Status;

/// Interim response to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bytes after the data of a chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// End of a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Length of the body of a message to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// No body.
    None,
    /// A body of this many bytes.
    Exact(u64),
    /// Length that is known only at the end of the body. The body is chunked, or ends with the connection in HTTP/1.0.
    Unknown,
}

/// Value of the Connection field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionField {
    /// No field: the default of the version applies.
    None,
    /// `close`
    Close,
    /// `keep-alive`
    KeepAlive,
    /// `upgrade`
    Upgrade,
}

/// Framing of a message, decided by the connection, for `encode_head` or for a prepared head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Value of Connection.
    pub connection: ConnectionField,
    /// True to add `Transfer-Encoding: chunked`.
    pub chunked: bool,
    /// Value of Content-Length; `None` omits the field. Has no effect if `chunked` is true.
    pub content_length: Option<u64>,
    /// False if the message cannot have body bytes: a request without a body, a response to HEAD, 2xx to CONNECT, 1xx,
    /// 204, 205 or 304. True for other messages, even if their length is 0.
    pub has_body: bool,
}

/// Error in a head or in data to be sent, caused by the code that created the message. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum EncodeError {
    /// A field name that is not a token.
    FieldName,
    /// A field value with a control character other than HTAB: a CRLF in it would begin another field or response.
    FieldValue,
    /// A field that frames the message or controls the connection; only [`Framing`] sets such fields. In requests, this
    /// is also the error for Host and Upgrade, which [`RequestLine`](super::RequestLine) sets.
    FramingField,
    /// A method that is not a token, a target that is empty or has forbidden bytes, or an invalid host.
    RequestLine,
    /// A field that is not allowed in trailers.
    ForbiddenTrailer,
    /// More data than announced.
    BodyTooLong,
    /// Data of a message without a body.
    BodyForbidden,
    /// A request on a connection that closes, or whose last exchange is incomplete.
    Busy,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FieldName => "a field name is not a token",
            Self::FieldValue => "a field value contains a control character",
            Self::FramingField => "a field that only the encoder may set",
            Self::RequestLine => "a method, target or host that is not allowed in a request",
            Self::ForbiddenTrailer => "a field that is forbidden in trailers",
            Self::BodyTooLong => "more body bytes than announced",
            Self::BodyForbidden => "body bytes of a message without a body",
            Self::Busy => "the connection cannot carry another request now",
        })
    }
}

impl std::error::Error for EncodeError {}

/// Fields that callers must not pass. [`Framing`] decides the first three. The obsolete `Keep-Alive` and
/// `Proxy-Connection` are never sent, because proxies must not forward them (RFC 9110 §7.6.1). TE, Trailer and Upgrade,
/// which [`KnownField::is_framing`] includes, are absent, because callers decide them.
const FRAMING_FIELDS: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::TransferEncoding,
    KnownField::KeepAlive,
    KnownField::ProxyConnection,
]);

/// Writes the head of a response with its framing fields.
///
/// # Errors
///
/// Fails if a field is invalid or is a framing field. `out` is then unchanged.
pub fn encode_head<'a>(
    out: &mut Vec<u8>,
    framing: Framing,
    status: Status,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), EncodeError> {
    let start = out.len();
    status_line(out, status);
    let fields = fields.into_iter().map(|(name, value)| Field::new(name, value));
    let written = encode_fields(out, fields).map(|has_upgrade| encode_framing(out, framing, has_upgrade));
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Writes the head of a response with `Date` before the fields. Lines that the list has validated are copied without
/// another check.
///
/// # Errors
///
/// Fails if a field is invalid or is a framing field. `out` is then unchanged.
#[inline]
pub fn encode_dated_head(
    out: &mut Vec<u8>,
    framing: Framing,
    status: Status,
    date: &[u8; DATE_SIZE],
    fields: &FieldList,
) -> Result<(), EncodeError> {
    match fields.lines() {
        Some((lines, present)) if !present.overlaps(FRAMING_FIELDS) => {
            out.reserve(STATUS_LINE + DATE_LINE.len() + lines.len() + FRAMING_LINES);
            status_line(out, status);
            let mut line = *DATE_LINE;
            line[DATE_OFFSET..][..DATE_SIZE].copy_from_slice(date);
            out.extend_from_slice(&line);
            out.extend_from_slice(lines);
            encode_framing(out, framing, present.contains(KnownField::Upgrade));
            Ok(())
        }
        // A field is invalid or is a framing field; `encode_head` checks each field and finds the error.
        _ => {
            let date = std::iter::once((&b"Date"[..], &date[..]));
            encode_head(out, framing, status, date.chain(fields.bytes()))
        }
    }
}

/// Length of a date in bytes (IMF-fixdate, RFC 9110 §5.6.7).
const DATE_SIZE: usize = 29;
/// Date field with a placeholder for the date.
const DATE_LINE: &[u8; 37] = b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
/// Position of the date in `DATE_LINE`.
const DATE_OFFSET: usize = "Date: ".len();

/// Capacity in bytes reserved for the status line: enough for the reason phrase of every registered status.
const STATUS_LINE: usize = 48;
/// Capacity in bytes reserved for the framing fields and the empty line: enough for a Content-Length of 20 digits and
/// `Connection: keep-alive`. Longer lines reallocate.
const FRAMING_LINES: usize = 64;

/// Writes the status line. The reason phrase of an unregistered status is empty.
#[inline]
fn status_line(out: &mut Vec<u8>, status: Status) {
    match status.line() {
        Some(line) => out.extend_from_slice(line.as_bytes()),
        None => {
            out.extend_from_slice(b"HTTP/1.1 ");
            out.extend_from_slice(&status.digits());
            out.extend_from_slice(b" \r\n");
        }
    }
}

/// Writes field lines of a head; returns true if Upgrade is one of them. After an error, `out` may end with a part of
/// the lines, which the caller removes.
pub(crate) fn encode_fields<'a>(
    out: &mut Vec<u8>,
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<bool, EncodeError> {
    let mut has_upgrade = false;
    for Field { known, name, value } in fields {
        debug_assert_eq!(known, KnownField::from_name(name));
        match known {
            Some(known) if FRAMING_FIELDS.contains(known) => return Err(EncodeError::FramingField),
            Some(known) => has_upgrade |= known == KnownField::Upgrade,
            None if !is_token(name) => return Err(EncodeError::FieldName),
            None => {}
        }
        encode_line(out, name, value)?;
    }
    Ok(has_upgrade)
}

/// Writes one field line; `name` must be a token.
fn encode_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), EncodeError> {
    if !is_value(value) {
        return Err(EncodeError::FieldValue);
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes the framing fields and the empty line. `has_upgrade` is true if Upgrade is one of the fields before them: its
/// sender must list it in Connection, too (RFC 9110 §7.8).
pub(crate) fn encode_framing(out: &mut Vec<u8>, framing: Framing, has_upgrade: bool) {
    if framing.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    } else if let Some(length) = framing.content_length {
        out.extend_from_slice(b"Content-Length: ");
        decimal(length, out);
        out.extend_from_slice(b"\r\n");
    }
    let line: &[u8] = match (framing.connection, has_upgrade) {
        (ConnectionField::None, false) => b"\r\n",
        (ConnectionField::Close, false) => b"Connection: close\r\n\r\n",
        (ConnectionField::KeepAlive, false) => b"Connection: keep-alive\r\n\r\n",
        (ConnectionField::Close, true) => b"Connection: upgrade, close\r\n\r\n",
        (ConnectionField::KeepAlive, true) => b"Connection: upgrade, keep-alive\r\n\r\n",
        (ConnectionField::Upgrade, _) | (ConnectionField::None, true) => b"Connection: upgrade\r\n\r\n",
    };
    out.extend_from_slice(line);
}

/// Writes `method SP target SP HTTP/1.1 CRLF`.
pub(crate) fn encode_request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8]) -> Result<(), EncodeError> {
    if !is_token(method) || target.is_empty() || !all(target, TARGET) || target.contains(&b'#') {
        return Err(EncodeError::RequestLine);
    }
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    Ok(())
}

/// Writes the header of a chunk; [`CHUNK_END`] must follow its data. Nothing is written for a size of 0, because that
/// would end the body.
pub fn chunk_head(size: u64, out: &mut Vec<u8>) {
    if size == 0 {
        return;
    }
    // Position in bits of the first hexadecimal digit that is not 0.
    let mut shift = (63 - size.leading_zeros()) / 4 * 4;
    loop {
        out.push(b"0123456789abcdef"[(size >> shift) as usize & 15]);
        if shift == 0 {
            break;
        }
        shift -= 4;
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the end of a chunked body with its trailers.
///
/// # Errors
///
/// Fails if a field is invalid or not allowed in trailers. `out` is then unchanged.
pub fn encode_trailers<'a>(
    out: &mut Vec<u8>,
    trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        let written = match KnownField::from_name(name) {
            Some(known) if super::body_reader::FORBIDDEN_TRAILERS.contains(known) => Err(EncodeError::ForbiddenTrailer),
            None if !is_token(name) => Err(EncodeError::FieldName),
            _ => encode_line(out, name, value),
        };
        if written.is_err() {
            out.truncate(start);
            return written;
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes a number in decimal digits.
pub fn decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(digits(number, &mut [0; MAX_DIGITS]));
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Framing = Framing {
        connection: ConnectionField::None,
        chunked: false,
        content_length: None,
        has_body: true,
    };

    /// Appends a head to the text `before`, and compares its lines after the status line with `expected`. An error must
    /// leave `before` unchanged.
    fn check(framing: Framing, fields: &[(&str, &str)], expected: Result<&str, EncodeError>) {
        let mut out = b"before".to_vec();
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let result = encode_head(&mut out, framing, Status::OK, fields);
        let written = String::from_utf8(out).expect("the valid heads of the test are ASCII");
        match expected {
            Ok(lines) => assert_eq!(
                (result, written),
                (Ok(()), format!("beforeHTTP/1.1 200 OK\r\n{lines}\r\n"))
            ),
            Err(error) => assert_eq!((result, written.as_str()), (Err(error), "before")),
        }
    }

    #[test]
    fn heads_are_framed_and_reject_injection() {
        use ConnectionField::*;
        check(PLAIN, &[], Ok(""));
        check(PLAIN, &[("A", "1"), ("b", "x\ty")], Ok("A: 1\r\nb: x\ty\r\n"));
        check(
            Framing {
                content_length: Some(0),
                ..PLAIN
            },
            &[],
            Ok("Content-Length: 0\r\n"),
        );
        let longest = Framing {
            content_length: Some(u64::MAX),
            connection: Close,
            ..PLAIN
        };
        check(
            longest,
            &[],
            Ok("Content-Length: 18446744073709551615\r\nConnection: close\r\n"),
        );
        let chunked = Framing {
            chunked: true,
            connection: KeepAlive,
            ..PLAIN
        };
        check(
            chunked,
            &[],
            Ok("Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n"),
        );
        let upgrade = Framing {
            connection: Upgrade,
            has_body: false,
            ..PLAIN
        };
        check(
            upgrade,
            &[("Upgrade", "websocket")],
            Ok("Upgrade: websocket\r\nConnection: upgrade\r\n"),
        );
        let close = Framing {
            connection: Close,
            ..PLAIN
        };
        check(
            close,
            &[("Upgrade", "h2")],
            Ok("Upgrade: h2\r\nConnection: upgrade, close\r\n"),
        );
        for name in ["", "a b", "a:", "a\r\nb", "\u{e4}"] {
            check(PLAIN, &[(name, "x")], Err(EncodeError::FieldName));
        }
        for value in [
            "a\r\nSet-Cookie: b",
            "a\n",
            "\r",
            "\0",
            "\x7f",
            // Longer than the eight bytes that the check reads at once.
            "long enough for words \x01",
        ] {
            check(PLAIN, &[("A", "x"), ("B", value)], Err(EncodeError::FieldValue));
        }
        for name in [
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "keep-alive",
            "Proxy-Connection",
        ] {
            check(PLAIN, &[("A", "x"), (name, "1")], Err(EncodeError::FramingField));
        }
    }

    /// A head whose lines are copied equals a head whose fields are checked one by one, and fails in the same cases.
    #[test]
    fn dated_heads_equal_encoded_heads() {
        let date = b"Sat, 21 Nov 2026 09:42:00 GMT";
        let exact = Framing {
            content_length: Some(13),
            connection: ConnectionField::Close,
            ..PLAIN
        };
        let unregistered = Status::new(299).expect("a status");
        let long = "x".repeat(1000);
        // Fields of each head; the last four heads are invalid.
        let rows: [&[(&str, &str)]; 7] = [
            &[],
            &[("Content-Type", "text/html"), ("x-a", ""), ("Server", &long)],
            &[("Upgrade", "h2")],
            &[("A", "1"), ("connection", "close")],
            &[("A", "1"), ("Keep-Alive", "1"), ("B", "2")],
            &[("A", "1"), ("B", "\r\nC: 3")],
            &[("A b", "1")],
        ];
        for fields in rows {
            let mut list = FieldList::default();
            fields.iter().for_each(|(name, value)| list.add(name, value));
            for (framing, status) in [(PLAIN, Status::OK), (exact, Status::NOT_FOUND), (exact, unregistered)] {
                let (mut copied, mut checked) = (b"before".to_vec(), b"before".to_vec());
                let all = [("Date", std::str::from_utf8(date).expect("ASCII"))];
                let all = all
                    .iter()
                    .chain(fields)
                    .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                let expected = encode_head(&mut checked, framing, status, all);
                assert_eq!(
                    encode_dated_head(&mut copied, framing, status, date, &list),
                    expected,
                    "{fields:?}"
                );
                assert_eq!(String::from_utf8(copied), String::from_utf8(checked));
            }
        }
    }

    #[test]
    fn encodes_chunks_and_trailers() {
        for (size, expected) in [(0, ""), (1, "1\r\n"), (15, "f\r\n"), (16, "10\r\n"), (0xabc, "abc\r\n")] {
            let mut out = Vec::new();
            chunk_head(size, &mut out);
            assert_eq!(out, expected.as_bytes());
        }
        let mut out = Vec::new();
        chunk_head(u64::MAX, &mut out);
        assert_eq!(out, b"ffffffffffffffff\r\n");
        out.clear();
        assert_eq!(encode_trailers(&mut out, []), Ok(()));
        assert_eq!(out, LAST_CHUNK);
        assert_eq!(
            encode_trailers(&mut out, [(b"Digest".as_slice(), b"x".as_slice())]),
            Ok(())
        );
        assert_eq!(out, b"0\r\n\r\n0\r\nDigest: x\r\n\r\n");
        let forbidden = [
            (b"X-A".as_slice(), b"x".as_slice()),
            (b"Content-Length".as_slice(), b"1".as_slice()),
        ];
        assert_eq!(encode_trailers(&mut out, forbidden), Err(EncodeError::ForbiddenTrailer));
        assert_eq!(
            encode_trailers(&mut out, [(b"X".as_slice(), b"\n".as_slice())]),
            Err(EncodeError::FieldValue)
        );
        assert_eq!(out, b"0\r\n\r\n0\r\nDigest: x\r\n\r\n");
    }
}
