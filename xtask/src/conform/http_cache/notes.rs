//! Reasons for the failures of `http-cache-tests`.

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The cache behaves otherwise on purpose.
    Deliberate,
    /// The test cannot see what the cache does.
    Harness,
    /// The cache does not do what would be possible, and no rule demands it.
    Missing,
}

impl Cause {
    /// Returns the word of the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Deliberate => "deliberate",
            Cause::Harness => "harness",
            Cause::Missing => "not implemented",
        }
    }
}

/// Returns the note about a failed test; `None` for an unexpected failure.
pub fn of(id: &str) -> Option<(Cause, &'static str)> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => id == pattern,
    };
    let note = NOTES.iter().find(|(pattern, ..)| matches(pattern));
    note.map(|(_, cause, text)| (*cause, *text))
}

/// Pattern of the names of tests, cause and explanation. `*` at the end stands for any text. The first one applies.
const NOTES: &[(&str, Cause, &str)] = &[
    (
        "age-parse-prefix",
        Cause::Deliberate,
        "an `Age` with several values makes a response stale. RFC 9111 §5.1 recommends the first value, and \
         `age-parse-dup-0` of the suite demands the opposite",
    ),
    (
        "stale-close-*",
        Cause::Harness,
        "the response is 502, so nothing stale is sent. The test looks for a counter of the origin in it, which has \
         closed the connection. The suite shows the test as skipped for caches that fail `stale-close`. The server test \
         `forbidden_stale_responses_are_not_sent` covers the rule",
    ),
    (
        "headers-store-Set-Cookie",
        Cause::Deliberate,
        "a response with `Set-Cookie` is not stored, because a session would reach other clients",
    ),
    (
        "304-etag-update-response-Set-Cookie",
        Cause::Deliberate,
        "a response with `Set-Cookie` is not stored. That of a 304 is sent to the client of the validation alone",
    ),
    (
        "other-set-cookie",
        Cause::Deliberate,
        "a response with `Set-Cookie` is not stored, because a session would reach other clients",
    ),
    (
        "headers-store-Transfer-Encoding",
        Cause::Deliberate,
        "the origin sends an unknown transfer coding, so the length of the body is not known (RFC 9112 §6.3), and the \
         response is refused with 502",
    ),
    (
        "304-etag-update-response-ETag",
        Cause::Deliberate,
        "a 304 with another entity tag must not update the stored response (RFC 9111 §4.3.4), so the request is repeated \
         without validators. The suite ends the test at a second request",
    ),
    (
        "other-date-update",
        Cause::Deliberate,
        "the server sets `Date` in each response, as nginx does. `Age` has the time since the response was made",
    ),
    (
        "surrogate-*",
        Cause::Deliberate,
        "`Surrogate-Control` is ignored, because `CDN-Cache-Control` (RFC 9213) replaces it",
    ),
    ("method-POST", Cause::Missing, "responses to POST are not stored"),
    (
        "vary-normalise-*",
        Cause::Missing,
        "only the case, the whitespace and several lines of `Accept`, `Accept-Charset`, `Accept-Encoding` and \
         `Accept-Language` make no difference",
    ),
    (
        "conditional-lm-fresh-no-lm",
        Cause::Missing,
        "`If-Modified-Since` is compared with `Last-Modified` alone",
    ),
    ("partial-*", Cause::Missing, "responses with 206 are not stored"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_found_by_name_and_by_prefix() {
        assert_eq!(of("other-date-update").map(|(cause, _)| cause), Some(Cause::Deliberate));
        assert_eq!(of("stale-close-no-cache").map(|(cause, _)| cause), Some(Cause::Harness));
        assert_eq!(of("other-date-update-2"), None);
    }
}
