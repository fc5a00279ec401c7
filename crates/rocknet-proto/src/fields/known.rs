//! Known field names. Each name has a number, so that a field is found by an array access, and a test for several
//! fields is one bit test.

use crate::bytes::word_at;

/// Generates the enum, the list of its variants and their spellings from one row per name.
macro_rules! known {
    ($($name:ident $spelling:literal)*) => {
        /// A known field name. The documentation of each variant is its spelling in lower case.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum KnownField {
            $(#[doc = concat!("`", $spelling, "`")] $name),*
        }

        impl KnownField {
            /// Every known name, in the order of their numbers.
            pub const ALL: &'static [KnownField] = &[$(KnownField::$name),*];

            /// Returns the name in lower case, as HTTP/2 and HTTP/3 write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(KnownField::$name => $spelling),*
                }
            }
        }
    };
}

// At most 64 rows: `KnownFieldSet` is one word.
known! {
    Host "host"
    Connection "connection"
    ContentLength "content-length"
    TransferEncoding "transfer-encoding"
    Expect "expect"
    Upgrade "upgrade"
    Te "te"
    Trailer "trailer"
    KeepAlive "keep-alive"
    ProxyConnection "proxy-connection"
    Accept "accept"
    AcceptEncoding "accept-encoding"
    AcceptLanguage "accept-language"
    AcceptRanges "accept-ranges"
    AccessControlRequestHeaders "access-control-request-headers"
    AccessControlRequestMethod "access-control-request-method"
    Age "age"
    Allow "allow"
    Authorization "authorization"
    CacheControl "cache-control"
    ContentEncoding "content-encoding"
    ContentLocation "content-location"
    ContentRange "content-range"
    ContentType "content-type"
    Cookie "cookie"
    Date "date"
    Etag "etag"
    Expires "expires"
    Forwarded "forwarded"
    IfMatch "if-match"
    IfModifiedSince "if-modified-since"
    IfNoneMatch "if-none-match"
    IfRange "if-range"
    IfUnmodifiedSince "if-unmodified-since"
    LastModified "last-modified"
    Link "link"
    Location "location"
    MaxForwards "max-forwards"
    Origin "origin"
    Pragma "pragma"
    Priority "priority"
    Proxy "proxy"
    ProxyAuthorization "proxy-authorization"
    Range "range"
    Referer "referer"
    Refresh "refresh"
    SecFetchDest "sec-fetch-dest"
    SecFetchMode "sec-fetch-mode"
    SecFetchSite "sec-fetch-site"
    SecWebSocketKey "sec-websocket-key"
    SecWebSocketProtocol "sec-websocket-protocol"
    SecWebSocketVersion "sec-websocket-version"
    Server "server"
    SetCookie "set-cookie"
    Status "status"
    UpgradeInsecureRequests "upgrade-insecure-requests"
    UserAgent "user-agent"
    Vary "vary"
    Via "via"
    WwwAuthenticate "www-authenticate"
    XForwardedFor "x-forwarded-for"
    XForwardedHost "x-forwarded-host"
    XForwardedProto "x-forwarded-proto"
    XRealIp "x-real-ip"
}

impl KnownField {
    /// Returns the bit of the name in a [`KnownFieldSet`].
    #[inline]
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// Returns the known name that the bytes spell, in any case; `None` if the name is not known.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<KnownField> {
        Self::from_prefix(name, name.len())
    }

    /// Returns the known name that the first `length` bytes spell, in any case; `None` if the name is not known, or if
    /// `bytes` is shorter. A caller that has the bytes after the name passes them, too. A name shorter than eight bytes
    /// is then loaded as one word; it is copied only if `bytes` has fewer than eight bytes.
    #[inline]
    pub(crate) fn from_prefix(bytes: &[u8], length: usize) -> Option<KnownField> {
        if length > MAX_NAME {
            return None;
        }
        let (head, tail) = if length >= 8 {
            (word_at(bytes, 0)?, word_at(bytes, length - 8)?)
        } else {
            let word = short_word(bytes, length)?;
            (word, word)
        };
        // An empty slot yields an arbitrary spelling, which the comparison rejects.
        let spelling = &SPELLINGS[usize::from(NAME_TABLE.slots[slot(head, tail, length, NAME_TABLE.factor)]) % COUNT];
        let matches = spelling.length as usize == length
            && head | spelling.fold[0] == spelling.lower[0]
            && spelling.tail_matches(bytes, length);
        matches.then_some(spelling.known)
    }
}

