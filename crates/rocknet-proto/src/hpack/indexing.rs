//! Choice of the fields that enter the dynamic table of an encoder, for HPACK and QPACK.

use super::dynamic_table::ENTRY_OVERHEAD;
use super::name::NameClass;
use crate::fields::{KnownField, KnownFieldSet};

/// Divisor that limits the size of an indexed field to a share of the table capacity. A larger field is not indexed,
/// because it would evict too many other entries.
const MAX_ENTRY_SHARE: usize = 4;

/// Fields whose value differs in nearly every response, or in nearly every request that the server promises (push).
const VARYING: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Age,
    KnownField::ContentLength,
    KnownField::ContentRange,
    KnownField::Date,
    KnownField::Etag,
    KnownField::Expires,
    KnownField::IfNoneMatch,
    KnownField::LastModified,
    KnownField::Location,
    KnownField::Range,
]);

/// Fields whose value an attacker must not be able to guess from the compressed size (RFC 7541 §7.1, RFC 9204 §7.1).
const SENSITIVE: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Authorization,
    KnownField::Cookie,
    KnownField::ProxyAuthorization,
    KnownField::SetCookie,
    KnownField::WwwAuthenticate,
]);

/// Returns whether a field must be a literal on every hop (RFC 7541 §7.1.3, RFC 9204 §7.1.3).
pub(crate) fn is_sensitive(class: NameClass) -> bool {
    matches!(class, NameClass::Known(known) if SENSITIVE.contains(known))
}

/// Returns whether a field is worth an entry of a dynamic table of `capacity` bytes.
pub(crate) fn is_indexed(class: NameClass, name: &[u8], value: &[u8], capacity: usize) -> bool {
    if let NameClass::Known(known) = class
        && (SENSITIVE.contains(known) || VARYING.contains(known))
    {
        return false;
    }
    entry_size(name, value) * MAX_ENTRY_SHARE <= capacity
}

/// Returns the size of an entry (RFC 7541 §4.1, RFC 9204 §3.2.1).
pub(crate) fn entry_size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD
}

/// Returns a hash of the name in the lower 16 bits and of the value in the upper 16 bits. Unequal hashes avoid
/// comparing the bytes of most entries.
pub(crate) fn hash(name: &[u8], value: &[u8]) -> u32 {
    let mix = |bytes: &[u8]| {
        let sum = bytes
            .iter()
            .fold(bytes.len() as u32, |sum, &byte| sum.wrapping_mul(31) ^ u32::from(byte));
        sum ^ sum >> 16
    };
    mix(name) & 0xffff | mix(value) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_fields_are_not_indexed() {
        // A quarter of the capacity is 1,024 bytes. An entry has 32 bytes of overhead and, here, a name of one byte.
        for (length, expected) in [(1024 - 32 - 1, true), (1024 - 32, false)] {
            assert_eq!(is_indexed(NameClass::Other, b"x", &vec![b'v'; length], 4096), expected);
        }
        // An entry of 33 bytes is larger than a quarter of 100 bytes.
        assert!(!is_indexed(NameClass::Other, b"x", b"", 100));
    }
}
