//! Parses and compares entity tags, and generates the tags of files (RFC 9110 §8.8.3).

use super::list;
use super::negotiation::Coding;

/// Maximum number of tags in `If-Match` or `If-None-Match`; a field with more tags matches nothing. Caches send one tag
/// per stored response, which is a handful at most. The limit bounds the cost of a 16 KiB head full of tags.
pub const MAX_TAGS: usize = 64;

/// Comparison of two tags (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Tags match if they are equal and neither is weak. The two representations then have the same bytes. Used for
    /// `If-Match` and `If-Range`.
    Strong,
    /// Tags match if they are equal, whether or not they are weak. The two representations then have the same meaning.
    /// Used for `If-None-Match`.
    Weak,
}

/// An entity tag as sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntityTag<'a> {
    /// The opaque part with its quotes.
    quoted: &'a [u8],
    weak: bool,
}

impl<'a> EntityTag<'a> {
    /// Parses `"opaque"` or `W/"opaque"`, without surrounding bytes; `None` for other bytes.
    pub fn parse(tag: &'a [u8]) -> Option<EntityTag<'a>> {
        let (quoted, weak) = match tag.strip_prefix(b"W/") {
            Some(rest) => (rest, true),
            None => (tag, false),
        };
        let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        inner.iter().all(|&b| is_etagc(b)).then_some(EntityTag { quoted, weak })
    }

    /// Returns true for a weak tag, which begins with `W/`.
    pub fn is_weak(&self) -> bool {
        self.weak
    }

    /// Returns the opaque part without its quotes.
    pub fn opaque(&self) -> &'a [u8] {
        &self.quoted[1..self.quoted.len() - 1]
    }

    /// Returns true if the tags match by this comparison.
    pub fn matches(&self, other: &EntityTag<'_>, comparison: Comparison) -> bool {
        let strong_enough = comparison == Comparison::Weak || !(self.weak || other.weak);
        strong_enough && self.quoted == other.quoted
    }
}

/// Returns true if the value of `If-Match` or `If-None-Match` matches `current`, the tag of the current representation.
///
/// `exists` is true if there is a current representation, which `*` matches. The caller must join repeated fields with
/// `, `. A value that contains an error or more than [`MAX_TAGS`] tags matches nothing. A GET with `If-None-Match` then
/// gets the whole representation, and a request with `If-Match` gets 412. Both responses are correct even if a tag
/// would have matched.
pub fn list_matches(value: &[u8], current: &[u8], exists: bool, comparison: Comparison) -> bool {
    let value = list::trim(value);
    if value == b"*" {
        return exists;
    }
    let current = EntityTag::parse(current).filter(|_| exists);
    let mut matched = false;
    let mut count = 0;
    // A tag may contain a comma, so the list is split at quotes. Tags have no escapes.
    let mut rest = value;
    loop {
        rest = list::skip_whitespace(rest);
        match rest.first() {
            None => return matched,
            Some(b',') => {
                rest = &rest[1..];
                continue;
            }
            Some(_) => {}
        }
        count += 1;
        let Some(length) = tag_length(rest).filter(|_| count <= MAX_TAGS) else {
            return false;
        };
        let Some(tag) = EntityTag::parse(&rest[..length]) else {
            return false;
        };
        matched |= current.is_some_and(|current| tag.matches(&current, comparison));
        rest = list::skip_whitespace(&rest[length..]);
        match rest.first() {
            None => return matched,
            Some(b',') => rest = &rest[1..],
            Some(_) => return false,
        }
    }
}

/// Returns the length of the tag at the front of `rest`, including its closing quote; `None` if `rest` does not begin
/// with a tag.
fn tag_length(rest: &[u8]) -> Option<usize> {
    let open = if rest.starts_with(b"W/") { 2 } else { 0 };
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    memchr::memchr(b'"', &rest[open + 1..]).map(|inner| open + 1 + inner + 1)
}

/// Returns true for `etagc = %x21 / %x23-7E / obs-text`.
fn is_etagc(byte: u8) -> bool {
    byte == 0x21 || (0x23..=0x7e).contains(&byte) || byte >= 0x80
}

/// Strong tag of a file, built without allocation, such as `"17979cfe362a0000-3039"`: the modification time in
/// nanoseconds since 1970 and the size in bytes, both in hexadecimal. The tag of a coded form has a suffix inside the
/// quotes, such as `-gz`, because different bytes need different strong tags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileTag {
    bytes: [u8; FileTag::MAX_LENGTH],
    /// Number of bytes in use.
    length: u8,
}

impl FileTag {
    /// Maximum length in bytes: two quotes, two numbers of sixteen digits, a dash and the longest suffix.
    pub const MAX_LENGTH: usize = 2 + 16 + 1 + 16 + "-zst".len();

    /// Creates the tag of a file from its modification time in nanoseconds since 1970, its size in bytes, and its
    /// coding.
    pub fn new(modified_ns: u64, size: u64, coding: Coding) -> FileTag {
        let mut tag = FileTag {
            bytes: [0; FileTag::MAX_LENGTH],
            length: 0,
        };
        tag.push(b"\"");
        tag.push_hex(modified_ns);
        tag.push(b"-");
        tag.push_hex(size);
        tag.push(coding.tag_suffix());
        tag.push(b"\"");
        tag
    }

    /// Returns the field value with its quotes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn push(&mut self, bytes: &[u8]) {
        let start = usize::from(self.length);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len() as u8;
    }

    fn push_hex(&mut self, value: u64) {
        let digits = (16 - value.leading_zeros() / 4).max(1);
        for position in (0..digits).rev() {
            self.push(&[b"0123456789abcdef"[(value >> (position * 4) & 0xf) as usize]]);
        }
    }
}

