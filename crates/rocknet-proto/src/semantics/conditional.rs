//! Conditional requests: evaluates preconditions against the current representation (RFC 9110 §13).

use super::etag::{self, Comparison, EntityTag};
use super::{date, list};
use crate::method::Method;

/// Values of the precondition fields, as sent.
///
/// The caller must join repeated fields with `, `. Joined dates are invalid and therefore ignored, as the standard
/// requires.
#[derive(Clone, Copy, Default, Debug)]
pub struct Preconditions<'a> {
    /// Value of `If-Match` (§13.1.1).
    pub if_match: Option<&'a [u8]>,
    /// Value of `If-None-Match` (§13.1.2).
    pub if_none_match: Option<&'a [u8]>,
    /// Value of `If-Modified-Since` (§13.1.3).
    pub if_modified_since: Option<&'a [u8]>,
    /// Value of `If-Unmodified-Since` (§13.1.4).
    pub if_unmodified_since: Option<&'a [u8]>,
}

/// Validators of the selected representation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Validators<'a> {
    /// Entity tag with its quotes; empty without a tag.
    pub etag: &'a [u8],
    /// Time of the last modification, in seconds since 1970.
    pub last_modified: Option<u64>,
}

/// Result of [`evaluate`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Respond as if there were no preconditions. The caller evaluates `If-Range` and `Range` only in this case.
    Proceed,
    /// Respond with 304.
    NotModified,
    /// Respond with 412.
    PreconditionFailed,
}

/// Evaluates the preconditions in the order of RFC 9110 §13.2.2.
///
/// Callers must evaluate preconditions only if the response without them would be a 2xx (§13.2.1). `exists` is true
/// if there is a current representation, which `*` matches. `If-Match` replaces `If-Unmodified-Since`, and
/// `If-None-Match` replaces `If-Modified-Since`. A date field is also ignored if its value is invalid, or if the
/// representation does not exist or has no date. An invalid list of tags matches nothing.
pub fn evaluate(
    method: Method,
    preconditions: &Preconditions<'_>,
    validators: &Validators<'_>,
    exists: bool,
) -> Outcome {
    // These methods select no representation, so preconditions do not apply (§13.2.1).
    if matches!(method, Method::Connect | Method::Options | Method::Trace) {
        return Outcome::Proceed;
    }
    let reads = matches!(method, Method::Get | Method::Head);
    let last_modified = validators.last_modified.filter(|_| exists);

    if let Some(tags) = preconditions.if_match {
        if !etag::list_matches(tags, validators.etag, exists, Comparison::Strong) {
            return Outcome::PreconditionFailed;
        }
    } else if let Some((since, modified)) = parse_date(preconditions.if_unmodified_since).zip(last_modified)
        && modified > since
    {
        return Outcome::PreconditionFailed;
    }

    if let Some(tags) = preconditions.if_none_match {
        if etag::list_matches(tags, validators.etag, exists, Comparison::Weak) {
            return if reads {
                Outcome::NotModified
            } else {
                Outcome::PreconditionFailed
            };
        }
    } else if reads
        && let Some((since, modified)) = parse_date(preconditions.if_modified_since).zip(last_modified)
        && modified <= since
    {
        return Outcome::NotModified;
    }
    Outcome::Proceed
}

/// Returns true if `If-Range` permits the use of `Range`: the part that the client has comes from the current
/// representation (§13.1.5).
///
/// Tags are compared strongly. A date must equal `last_modified`, because a later date does not prove that the client
/// has the current bytes. Callers should omit `last_modified` of a file that changed within the last second, because
/// its date is not a strong validator (§8.8.2.2).
pub fn if_range(value: &[u8], validators: &Validators<'_>) -> bool {
    let value = list::trim(value);
    match EntityTag::parse(value) {
        Some(requested) => {
            EntityTag::parse(validators.etag).is_some_and(|tag| tag.matches(&requested, Comparison::Strong))
        }
        None => date::parse(value).is_some_and(|date| validators.last_modified == Some(date)),
    }
}

