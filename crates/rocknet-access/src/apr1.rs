//! apr1, the password hash of Apache's `htpasswd` based on MD5: 1,000 rounds, with a salt of up to eight characters.

use md5::{Digest, Md5};

use crate::crypt_base64;

/// Prefix of every apr1 hash. The algorithm hashes it together with the password.
const MAGIC: &[u8] = b"$apr1$";

/// Returns the digest in the text form that follows the salt in a hash.
pub(crate) fn digest(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let inner = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize();
    let mut outer = Md5::new().chain_update(password).chain_update(MAGIC).chain_update(salt);
    // Adds one byte of the inner digest for each byte of the password.
    let mut remaining = password.len();
    while remaining > 0 {
        let part = remaining.min(inner.len());
        outer.update(&inner[..part]);
        remaining -= part;
    }
    // Adds one byte for each binary digit of the length, from the lowest: a zero byte for a digit 1, and the first byte
    // of the password for a digit 0.
    let mut length = password.len();
    while length > 0 {
        outer.update(if length & 1 == 1 { &[0] } else { &password[..1] });
        length >>= 1;
    }
    let mut last = outer.finalize();
    // The algorithm defines which parts a round hashes, by the remainders of its number.
    for round in 0..1_000 {
        let mut md5 = Md5::new();
        if round % 2 == 1 {
            md5.update(password);
        } else {
            md5.update(last);
        }
        if round % 3 != 0 {
            md5.update(salt);
        }
        if round % 7 != 0 {
            md5.update(password);
        }
        if round % 2 == 1 {
            md5.update(last);
        } else {
            md5.update(password);
        }
        last = md5.finalize();
    }
    // The 16 bytes become 22 characters, in an order that the algorithm defines.
    let mut out = Vec::with_capacity(22);
    let groups = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    crypt_base64::write(&last, &groups, &mut out);
    crypt_base64::write_bits(last[11].into(), 2, &mut out);
    out
}
