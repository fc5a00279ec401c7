//! Checks invariants of the semantics modules on arbitrary bytes, for fuzz targets, their seeds, and property tests.

use super::authority::{Authority, HOST_BUFFER};
use super::conditional::{self, Outcome, Preconditions, Validators};
use super::date;
use super::etag::{self, Comparison, EntityTag};
use super::forwarded;
use super::media_type::{self, MediaType};
use super::multipart::{Boundary, MultipartRanges};
use super::negotiation::{self, AcceptEncoding, Coding};
use super::range::{self, MAX_RANGES, Ranges};
use super::safe_path::{PathError, SafePath};
use crate::method::Method;

/// Checks that a [`SafePath`] never leaves its root, and that parsing it again returns the same path. The path of
/// [`SafePath::for_rules`], which routes and rewrite rules match, must equal it. If no file can have the path, the path
/// for rules must still be normalized.
pub fn target_path(raw: &[u8]) {
    let path = SafePath::parse(raw);
    let rule_path = SafePath::for_rules(raw);
    match (&path, &rule_path) {
        (Ok(path), Ok(rule_path)) => assert_eq!(path.as_str(), rule_path),
        (Err(PathError::Unmatchable), Ok(_)) => {}
        (Err(error), Err(same)) => assert_eq!(error, same),
        _ => panic!("{path:?} has the rule path {rule_path:?}"),
    }
    if let Ok(rule_path) = &rule_path {
        assert!(!rule_path.contains(|c: char| c.is_ascii_control()));
        assert_normalized(rule_path);
    }
    let Ok(path) = path else { return };
    assert!(path.as_str().starts_with('/'));
    assert!(path.as_str().len() <= raw.len());
    assert_normalized(path.as_str());
    assert!(!path.as_str().contains(['\\', ':']));
    let hidden = |(position, name): (usize, &str)| name.starts_with('.') && (position, name) != (0, ".well-known");
    assert!(path.has_dot_segment() || !path.segments().enumerate().any(hidden));
    let relative = if path.as_str() == "/" { "" } else { path.relative() };
    assert_eq!(path.segments().collect::<Vec<_>>().join("/"), relative);
    let again = SafePath::from_decoded(path.as_str()).expect("a safe path can be parsed again");
    assert_eq!(again.as_str(), path.as_str());
}

/// Asserts that the path begins with a slash and has no segment that is empty, `.` or `..`.
fn assert_normalized(path: &str) {
    let inner = path.strip_prefix('/').expect("a path begins with a slash");
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if path == "/" {
        return;
    }
    for segment in inner.split('/') {
        assert!(!matches!(segment, "" | "." | ".."), "{path:?}");
    }
}

/// Reads the length of the representation from the first eight bytes, and checks the remaining bytes as a `Range`
/// value.
pub fn range(data: &[u8]) {
    if let Some((length, value)) = data.split_first_chunk() {
        ranges(value, u64::from_be_bytes(*length));
    }
}

/// Checks that the parsed ranges are within the representation and do not overlap.
pub fn ranges(value: &[u8], length: u64) {
    let ranges = match range::parse(value, length) {
        Ranges::Whole | Ranges::Unsatisfiable => return,
        Ranges::One(only) => vec![only],
        Ranges::Many(ranges) => {
            assert!((2..=MAX_RANGES).contains(&ranges.len()));
            ranges.to_vec()
        }
    };
    let mut sorted = ranges.clone();
    sorted.sort_by_key(|range| range.first());
    let mut end = 0;
    let mut sum = 0;
    for range in sorted {
        assert!(end <= range.first() && range.first() <= range.last() && range.last() < length);
        end = range.last() + 1;
        sum += range.size();
    }
    assert!(sum <= length);
    // The body is longer than its ranges, because each part has a head. Its length saturates at `u64::MAX`.
    assert!(
        MultipartRanges::new(&ranges, length, None, Boundary::new([0; 16])).content_length() > sum.min(u64::MAX - 1)
    );
}

/// Parses arbitrary bytes as the value of each field, and checks that the results are bounded and consistent.
pub fn field_value(value: &[u8]) {
    date_value(value);
    tag_value(value);
    condition_value(value);
    coding_value(value);
    authority_value(value);
    forwarded_value(value);
    for length in [0, 1, 1000, u64::MAX] {
        ranges(value, length);
    }
    media_type::is_compressible(value);
    if let Ok(name) = std::str::from_utf8(value) {
        assert!(!MediaType::of_name(name).value.is_empty());
    }
}

/// Checks that a date with one byte more or less is invalid, and that formatting a parsed date and parsing it again
/// returns the same time.
fn date_value(value: &[u8]) {
    let Some(moment) = date::parse(value) else { return };
    let written = date::format(moment);
    let again = date::parse(&written).expect("a written value can be parsed");
    // Only the leap second at the end of the year 9999 is formatted as the second before it.
    assert!(again == moment || again + 1 == moment);
    assert_eq!(date::parse(&value[..value.len() - 1]), None);
    assert_eq!(date::parse(&[value, b" "].concat()), None);
}

