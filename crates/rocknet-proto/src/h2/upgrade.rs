//! `Upgrade: h2c`: a request of HTTP/1.1 that becomes the first stream of HTTP/2 in the clear (RFC 7540 §3.2, which RFC 9113
//! has given up: only for clients that know no better).

use crate::request::{OwnedRequest, Request, TargetForm};

/// What agrees to it; SETTINGS follow.
pub const SWITCHING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

/// Settings told in the field; HTTP/2 knows nine, and each takes eight letters.
const SETTINGS_MAX: usize = 32;

/// The names of fields that meant the connection before, and mean nothing now.
const OF_HTTP_1: [&str; 4] = ["connection", "upgrade", "http2-settings", "keep-alive"];

/// The payload of SETTINGS that a request brings which asks for HTTP/2 in all that is due: `h2c` in Upgrade, one
/// HTTP2-Settings that decodes to whole settings, and both named by Connection. Any other is to be answered as it is.
pub fn settings_of(request: &Request<'_>) -> Option<Vec<u8>> {
    let wishes = request.upgrade?;
    if !list_has(wishes, b"h2c") || request.form == TargetForm::Authority {
        return None;
    }
    let mut told = request.fields.by_name(b"http2-settings");
    let (Some(settings), None) = (told.next(), told.next()) else {
        return None;
    };
    let mut options = request.fields.by_name(b"connection");
    if !options.any(|line| list_has(line, b"http2-settings")) {
        return None;
    }
    decode(settings)
}

/// The request as stream 1 has it: in HTTP/2, without what was of the connection.
pub fn as_stream(request: &OwnedRequest) -> OwnedRequest {
    request.over_http2(|name| {
        OF_HTTP_1
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    })
}

fn list_has(line: &[u8], wanted: &[u8]) -> bool {
    line.split(|&byte| byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(wanted))
}

/// base64url without padding (RFC 4648 §5), of whole settings of six bytes: whatever else could be meant is not taken.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(8) || text.len() > 8 * SETTINGS_MAX {
        return None;
    }
    let mut payload = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_chunks::<4>().0 {
        let mut bits = 0u32;
        for &letter in group {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        payload.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    Some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_whole_or_nothing() {
        let (most, more) = ("AAMAAABk".repeat(SETTINGS_MAX), "AAMAAABk".repeat(SETTINGS_MAX + 1));
        let rows: [(&str, Option<&[u8]>); 10] = [
            ("", Some(&[])),
            ("AAMAAABk", Some(&[0, 3, 0, 0, 0, 100])),
            ("AAMAAABkAAQAAP__", Some(&[0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 255, 255])),
            ("AAMAAABkAA", None),
            ("AAMAAABkAAMA", None),
            ("AAMAAAB=", None),
            ("AAMAAA+k", None),
            ("AAMAAA k", None),
            (&most, Some(&[])),
            (&more, None),
        ];
        for (text, expected) in rows {
            let found = decode(text.as_bytes());
            if text == most {
                assert_eq!(found.map(|payload| payload.len()), Some(6 * SETTINGS_MAX));
            } else {
                assert_eq!(found.as_deref(), expected, "{text}");
            }
        }
    }

    #[test]
    fn lists_are_of_whole_names() {
        for (line, expected) in [
            ("h2c", true),
            ("websocket, H2C ", true),
            ("h2", false),
            ("h2c/1", false),
            ("", false),
        ] {
            assert_eq!(list_has(line.as_bytes(), b"h2c"), expected, "{line}");
        }
    }
}
