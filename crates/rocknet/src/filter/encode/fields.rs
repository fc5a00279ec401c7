//! The header fields that a content coding changes.

use rocknet_proto::semantics::etag::{Comparison, EntityTag, list_matches};
use rocknet_proto::semantics::negotiation::Coding;

use crate::response::FieldList;

/// Fields that describe the uncoded body, and are removed when a coding is applied. A digest would have to cover the
/// coded body (RFC 9530 §2, §3; RFC 3230; RFC 1864). Ranges of the coded body cannot be requested, because each
/// response is encoded again.
const UNCODED_BODY_FIELDS: [&str; 6] = [
    "Accept-Ranges",
    "Content-Digest",
    "Content-Length",
    "Content-MD5",
    "Digest",
    "Repr-Digest",
];

/// Returns true if the response may be coded: neither `no-transform` (RFC 9111 §5.2.2.6) nor a signature, which covers
/// fields and digests (RFC 9421), forbids it.
pub fn allows_transforming(fields: &FieldList) -> bool {
    !has_element(fields, "Cache-Control", |directive| {
        directive.eq_ignore_ascii_case("no-transform")
    }) && fields.value("Signature-Input").is_none()
}

/// Returns true if caches have to store a separate response for each `Accept-Encoding`.
pub fn varies_by_coding(fields: &FieldList) -> bool {
    has_element(fields, "Vary", |name| {
        name == "*" || name.eq_ignore_ascii_case("Accept-Encoding")
    })
}

/// Adds `Accept-Encoding` to `Vary`, unless `Vary` has it or `*` already.
pub fn add_vary(fields: &mut FieldList) {
    if varies_by_coding(fields) {
        return;
    }
    let mut names: Vec<&str> = values(fields, "Vary")
        .map(str::trim)
        .filter(|names| !names.is_empty())
        .collect();
    names.push("Accept-Encoding");
    let joined = names.join(", ");
    fields.set("Vary", joined);
}

/// Changes the fields to those of the coded body.
pub fn mark(fields: &mut FieldList, coding: Coding) {
    fields.retain(|name| !describes_uncoded_body(name));
    fields.add("Content-Encoding", coding.name());
    weaken(fields);
}

/// Removes the trailer fields that describe the uncoded body, such as digests, which some handlers send as trailers.
pub fn clean_trailers(trailers: &mut FieldList) {
    trailers.retain(|name| !describes_uncoded_body(name));
}

/// Weakens the tag of a 304 if the client has sent it only as a weak tag, and adds `Accept-Encoding` to `Vary`. With a
/// strong tag, the client could not determine which stored response the 304 refers to (RFC 9111 §4.3.4).
pub fn weaken_confirmed(fields: &mut FieldList, if_none_match: Option<&[u8]>) {
    let (Some(list), Some(tag)) = (if_none_match, fields.value("ETag")) else {
        return;
    };
    // `true`: the representation exists, because the handler has tagged it.
    let matches = |comparison| list_matches(list, tag.as_bytes(), true, comparison);
    let is_strong = EntityTag::parse(tag.as_bytes()).is_some_and(|tag| !tag.is_weak());
    if is_strong && matches(Comparison::Weak) && !matches(Comparison::Strong) {
        weaken(fields);
        add_vary(fields);
    }
}

/// Weakens a strong tag and removes a malformed one, which would otherwise be compared as if it were strong.
fn weaken(fields: &mut FieldList) {
    let Some(tag) = fields.value("ETag") else { return };
    match EntityTag::parse(tag.as_bytes()) {
        Some(parsed) if parsed.is_weak() => {}
        Some(_) => {
            let weak = format!("W/{tag}");
            fields.set("ETag", weak);
        }
        None => fields.remove("ETag"),
    }
}

fn describes_uncoded_body(name: &str) -> bool {
    UNCODED_BODY_FIELDS.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Returns true if `matches` is true for an element of the list fields with this name.
fn has_element(fields: &FieldList, name: &str, matches: impl Fn(&str) -> bool) -> bool {
    values(fields, name).any(|value| value.split(',').any(|element| matches(element.trim())))
}

/// Returns the values of all fields with this name.
fn values<'a>(fields: &'a FieldList, name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = fields.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value)
}
