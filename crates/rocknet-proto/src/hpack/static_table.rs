//! Static table of HPACK: the 61 predefined fields (RFC 7541 appendix A).

use super::name::{NameClass, Pseudo};
use crate::fields::KnownField;

/// One field, with the class of its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticField {
    pub name: &'static [u8],
    pub value: &'static [u8],
    pub class: NameClass,
}

/// Returns the field at an index from 1 to [`COUNT`]; `None` for another index.
#[inline]
pub(crate) fn at(index: usize) -> Option<&'static StaticField> {
    FIELDS.get(index.wrapping_sub(1))
}

/// Number of fields. The indices of the dynamic table follow (RFC 7541 §2.3.3).
pub(crate) const COUNT: usize = 61;

/// Result of [`find`]: the index of the field, or of the first field with the same name, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StaticMatch {
    Field(usize),
    NameOnly(usize),
    Nothing,
}

/// Looks up a field. The search is linear, because heads that are sent often are prepared once.
pub(crate) fn find(name: &[u8], value: &[u8]) -> StaticMatch {
    let mut found = StaticMatch::Nothing;
    for (position, field) in FIELDS.iter().enumerate() {
        if field.name == name {
            if field.value == value {
                return StaticMatch::Field(position + 1);
            }
            if found == StaticMatch::Nothing {
                found = StaticMatch::NameOnly(position + 1);
            }
        }
    }
    found
}

static FIELDS: [StaticField; COUNT] = {
    let mut fields = [StaticField {
        name: b"",
        value: b"",
        class: NameClass::Other,
    }; COUNT];
    let mut position = 0;
    while position < COUNT {
        let (name, value) = ROWS[position];
        fields[position] = StaticField {
            name: name.as_bytes(),
            value: value.as_bytes(),
            class: classify(name.as_bytes()),
        };
        position += 1;
    }
    fields
};

/// Does the work of [`NameClass::of`] at compile time.
const fn classify(name: &[u8]) -> NameClass {
    let mut position = 0;
    while position < Pseudo::ALL.len() {
        if is_equal(Pseudo::ALL[position].as_str().as_bytes(), name) {
            return NameClass::Pseudo(Pseudo::ALL[position]);
        }
        position += 1;
    }
    position = 0;
    while position < KnownField::ALL.len() {
        if is_equal(KnownField::ALL[position].as_str().as_bytes(), name) {
            return NameClass::Known(KnownField::ALL[position]);
        }
        position += 1;
    }
    assert!(name[0] != b':', "an undefined pseudo-header field");
    NameClass::Other
}

/// Compares bytes. The operator `==` is not available at compile time.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut position = 0;
    while position < one.len() {
        if one[position] != other[position] {
            return false;
        }
        position += 1;
    }
    true
}

/// Names and values, in the order of RFC 7541 appendix A.
const ROWS: [(&str, &str); COUNT] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_start_at_one() {
        assert!(at(0).is_none() && at(COUNT + 1).is_none());
        assert_eq!(at(1).map(|field| field.name), Some(b":authority".as_slice()));
        assert_eq!(at(COUNT).map(|field| field.name), Some(b"www-authenticate".as_slice()));
    }

    #[test]
    fn classes_match_the_names() {
        for index in 1..=COUNT {
            let field = at(index).expect("the index is in the table");
            assert_eq!(field.class, NameClass::of(field.name), "{index}");
        }
    }

    #[test]
    fn fields_are_found_by_value_and_by_name() {
        // Name, value, and the expected result with its index.
        for (name, value, expected) in [
            (":status", "200", StaticMatch::Field(8)),
            (":status", "500", StaticMatch::Field(14)),
            (":status", "403", StaticMatch::NameOnly(8)),
            ("accept-encoding", "gzip, deflate", StaticMatch::Field(16)),
            ("vary", "Accept-Encoding", StaticMatch::NameOnly(59)),
            ("x-a", "", StaticMatch::Nothing),
        ] {
            assert_eq!(find(name.as_bytes(), value.as_bytes()), expected, "{name}: {value}");
        }
    }
}
