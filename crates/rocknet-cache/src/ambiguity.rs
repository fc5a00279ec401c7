//! Detects requests in which a handler may read another value than the template that makes their key, such as
//! `{host}{path}?page={query.page}`.
//!
//! A template takes the first parameter, cookie or field with a name, as sent. Applications differ: PHP takes the last
//! parameter, decodes names, and reads `.` as `_`. If a request for `?page=1&page=2` had the key of page 1, its sender
//! would choose what all clients get as page 1 (cache poisoning).

use rocknet_config::template::{Placeholder, Template};
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::request::Request;

/// Returns true if the handler may read another value than the template for one of its placeholders.
pub fn is_ambiguous(request: &Request<'_>, template: &Template) -> bool {
    template.placeholders().any(|placeholder| match placeholder {
        Placeholder::QueryParameter(name) => is_parameter_ambiguous(request.query.unwrap_or_default(), name.as_bytes()),
        Placeholder::RequestCookie(name) => is_cookie_ambiguous(&request.fields, name.as_bytes()),
        Placeholder::RequestHeader(name) => is_field_ambiguous(&request.fields, name.as_bytes()),
        _ => false,
    })
}

/// Returns false if the query lacks the parameter, or has it once, in the same spelling and with a value. Another
/// parameter makes the query ambiguous if its name differs only by case, or has bytes that an application may decode
/// or replace.
fn is_parameter_ambiguous(query: &[u8], name: &[u8]) -> bool {
    // Some applications separate parameters by `;`.
    if query.contains(&b';') {
        return true;
    }
    let mut is_found = false;
    for parameter in query
        .split(|byte| *byte == b'&')
        .filter(|parameter| !parameter.is_empty())
    {
        let end = memchr::memchr(b'=', parameter).unwrap_or(parameter.len());
        let (found, value) = parameter.split_at(end);
        let is_plain = found
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if found == name {
            // `value` includes the `=`. Without a value, the key is the same as without the parameter.
            if is_found || value.len() <= 1 {
                return true;
            }
            is_found = true;
        } else if !is_plain || found.eq_ignore_ascii_case(name) {
            return true;
        }
    }
    false
}

/// Returns true if a request has more than one cookie with a name, one in another spelling, or one without a value.
fn is_cookie_ambiguous(fields: &Fields<'_>, name: &[u8]) -> bool {
    let lines = fields.get_all(KnownField::Cookie);
    // RFC 2109 recommends that servers accept `,` between cookies too.
    let cookies = lines.flat_map(|line| line.split(|byte| matches!(byte, b';' | b',')));
    let mut is_found = false;
    for cookie in cookies.map(<[u8]>::trim_ascii).filter(|cookie| !cookie.is_empty()) {
        let end = memchr::memchr(b'=', cookie).unwrap_or(cookie.len());
        let (found, value) = cookie.split_at(end);
        if found == name {
            if is_found || value.len() <= 1 {
                return true;
            }
            is_found = true;
        } else if is_like(found.trim_ascii(), name) {
            return true;
        }
    }
    false
}

/// Returns true if a request has more than one field with a name, one without a value, or one with `_` in place of `-`.
/// Applications that read variables of CGI do not distinguish these characters.
fn is_field_ambiguous(fields: &Fields<'_>, name: &[u8]) -> bool {
    let lines = fields.lines().filter(|line| is_like(line.name, name));
    let mut is_found = false;
    for line in lines {
        if is_found || line.value.is_empty() || !line.name.eq_ignore_ascii_case(name) {
            return true;
        }
        is_found = true;
    }
    false
}

/// Returns true if some applications may read two names as the same. They do not distinguish letters by case, or `-`,
/// `.`, ` ` and `+` from `_`. They decode `%`, so a name with `%` counts as the same.
fn is_like(found: &[u8], name: &[u8]) -> bool {
    let plain = |byte: &u8| match byte {
        b'-' | b'.' | b' ' | b'+' => b'_',
        byte => byte.to_ascii_lowercase(),
    };
    found.contains(&b'%') || found.len() == name.len() && found.iter().map(plain).eq(name.iter().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_plain_parameter_is_unambiguous() {
        for (query, expected) in [
            ("", false),
            ("page=1", false),
            ("utm_source=x&page=1&&b", false),
            ("pages=1&apage=2", false),
            ("page=1&page=2", true),
            ("pa%67e=2", true),
            ("x%5B%5D=1", true),
            ("page[]=2", true),
            ("page.=2", true),
            ("+page=2", true),
            ("Page=2", true),
            ("page", true),
            ("page=", true),
            ("a=1;page=2", true),
        ] {
            assert_eq!(is_parameter_ambiguous(query.as_bytes(), b"page"), expected, "{query}");
        }
        // A name that itself has to be decoded is compared as sent.
        assert!(!is_parameter_ambiguous(b"filter[a]=1", b"filter[a]"));
    }

    #[test]
    fn names_that_applications_read_as_the_same_are_recognized() {
        for (found, expected) in [
            ("lang", true),
            ("LANG", true),
            ("l%61ng", true),
            ("language", false),
            ("", false),
        ] {
            assert_eq!(is_like(found.as_bytes(), b"lang"), expected, "{found}");
        }
        assert!(is_like(b"X_Api.Key", b"x-api-key"));
    }
}
