//! Formats figures for templates. The parameters are generic because a template passes fields as references, and
//! results of expressions as values.

use std::borrow::Borrow;

use rocknet_control::status::ResponseCache;
use rocknet_control::text;

/// Formats a number with separators.
pub fn count(number: impl Borrow<u64>) -> String {
    text::count(*number.borrow())
}

/// Formats a size with its unit.
pub fn bytes(number: impl Borrow<u64>) -> String {
    text::bytes(*number.borrow())
}

/// Formats a part of a whole as a percentage.
pub fn share(part: impl Borrow<u64>, whole: impl Borrow<u64>) -> String {
    text::share(*part.borrow(), *whole.borrow())
}

/// Formats a duration in seconds with its units.
pub fn duration(seconds: impl Borrow<u64>) -> String {
    text::duration(*seconds.borrow())
}

/// Formats a duration in microseconds with its unit.
pub fn short(microseconds: impl Borrow<u64>) -> String {
    text::short_duration(*microseconds.borrow())
}

/// Describes the share of requests that the response cache served without forwarding them.
pub fn stored_hits(cache: impl Borrow<ResponseCache>) -> String {
    let cache = cache.borrow();
    match cache.requests() {
        0 => "–".to_owned(),
        requests => format!(
            "{} of {} requests",
            share(cache.served(), requests),
            text::count(requests)
        ),
    }
}

/// Describes the sizes of the response cache.
pub fn stored_bytes(cache: impl Borrow<ResponseCache>) -> String {
    let cache = cache.borrow();
    let memory = format!("{} in memory", text::bytes(cache.bytes));
    match cache.disk {
        Some(disk) => format!("{memory}, {} on disk", text::bytes(disk.bytes)),
        None => memory,
    }
}

/// Formats a time in seconds of the Unix clock, in universal time.
pub fn date(unix_seconds: impl Borrow<u64>) -> String {
    text::http_date(*unix_seconds.borrow())
}
