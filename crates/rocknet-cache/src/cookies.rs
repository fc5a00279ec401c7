//! Finds cookies of a request by name, or by patterns of names.

use rocknet_proto::fields::{Fields, KnownField};

/// Returns true if a request with these fields has a cookie whose name matches a pattern. `*` at the end of a pattern
/// stands for any text.
pub fn has_any(patterns: &[String], fields: &Fields<'_>) -> bool {
    if patterns.is_empty() || !fields.contains(KnownField::Cookie) {
        return false;
    }
    let cookies = fields
        .get_all(KnownField::Cookie)
        .flat_map(|line| line.split(|byte| *byte == b';'));
    let mut names = cookies.map(|cookie| {
        cookie
            .split(|byte| *byte == b'=')
            .next()
            .unwrap_or_default()
            .trim_ascii()
    });
    names.any(|name| patterns.iter().any(|pattern| matches(pattern.as_bytes(), name)))
}

/// Returns the value of the first cookie with a name.
pub fn value<'f>(name: &[u8], fields: &Fields<'f>) -> Option<&'f [u8]> {
    let mut cookies = fields
        .get_all(KnownField::Cookie)
        .flat_map(|line| line.split(|byte| *byte == b';'));
    cookies.find_map(|cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.strip_suffix(b"*") {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    #[test]
    fn names_are_matched() {
        let patterns = ["wordpress_logged_in_*".to_owned(), "session".to_owned()];
        for (cookies, expected) in [
            (&[][..], false),
            (&["a=1"], false),
            (&["a=session"], false),
            (&["session=1"], true),
            (&["session"], true),
            (&["sessions=1"], false),
            (&["a=1; wordpress_logged_in_x=y"], true),
            (&["a=1", "b=2;session=3"], true),
            (&["Session=1"], false),
        ] {
            let fields: Vec<_> = cookies
                .iter()
                .map(|value: &&str| (KnownField::Cookie, value.as_bytes()))
                .collect();
            let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &fields);
            assert_eq!(has_any(&patterns, &request.view().fields), expected, "{cookies:?}");
        }
        let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[(KnownField::Cookie, b"a=1")]);
        assert!(!has_any(&[], &request.view().fields));
        assert!(has_any(&["*".to_owned()], &request.view().fields));
    }
}
