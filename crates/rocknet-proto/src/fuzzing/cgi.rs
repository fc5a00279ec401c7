//! Encodes requests for SCGI and uwsgi, decodes them with independent code, and parses heads of CGI responses.

use crate::cgi::{CgiHead, MAX_FIELDS, MAX_HEAD_SIZE, StatusLine, find_head_end};
use crate::{scgi, uwsgi};

/// Name and value of a variable.
type Variable<'a> = (&'a [u8], &'a [u8]);

/// Receives a CGI response in `pieces` and parses its head twice: with a status line allowed, and with it refused.
/// Returns one line of text with the position after the head and both results, or `too long`; no line if the head is
/// incomplete. The caller checks that the result does not depend on how the response is split.
pub(super) fn head(pieces: &[&[u8]]) -> Vec<String> {
    let mut response = Vec::new();
    for piece in pieces {
        let before = response.len();
        response.extend_from_slice(piece);
        let Some(end) = find_head_end(&response, before) else {
            continue;
        };
        assert!(end <= response.len());
        if end > MAX_HEAD_SIZE {
            return vec!["too long".to_owned()];
        }
        let heads = [StatusLine::Allowed, StatusLine::Refused].map(|policy| CgiHead::parse(&response[..end], policy));
        for head in heads.iter().flatten() {
            assert!(head.fields.len() <= MAX_FIELDS && head.status.code() >= 200);
            let clean = |value: &[u8]| !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
            assert!(head.fields.iter().all(|(name, value)| clean(name) && clean(value)));
        }
        return vec![format!("{end} {heads:?}")];
    }
    Vec::new()
}

/// Splits the bytes into names and values. The byte before each part holds its length in the upper seven bits. The
/// length is multiplied by eight if the lowest bit is set.
fn pairs(mut data: &[u8]) -> Vec<Variable<'_>> {
    // Removes the next part; `None` at the end.
    let mut take = || {
        let (&first, rest) = data.split_first()?;
        let length = usize::from(first >> 1) << (3 * (first & 1));
        let (part, rest) = rest.split_at(rest.len().min(length));
        data = rest;
        Some(part)
    };
    let mut all = Vec::new();
    while let (Some(name), Some(value)) = (take(), take()) {
        all.push((name, value));
    }
    all
}

/// Encodes variables for SCGI and decodes them.
pub(super) fn scgi(data: &[u8]) {
    // The argument is the length of the body. Any number will do.
    let mut request = scgi::ScgiRequest::new(data.len() as u64);
    let pushed: Vec<Variable<'_>> = pairs(data)
        .into_iter()
        .filter(|(name, value)| request.push(name, value).is_ok())
        .collect();
    let bytes = request.finish();
    let colon = bytes
        .iter()
        .position(|byte| *byte == b':')
        .expect("the length ends with a colon");
    let length: usize = std::str::from_utf8(&bytes[..colon])
        .ok()
        .and_then(|digits| digits.parse().ok())
        .expect("the length is a decimal number");
    // The request is a netstring: the length without leading zeros, a colon, the variables and a comma.
    let variables = &bytes[colon + 1..bytes.len() - 1];
    assert!(bytes[0] != b'0' && length == variables.len() && bytes.ends_with(b","));
    // Each name and each value ends with NUL, so the last part is empty and belongs to no pair.
    let parts: Vec<&[u8]> = variables.split(|byte| *byte == 0).collect();
    let read: Vec<Variable<'_>> = parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let content_length = data.len().to_string();
    let first: [Variable<'_>; 2] = [(b"CONTENT_LENGTH", content_length.as_bytes()), (b"SCGI", b"1")];
    assert_eq!(read[..2], first);
    assert_eq!(read[2..], pushed[..]);
}

/// Encodes variables for uwsgi and decodes them.
pub(super) fn uwsgi(data: &[u8]) {
    let mut request = uwsgi::UwsgiRequest::default();
    let pushed: Vec<Variable<'_>> = pairs(data)
        .into_iter()
        .filter(|(name, value)| request.push(name, value).is_ok())
        .collect();
    let bytes = request.finish();
    // The header is a modifier, the length of the variables in two bytes, and another modifier.
    let (header, mut rest) = bytes.split_at(4);
    assert_eq!(usize::from(u16::from_le_bytes([header[1], header[2]])), rest.len());
    let mut read = Vec::new();
    // Removes a name or value with its two-byte length from `rest`, and returns its position in `bytes`.
    let take = |rest: &mut &'_ [u8]| -> std::ops::Range<usize> {
        let start = bytes.len() - rest.len() + 2;
        let length = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
        *rest = &rest[2 + length..];
        start..start + length
    };
    while !rest.is_empty() {
        let (name, value) = (take(&mut rest), take(&mut rest));
        read.push((&bytes[name], &bytes[value]));
    }
    assert_eq!(read, pushed);
}
