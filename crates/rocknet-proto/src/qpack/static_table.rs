//! Static table of QPACK: the 99 predefined fields (RFC 9204 appendix A).

use crate::fields::KnownField;
use crate::hpack::{NameClass, Pseudo};

/// One field, with the class of its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct StaticField {
    pub name: &'static [u8],
    pub value: &'static [u8],
    pub class: NameClass,
}

/// Returns the field at an index from 0 to 98; `None` for another index.
#[inline]
pub(super) fn at(index: u64) -> Option<&'static StaticField> {
    FIELDS.get(usize::try_from(index).ok()?)
}

/// Result of [`find`]: the index of the field, or of the first field with the same name, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StaticMatch {
    Field(u64),
    NameOnly(u64),
    Nothing,
}

/// Looks up a field. A linear search is sufficient, because heads that are sent often are encoded only once.
pub(super) fn find(name: &[u8], value: &[u8]) -> StaticMatch {
    let mut found = StaticMatch::Nothing;
    for (index, field) in (0..).zip(&FIELDS) {
        if field.name == name {
            if field.value == value {
                return StaticMatch::Field(index);
            }
            if found == StaticMatch::Nothing {
                found = StaticMatch::NameOnly(index);
            }
        }
    }
    found
}

const fn known(known: KnownField, value: &'static str) -> StaticField {
    StaticField {
        name: known.as_str().as_bytes(),
        value: value.as_bytes(),
        class: NameClass::Known(known),
    }
}

const fn pseudo(pseudo: Pseudo, value: &'static str) -> StaticField {
    StaticField {
        name: pseudo.as_str().as_bytes(),
        value: value.as_bytes(),
        class: NameClass::Pseudo(pseudo),
    }
}

const fn other(name: &'static str, value: &'static str) -> StaticField {
    StaticField {
        name: name.as_bytes(),
        value: value.as_bytes(),
        class: NameClass::Other,
    }
}