/// Parses the value of a date field; `None` if the field is missing or invalid.
fn parse_date(value: Option<&[u8]>) -> Option<u64> {
    date::parse(list::trim(value?))
}

#[cfg(test)]
mod tests {
    use super::Outcome::{NotModified, PreconditionFailed, Proceed};
    use super::*;

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    /// Validators of a representation that was modified at [`SAME`].
    const EXISTING: Validators<'_> = Validators {
        etag: br#""v1""#,
        last_modified: Some(784_111_777),
    };
    const WITHOUT_VALIDATORS: Validators<'_> = Validators {
        etag: b"",
        last_modified: None,
    };

    /// Checks conditions that are written as `field: value` lines.
    fn check(
        method: Method,
        conditions: &[&'static str],
        validators: &Validators<'_>,
        exists: bool,
        expected: Outcome,
    ) {
        let mut preconditions = Preconditions::default();
        for condition in conditions {
            let (name, value) = condition.split_once(": ").unwrap();
            let value = Some(value.as_bytes());
            match name {
                "If-Match" => preconditions.if_match = value,
                "If-None-Match" => preconditions.if_none_match = value,
                "If-Modified-Since" => preconditions.if_modified_since = value,
                "If-Unmodified-Since" => preconditions.if_unmodified_since = value,
                _ => panic!("{name} is not a precondition field"),
            }
        }
        let outcome = evaluate(method, &preconditions, validators, exists);
        assert_eq!(outcome, expected, "{method:?} {conditions:?} {validators:?}");
    }

    /// Returns the line `name: value` with a static lifetime, as the rows of the tests need it.
    fn leaked(name: &str, value: &str) -> &'static str {
        format!("{name}: {value}").leak()
    }

    #[test]
    fn conditions_on_an_existing_representation() {
        let since = |value| leaked("If-Modified-Since", value);
        let until = |value| leaked("If-Unmodified-Since", value);
        // Method, lines of preconditions, and the expected outcome.
        let rows: &[(Method, &[&'static str], Outcome)] = &[
            (Method::Get, &[], Proceed),
            (Method::Get, &[r#"If-Match: "v1""#], Proceed),
            (Method::Get, &[r#"If-Match: "v0", "v1""#], Proceed),
            (Method::Get, &["If-Match: *"], Proceed),
            (Method::Get, &[r#"If-Match: "v0""#], PreconditionFailed),
            (Method::Get, &[r#"If-Match: W/"v1""#], PreconditionFailed),
            (Method::Get, &["If-Match: junk"], PreconditionFailed),
            (Method::Get, &[r#"If-None-Match: "v1""#], NotModified),
            (Method::Head, &[r#"If-None-Match: W/"v1""#], NotModified),
            (Method::Get, &["If-None-Match: *"], NotModified),
            (Method::Get, &[r#"If-None-Match: "v0""#], Proceed),
            (Method::Get, &["If-None-Match: junk"], Proceed),
            (Method::Put, &[r#"If-None-Match: "v1""#], PreconditionFailed),
            (Method::Post, &["If-None-Match: *"], PreconditionFailed),
            (Method::Other, &["If-None-Match: *"], PreconditionFailed),
            (Method::Get, &[since(BEFORE)], Proceed),
            (Method::Get, &[since(SAME)], NotModified),
            (Method::Get, &[since(AFTER)], NotModified),
            (
                Method::Get,
                &["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"],
                NotModified,
            ),
            (
                Method::Get,
                &["If-Modified-Since: Sun Nov  6 08:49:37 1994"],
                NotModified,
            ),
            (Method::Get, &["If-Modified-Since: yesterday"], Proceed),
            (
                Method::Get,
                &["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT"],
                Proceed,
            ),
            (Method::Put, &[since(SAME)], Proceed),
            (Method::Get, &[until(BEFORE)], PreconditionFailed),
            (Method::Get, &[until(SAME)], Proceed),
            (Method::Put, &[until(AFTER)], Proceed),
            (Method::Get, &["If-Unmodified-Since: tomorrow"], Proceed),
            // Tags take precedence over dates.
            (Method::Get, &[r#"If-None-Match: "v0""#, since(AFTER)], Proceed),
            (Method::Get, &[r#"If-None-Match: "v1""#, since(BEFORE)], NotModified),
            (Method::Get, &["If-None-Match: junk", since(AFTER)], Proceed),
            (Method::Get, &[r#"If-Match: "v1""#, until(BEFORE)], Proceed),
            (Method::Get, &[r#"If-Match: "v0""#, until(AFTER)], PreconditionFailed),
            // 412 takes precedence over 304.
            (
                Method::Get,
                &[r#"If-Match: "v0""#, r#"If-None-Match: "v1""#],
                PreconditionFailed,
            ),
            (
                Method::Get,
                &[r#"If-Match: "v1""#, r#"If-None-Match: "v1""#],
                NotModified,
            ),
            (Method::Get, &[until(BEFORE), since(AFTER)], PreconditionFailed),
            (Method::Get, &[until(AFTER), since(AFTER)], NotModified),
            // These methods select no representation.
            (Method::Options, &[r#"If-Match: "v0""#], Proceed),
            (Method::Trace, &["If-None-Match: *"], Proceed),
            (Method::Connect, &[until(BEFORE)], Proceed),
        ];
        for &(method, conditions, expected) in rows {
            check(method, conditions, &EXISTING, true, expected);
        }
    }

    #[test]
    fn conditions_without_representation_or_validators() {
        // Method, lines of preconditions, true if the representation exists, and the expected outcome.
        let rows: &[(Method, &[&'static str], bool, Outcome)] = &[
            (Method::Put, &["If-None-Match: *"], false, Proceed),
            (Method::Put, &["If-Match: *"], false, PreconditionFailed),
            (Method::Put, &[r#"If-Match: "v1""#], false, PreconditionFailed),
            (Method::Put, &[leaked("If-Unmodified-Since", BEFORE)], false, Proceed),
            (Method::Get, &["If-None-Match: *"], true, NotModified),
            (Method::Get, &["If-Match: *"], true, Proceed),
            (Method::Get, &[r#"If-None-Match: "v1""#], true, Proceed),
            (Method::Get, &[r#"If-None-Match: """#], true, Proceed),
            (Method::Get, &[leaked("If-Modified-Since", AFTER)], true, Proceed),
            (Method::Get, &[leaked("If-Unmodified-Since", BEFORE)], true, Proceed),
        ];
        for &(method, conditions, exists, expected) in rows {
            check(method, conditions, &WITHOUT_VALIDATORS, exists, expected);
        }
        check(
            Method::Get,
            &[leaked("If-Unmodified-Since", BEFORE)],
            &EXISTING,
            false,
            Proceed,
        );
        check(
            Method::Get,
            &[leaked("If-Modified-Since", AFTER)],
            &EXISTING,
            false,
            Proceed,
        );
    }

    #[test]
    fn if_range_is_strong_and_exact() {
        let weak = Validators {
            etag: br#"W/"v1""#,
            last_modified: None,
        };
        // Value of If-Range, validators of the representation, and true if Range may be used.
        let rows: &[(&str, &Validators<'_>, bool)] = &[
            (r#""v1""#, &EXISTING, true),
            (r#" "v1" "#, &EXISTING, true),
            (r#""v0""#, &EXISTING, false),
            (r#"W/"v1""#, &EXISTING, false),
            (r#""v1""#, &weak, false),
            (r#"W/"v1""#, &weak, false),
            (r#""v1", "v2""#, &EXISTING, false),
            ("*", &EXISTING, false),
            (BEFORE, &EXISTING, false),
            (SAME, &EXISTING, true),
            (AFTER, &EXISTING, false),
            ("Sunday, 06-Nov-94 08:49:37 GMT", &EXISTING, true),
            (SAME, &WITHOUT_VALIDATORS, false),
            (r#""""#, &WITHOUT_VALIDATORS, false),
            ("", &WITHOUT_VALIDATORS, false),
        ];
        for &(value, validators, expected) in rows {
            assert_eq!(
                if_range(value.as_bytes(), validators),
                expected,
                "{value} {validators:?}"
            );
        }
    }
}
