//! Fields behind content (RFC 9110 §6.5), as they are passed on: both ways, between whatever versions know them.

use rocknet_proto::fields::{Known, KnownSet};
use rocknet_proto::h1::may_trail;

use super::likeness::{is_alike, is_disguised};
use crate::response::FieldList;

/// What a proxy alone may say of a request, and what an upstream by CGI would take for more than a field.
const NEVER: KnownSet = KnownSet::of(&[Known::Proxy, Known::XRealIp]);

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

/// Of an answer.
pub fn of_answer(came: &FieldList) -> FieldList {
    passed(came.iter())
}

fn passed<'f>(fields: impl Iterator<Item = (&'f str, &'f str)>) -> FieldList {
    let mut all = FieldList::default();
    for (name, value) in fields.filter(|(name, _)| may_trail(name.as_bytes())) {
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