static FIELDS: [StaticField; 99] = [
    pseudo(Pseudo::Authority, ""),
    pseudo(Pseudo::Path, "/"),
    known(KnownField::Age, "0"),
    other("content-disposition", ""),
    known(KnownField::ContentLength, "0"),
    known(KnownField::Cookie, ""),
    known(KnownField::Date, ""),
    known(KnownField::Etag, ""),
    known(KnownField::IfModifiedSince, ""),
    known(KnownField::IfNoneMatch, ""),
    known(KnownField::LastModified, ""),
    known(KnownField::Link, ""),
    known(KnownField::Location, ""),
    known(KnownField::Referer, ""),
    known(KnownField::SetCookie, ""),
    pseudo(Pseudo::Method, "CONNECT"),
    pseudo(Pseudo::Method, "DELETE"),
    pseudo(Pseudo::Method, "GET"),
    pseudo(Pseudo::Method, "HEAD"),
    pseudo(Pseudo::Method, "OPTIONS"),
    pseudo(Pseudo::Method, "POST"),
    pseudo(Pseudo::Method, "PUT"),
    pseudo(Pseudo::Scheme, "http"),
    pseudo(Pseudo::Scheme, "https"),
    pseudo(Pseudo::Status, "103"),
    pseudo(Pseudo::Status, "200"),
    pseudo(Pseudo::Status, "304"),
    pseudo(Pseudo::Status, "404"),
    pseudo(Pseudo::Status, "503"),
    known(KnownField::Accept, "*/*"),
    known(KnownField::Accept, "application/dns-message"),
    known(KnownField::AcceptEncoding, "gzip, deflate, br"),
    known(KnownField::AcceptRanges, "bytes"),
    other("access-control-allow-headers", "cache-control"),
    other("access-control-allow-headers", "content-type"),
    other("access-control-allow-origin", "*"),
    known(KnownField::CacheControl, "max-age=0"),
    known(KnownField::CacheControl, "max-age=2592000"),
    known(KnownField::CacheControl, "max-age=604800"),
    known(KnownField::CacheControl, "no-cache"),
    known(KnownField::CacheControl, "no-store"),
    known(KnownField::CacheControl, "public, max-age=31536000"),
    known(KnownField::ContentEncoding, "br"),
    known(KnownField::ContentEncoding, "gzip"),
    known(KnownField::ContentType, "application/dns-message"),
    known(KnownField::ContentType, "application/javascript"),
    known(KnownField::ContentType, "application/json"),
    known(KnownField::ContentType, "application/x-www-form-urlencoded"),
    known(KnownField::ContentType, "image/gif"),
    known(KnownField::ContentType, "image/jpeg"),
    known(KnownField::ContentType, "image/png"),
    known(KnownField::ContentType, "text/css"),
    known(KnownField::ContentType, "text/html; charset=utf-8"),
    known(KnownField::ContentType, "text/plain"),
    known(KnownField::ContentType, "text/plain;charset=utf-8"),
    known(KnownField::Range, "bytes=0-"),
    other("strict-transport-security", "max-age=31536000"),
    other("strict-transport-security", "max-age=31536000; includesubdomains"),
    other(
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    known(KnownField::Vary, "accept-encoding"),
    known(KnownField::Vary, "origin"),
    other("x-content-type-options", "nosniff"),
    other("x-xss-protection", "1; mode=block"),
    pseudo(Pseudo::Status, "100"),
    pseudo(Pseudo::Status, "204"),
    pseudo(Pseudo::Status, "206"),
    pseudo(Pseudo::Status, "302"),
    pseudo(Pseudo::Status, "400"),
    pseudo(Pseudo::Status, "403"),
    pseudo(Pseudo::Status, "421"),
    pseudo(Pseudo::Status, "425"),
    pseudo(Pseudo::Status, "500"),
    known(KnownField::AcceptLanguage, ""),
    other("access-control-allow-credentials", "FALSE"),
    other("access-control-allow-credentials", "TRUE"),
    other("access-control-allow-headers", "*"),
    other("access-control-allow-methods", "get"),
    other("access-control-allow-methods", "get, post, options"),
    other("access-control-allow-methods", "options"),
    other("access-control-expose-headers", "content-length"),
    known(KnownField::AccessControlRequestHeaders, "content-type"),
    known(KnownField::AccessControlRequestMethod, "get"),
    known(KnownField::AccessControlRequestMethod, "post"),
    other("alt-svc", "clear"),
    known(KnownField::Authorization, ""),
    other(
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    other("early-data", "1"),
    other("expect-ct", ""),
    known(KnownField::Forwarded, ""),
    known(KnownField::IfRange, ""),
    known(KnownField::Origin, ""),
    other("purpose", "prefetch"),
    known(KnownField::Server, ""),
    other("timing-allow-origin", "*"),
    known(KnownField::UpgradeInsecureRequests, "1"),
    known(KnownField::UserAgent, ""),
    known(KnownField::XForwardedFor, ""),
    other("x-frame-options", "deny"),
    other("x-frame-options", "sameorigin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of RFC 9204 appendix A. They include the first and last row of each group of rows with the same name.
    #[test]
    fn rows_of_the_standard() {
        for (index, name, value) in [
            (0, ":authority", ""),
            (1, ":path", "/"),
            (2, "age", "0"),
            (3, "content-disposition", ""),
            (4, "content-length", "0"),
            (5, "cookie", ""),
            (6, "date", ""),
            (7, "etag", ""),
            (10, "last-modified", ""),
            (12, "location", ""),
            (14, "set-cookie", ""),
            (15, ":method", "CONNECT"),
            (17, ":method", "GET"),
            (21, ":method", "PUT"),
            (22, ":scheme", "http"),
            (23, ":scheme", "https"),
            (24, ":status", "103"),
            (25, ":status", "200"),
            (28, ":status", "503"),
            (29, "accept", "*/*"),
            (31, "accept-encoding", "gzip, deflate, br"),
            (32, "accept-ranges", "bytes"),
            (33, "access-control-allow-headers", "cache-control"),
            (35, "access-control-allow-origin", "*"),
            (36, "cache-control", "max-age=0"),
            (41, "cache-control", "public, max-age=31536000"),
            (42, "content-encoding", "br"),
            (44, "content-type", "application/dns-message"),
            (50, "content-type", "image/png"),
            (54, "content-type", "text/plain;charset=utf-8"),
            (55, "range", "bytes=0-"),
            (
                58,
                "strict-transport-security",
                "max-age=31536000; includesubdomains; preload",
            ),
            (59, "vary", "accept-encoding"),
            (61, "x-content-type-options", "nosniff"),
            (62, "x-xss-protection", "1; mode=block"),
            (63, ":status", "100"),
            (71, ":status", "500"),
            (72, "accept-language", ""),
            (74, "access-control-allow-credentials", "TRUE"),
            (78, "access-control-allow-methods", "options"),
            (82, "access-control-request-method", "post"),
            (84, "authorization", ""),
            (
                85,
                "content-security-policy",
                "script-src 'none'; object-src 'none'; base-uri 'none'",
            ),
            (88, "forwarded", ""),
            (92, "server", ""),
            (95, "user-agent", ""),
            (98, "x-frame-options", "sameorigin"),
        ] {
            let field = at(index).expect("the index is in the table");
            assert_eq!(
                (field.name, field.value),
                (name.as_bytes(), value.as_bytes()),
                "{index}"
            );
        }
        assert!(at(99).is_none() && at(u64::MAX).is_none());
    }

    #[test]
    fn classes_match_the_names() {
        for field in &FIELDS {
            assert_eq!(field.class, NameClass::of(field.name), "{field:?}");
        }
    }

    #[test]
    fn fields_are_found_by_value_and_by_name() {
        for (index, field) in (0..).zip(&FIELDS) {
            assert_eq!(find(field.name, field.value), StaticMatch::Field(index), "{field:?}");
        }
        // Name, value, and the expected result with its index.
        for (name, value, expected) in [
            (":status", "401", StaticMatch::NameOnly(24)),
            ("vary", "Accept-Encoding", StaticMatch::NameOnly(59)),
            ("server", "x", StaticMatch::NameOnly(92)),
            ("x-a", "", StaticMatch::Nothing),
        ] {
            assert_eq!(find(name.as_bytes(), value.as_bytes()), expected, "{name}: {value}");
        }
    }
}