/// A set of known names. [`Fields::contains_any`](super::Fields::contains_any) finds with one bit test whether any of
/// them occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KnownFieldSet(pub(crate) u64);

impl KnownFieldSet {
    /// Creates the set of these names.
    pub const fn of(names: &[KnownField]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < names.len() {
            bits |= names[i].bit();
            i += 1;
        }
        Self(bits)
    }

    /// Returns true if the name is in the set.
    pub const fn contains(self, name: KnownField) -> bool {
        self.0 & name.bit() != 0
    }

    /// Returns true if some name is in both sets.
    pub const fn overlaps(self, other: KnownFieldSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the set of all names that are in either set.
    pub const fn union(self, other: KnownFieldSet) -> Self {
        Self(self.0 | other.0)
    }
}

/// Maximum length of a known name in bytes: four words, because `access-control-request-headers` has 30 bytes.
const MAX_NAME: usize = 32;
/// Number of known names.
const COUNT: usize = KnownField::ALL.len();
const _: () = assert!(COUNT <= 64, "`KnownFieldSet` has 64 bits");

/// A name as words of eight bytes. `fold` has the case bit set for each letter, and no bit set for other bytes. A
/// bitwise OR with `fold` makes letters lower-case and leaves `-` unchanged. If `fold` had the case bit set for every
/// byte, a CR would match `-`, because CR and `-` differ only in that bit.
struct Spelling {
    lower: [u64; MAX_NAME / 8],
    fold: [u64; MAX_NAME / 8],
    length: u8,
    known: KnownField,
}

impl Spelling {
    /// Compares the bytes after the first word. The last word may overlap the word before it.
    #[inline]
    fn tail_matches(&self, bytes: &[u8], length: usize) -> bool {
        let mut word = 1;
        while word * 8 < length {
            match word_at(bytes, word_offset(word, length)) {
                Some(found) if found | self.fold[word] == self.lower[word] => word += 1,
                _ => return false,
            }
        }
        true
    }
}

/// Loads a name of fewer than eight bytes as one word, padded with zeros; `None` if `bytes` is shorter than the name.
#[inline]
fn short_word(bytes: &[u8], length: usize) -> Option<u64> {
    if let Some(word) = word_at(bytes, 0) {
        return Some(word & ((1 << (8 * length)) - 1));
    }
    let mut padded = [0; 8];
    padded.get_mut(..length)?.copy_from_slice(bytes.get(..length)?);
    Some(u64::from_le_bytes(padded))
}

/// Returns the offset of a word in a name; the last word ends with the name.
const fn word_offset(word: usize, length: usize) -> usize {
    if length < 8 || word * 8 + 8 <= length {
        word * 8
    } else {
        length - 8
    }
}

/// All spellings, by number.
static SPELLINGS: [Spelling; COUNT] = spellings();

const fn spellings() -> [Spelling; COUNT] {
    let mut table = [const {
        Spelling {
            lower: [0; 4],
            fold: [0; 4],
            length: 0,
            known: KnownField::Host,
        }
    }; COUNT];
    let mut i = 0;
    while i < COUNT {
        table[i] = spell(KnownField::ALL[i]);
        i += 1;
    }
    table
}

/// Returns the words of a known name.
const fn spell(known: KnownField) -> Spelling {
    let name = known.as_str().as_bytes();
    assert!(name.len() <= MAX_NAME, "a known name is longer than `MAX_NAME` bytes");
    let mut spelling = Spelling {
        lower: [0; 4],
        fold: [0; 4],
        length: name.len() as u8,
        known,
    };
    let mut word = 0;
    while word * 8 < name.len() {
        let mut byte = 0;
        while byte < 8 {
            let offset = word_offset(word, name.len()) + byte;
            if offset < name.len() {
                let case_bit = if name[offset].is_ascii_lowercase() { 0x20 } else { 0 };
                spelling.lower[word] |= (name[offset] as u64) << (8 * byte);
                spelling.fold[word] |= case_bit << (8 * byte);
            }
            byte += 1;
        }
        word += 1;
    }
    spelling
}

/// A perfect hash table of the known names. The hash covers the first and last eight bytes and the length. A linear
/// search among the names of equal length took up to seven comparisons, even for common names such as Accept and
/// Cookie.
struct NameTable {
    /// Number of the name in each slot; an invalid number if the slot is empty.
    slots: [u8; 1 << SLOT_BITS],
    /// Factor with which no two names have the same hash.
    factor: u64,
}

/// Binary logarithm of the number of slots. There are about eight slots per name, so that a factor without collisions
/// is found among about the first hundred.
const SLOT_BITS: u32 = 9;

static NAME_TABLE: NameTable = name_table();

/// Returns the slot of a name. All case bits are set first, so that letters of either case have the same hash. The
/// rotation keeps the equal first and last words of a short name from cancelling each other.
#[inline(always)]
const fn slot(head: u64, tail: u64, length: usize, factor: u64) -> usize {
    const CASE: u64 = 0x2020_2020_2020_2020;
    let mixed = (head | CASE) ^ (tail | CASE).rotate_left(21) ^ length as u64;
    (mixed.wrapping_mul(factor) >> (64 - SLOT_BITS)) as usize
}

/// Tries factors until no two names share a slot; evaluated at compile time.
const fn name_table() -> NameTable {
    const EMPTY: u8 = u8::MAX;
    // The search starts with the golden ratio in 64 bits and continues with Knuth's MMIX multiplier. Both spread bits
    // well, but any odd numbers would do.
    let mut factor = 0x9e37_79b9_7f4a_7c15u64;
    loop {
        let mut slots = [EMPTY; 1 << SLOT_BITS];
        let mut i = 0;
        while i < COUNT {
            let spelling = spell(KnownField::ALL[i]);
            let length = spelling.length as usize;
            let last = (length - 1) / 8;
            let slot = slot(spelling.lower[0], spelling.lower[last], length, factor);
            if slots[slot] != EMPTY {
                break;
            }
            slots[slot] = i as u8;
            i += 1;
        }
        if i == COUNT {
            return NameTable { slots, factor };
        }
        factor = factor.wrapping_mul(0x5851_f42d_4c95_7f2d) | 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for (number, &known) in KnownField::ALL.iter().enumerate() {
            assert_eq!(known as usize, number);
            let lower = known.as_str();
            let mixed: String = lower
                .chars()
                .enumerate()
                .map(|(i, c)| if i % 2 == 0 { c.to_ascii_uppercase() } else { c })
                .collect();
            for name in [lower.to_owned(), lower.to_uppercase(), mixed] {
                assert_eq!(KnownField::from_name(name.as_bytes()), Some(known), "{name}");
                let followed = format!("{name}: something");
                assert_eq!(
                    KnownField::from_prefix(followed.as_bytes(), name.len()),
                    Some(known),
                    "{name}"
                );
            }
        }
    }

    /// A known name with one byte replaced must not match, unless it still spells a known name in some case. Message
    /// framing depends on these names.
    #[test]
    fn no_other_byte_matches() {
        for &known in KnownField::ALL {
            let lower = known.as_str().as_bytes();
            for position in 0..lower.len() {
                for byte in 0..=255u8 {
                    let mut name = lower.to_vec();
                    name[position] = byte;
                    let expected = KnownField::ALL
                        .iter()
                        .copied()
                        .find(|k| name.eq_ignore_ascii_case(k.as_str().as_bytes()));
                    assert_eq!(KnownField::from_name(&name), expected, "{name:?}");
                }
            }
        }
    }

    #[test]
    fn other_names_are_unknown() {
        for name in [
            "",
            "x",
            "hos",
            "hostt",
            "content-lengt",
            "a-name-that-is-longer-than-any-we-know-of",
        ] {
            assert_eq!(KnownField::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn sets_contain_their_names() {
        let set = KnownFieldSet::of(&[KnownField::Range, KnownField::IfRange]);
        assert!(
            set.contains(KnownField::Range) && set.contains(KnownField::IfRange) && !set.contains(KnownField::Host)
        );
        assert!(
            set.union(KnownFieldSet::of(&[KnownField::Host]))
                .contains(KnownField::Host)
        );
    }
}