impl std::fmt::Debug for FileTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileTag({})", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_valid_tags_are_parsed() {
        // Tag, and its opaque part with true if the tag is weak; `None` if the tag is invalid.
        let rows: &[(&str, Option<(&str, bool)>)] = &[
            // RFC 9110 §8.8.3
            (r#""xyzzy""#, Some(("xyzzy", false))),
            (r#"W/"xyzzy""#, Some(("xyzzy", true))),
            (r#""""#, Some(("", false))),
            ("\"a,b\"", Some(("a,b", false))),
            ("\"\u{e9}\"", Some(("\u{e9}", false))),
            (r#"w/"xyzzy""#, None),
            ("xyzzy", None),
            (r#""xyzzy"#, None),
            (r#"xyzzy""#, None),
            ("\"", None),
            ("W/", None),
            ("", None),
            (r#""a"b""#, None),
            (r#""a b""#, None),
            ("\"a\x7f\"", None),
            (r#" "a""#, None),
        ];
        for &(tag, expected) in rows {
            let parsed = EntityTag::parse(tag.as_bytes()).map(|tag| (tag.opaque(), tag.is_weak()));
            assert_eq!(
                parsed,
                expected.map(|(opaque, weak)| (opaque.as_bytes(), weak)),
                "{tag}"
            );
        }
    }

    #[test]
    fn tags_are_compared_strongly_or_weakly() {
        // Table of RFC 9110 §8.8.3.2: two tags, strong comparison, weak comparison.
        let rows: &[(&str, &str, bool, bool)] = &[
            (r#"W/"1""#, r#"W/"1""#, false, true),
            (r#"W/"1""#, r#"W/"2""#, false, false),
            (r#"W/"1""#, r#""1""#, false, true),
            (r#""1""#, r#""1""#, true, true),
        ];
        for &(one, other, strong, weak) in rows {
            let (a, b) = (
                EntityTag::parse(one.as_bytes()).unwrap(),
                EntityTag::parse(other.as_bytes()).unwrap(),
            );
            assert_eq!(a.matches(&b, Comparison::Strong), strong, "{one} {other} strong");
            assert_eq!(b.matches(&a, Comparison::Weak), weak, "{one} {other} weak");
        }
    }

    #[test]
    fn lists_match_any_of_their_tags() {
        use Comparison::{Strong, Weak};
        // List of tags, comparison, and true if the list matches the tag `"v1"`.
        let rows: &[(&str, Comparison, bool)] = &[
            (r#""v1""#, Strong, true),
            (r#"W/"v1""#, Strong, false),
            (r#"W/"v1""#, Weak, true),
            (r#""v0", "v1", "v2""#, Strong, true),
            (r#""v0","v1""#, Weak, true),
            (r#",, "v0" ,, "v1" ,"#, Weak, true),
            ("  \"v1\"\t", Weak, true),
            (r#""v0,v1""#, Weak, false),
            (r#""v0", "v2""#, Weak, false),
            ("*", Strong, true),
            (" * ", Weak, true),
            (r#"*, "v1""#, Weak, false),
            (r#""v1", *"#, Weak, false),
            ("v1", Weak, false),
            (r#""v1" "v2""#, Weak, false),
            (r#""v1", "v2"#, Weak, false),
            (r#""v1", junk"#, Weak, false),
            (r#""v1"x"#, Weak, false),
            ("", Weak, false),
            (",", Weak, false),
        ];
        for &(value, comparison, expected) in rows {
            assert_eq!(
                list_matches(value.as_bytes(), br#""v1""#, true, comparison),
                expected,
                "{value}"
            );
        }
        for value in ["*", r#""v1""#] {
            assert!(
                !list_matches(value.as_bytes(), br#""v1""#, false, Weak),
                "{value} without a representation"
            );
        }
        assert!(
            !list_matches(br#""v1""#, b"", true, Weak),
            "a representation without a tag matches no tag"
        );
    }

    #[test]
    fn too_many_tags_match_nothing() {
        let list = |others: usize| r#""x", "#.repeat(others) + r#""v1""#;
        assert!(list_matches(
            list(MAX_TAGS - 1).as_bytes(),
            br#""v1""#,
            true,
            Comparison::Strong
        ));
        assert!(!list_matches(
            list(MAX_TAGS).as_bytes(),
            br#""v1""#,
            true,
            Comparison::Strong
        ));
    }

    #[test]
    fn file_tags_consist_of_time_size_and_coding() {
        // Modification time in nanoseconds, size in bytes, coding, and the expected tag.
        let rows: &[(u64, u64, Coding, &str)] = &[
            (0x17a_bcde, 0x3039, Coding::Identity, r#""17abcde-3039""#),
            (0, 0, Coding::Identity, r#""0-0""#),
            (1, 16, Coding::Br, r#""1-10-br""#),
            (1, 16, Coding::Gzip, r#""1-10-gz""#),
            (
                u64::MAX,
                u64::MAX,
                Coding::Zstd,
                r#""ffffffffffffffff-ffffffffffffffff-zst""#,
            ),
        ];
        for &(modified, size, coding, expected) in rows {
            let tag = FileTag::new(modified, size, coding);
            assert_eq!(tag.as_bytes(), expected.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn file_tags_are_strong_and_distinct(a in any::<(u64, u64)>(), b in any::<(u64, u64)>()) {
            let (first, second) = (FileTag::new(a.0, a.1, Coding::Identity), FileTag::new(b.0, b.1, Coding::Identity));
            let tag = EntityTag::parse(first.as_bytes()).unwrap();
            prop_assert!(!tag.is_weak());
            prop_assert_eq!(first == second, a == b);
            prop_assert!(list_matches(first.as_bytes(), first.as_bytes(), true, Comparison::Strong));
        }
    }
}
