//! Field names that the server knows: numbered, so that finding one is an array access and asking for several is one bit test.

use crate::bytes::word_at;

/// One row a name: the enum, the spelling and the lookup table come from the same place.
macro_rules! known {
    ($($name:ident $spelling:literal)*) => {
        /// A field name with a number of its own.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum Known {
            $($name),*
        }

        impl Known {
            /// Every known name, in the order of its numbers.
            pub const ALL: &'static [Known] = &[$(Known::$name),*];

            /// The name in lower case, as HTTP/2 and HTTP/3 write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Known::$name => $spelling),*
                }
            }
        }
    };
}

// At most 64 rows: `KnownSet` is one word.
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
    SecFetchDest "sec-fetch-dest"
    SecFetchMode "sec-fetch-mode"
    SecFetchSite "sec-fetch-site"
    SecFetchUser "sec-fetch-user"
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
    XRequestedWith "x-requested-with"
}

impl Known {
    #[inline]
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// These bytes, if they are the name as nearly everybody writes it: with capitals, or without any.
    #[inline]
    pub fn canonical_spelling(self, name: &[u8]) -> Option<&'static str> {
        let (canonical, plain) = (CANONICAL[self as usize], self.as_str());
        if name == canonical.as_bytes() {
            Some(canonical)
        } else {
            (name == plain.as_bytes()).then_some(plain)
        }
    }

    /// The known name that these bytes spell in any case.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<Known> {
        Self::from_prefix(name, name.len())
    }

    /// As `from_name` for the first `length` bytes; what stands behind them lets a short name be loaded as one word.
    #[inline]
    pub(crate) fn from_prefix(bytes: &[u8], length: usize) -> Option<Known> {
        if length > MAX_NAME {
            return None;
        }
        let (head, tail) = if length >= 8 {
            (word_at(bytes, 0)?, word_at(bytes, length - 8)?)
        } else {
            let word = short_word(bytes, length)?;
            (word, word)
        };
        // An empty place leads to some spelling too, which the comparison then rejects.
        let spelling = &SPELLINGS[usize::from(NAME_TABLE.slots[slot(head, tail, length, NAME_TABLE.factor)]) % COUNT];
        let matches = spelling.length as usize == length
            && head | spelling.fold[0] == spelling.lower[0]
            && spelling.tail_matches(bytes, length);
        matches.then_some(spelling.known)
    }
}

/// Several known names at once: `Fields::any` asks for all of them with one bit test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KnownSet(pub(crate) u64);

impl KnownSet {
    pub const fn of(names: &[Known]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < names.len() {
            bits |= names[i].bit();
            i += 1;
        }
        Self(bits)
    }

    pub const fn contains(self, name: Known) -> bool {
        self.0 & name.bit() != 0
    }

    /// Whether some name is in both.
    pub const fn overlaps(self, other: KnownSet) -> bool {
        self.0 & other.0 != 0
    }

    pub const fn union(self, other: KnownSet) -> Self {
        Self(self.0 | other.0)
    }
}

/// The longest known name.
const MAX_NAME: usize = 32;
const COUNT: usize = Known::ALL.len();
const _: () = assert!(COUNT <= 64, "`KnownSet` has 64 bits");

/// The names as RFC 9110 writes them: words with a capital each.
static CANONICAL: [&str; COUNT] = {
    let mut all = [""; COUNT];
    let mut i = 0;
    while i < COUNT {
        let length = Known::ALL[i].as_str().len();
        let (name, _) = CAPITALIZED[i].split_at(length);
        all[i] = match std::str::from_utf8(name) {
            Ok(name) => name,
            Err(_) => panic!("names are ASCII"),
        };
        i += 1;
    }
    all
};

static CAPITALIZED: [[u8; MAX_NAME]; COUNT] = {
    let mut all = [[0; MAX_NAME]; COUNT];
    let mut i = 0;
    while i < COUNT {
        let name = Known::ALL[i].as_str().as_bytes();
        // Abbreviations.
        let whole = match Known::ALL[i] {
            Known::Te => 2,
            Known::WwwAuthenticate => 3,
            Known::Etag => 2,
            _ => 1,
        };
        let mut at = 0;
        while at < name.len() {
            let is_capital = at < whole || name[at - 1] == b'-';
            all[i][at] = if is_capital {
                name[at].to_ascii_uppercase()
            } else {
                name[at]
            };
            at += 1;
        }
        i += 1;
    }
    all
};

/// A name as words. `fold` has the case bit of every letter and of nothing else: or-ing it in makes letters lower-case and
/// leaves `-` alone, so that a CR (which differs from `-` in that bit only) is never taken for one.
struct Spelling {
    lower: [u64; MAX_NAME / 8],
    fold: [u64; MAX_NAME / 8],
    length: u8,
    known: Known,
}

