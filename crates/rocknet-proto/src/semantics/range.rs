//! Byte ranges: parses `Range` and formats `Content-Range` (RFC 9110 §14).

use smallvec::SmallVec;

use super::list;
use crate::decimal;

/// Maximum number of ranges in a request; a request with more gets the whole representation. Media players and document
/// viewers request one to three ranges. Lists of hundreds are attacks (CVE-2011-3192).
pub const MAX_RANGES: usize = 16;

/// Ranges of one request, in the order of the request. Up to four need no allocation.
pub type RangeList = SmallVec<[ByteRange; 4]>;

/// A part of a representation, of at least one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteRange {
    /// Position of the first byte.
    first: u64,
    /// Position of the last byte, inclusive.
    last: u64,
}

impl ByteRange {
    /// Returns the position of the first byte.
    pub fn first(self) -> u64 {
        self.first
    }

    /// Returns the position of the last byte, which is included.
    pub fn last(self) -> u64 {
        self.last
    }

    /// Returns the number of bytes, which is never 0. The sum cannot overflow, because `last` is less than the length
    /// of the representation.
    pub fn size(self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns the range as half-open bounds.
    pub fn bounds(self) -> std::ops::Range<u64> {
        self.first..self.last + 1
    }

    /// Returns true if the ranges have a byte in common.
    fn overlaps(self, other: ByteRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Response that a `Range` field selects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ranges {
    /// 200 with the whole representation. The field is malformed, has a unit other than bytes, or has more than
    /// [`MAX_RANGES`] ranges (§14.2). A suffix of an empty representation selects the whole, too. Overlapping ranges
    /// also select the whole, because their total size could exceed the whole (§17.15).
    Whole,
    /// 206 with `Content-Range`.
    One(ByteRange),
    /// 206 with `multipart/byteranges`, for at least two ranges that do not overlap.
    Many(RangeList),
    /// 416 with [`ContentRange::unsatisfied`].
    Unsatisfiable,
}

/// Parses the value of a `Range` field for a representation of `length` bytes. Ranges that begin after its end are
/// dropped, and ranges that only end after it are clamped. The cost is linear in the value, and at most [`MAX_RANGES`]
/// ranges are compared.
///
/// Repeated `Range` fields are not allowed. If the caller joins them with `, `, the value is malformed.
pub fn parse(value: &[u8], length: u64) -> Ranges {
    let Some(set) = range_set(list::trim(value)) else {
        return Ranges::Whole;
    };
    let mut ranges = RangeList::new();
    let mut specs = 0;
    let mut satisfiable = false;
    for spec in list::parts(set, b',') {
        specs += 1;
        let Some(spec) = Spec::parse(spec).filter(|_| specs <= MAX_RANGES) else {
            return Ranges::Whole;
        };
        satisfiable |= spec.is_satisfiable(length);
        let Some(range) = spec.within(length) else { continue };
        if ranges.iter().any(|&before| before.overlaps(range)) {
            return Ranges::Whole;
        }
        ranges.push(range);
    }
    match ranges[..] {
        // A value without ranges is malformed. A suffix of an empty representation is satisfiable, but Content-Range
        // cannot express it.
        [] if specs == 0 || satisfiable => Ranges::Whole,
        [] => Ranges::Unsatisfiable,
        [only] => Ranges::One(only),
        _ => Ranges::Many(ranges),
    }
}

/// Returns the ranges after `bytes=`; `None` for another unit. The unit is case-insensitive.
fn range_set(value: &[u8]) -> Option<&[u8]> {
    let (unit, set) = value.split_at_checked("bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

/// A range as requested.
#[derive(Clone, Copy)]
enum Spec {
    /// The bytes from `first` to `last`, which is `u64::MAX` if it is missing.
    From { first: u64, last: u64 },
    /// The last `size` bytes.
    Suffix { size: u64 },
}

impl Spec {
    /// Parses `int-range = first-pos "-" [ last-pos ]` or `suffix-range = "-" suffix-length`; `None` for other bytes,
    /// and for a last position before the first.
    fn parse(spec: &[u8]) -> Option<Spec> {
        let dash = memchr::memchr(b'-', spec)?;
        match (&spec[..dash], &spec[dash + 1..]) {
            (b"", size) => Some(Spec::Suffix { size: position(size)? }),
            (first, b"") => Some(Spec::From {
                first: position(first)?,
                last: u64::MAX,
            }),
            (first, last) => {
                let (first, last) = (position(first)?, position(last)?);
                (first <= last).then_some(Spec::From { first, last })
            }
        }
    }

    /// Returns true if the range is satisfiable by §14.1.2. A suffix is satisfiable even if the representation is
    /// empty.
    fn is_satisfiable(self, length: u64) -> bool {
        match self {
            Spec::From { first, .. } => first < length,
            Spec::Suffix { size } => size > 0,
        }
    }

    /// Returns the range clamped to a representation of `length` bytes; `None` if no byte is left.
    fn within(self, length: u64) -> Option<ByteRange> {
        let end = length.checked_sub(1)?;
        match self {
            Spec::From { first, last } => (first <= end).then(|| ByteRange {
                first,
                last: last.min(end),
            }),
            Spec::Suffix { size: 0 } => None,
            Spec::Suffix { size } => Some(ByteRange {
                first: length.saturating_sub(size),
                last: end,
            }),
        }
    }
}

/// Parses `1*DIGIT`; `None` for other bytes. A number above 64 bits becomes `u64::MAX`, which is also beyond the end of
/// any representation.
fn position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum: u64, &b| {
        sum.saturating_mul(10).saturating_add(u64::from(b - b'0'))
    }))
}

/// Value of `Content-Range`, built without allocation.
#[derive(Clone, Copy)]
pub struct ContentRange {
    bytes: [u8; ContentRange::MAX_LENGTH],
    /// Number of bytes in use.
    length: u8,
}

impl ContentRange {
    /// Maximum length in bytes.
    pub const MAX_LENGTH: usize = "bytes -/".len() + 3 * decimal::MAX_DIGITS;

    /// Creates `bytes first-last/length`, for a 206.
    pub fn new(range: ByteRange, length: u64) -> ContentRange {
        let mut value = ContentRange::empty();
        value.push(b"bytes ");
        value.push_number(range.first);
        value.push(b"-");
        value.push_number(range.last);
        value.push(b"/");
        value.push_number(length);
        value
    }

    /// Creates `bytes */length`, for a 416.
    pub fn unsatisfied(length: u64) -> ContentRange {
        let mut value = ContentRange::empty();
        value.push(b"bytes */");
        value.push_number(length);
        value
    }

    /// Returns the field value.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn empty() -> ContentRange {
        ContentRange {
            bytes: [0; ContentRange::MAX_LENGTH],
            length: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }

    fn push_number(&mut self, value: u64) {
        self.push(decimal::digits(value, &mut [0; decimal::MAX_DIGITS]));
    }
}

impl std::fmt::Debug for ContentRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ContentRange({})", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::fuzzing;
    use proptest::prelude::*;

    fn range(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    /// Creates ranges from their first and last positions.
    fn many(ranges: &[(u64, u64)]) -> Ranges {
        Ranges::Many(ranges.iter().map(|&(first, last)| range(first, last)).collect())
    }

    /// Checks the ranges parsed from a field value, and the invariants of all parsed ranges.
    fn check(value: &str, length: u64, expected: &Ranges) {
        assert_eq!(parse(value.as_bytes(), length), *expected, "{value} of {length}");
        fuzzing::ranges(value.as_bytes(), length);
    }

    #[test]
    fn range_values_are_parsed() {
        use Ranges::{One, Unsatisfiable, Whole};
        const MAX: u64 = u64::MAX;
        // Value of Range, length of the representation in bytes, and the expected ranges.
        let rows: &[(&str, u64, Ranges)] = &[
            // Examples of RFC 9110 §14.1.2, for 10,000 bytes.
            ("bytes=0-499", 10_000, One(range(0, 499))),
            ("bytes=500-999", 10_000, One(range(500, 999))),
            ("bytes=-500", 10_000, One(range(9_500, 9_999))),
            ("bytes=9500-", 10_000, One(range(9_500, 9_999))),
            ("bytes=0-0,-1", 10_000, many(&[(0, 0), (9_999, 9_999)])),
            (
                "bytes= 0-999, 4500-5499, -1000",
                10_000,
                many(&[(0, 999), (4_500, 5_499), (9_000, 9_999)]),
            ),
            ("bytes=500-600,601-999", 10_000, many(&[(500, 600), (601, 999)])),
            ("bytes=500-700,601-999", 10_000, Whole),
            // The order of the client is kept.
            ("bytes=-1,0-0", 10, many(&[(9, 9), (0, 0)])),
            ("Bytes=0-0", 10, One(range(0, 0))),
            ("bytes=,,0-0 ,\t", 10, One(range(0, 0))),
            // Ranges are clamped at the end and dropped beyond it.
            ("bytes=5-1000", 10, One(range(5, 9))),
            ("bytes=-1000", 10, One(range(0, 9))),
            ("bytes=0-", 10, One(range(0, 9))),
            ("bytes=10-", 10, Unsatisfiable),
            ("bytes=10-20,-0", 10, Unsatisfiable),
            ("bytes=10-20,0-1", 10, One(range(0, 1))),
            ("bytes=0-1,10-20,10-20", 10, One(range(0, 1))),
            ("bytes=-0", 10, Unsatisfiable),
            ("bytes=0-99999999999999999999999", 10, One(range(0, 9))),
            ("bytes=99999999999999999999999-", 10, Unsatisfiable),
            ("bytes=-99999999999999999999999", 10, One(range(0, 9))),
            ("bytes=0-18446744073709551615", MAX, One(range(0, MAX - 1))),
            ("bytes=18446744073709551615-", MAX, Unsatisfiable),
            ("bytes=18446744073709551614-", MAX, One(range(MAX - 1, MAX - 1))),
            // Ranges of an empty representation.
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=0-0", 0, Unsatisfiable),
            ("bytes=-0", 0, Unsatisfiable),
            ("bytes=-1", 0, Whole),
            // Overlaps.
            ("bytes=0-5,5-9", 10, Whole),
            ("bytes=5-9,0-5", 10, Whole),
            ("bytes=0-9,2-3", 10, Whole),
            ("bytes=0-,0-", 10, Whole),
            ("bytes=0-5,-5", 10, Whole),
            // Malformed.
            ("bytes=", 10, Whole),
            ("bytes=,", 10, Whole),
            ("bytes", 10, Whole),
            ("", 10, Whole),
            ("0-5", 10, Whole),
            ("items=0-5", 10, Whole),
            ("bytes =0-5", 10, Whole),
            ("bytes:0-5", 10, Whole),
            ("bytes=5", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=5-4", 10, Whole),
            ("bytes=+1-4", 10, Whole),
            ("bytes=1-4-5", 10, Whole),
            ("bytes=--5", 10, Whole),
            ("bytes=0x1-4", 10, Whole),
            ("bytes=1 -4", 10, Whole),
            ("bytes=0-1,x", 10, Whole),
            ("bytes=x,0-1", 10, Whole),
            ("bytes=0-1;2-3", 10, Whole),
            ("bytes=0-1, bytes=2-3", 10, Whole),
        ];
        for (value, length, expected) in rows {
            check(value, *length, expected);
        }
    }

    #[test]
    fn too_many_ranges_select_the_whole() {
        let value = |count: u64| {
            let ranges: Vec<String> = (0..count).map(|n| format!("{}-{}", n * 2, n * 2)).collect();
            format!("bytes={}", ranges.join(","))
        };
        let most = MAX_RANGES as u64;
        let Ranges::Many(ranges) = parse(value(most).as_bytes(), 1000) else {
            panic!("{most} are allowed")
        };
        assert_eq!(ranges.len(), MAX_RANGES);
        check(&value(most + 1), 1000, &Ranges::Whole);
        check(&value(1300), 10_000, &Ranges::Whole);
        let beyond = format!("bytes={}0-1", "5000-,".repeat(MAX_RANGES));
        check(&beyond, 1000, &Ranges::Whole);
    }

    #[test]
    fn content_ranges_are_formatted() {
        // Content-Range, and its expected field value.
        let rows: &[(ContentRange, &str)] = &[
            (ContentRange::new(range(42, 1233), 1234), "bytes 42-1233/1234"),
            (ContentRange::new(range(0, 0), 1), "bytes 0-0/1"),
            (
                ContentRange::new(range(u64::MAX - 1, u64::MAX - 1), u64::MAX),
                "bytes 18446744073709551614-18446744073709551614/18446744073709551615",
            ),
            (ContentRange::unsatisfied(1234), "bytes */1234"),
            (ContentRange::unsatisfied(0), "bytes */0"),
        ];
        for (value, expected) in rows {
            assert_eq!(value.as_bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn size_and_bounds_include_both_ends() {
        assert_eq!((range(3, 3).size(), range(0, 9).size()), (1, 10));
        assert_eq!(range(2, 4).bounds(), 2..5);
    }

    proptest! {
        #[test]
        fn ranges_stay_within_the_length(value in "bytes=[0-9]{0,3}-[0-9]{0,3}(,[0-9]{0,3}-[0-9]{0,3}){0,4}", length in 0..300_u64) {
            fuzzing::ranges(value.as_bytes(), length);
        }

        #[test]
        fn one_range_is_clamped_to_the_length(length in 1..1000_u64, ends in (0..1000_u64, 0..1000_u64)) {
            let (first, last) = (ends.0.min(ends.1), ends.0.max(ends.1));
            let expected = if first < length { Ranges::One(range(first, last.min(length - 1))) } else { Ranges::Unsatisfiable };
            check(&format!("bytes={first}-{last}"), length, &expected);
        }

        #[test]
        fn any_bytes_do_not_panic(value in prop::collection::vec(any::<u8>(), 0..40), length: u64) {
            fuzzing::ranges(&value, length);
        }
    }
}
