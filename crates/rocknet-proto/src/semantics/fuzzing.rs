//! Laws that hold for any bytes: what the fuzz targets run, and the property tests and seeds beside them.

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
