//! Validates the segments of a path as file names, by the same rules on every operating system.
//!
//! Windows opens other files or devices for `con`, `x.` and `x::$DATA`. Such names are refused on Unix, too, so that a
//! site exposes the same files on every machine.

/// Maximum length of a file name on Linux, in bytes. A longer name matches no file, and some file systems return
/// unexpected errors for it. Other systems count 255 characters instead, but the limit is the same everywhere.
pub(super) const MAX_SEGMENT: usize = 255;

/// Returns true if a decoded segment may be the name of a file or directory. Callers handle empty segments, `.` and
/// `..` themselves. A slash is refused, although callers split paths at slashes. Characters such as `?`, `*` and `<`
/// are allowed: Windows opens no file with such a name, so they cannot lead to another file.
pub(super) fn is_safe(name: &[u8]) -> bool {
    name.len() <= MAX_SEGMENT
        && !name
            .iter()
            .any(|&b| matches!(b, b'\\' | b':' | b'/') || b.is_ascii_control())
        && !has_trailing_dot_or_space(name)
        && !is_windows_device(name)
}

/// Returns true under the same conditions as [`is_safe`], except that the bytes of the name are not checked. The caller
/// must have checked them. Returns false for an empty segment.
pub(super) fn is_plain(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= MAX_SEGMENT && !has_trailing_dot_or_space(name) && !is_windows_device(name)
}

/// Returns true if the name ends with a dot or space. Windows drops dots and spaces at the end, so that `x.php.` would
/// open `x.php` and bypass all rules for it.
fn has_trailing_dot_or_space(name: &[u8]) -> bool {
    matches!(name.last(), Some(b'.' | b' '))
}

/// Returns true for a device name of Windows, in any case, with or without an extension, and with spaces before the
/// extension.
fn is_windows_device(name: &[u8]) -> bool {
    // Every device name begins with one of these letters, so for most names no further test is needed.
    if !matches!(
        name.first().map(u8::to_ascii_lowercase),
        Some(b'a' | b'c' | b'l' | b'n' | b'p')
    ) || name.len() < 3
    {
        return false;
    }
    let stem = name.split(|&b| b == b'.').next().unwrap_or(name).trim_ascii_end();
    let numbered = |prefix: &[u8]| {
        let Some((start, digit)) = stem.split_at_checked(3) else {
            return false;
        };
        // Windows also accepts the superscripts ¹ ² ³ as digits.
        start.eq_ignore_ascii_case(prefix) && matches!(digit, [b'0'..=b'9'] | [0xc2, 0xb9 | 0xb2 | 0xb3])
    };
    DEVICES.iter().any(|device| device.eq_ignore_ascii_case(stem)) || numbered(b"com") || numbered(b"lpt")
}

/// Device names of Windows that do not end with a number.
const DEVICES: [&[u8]; 7] = [b"con", b"prn", b"aux", b"nul", b"conin$", b"conout$", b"clock$"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_names_are_refused() {
        let long = "x".repeat(MAX_SEGMENT);
        let longer = "x".repeat(MAX_SEGMENT + 1);
        // Name of a segment, and true if it is safe.
        let rows: &[(&str, bool)] = &[
            ("index.html", true),
            (".htaccess", true),
            ("a b", true),
            ("caf\u{e9}", true),
            ("console", true),
            ("com", true),
            ("com10", true),
            ("comx", true),
            ("nullable.js", true),
            ("x.con", true),
            ("lpt", true),
            (&long, true),
            (&longer, false),
            ("con", false),
            ("CON", false),
            ("Con.txt", false),
            ("con .txt", false),
            ("nul.tar.gz", false),
            ("aux.js", false),
            ("prn", false),
            ("com1", false),
            ("COM0.css", false),
            ("lpt\u{b9}", false),
            ("com\u{b3}.x", false),
            ("conin$", false),
            ("CONOUT$", false),
            ("clock$", false),
            ("x.", false),
            ("x ", false),
            ("...", false),
            (".. ", false),
            ("x::$DATA", false),
            ("c:", false),
            ("a\\b", false),
            ("a\tb", false),
        ];
        for &(name, expected) in rows {
            assert_eq!(is_safe(name.as_bytes()), expected, "{name:?}");
        }
    }
}
