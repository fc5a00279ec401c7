//! Values of placeholders in targets, percent-encoded for the part of the URL into which they are inserted.

use rocknet_config::template::Placeholder;
use rocknet_proto::request::split_target;

use super::{
    NoHost, RequestTarget, Triplets, UrlPart, is_path, is_sent_query, is_unreserved, push_decoded, push_encoded,
};

/// Appends a value. No value can add a part to the URL, with three exceptions: `{path}` keeps its slashes, `{query}`
/// keeps the structure of the query, and `{target}` in a path keeps both.
///
/// # Errors
///
/// Fails if the host is to be that of the request, and the request names no valid host.
pub(super) fn push(
    out: &mut Vec<u8>,
    request: &RequestTarget<'_>,
    placeholder: &Placeholder,
    part: UrlPart,
) -> Result<(), NoHost> {
    match (placeholder, part) {
        (Placeholder::Path, UrlPart::Path) => push_decoded(out, request, 0..request.path.len(), is_path),
        (Placeholder::Path, _) => push_decoded(out, request, 0..request.path.len(), is_unreserved),
        (Placeholder::Query, UrlPart::Query | UrlPart::Fragment) => {
            push_encoded(out, request.query.unwrap_or_default(), is_sent_query, Triplets::Keep);
        }
        (Placeholder::Query, _) => {
            push_encoded(
                out,
                request.query.unwrap_or_default(),
                is_plain_segment,
                Triplets::Encode,
            );
        }
        (Placeholder::Target, UrlPart::Path) => {
            let target = request.values.value(placeholder);
            let (path, query) = split_target(&target);
            push_encoded(out, path, is_path, Triplets::Keep);
            if let Some(query) = query {
                out.push(b'?');
                push_encoded(out, query, is_sent_query, Triplets::Keep);
            }
        }
        // The value is part of a query already, so its triplets and its `+` have their meaning.
        (Placeholder::QueryParameter(_), UrlPart::Query) => {
            push_encoded(out, &request.values.value(placeholder), is_parameter, Triplets::Keep);
        }
        (_, UrlPart::Host) => {
            let host = request.values.value(placeholder);
            if host.is_empty() {
                return Err(NoHost);
            }
            // The source of the values has checked it: no byte of a valid host ends the host.
            out.extend_from_slice(&host);
        }
        // A value of dots only is left out, because a segment `..` leads to another folder.
        (_, UrlPart::Path) => {
            let value = request.values.value(placeholder);
            if value.iter().any(|byte| *byte != b'.') {
                push_encoded(out, &value, is_plain_segment, Triplets::Encode);
            }
        }
        (_, UrlPart::Query | UrlPart::Fragment) => {
            push_encoded(out, &request.values.value(placeholder), is_unreserved, Triplets::Encode);
        }
    }
    Ok(())
}

/// Returns true for unreserved characters, without the slash that [`is_unreserved`] includes.
fn is_plain_segment(byte: u8) -> bool {
    is_unreserved(byte) && byte != b'/'
}

/// Returns true for characters of a query parameter's value that are kept as sent.
fn is_parameter(byte: u8) -> bool {
    is_unreserved(byte) || byte == b'+'
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;
    use rocknet_config::template::{NoValues, Values};

    use rocknet_config::captures::CaptureNames;
    use rocknet_config::model::Pattern;

    use super::super::Target;
    use super::*;
    use crate::captures::Captures;

    /// Has one value for all placeholders, except for the host.
    struct All<'v> {
        value: &'v [u8],
        host: &'static str,
    }

    impl Values for All<'_> {
        fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]> {
            match placeholder {
                Placeholder::Host | Placeholder::Authority => Cow::Borrowed(self.host.as_bytes()),
                _ => Cow::Borrowed(self.value),
            }
        }
    }

    /// Captures of a pattern with a star.
    fn star() -> CaptureNames {
        CaptureNames::of_pattern(&Pattern::Prefix("/".to_owned()))
    }

    fn location(to: &str, value: &[u8], host: &'static str) -> Result<String, NoHost> {
        let request = RequestTarget {
            path: "/a b/ü",
            raw_path: b"/a%20b/%C3%BC",
            query: Some(b"x=1&y=a+b"),
            values: &All { value, host },
        };
        let (mut out, target) = (Vec::new(), Target::new(to, &star(), false).expect("a target"));
        target.write(&request, &Captures::of_star(1..4), &mut out)?;
        Ok(String::from_utf8(out).expect("ASCII"))
    }

    #[test]
    fn values_are_encoded_for_their_part() {
        // Target, value of the other placeholders, and the location.
        for (to, value, expected) in [
            ("https://{host}{target}", "/p?q=1", "https://h.test/p?q=1"),
            (
                "https://www.{host}:8443{path}",
                "",
                "https://www.h.test:8443/a%20b/%C3%BC?x=1&y=a+b",
            ),
            ("{path}.html", "", "/a%20b/%C3%BC.html?x=1&y=a+b"),
            ("/s?{query}&l={user}", "a&b=c d", "/s?x=1&y=a+b&l=a%26b%3Dc%20d"),
            ("/login?next={target}", "/p?q=%20", "/login?next=/p%3Fq%3D%2520"),
            ("/l/{request.cookie.lang}/", "../..", "/l/..%2F../?x=1&y=a+b"),
            ("/l/{request.cookie.lang}/", "..", "/l//?x=1&y=a+b"),
            ("/p?p={query.page}", "a+b%20c&d", "/p?p=a+b%20c%26d"),
            ("/{*}/{method}#{user}", "a/b", "/a%20b/a%2Fb?x=1&y=a+b#a/b"),
        ] {
            assert_eq!(
                location(to, value.as_bytes(), "h.test").as_deref(),
                Ok(expected),
                "{to}"
            );
        }
        assert_eq!(location("https://{host}/", b"", ""), Err(NoHost));
        assert_eq!(NoValues.value(&Placeholder::Host).as_ref(), b"");
    }

    #[test]
    fn only_the_host_can_be_a_placeholder_of_the_host() {
        for to in [
            "https://{user}/",
            "https://a{user}b/",
            "{host}/",
            "{user}",
            "/{unknown}",
            "/{status}",
        ] {
            assert!(Target::new(to, &star(), false).is_err(), "{to}");
        }
    }

    proptest! {
        #[test]
        fn no_value_leaves_its_part(
            value in proptest::collection::vec(any::<u8>(), 0..16),
            to in prop_oneof![Just("/a/{user}"), Just("{path}/{user}"), Just("/{target}"), Just("/?a={user}"), Just("{target}")],
        ) {
            // The target of a request begins with a slash.
            let value = [b"/", &value[..]].concat();
            let location = location(to, &value, "h").expect("a host");
            prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{location:?}");
            prop_assert!(location.starts_with('/') && !location[1..].starts_with(['/', '\\']), "{location:?}");
        }
    }
}
