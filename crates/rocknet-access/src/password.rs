//! Verification of passwords against hashes, and creation of hashes.

use argon2::{Algorithm, Argon2, Params, Version};
use base64ct::{Base64Unpadded, Encoding};
use rocknet_config::model::{Argon2Variant, HashScheme, PasswordHash};
use subtle::ConstantTimeEq;

use crate::{apr1, crypt_base64};

/// Memory of a new hash, in KiB. This memory and [`PASSES`] are the recommendation of OWASP for argon2id, and cost
/// about 20 ms of a core.
const MEMORY: u32 = 19_456;
/// Number of passes over the memory of a new hash.
const PASSES: u32 = 2;

/// Length of the salt of a new hash in bytes, as RFC 9106 §3.1 recommends.
pub const SALT_BYTES: usize = 16;

/// Maximum length in bytes of an argon2 salt or digest that [`PasswordHash`] accepts.
const MAX_ARGON2_BYTES: usize = 64;

/// Returns true if the password matches the hash. The time depends on the scheme, its cost and the length of the
/// password, but not on the position at which the digests differ. A call takes a few milliseconds up to a second, so it
/// is run in the blocking pool.
pub fn verify(hash: &PasswordHash, password: &str) -> bool {
    let password = password.as_bytes();
    // A hash has the form `$ID$…$SALT$DIGEST`, except that bcrypt writes salt and digest without a separator.
    let mut parts = hash.text().rsplit('$');
    let (Some(digest), Some(salt)) = (parts.next(), parts.next()) else {
        return false;
    };
    match hash.scheme() {
        HashScheme::Argon2 {
            variant,
            version,
            memory,
            passes,
            lanes,
        } => {
            let algorithm = match variant {
                Argon2Variant::D => Algorithm::Argon2d,
                Argon2Variant::I => Algorithm::Argon2i,
                Argon2Variant::Id => Algorithm::Argon2id,
            };
            let (mut salt_buffer, mut digest_buffer) = ([0; MAX_ARGON2_BYTES], [0; MAX_ARGON2_BYTES]);
            let (Ok(salt), Ok(digest), Ok(version)) = (
                Base64Unpadded::decode(salt, &mut salt_buffer),
                Base64Unpadded::decode(digest, &mut digest_buffer),
                Version::try_from(version),
            ) else {
                return false;
            };
            let mut computed = [0; MAX_ARGON2_BYTES];
            let computed = &mut computed[..digest.len()];
            let Ok(params) = Params::new(memory, passes, lanes, Some(digest.len())) else {
                return false;
            };
            let done = Argon2::new(algorithm, version, params).hash_password_into(password, salt, computed);
            done.is_ok() && is_same(computed, digest)
        }
        HashScheme::Bcrypt { cost } => bcrypt(cost, digest, password),
        HashScheme::Sha256Crypt { rounds } => sha_crypt::Params::new(rounds).is_ok_and(|params| {
            let computed = sha_crypt::sha256_crypt(password, salt.as_bytes(), params);
            let mut text = Vec::with_capacity(SHA256_TEXT_BYTES);
            crypt_base64::write(&computed, &SHA256_ORDER, &mut text);
            crypt_base64::write_bits(u32::from(computed[31]) << 8 | u32::from(computed[30]), 3, &mut text);
            is_same(&text, digest.as_bytes())
        }),
        HashScheme::Sha512Crypt { rounds } => sha_crypt::Params::new(rounds).is_ok_and(|params| {
            let computed = sha_crypt::sha512_crypt(password, salt.as_bytes(), params);
            let mut text = Vec::with_capacity(SHA512_TEXT_BYTES);
            crypt_base64::write(&computed, &SHA512_ORDER, &mut text);
            crypt_base64::write_bits(computed[63].into(), 2, &mut text);
            is_same(&text, digest.as_bytes())
        }),
        HashScheme::Apr1 => is_same(&apr1::digest(password, salt.as_bytes()), digest.as_bytes()),
    }
}

/// Returns the argon2id hash of a new password. The salt must be random.
///
/// # Errors
///
/// Returns an error if the argon2 library rejects the parameters.
pub fn hash(password: &str, salt: [u8; SALT_BYTES]) -> Result<String, argon2::Error> {
    let mut digest = [0; 32];
    let params = Params::new(MEMORY, PASSES, 1, Some(digest.len()))?;
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(
        password.as_bytes(),
        &salt,
        &mut digest,
    )?;
    // 16 bytes are 22 characters and 32 bytes are 43, so the encoding cannot fail.
    let (mut salt_text, mut digest_text) = ([0; 22], [0; 43]);
    let salt = Base64Unpadded::encode(&salt, &mut salt_text).unwrap_or_default();
    let digest = Base64Unpadded::encode(&digest, &mut digest_text).unwrap_or_default();
    Ok(format!("$argon2id$v=19$m={MEMORY},t={PASSES},p=1${salt}${digest}"))
}

/// Verifies a bcrypt hash. `text` has 22 characters of salt and 31 of digest. As in every implementation of bcrypt,
/// only the first 72 bytes of the password with its terminating zero are used.
fn bcrypt(cost: u32, text: &str, password: &[u8]) -> bool {
    let (mut salt, mut digest) = ([0; 16], [0; 23]);
    let Some((salt_text, digest_text)) = text.as_bytes().split_at_checked(22) else {
        return false;
    };
    if !crypt_base64::read_bcrypt(salt_text, &mut salt) || !crypt_base64::read_bcrypt(digest_text, &mut digest) {
        return false;
    }
    let mut key = zeroize::Zeroizing::new([0; 72]);
    let length = password.len().min(key.len());
    key[..length].copy_from_slice(&password[..length]);
    let with_zero = (length + 1).min(key.len());
    let computed = bcrypt::bcrypt(cost, salt, &key[..with_zero]);
    // A bcrypt hash contains only 23 of the 24 bytes of the digest.
    is_same(&computed[..digest.len()], &digest)
}

fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

/// Length of a SHA-256-crypt digest as text: 32 bytes in base64.
const SHA256_TEXT_BYTES: usize = 43;

/// Length of a SHA-512-crypt digest as text: 64 bytes in base64.
const SHA512_TEXT_BYTES: usize = 86;

/// Order in which SHA-256-crypt writes the bytes of its digest. The last two bytes are written separately.
const SHA256_ORDER: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];

/// Order in which SHA-512-crypt writes the bytes of its digest. The last byte is written separately.
const SHA512_ORDER: [[usize; 3]; 21] = [
    [0, 21, 42],
    [22, 43, 1],
    [44, 2, 23],
    [3, 24, 45],
    [25, 46, 4],
    [47, 5, 26],
    [6, 27, 48],
    [28, 49, 7],
    [50, 8, 29],
    [9, 30, 51],
    [31, 52, 10],
    [53, 11, 32],
    [12, 33, 54],
    [34, 55, 13],
    [56, 14, 35],
    [15, 36, 57],
    [37, 58, 16],
    [59, 17, 38],
    [18, 39, 60],
    [40, 61, 19],
    [62, 20, 41],
];

#[cfg(test)]
mod tests;
