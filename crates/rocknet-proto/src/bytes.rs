//! Byte classes of HTTP's grammar, and searches that test eight bytes at a time.

/// Bytes of a `token` (RFC 9110 §5.6.2).
pub(crate) const TOKEN: u8 = 1 << 0;
/// Bytes of a field value: VCHAR, SP, HTAB, obs-text (RFC 9110 §5.5).
pub(crate) const VALUE: u8 = 1 << 1;
/// Bytes of a request target: VCHAR. RFC 3986 allows fewer, but browsers also send others, such as `|`.
pub(crate) const TARGET: u8 = 1 << 2;
/// Bytes of a `reg-name` except `%`: unreserved and sub-delims (RFC 3986 §3.2.2).
pub(crate) const REG_NAME: u8 = 1 << 3;
/// Hexadecimal digits.
pub(crate) const HEX: u8 = 1 << 4;

/// Classes of each byte, as a bit set.
const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if b.is_ascii_alphanumeric() || contains(b"!#$%&'*+-.^_`|~", b) {
            class |= TOKEN;
        }
        if b == b'\t' || (b >= 0x20 && b != 0x7f) {
            class |= VALUE;
        }
        if b > 0x20 && b < 0x7f {
            class |= TARGET;
        }
        if b.is_ascii_alphanumeric() || contains(b"-._~!$&'()*+,;=", b) {
            class |= REG_NAME;
        }
        if b.is_ascii_hexdigit() {
            class |= HEX;
        }
        table[byte] = class;
        byte += 1;
    }
    table
}

const fn contains(set: &[u8], byte: u8) -> bool {
    let mut i = 0;
    while i < set.len() {
        if set[i] == byte {
            return true;
        }
        i += 1;
    }
    false
}

/// Returns true if the byte is in the class.
#[inline(always)]
pub(crate) const fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Returns true if every byte is in the class, and for an empty slice.
#[inline]
pub(crate) fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|&byte| is(byte, class))
}

/// Returns true for a `token`: `1*tchar` (RFC 9110 §5.6.2).
#[inline]
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TOKEN)
}

/// Returns the position of the next control byte or DEL at or after `at`, or the end of `bytes`. HTAB is found, too:
/// the caller decides whether it is allowed.
#[inline]
pub(crate) fn find_control(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let found = below(word, 0x20) | equal(word, 0x7f);
        if found != 0 {
            return at + first(found);
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] >= 0x20 && bytes[at] != 0x7f {
        at += 1;
    }
    at
}

/// Returns true if all bytes are allowed in a field value: no DEL, and no control byte except HTAB.
#[inline]
pub(crate) fn is_value(value: &[u8]) -> bool {
    let mut at = find_control(value, 0);
    while let Some(b'\t') = value.get(at) {
        at = find_control(value, at + 1);
    }
    at == value.len()
}

/// Returns the position of the next byte at or after `at` that is `?`, `#` or not allowed in a request target, or the
/// end of `bytes`.
#[inline]
pub(crate) fn find_target_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let found = below(word, 0x21) | equal(word, 0x7f) | equal(word, b'?') | equal(word, b'#') | (word & HIGH);
        if found != 0 {
            return at + first(found);
        }
        at += 8;
    }
    while at < bytes.len() && is(bytes[at], TARGET) && bytes[at] != b'?' && bytes[at] != b'#' {
        at += 1;
    }
    at
}

/// Returns the position of the next colon at or after `at`; `None` if there is no colon.
#[inline]
pub(crate) fn find_colon(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(word) = word_at(bytes, at) {
        let found = equal(word, b':');
        if found != 0 {
            return Some(at + first(found));
        }
        at += 8;
    }
    while at < bytes.len() {
        if bytes[at] == b':' {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Returns the value without surrounding spaces and tabs.
#[inline]
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Loads the eight bytes that begin at `at` as a little-endian word; `None` if fewer than eight are left.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk::<8>()
        .map(|chunk| u64::from_le_bytes(*chunk))
}

/// Lowest bit of each byte of a word.
const LOW: u64 = 0x0101_0101_0101_0101;
/// Highest bit of each byte of a word.
const HIGH: u64 = LOW << 7;

// `below` and `equal` set the high bit of each byte that matches. A borrow may also mark bytes that do not match, but
// only bytes after a match, so the lowest set bit is always correct. `first` uses the lowest set bit alone; no other
// code may use the higher bits.

/// Marks the bytes of `word` that are less than `bound`, which must be at most 0x80.
#[inline(always)]
const fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(LOW * bound as u64) & !word & HIGH
}

/// Marks the bytes of `word` that are equal to `byte`.
#[inline(always)]
const fn equal(word: u64, byte: u8) -> u64 {
    let differences = word ^ (LOW * byte as u64);
    differences.wrapping_sub(LOW) & !differences & HIGH
}

/// Returns the position of the first marked byte, from 0 to 7. `found` must not be zero.
#[inline(always)]
const fn first(found: u64) -> usize {
    (found.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares each search with a plain loop, for every byte at every position of a line.
    #[test]
    fn searches_match_naive_loops() {
        for length in 0..20 {
            for position in 0..length {
                for byte in 0..=255u8 {
                    let mut line = vec![b'a'; length];
                    line[position] = byte;
                    let plain = |stop: &dyn Fn(u8) -> bool| line.iter().position(|&b| stop(b));
                    let control = plain(&|b| b < 0x20 || b == 0x7f).unwrap_or(length);
                    assert_eq!(find_control(&line, 0), control, "{line:?}");
                    let stop = plain(&|b| !is(b, TARGET) || b == b'?' || b == b'#').unwrap_or(length);
                    assert_eq!(find_target_end(&line, 0), stop, "{line:?}");
                    assert_eq!(find_colon(&line, 0), plain(&|b| b == b':'), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn trim_removes_only_spaces_and_tabs() {
        for (from, to) in [
            (" \ta \t", "a"),
            ("", ""),
            (" ", ""),
            ("a b", "a b"),
            ("\x0ba", "\x0ba"),
            ("\ra", "\ra"),
        ] {
            assert_eq!(trim(from.as_bytes()), to.as_bytes());
        }
    }
}
