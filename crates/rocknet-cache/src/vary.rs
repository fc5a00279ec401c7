//! Selection of a stored response by the request fields that its `Vary` names (RFC 9111 §4.1).

use rocknet_proto::fields::{FieldList, Fields};

use crate::cookies;

/// Prefix of a selector that is a cookie. Names of fields do not contain `;`.
const COOKIE: &[u8] = b"cookie;";

/// Maximum number of fields and cookies that select a response. A response with more is not stored.
pub(crate) const MAX_FIELDS: usize = 16;

/// Fields that the server adds to or replaces in requests to handlers.
const SET_BY_SERVER: [&[u8]; 8] = [
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-forwarded-prefix",
    b"x-real-ip",
    b"forwarded",
    b"via",
    b"x-request-id",
];

/// Name of a request field in lower case, or [`COOKIE`] with the name of a cookie, and its value; `None`: the request
/// does not have it.
pub(crate) type Selector = (Box<[u8]>, Option<Vec<u8>>);

/// Request fields that selected a response, with their values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variation(Box<[Selector]>);

impl Variation {
    /// Returns the variation of a response to a request with these fields; `None` for `Vary: *` and for too many
    /// fields and cookies. Returns `None` too if `Vary` names a field that the handler does not get from the client.
    /// `cookies`: names of cookies that select a response, besides the fields in `Vary`. `replaced`: names in lower
    /// case of fields that the route sets in requests.
    pub fn of(
        response: &FieldList,
        request: &Fields<'_>,
        cookies: &[String],
        replaced: &[String],
    ) -> Option<Variation> {
        if cookies.len() > MAX_FIELDS {
            return None;
        }
        let cookies = cookies.iter().map(|name| [COOKIE, name.as_bytes()].concat());
        let mut all: Vec<Selector> = cookies
            .map(|name| {
                let value = normalized(&name, request);
                (name.into(), value)
            })
            .collect();
        let lines = response.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Vary"));
        for name in lines.flat_map(|(_, value)| value.split(',')) {
            let name = name.trim().to_ascii_lowercase().into_bytes();
            match &name[..] {
                b"" => continue,
                b"*" => return None,
                // The handler got other values than the client sent, such as the address of the client.
                _ if SET_BY_SERVER.contains(&&name[..]) || replaced.iter().any(|other| other.as_bytes() == name) => {
                    return None;
                }
                _ => {}
            }
            if all.iter().any(|(other, _)| **other == *name) {
                continue;
            }
            if all.len() >= MAX_FIELDS {
                return None;
            }
            let value = normalized(&name, request);
            all.push((name.into(), value));
        }
        Some(Variation(all.into()))
    }

    /// Returns true if a request with these fields selects the same response.
    pub fn matches(&self, request: &Fields<'_>) -> bool {
        self.0.iter().all(|(name, value)| match value {
            Some(value) => normalized_bytes(name, request).is_some_and(|bytes| bytes.eq(value.iter().copied())),
            None => normalized_bytes(name, request).is_none(),
        })
    }

    /// Returns the variation of fields with these values.
    pub(crate) fn from_selectors(selectors: Vec<Selector>) -> Variation {
        Variation(selectors.into())
    }

    /// Returns the fields and their values.
    pub(crate) fn selectors(&self) -> &[Selector] {
        &self.0
    }

    /// Returns the field of a request with a name of [`Variation::selectors`].
    pub(crate) fn selector(name: &[u8], request: &Fields<'_>) -> Selector {
        (name.into(), normalized(name, request))
    }

    /// Returns the heap memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let fields = self.0.iter();
        let bytes = fields.map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len));
        size_of_val(&*self.0) + bytes.sum::<usize>()
    }
}

/// Returns the value of a request field in a form in which equal preferences are mostly equal bytes; `None` without the
/// field.
fn normalized(name: &[u8], request: &Fields<'_>) -> Option<Vec<u8>> {
    Some(normalized_bytes(name, request)?.collect())
}

