//! Escapes text for HTML and paths for URLs.

/// Appends text escaped for HTML. The result is valid as element content and in quoted attributes.
pub fn html(text: &str, out: &mut String) {
    // Start of the bytes that need no escape and have not been appended yet.
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        out.push_str(entity);
        plain = at + 1;
    }
    out.push_str(&text[plain..]);
}

/// Appends a decoded path, percent-encoded for `Location` or `href`.
///
/// Leading slashes are merged, because `//host/` at the start of a URL names another host. All bytes that RFC 3986 does
/// not allow in a segment are encoded, including the backslash, which browsers read as a slash. In a path without a
/// leading slash, colons are encoded, too, so that the path cannot be read as a URL with a scheme.
///
/// The apostrophe is encoded, too, so that a path cannot end a quoted attribute. In HTML, `&` must still be escaped
/// with [`html`].
pub fn path(decoded: &[u8], out: &mut Vec<u8>) {
    let slashes = decoded.iter().take_while(|&&b| b == b'/').count();
    let (rooted, rest) = (slashes > 0, &decoded[slashes..]);
    if rooted {
        out.push(b'/');
    }
    for &byte in rest {
        match byte {
            b'/' => out.push(byte),
            b':' if rooted => out.push(byte),
            _ if is_segment_byte(byte) => out.push(byte),
            _ => percent(byte, out),
        }
    }
}

/// Appends a byte in percent-encoding.
fn percent(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
}

/// Returns true for unreserved / sub-delims / "@" (RFC 3986 §3.3), except the apostrophe. The colon, which is allowed
/// too, is missing, because [`path`] encodes it in a path without a leading slash.
fn is_segment_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&()*+,;=@".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::SafePath;
    use proptest::prelude::*;

    /// Percent-encodes a decoded path.
    fn path_text(decoded: &[u8]) -> String {
        let mut out = Vec::new();
        path(decoded, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_html() {
        // Text, and its form in HTML.
        let rows: &[(&str, &str)] = &[
            ("", ""),
            ("plain", "plain"),
            (
                "<script>alert(\"x\")</script>",
                "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;",
            ),
            ("a&b'c", "a&amp;b&#39;c"),
            ("&amp;", "&amp;amp;"),
            ("caf\u{e9}<", "caf\u{e9}&lt;"),
        ];
        for &(text, expected) in rows {
            let mut out = String::from(">");
            html(text, &mut out);
            assert_eq!(out, format!(">{expected}"));
        }
    }

    #[test]
    fn encodes_paths() {
        // Decoded path, and its encoded form.
        let rows: &[(&str, &str)] = &[
            ("/", "/"),
            ("/a/b/", "/a/b/"),
            ("//evil.example/x", "/evil.example/x"),
            ("///", "/"),
            ("/\\evil.example", "/%5Cevil.example"),
            ("/a//b", "/a//b"),
            ("/a b", "/a%20b"),
            ("/100%", "/100%25"),
            ("/a?b#c", "/a%3Fb%23c"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/a'b\"<>", "/a%27b%22%3C%3E"),
            ("/a\r\nSet-Cookie: x", "/a%0D%0ASet-Cookie:%20x"),
            ("/wiki/Main:Page", "/wiki/Main:Page"),
            ("javascript:alert(1)", "javascript%3Aalert(1)"),
            ("a b/", "a%20b/"),
            ("", ""),
        ];
        for &(decoded, expected) in rows {
            assert_eq!(path_text(decoded.as_bytes()), expected, "{decoded}");
        }
        assert_eq!(path_text(b"/\xff"), "/%FF");
    }

    proptest! {
        #[test]
        fn paths_survive_encoding_and_decoding(decoded in "(/[a-z %?#'é\\-]{1,5}[a-z]){1,5}/?") {
            // Skips paths that are not safe, such as `/con`, a device name of Windows.
            prop_assume!(SafePath::from_decoded(&decoded).is_ok());
            let encoded = path_text(decoded.as_bytes());
            prop_assert!(encoded.is_ascii());
            let path = SafePath::parse(encoded.as_bytes()).unwrap();
            prop_assert_eq!(path.as_str(), decoded);
        }

        #[test]
        fn a_path_stays_on_its_host(decoded in prop::collection::vec(any::<u8>(), 0..40)) {
            let encoded = path_text(&decoded);
            prop_assert!(!encoded.starts_with("//") && !encoded.contains('\\'));
            prop_assert!(encoded.starts_with('/') || !encoded.contains(':'));
            // Neither a space nor a control byte, so the path can end neither a field nor a request target.
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
