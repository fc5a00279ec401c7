//! Laws that hold for any bytes: what the fuzz targets run, and the property tests and seeds beside them.

use super::multipart::{Boundary, ByteRanges};
use super::range::{self, MAX_RANGES, Ranges};
use super::safe_path::SafePath;

/// A [`SafePath`] never leaves its root, and is a fixed point of its own rules.
pub fn target_path(raw: &[u8]) {
    let Ok(path) = SafePath::parse(raw) else { return };
    assert!(path.as_str().starts_with('/'));
    assert!(path.as_str().len() <= raw.len());
    for segment in path.as_str()[1..].trim_end_matches('/').split('/') {
        assert!(!segment.is_empty() || path.as_str() == "/");
        assert!(segment != "." && segment != "..");
        assert!(!segment.contains(['\\', ':']) && !segment.contains(|c: char| c.is_ascii_control()));
    }
    assert!(!path.as_str().contains("//"));
    let relative = if path.as_str() == "/" { "" } else { path.relative() };
    assert_eq!(path.segments().collect::<Vec<_>>().join("/"), relative);
    let again = SafePath::from_decoded(path.as_str()).expect("a safe path is safe");
    assert_eq!(again.as_str(), path.as_str());
}

/// The first eight bytes are the length of the representation, the rest the field value.
pub fn range(data: &[u8]) {
    if let Some((length, value)) = data.split_first_chunk() {
        ranges(value, u64::from_be_bytes(*length));
    }
}

/// Ranges lie within the representation, do not overlap, and are together no longer than it.
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
    assert!(ByteRanges::new(&ranges, length, None, Boundary::new([0; 16])).content_length() > sum.min(u64::MAX - 1));
}
