//! Fields behind content (RFC 9110 §6.5), as they are passed on: both ways, between whatever versions know them.

use rocknet_proto::fields::{Known, KnownSet};
use rocknet_proto::h1::is_allowed_trailer;

use crate::likeness::{is_alike, is_disguised};
use rocknet_handler::response::FieldList;

/// What a proxy alone may say of a request, and what an upstream by CGI would take for more than a field.
const NEVER: KnownSet = KnownSet::of(&[Known::Proxy, Known::XRealIp]);

/// Response control data, which a cache in front would take for that of the head (RFC 9110 §6.5.1), and what this server says
/// itself.
const NEVER_IN_ANSWERS: KnownSet =
    KnownSet::of(&[Known::Age, Known::Date, Known::Expires, Known::Pragma, Known::Server]);
const NEVER_IN_ANSWERS_EITHER: [&str; 2] = ["Retry-After", "Warning"];

/// Of a request; `set`: the fields that the proxy sets or removes, which nobody may bring in behind it.
pub fn of_request(came: &FieldList, set: &[(String, String)]) -> FieldList {
    let is_set = |name: &[u8]| set.iter().any(|(other, _)| is_alike(other.as_bytes(), name));
    let is_never = |name: &[u8]| {
        let is_known = Known::from_name(name).is_some_and(|known| NEVER.contains(known));
        is_known || is_disguised(name)
    };
    passed(
        came.iter()
            .filter(|(name, _)| !is_set(name.as_bytes()) && !is_never(name.as_bytes())),
    )
}

/// Of an answer. A field that may not stand there is left out, and the answer stays good.
pub fn of_answer(came: &FieldList) -> FieldList {
    let is_never = |name: &str| match Known::from_name(name.as_bytes()) {
        Some(known) => NEVER_IN_ANSWERS.contains(known),
        None => NEVER_IN_ANSWERS_EITHER
            .iter()
            .any(|never| never.eq_ignore_ascii_case(name)),
    };
    passed(came.iter().filter(|(name, _)| !is_never(name)))
}

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
    fn what_may_not_stand_behind_content_is_left_out() {
        let mut came = FieldList::default();
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
        ] {
            came.add(name, "1");
        }
        let names = |fields: &FieldList| fields.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        let set = [("x-key".to_owned(), String::new())];
        assert_eq!(names(&of_request(&came, &set)), ["grpc-status", "X-Sum"]);
        assert_eq!(
            names(&of_answer(&came)),
            [
                "grpc-status",
                "X-Key",
                "x-real-ip",
                "Proxy",
                "X-Sum",
                "X_Key",
                "X_Real_IP"
            ]
        );
    }
}
