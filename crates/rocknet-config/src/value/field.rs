//! Names of header fields.

/// Header fields that cannot be configured, because they frame a message or apply to one connection only. The server
/// sets those that it needs.
const RESERVED: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns true if only the server may set this field.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Returns true if a text is a token (RFC 9110 §5.6.2) of bounded length. The names of fields and cookies are tokens.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_token_byte)
}

/// Returns a media type (RFC 9110 §8.3.1), with `charset=utf-8` if it is `text/…` without parameters. Returns `None` if
/// `text` is not a media type.
pub(crate) fn media_type(text: &str) -> Option<String> {
    let text = text.trim();
    let (essence, parameters) = text
        .split_once(';')
        .map_or((text, None), |(essence, rest)| (essence, Some(rest)));
    let (kind, subtype) = essence.trim_end().split_once('/')?;
    let is_printable = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let has_names = |text: &str| {
        text.split(';')
            .all(|part| part.trim().split_once('=').is_some_and(|(name, _)| is_token(name)))
    };
    if !is_token(kind) || !is_token(subtype) || !is_printable(text) || !parameters.is_none_or(has_names) {
        return None;
    }
    Some(match parameters {
        None if kind.eq_ignore_ascii_case("text") => format!("{text}; charset=utf-8"),
        _ => text.to_owned(),
    })
}

/// Returns true for a byte of a token.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Maximum length of a name, in bytes. The longest names in use are about half as long.
const MAX_NAME: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_checked() {
        for (text, expected) in [
            ("application/wasm", Some("application/wasm")),
            ("text/x-log", Some("text/x-log; charset=utf-8")),
            ("text/x-log; charset=latin1", Some("text/x-log; charset=latin1")),
            (" image/svg+xml ", Some("image/svg+xml")),
            ("wasm", None),
            ("a/b/c", None),
            ("a /b", None),
            ("text/plain; charset", None),
            ("text/plain;", None),
            ("a/b\r\nX: y", None),
            ("", None),
        ] {
            assert_eq!(media_type(text).as_deref(), expected, "{text}");
        }
    }
}