/// Checks that a tag with one byte more or less is invalid, and that a tag matches itself.
fn tag_value(value: &[u8]) {
    let Some(tag) = EntityTag::parse(value) else { return };
    let weak: &[u8] = if tag.is_weak() { b"W/" } else { b"" };
    assert_eq!([weak, b"\"", tag.opaque(), b"\""].concat(), value);
    // The third argument is true, because there is a current representation.
    assert!(etag::list_matches(value, value, true, Comparison::Weak));
    assert_eq!(
        etag::list_matches(value, value, true, Comparison::Strong),
        !tag.is_weak()
    );
    assert_eq!(EntityTag::parse(&value[..value.len() - 1]), None);
    assert_eq!(EntityTag::parse(&[value, b"\""].concat()), None);
}

/// Checks that each precondition field leads only to the outcomes that it allows.
fn condition_value(value: &[u8]) {
    let existing = Validators {
        etag: b"\"v1\"",
        // Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110 §5.6.7.
        last_modified: Some(784_111_777),
    };
    // The third argument is true if there is a current representation. Without one, nothing matches.
    let strong = etag::list_matches(value, existing.etag, true, Comparison::Strong);
    let weak = etag::list_matches(value, existing.etag, true, Comparison::Weak);
    assert!(weak || !strong, "a strong match is a weak match");
    // `false`: there is no representation, so that nothing matches, not even `*`.
    assert!(!etag::list_matches(value, existing.etag, false, Comparison::Weak));
    if conditional::if_range(value, &existing) {
        assert!(strong || date::parse(value.trim_ascii()) == existing.last_modified);
    }
    let none = Preconditions::default();
    let value = Some(value);
    let (not_modified, failed) = (Outcome::NotModified, Outcome::PreconditionFailed);
    // Preconditions, and the only outcome that they allow other than `Proceed`.
    for (preconditions, other) in [
        (
            Preconditions {
                if_match: value,
                ..none
            },
            failed,
        ),
        (
            Preconditions {
                if_unmodified_since: value,
                ..none
            },
            failed,
        ),
        (
            Preconditions {
                if_none_match: value,
                ..none
            },
            not_modified,
        ),
        (
            Preconditions {
                if_modified_since: value,
                ..none
            },
            not_modified,
        ),
    ] {
        // The last argument is true, because there is a current representation.
        let outcome = conditional::evaluate(Method::Get, &preconditions, &existing, true);
        assert!(outcome == Outcome::Proceed || outcome == other);
        let outcome = conditional::evaluate(Method::Options, &preconditions, &existing, true);
        assert_eq!(outcome, Outcome::Proceed);
    }
}

/// Checks that the chosen coding is identity, or was offered and is accepted.
fn coding_value(value: &[u8]) {
    let accepted = AcceptEncoding::parse(Some(value));
    for offered in [&Coding::BY_PREFERENCE[..], &Coding::BY_PREFERENCE[1..3], &[]] {
        let chosen = negotiation::choose_coding(accepted, offered);
        assert!(chosen == Coding::Identity || (offered.contains(&chosen) && accepted.accepts(chosen)));
    }
    assert_eq!(negotiation::preferred_media_type(value, &[]), None);
    assert!(negotiation::preferred_media_type(value, &["text/html", "application/json"]).is_none_or(|index| index < 2));
}

/// Checks that the values of an element of `Forwarded` do not change if it is written and parsed again.
fn forwarded_value(value: &[u8]) {
    // The parser of nodes gets arbitrary bytes. If they are a node, it replaces a missing address below.
    let node = forwarded::parse_node(value);
    for element in forwarded::parse_elements(value).unwrap_or_default() {
        let address = element.for_node.as_deref().and_then(forwarded::parse_node);
        let address = address.or(node).map(|node| node.address.to_canonical());
        let text = |value: &Option<std::borrow::Cow<'_, [u8]>>| value.as_deref().unwrap_or_default().to_vec();
        let (host, proto) = (text(&element.host), text(&element.proto));
        let mut written = Vec::new();
        forwarded::write_element(&mut written, address, &host, &proto);
        let again = forwarded::parse_elements(&written).expect("a written value can be parsed");
        assert_eq!(again.len(), 1);
        assert_eq!((text(&again[0].host), text(&again[0].proto)), (host, proto));
        let node = again[0].for_node.as_deref().and_then(forwarded::parse_node);
        assert_eq!(node.map(|node| node.address), address);
    }
}

/// Checks that a host has no byte that could end a field or break out of a URL, and that parsing its canonical form
/// returns the same host.
fn authority_value(value: &[u8]) {
    let Some(authority) = Authority::parse(value) else {
        return;
    };
    let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.[]:".contains(byte);
    assert!(!authority.host.is_empty() && authority.host.iter().all(harmless));
    let mut buffer = [0; HOST_BUFFER];
    let lower = authority.lower_host(&mut buffer).to_owned();
    let again = Authority::parse(lower.as_bytes()).expect("a lower-case host can be parsed");
    assert_eq!(again.lower_host(&mut [0; HOST_BUFFER]), lower);
    assert_eq!((again.kind, again.port), (authority.kind, None));
}