impl Spelling {
    /// Compares what follows the first word; the last word overlaps the one before it.
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

/// A name of fewer than eight bytes as a word filled up with zeros.
#[inline]
fn short_word(bytes: &[u8], length: usize) -> Option<u64> {
    if let Some(word) = word_at(bytes, 0) {
        return Some(word & ((1 << (8 * length)) - 1));
    }
    let mut padded = [0; 8];
    padded.get_mut(..length)?.copy_from_slice(bytes.get(..length)?);
    Some(u64::from_le_bytes(padded))
}

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
            known: Known::Host,
        }
    }; COUNT];
    let mut i = 0;
    while i < COUNT {
        table[i] = spell(Known::ALL[i]);
        i += 1;
    }
    table
}

const fn spell(known: Known) -> Spelling {
    let name = known.as_str().as_bytes();
    assert!(name.len() <= MAX_NAME, "a known name is longer than its words");
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

/// Which spelling a name can only be, by a number mixed from its first and last eight bytes and its length. A row of names
/// of equal length to go through cost up to seven comparisons for names as common as Accept and Cookie.
struct NameTable {
    slots: [u8; 1 << SLOT_BITS],
    factor: u64,
}

/// Eight places a name, so that a factor without collisions is found among the first hundred or so.
const SLOT_BITS: u32 = 9;

static NAME_TABLE: NameTable = name_table();

/// Both words with all case bits set: letters of either case mix alike.
#[inline(always)]
const fn slot(head: u64, tail: u64, length: usize, factor: u64) -> usize {
    const CASE: u64 = 0x2020_2020_2020_2020;
    let mixed = (head | CASE) ^ (tail | CASE).rotate_left(21) ^ length as u64;
    (mixed.wrapping_mul(factor) >> (64 - SLOT_BITS)) as usize
}

/// Tries factors until no two names share a place; done by the compiler.
const fn name_table() -> NameTable {
    const EMPTY: u8 = u8::MAX;
    let mut factor = 0x9e37_79b9_7f4a_7c15u64;
    loop {
        let mut slots = [EMPTY; 1 << SLOT_BITS];
        let mut i = 0;
        while i < COUNT {
            let spelling = spell(Known::ALL[i]);
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
        for (number, &known) in Known::ALL.iter().enumerate() {
            assert_eq!(known as usize, number);
            let lower = known.as_str();
            let mixed: String = lower
                .chars()
                .enumerate()
                .map(|(i, c)| if i % 2 == 0 { c.to_ascii_uppercase() } else { c })
                .collect();
            for name in [lower.to_owned(), lower.to_uppercase(), mixed] {
                assert_eq!(Known::from_name(name.as_bytes()), Some(known), "{name}");
                let followed = format!("{name}: something");
                assert_eq!(
                    Known::from_prefix(followed.as_bytes(), name.len()),
                    Some(known),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn canonical_spellings_are_borrowed() {
        let rows = [
            "ETag",
            "Content-Type",
            "WWW-Authenticate",
            "TE",
            "X-Forwarded-For",
            "Host",
            "etag",
            "content-type",
        ];
        for name in rows {
            let known = Known::from_name(name.as_bytes()).expect("a known name");
            assert_eq!(known.canonical_spelling(name.as_bytes()), Some(name));
        }
        for &known in Known::ALL {
            let spelled = |name: &str| known.canonical_spelling(name.as_bytes()).map(str::to_owned);
            assert_eq!(spelled(known.as_str()).as_deref(), Some(known.as_str()));
            assert!(
                CANONICAL[known as usize].eq_ignore_ascii_case(known.as_str()),
                "{known:?}"
            );
            assert_eq!(spelled("hOST"), None);
        }
    }

    /// No other byte at any place may pass for the right one: framing hangs on these names.
    #[test]
    fn no_other_byte_matches() {
        for &known in Known::ALL {
            let lower = known.as_str().as_bytes();
            for position in 0..lower.len() {
                for byte in 0..=255u8 {
                    let mut name = lower.to_vec();
                    name[position] = byte;
                    let expected = Known::ALL
                        .iter()
                        .copied()
                        .find(|k| name.eq_ignore_ascii_case(k.as_str().as_bytes()));
                    assert_eq!(Known::from_name(&name), expected, "{name:?}");
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
            assert_eq!(Known::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn sets_contain_their_names() {
        let set = KnownSet::of(&[Known::Range, Known::IfRange]);
        assert!(set.contains(Known::Range) && set.contains(Known::IfRange) && !set.contains(Known::Host));
        assert!(set.union(KnownSet::of(&[Known::Host])).contains(Known::Host));
    }
}
