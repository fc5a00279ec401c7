//! `Upgrade: h2c`: turns an HTTP/1.1 request into the first stream of a cleartext HTTP/2 connection (RFC 7540 §3.2).
//! RFC 9113 has removed this upgrade, so it serves old clients only.

use crate::request::{OwnedRequest, Request, TargetForm};

/// Response that accepts the upgrade (RFC 7540 §3.2). The server's SETTINGS follow.
pub const SWITCHING_PROTOCOLS: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

/// Maximum number of settings in an HTTP2-Settings field. IANA has registered fewer settings. Each setting has eight
/// characters in base64url.
const MAX_SETTINGS: usize = 32;

/// Names of fields that concern the HTTP/1.1 connection and are removed.
const HTTP1_CONNECTION_FIELDS: [&str; 4] = ["connection", "upgrade", "http2-settings", "keep-alive"];

/// Returns the SETTINGS payload of a request to upgrade to HTTP/2 (RFC 7540 §3.2.1). The request must have `h2c` in
/// Upgrade and exactly one HTTP2-Settings field. The field must decode completely, and Connection must name it. CONNECT
/// is excluded, because it requests a tunnel on the same connection. Returns `None` for any other request, which is
/// served over HTTP/1.1.
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

/// Converts the request to stream 1 of an HTTP/2 connection: removes the fields that concern the HTTP/1.1 connection.
pub fn as_stream_request(request: &OwnedRequest) -> OwnedRequest {
    request.to_http2(|name| {
        HTTP1_CONNECTION_FIELDS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    })
}

/// Returns whether a comma-separated list contains `member`, ignoring case.
fn list_has(line: &[u8], member: &[u8]) -> bool {
    line.split(|&byte| byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(member))
}

/// Decodes base64url without padding (RFC 4648 §5) into whole settings of six bytes. Returns `None` for any other form.
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
        let (at_limit, above_limit) = ("AAMAAABk".repeat(MAX_SETTINGS), "AAMAAABk".repeat(MAX_SETTINGS + 1));
        let at_limit_payload = [0u8, 3, 0, 0, 0, 100].repeat(MAX_SETTINGS);
        // Field value, and the expected payload of SETTINGS.
        let rows: [(&str, Option<&[u8]>); 10] = [
            ("", Some(&[])),
            ("AAMAAABk", Some(&[0, 3, 0, 0, 0, 100])),
            ("AAMAAABkAAQAAP__", Some(&[0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 255, 255])),
            ("AAMAAABkAA", None),
            ("AAMAAABkAAMA", None),
            ("AAMAAAB=", None),
            ("AAMAAA+k", None),
            ("AAMAAA k", None),
            (&at_limit, Some(&at_limit_payload)),
            (&above_limit, None),
        ];
        for (text, expected) in rows {
            assert_eq!(decode(text.as_bytes()).as_deref(), expected, "{text}");
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
