//! Filter for trailer fields (RFC 9110 §6.5), which are forwarded in both directions and between HTTP versions.

use rocknet_proto::fields::{KnownField, KnownFieldSet};
use rocknet_proto::h1::is_allowed_trailer;
use rocknet_proto::semantics::cgi_names;

use crate::header_spoofing::is_spoofed;
use rocknet_handler::response::FieldList;

/// Fields that are dropped from trailers of requests. Others, such as `Forwarded` and `X-Forwarded-For`, are dropped in
/// both directions: [`is_allowed_trailer`] rejects them. Only a proxy may set `X-Real-IP`. A program behind a CGI-like
/// upstream would use the value of `Proxy` as the address of a proxy (httpoxy).
const NEVER_IN_REQUESTS: KnownFieldSet = KnownFieldSet::of(&[KnownField::Proxy, KnownField::XRealIp]);

/// Another field that only a proxy may set; `KnownField` does not contain it.
const FORWARDED_PREFIX: &[u8] = b"X-Forwarded-Prefix";

/// Fields that are dropped from trailers of responses: control data that a cache would merge into the head (RFC 9110
/// §6.5.1), and fields that RockNet sets itself.
const NEVER_IN_RESPONSES: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Age,
    KnownField::Date,
    KnownField::Expires,
    KnownField::Pragma,
    KnownField::Server,
]);
/// Further fields that are dropped from trailers of responses; `KnownField` does not contain them.
const OTHERS_NEVER_IN_RESPONSES: [&str; 2] = ["Retry-After", "Warning"];

/// Returns the trailer fields of a request that are forwarded. `proxy_headers` are the fields that the configuration
/// sets or removes; a trailer field with such a name is dropped.
pub fn for_request(received: &FieldList, proxy_headers: &[(String, String)]) -> FieldList {
    let is_set = |name: &[u8]| {
        proxy_headers
            .iter()
            .any(|(other, _)| cgi_names::are_same(other.as_bytes(), name))
    };
    let is_never = |name: &[u8]| {
        let is_known = KnownField::from_name(name).is_some_and(|known| NEVER_IN_REQUESTS.contains(known));
        is_known || is_spoofed(name) || cgi_names::are_same(name, FORWARDED_PREFIX)
    };
    passed(
        received
            .iter()
            .filter(|(name, _)| !is_set(name.as_bytes()) && !is_never(name.as_bytes())),
    )
}

/// Returns the trailer fields of a response that are forwarded. Fields that must not be trailers are dropped; they do
/// not make the response invalid.
pub fn for_response(received: &FieldList) -> FieldList {
    let is_never = |name: &str| match KnownField::from_name(name.as_bytes()) {
        Some(known) => NEVER_IN_RESPONSES.contains(known),
        None => OTHERS_NEVER_IN_RESPONSES
            .iter()
            .any(|never| never.eq_ignore_ascii_case(name)),
    };
    passed(received.iter().filter(|(name, _)| !is_never(name)))
}

/// Returns the fields that may be trailers of a message, and drops all others.
fn passed<'f>(fields: impl Iterator<Item = (&'f str, &'f str)>) -> FieldList {
    let mut all = FieldList::default();
    for (name, value) in fields.filter(|(name, _)| is_allowed_trailer(name.as_bytes())) {
        all.add(name, value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_must_not_be_trailers_are_dropped() {
        let mut received = FieldList::default();
        for name in [
            "grpc-status",
            "Host",
            "X-Key",
            "x-real-ip",
            "Content-Length",
            "Set-Cookie",
            "Content-Type",
            "Vary",
            "Cache-Control",
            "Location",
            "Transfer-Encoding",
            "Connection",
            "Proxy",
            "X-Sum",
            "X_Key",
            "X_Real_IP",
            "X-Forwarded-Prefix",
            "x_forwarded_prefix",
        ] {
            received.add(name, "1");
        }
        let names = |fields: &FieldList| fields.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        let proxy_headers = [("x-key".to_owned(), String::new())];
        assert_eq!(names(&for_request(&received, &proxy_headers)), ["grpc-status", "X-Sum"]);
        assert_eq!(
            names(&for_response(&received)),
            [
                "grpc-status",
                "X-Key",
                "x-real-ip",
                "Proxy",
                "X-Sum",
                "X_Key",
                "X_Real_IP",
                "X-Forwarded-Prefix",
                "x_forwarded_prefix"
            ]
        );
    }
}
