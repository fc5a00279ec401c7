//! `Upgrade: h2c`: a request of HTTP/1.1 that becomes the first stream of HTTP/2 in the clear (RFC 7540 §3.2, which RFC 9113
//! has given up: only for clients that know no better).

use crate::request::{OwnedRequest, Request, TargetForm};

/// What agrees to it; SETTINGS follow.
pub const SWITCHING_PROTOCOLS: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

/// Settings told in the field; HTTP/2 knows nine, and each takes eight letters.
const MAX_SETTINGS: usize = 32;

/// The names of fields that meant the connection before, and mean nothing now.
const HTTP1_CONNECTION_FIELDS: [&str; 4] = ["connection", "upgrade", "http2-settings", "keep-alive"];

/// The payload of SETTINGS that a request brings which asks for HTTP/2 in all that is due: `h2c` in Upgrade, one
/// HTTP2-Settings that decodes to whole settings, and both named by Connection. Any other is to be answered as it is.
pub fn requested_settings(request: &Request<'_>) -> Option<Vec<u8>> {
    let upgrade = request.upgrade?;
    if !list_has(upgrade, b"h2c") || request.form == TargetForm::Authority {
        return None;
    }
    let mut settings_fields = request.fields.by_name(b"http2-settings");
    let (Some(settings), None) = (settings_fields.next(), settings_fields.next()) else {
        return None;
    };
    let mut options = request.fields.by_name(b"connection");
    if !options.any(|line| list_has(line, b"http2-settings")) {
        return None;
    }
    decode(settings)
}

/// The request as stream 1 has it: in HTTP/2, without what was of the connection.
pub fn as_stream_request(request: &OwnedRequest) -> OwnedRequest {
    request.over_http2(|name| {
        HTTP1_CONNECTION_FIELDS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    })
}

fn list_has(line: &[u8], member: &[u8]) -> bool {
    line.split(|&byte| byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(member))
}

/// base64url without padding (RFC 4648 §5), of whole settings of six bytes: whatever else could be meant is not taken.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(8) || text.len() > 8 * MAX_SETTINGS {
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
    fn settings_decode_completely_or_not_at_all() {
        let (most, more) = ("AAMAAABk".repeat(MAX_SETTINGS), "AAMAAABk".repeat(MAX_SETTINGS + 1));
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
                assert_eq!(found.map(|payload| payload.len()), Some(6 * MAX_SETTINGS));
            } else {
                assert_eq!(found.as_deref(), expected, "{text}");
            }
        }
    }

    #[test]
    fn list_members_match_completely() {
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