/// Returns the bytes of [`normalized`]. The case and the whitespace of lists of preferences are not significant.
fn normalized_bytes(name: &[u8], request: &Fields<'_>) -> Option<impl Iterator<Item = u8>> {
    let (cookie, name, is_preference) = match name.strip_prefix(COOKIE) {
        Some(cookie) => (Some(cookies::value(cookie, request)?), &b""[..], false),
        None => (None, name, PREFERENCES.contains(&name)),
    };
    let mut lines = request.by_name(name).chain(cookie).peekable();
    lines.peek()?;
    let bytes = lines.enumerate().flat_map(move |(number, line)| {
        let kept = move |byte: &u8| !is_preference || !matches!(byte, b' ' | b'\t');
        let change = move |byte: u8| if is_preference { byte.to_ascii_lowercase() } else { byte };
        let comma = (number > 0).then_some(b',');
        comma.into_iter().chain(line.iter().copied().filter(kept).map(change))
    });
    Some(bytes)
}

/// Fields that are lists of preferences.
const PREFERENCES: [&[u8]; 4] = [b"accept-encoding", b"accept-language", b"accept", b"accept-charset"];

#[cfg(test)]
mod tests {
    use rocknet_proto::fields::KnownField;
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    fn variation(vary: &[&str], request: &OwnedRequest) -> Option<Variation> {
        let mut fields = FieldList::default();
        vary.iter().for_each(|value| fields.add("Vary", value));
        Variation::of(&fields, &request.view().fields, &[], &["x-own".to_owned()])
    }

    fn request(fields: &[(KnownField, &str)]) -> OwnedRequest {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &fields)
    }

    #[test]
    fn named_fields_select_a_response() {
        let (encoding, language) = (KnownField::AcceptEncoding, KnownField::AcceptLanguage);
        let stored = request(&[(encoding, "gzip, br"), (language, "de")]);
        for (vary, other, expected) in [
            (&[][..], request(&[]), true),
            (&["Accept-Encoding"], request(&[(encoding, "GZIP,br")]), true),
            (
                &["Accept-Encoding"],
                request(&[(encoding, "gzip"), (encoding, "br")]),
                true,
            ),
            (&["accept-encoding, "], request(&[(encoding, "gzip")]), false),
            (&["Accept-Encoding"], request(&[]), false),
            (
                &["Accept-Encoding", "Accept-Language"],
                request(&[(encoding, "gzip,br"), (language, "en")]),
                false,
            ),
            (
                &["Accept-Encoding, Accept-Language"],
                request(&[(encoding, "gzip,br"), (language, "de")]),
                true,
            ),
            (&["Cookie"], request(&[]), true),
            (&["Cookie"], request(&[(KnownField::Cookie, "")]), false),
            (&["User-Agent"], request(&[(KnownField::UserAgent, "x")]), false),
        ] {
            let variation = variation(vary, &stored).expect("a variation");
            assert_eq!(variation.matches(&other.view().fields), expected, "{vary:?} {other:?}");
            assert!(variation.matches(&stored.view().fields));
        }
    }

    #[test]
    fn cookies_select_a_response() {
        let with = |cookie: &str| request(&[(KnownField::Cookie, cookie)]);
        let names = ["group".to_owned()];
        let stored = with("a=1; group=staff");
        let variation = Variation::of(&FieldList::default(), &stored.view().fields, &names, &[]).expect("a variation");
        for (other, expected) in [
            (with("group=staff"), true),
            (with("group=staff; b=2"), true),
            (with("group=guest"), false),
            (with("a=1"), false),
            (request(&[]), false),
        ] {
            assert_eq!(variation.matches(&other.view().fields), expected, "{other:?}");
        }
    }

    #[test]
    fn a_star_and_too_many_fields_match_nothing() {
        let request = request(&[]);
        let names = |count: usize| {
            (0..count)
                .map(|number| format!("X-{number}"))
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(variation(&["*"], &request), None);
        assert_eq!(variation(&["Accept", "Cookie, *"], &request), None);
        assert!(variation(&[&names(MAX_FIELDS)], &request).is_some());
        assert_eq!(variation(&[&names(MAX_FIELDS + 1)], &request), None);
        let with_cookies = |fields: usize, cookies: usize| {
            let mut response = FieldList::default();
            response.add("Vary", &*names(fields));
            let cookies: Vec<_> = (0..cookies).map(|number| format!("c{number}")).collect();
            Variation::of(&response, &request.view().fields, &cookies, &[]).is_some()
        };
        assert!(with_cookies(0, MAX_FIELDS) && with_cookies(1, MAX_FIELDS - 1));
        assert!(!with_cookies(0, MAX_FIELDS + 1) && !with_cookies(1, MAX_FIELDS));
    }
}
