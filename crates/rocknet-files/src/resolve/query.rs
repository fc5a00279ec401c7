//! Queries of `try` and `fallback`, such as `/index.php?q={path}`. Scripts get them before the query of the request.

use std::fmt::Write;

/// Placeholder for the path of the request in templates.
pub(super) const PATH: &str = "{path}";

/// Splits a template at its query.
pub(super) fn split(template: &str) -> (&str, Option<&str>) {
    match template.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (template, None),
    }
}

/// Returns a query with the path of the request in place of its placeholder.
pub(super) fn expand(query: &str, path: &str) -> String {
    query.replace(PATH, &encoded(path))
}

/// Percent-encodes every byte except slashes and unreserved characters (RFC 3986 §2.3).
fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_in_queries() {
        for (path, expected) in [("/a/b", "/a/b"), ("/a&b=c d", "/a%26b%3Dc%20d"), ("/é%", "/%C3%A9%25")] {
            assert_eq!(expand("q={path}", path), format!("q={expected}"));
        }
        assert_eq!(split("/a.php?b=?"), ("/a.php", Some("b=?")));
    }
}
