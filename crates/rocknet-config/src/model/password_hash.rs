//! Password hashes in the format of crypt(3), with bounds on the work of verifying them.

use std::fmt;

/// Maximum cost of bcrypt: about one second of CPU time. Each step doubles the time, so a cost of 31 would take a day
/// and a half.
pub const MAX_BCRYPT_COST: u32 = 14;

/// Maximum rounds of SHA-crypt: about one second of CPU time with a long password. The default of SHA-crypt is 5,000.
pub const MAX_SHA_ROUNDS: u32 = 500_000;

/// Maximum memory of one Argon2 verification, in KiB. Each thread of the blocking pool may use this much at the same
/// time.
pub const MAX_ARGON2_MEMORY: u32 = 256 * 1024;

/// Maximum work of one Argon2 verification, in KiB times passes: about one second of CPU time.
pub const MAX_ARGON2_WORK: u64 = 1024 * 1024;

/// Maximum number of lanes of Argon2. RFC 9106 recommends 4.
const MAX_ARGON2_LANES: u32 = 16;

/// Maximum length of a hash, in bytes. The longest Argon2 hash within the bounds has about 210.
const MAX_TEXT_BYTES: usize = 512;

/// Hash of a password. The text is well-formed, and its verification stays within the bounds of this module.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PasswordHash {
    text: Box<str>,
    scheme: HashScheme,
}

/// Scheme of a hash: the function that created it, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashScheme {
    /// Argon2 (RFC 9106).
    Argon2 {
        /// Variant of the function.
        variant: Argon2Variant,
        /// Version: 0x10 or 0x13.
        version: u32,
        /// Memory, in KiB.
        memory: u32,
        /// Number of passes.
        passes: u32,
        /// Degree of parallelism.
        lanes: u32,
    },
    /// bcrypt.
    Bcrypt {
        /// Binary logarithm of the number of rounds.
        cost: u32,
    },
    /// SHA-crypt with SHA-256.
    Sha256Crypt {
        /// Number of rounds.
        rounds: u32,
    },
    /// SHA-crypt with SHA-512.
    Sha512Crypt {
        /// Number of rounds.
        rounds: u32,
    },
    /// Apache's apr1: 1,000 rounds of MD5. `htpasswd -m` creates such hashes.
    Apr1,
}

/// Variant of Argon2 (RFC 9106 §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argon2Variant {
    /// Argon2d.
    D,
    /// Argon2i.
    I,
    /// Argon2id.
    Id,
}

/// Reason why a text is not accepted as a hash. No variant contains a part of the text, because it may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashError {
    /// The text is empty.
    Empty,
    /// The text does not begin like a hash of a known scheme, is too long, or contains a space, a control character
    /// or a character outside ASCII. It is probably the password itself.
    PlainText,
    /// Hash of a scheme with this name, which is too weak or not supported.
    Refused(&'static str),
    /// Hash of a scheme with this name that is truncated or mistyped.
    Malformed(&'static str),
    /// Hash whose verification would exceed a bound of time or memory, which this text names.
    TooCostly(&'static str),
}

impl PasswordHash {
    /// Parses a hash such as `$argon2id$v=19$m=19456,t=2,p=1$…$…` or `$2y$10$…`.
    ///
    /// # Errors
    ///
    /// Returns the reason if the text is not a well-formed hash of a supported scheme within the bounds.
    pub fn parse(text: &str) -> Result<PasswordHash, HashError> {
        let scheme = scheme(text)?;
        Ok(PasswordHash {
            text: text.into(),
            scheme,
        })
    }

    /// Returns the hash as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the scheme and its parameters.
    pub fn scheme(&self) -> HashScheme {
        self.scheme
    }
}

/// Prints only the scheme, so that salt and digest do not appear in logs.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PasswordHash({:?})", self.scheme)
    }
}

/// Completes a sentence whose subject is the password.
impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashError::Empty => f.write_str("is empty"),
            HashError::PlainText => f.write_str("is not a hash: it may be the password itself"),
            HashError::Refused(name) => write!(f, "is a hash of {name}, which is not accepted"),
            HashError::Malformed(name) => write!(f, "begins like a hash of {name}, but is truncated or mistyped"),
            HashError::TooCostly(bound) => write!(f, "would need too much time or memory to verify: {bound}"),
        }
    }
}

impl std::error::Error for HashError {}

// Names of the schemes in messages.
const ARGON2: &str = "argon2";
const BCRYPT: &str = "bcrypt";
const SHA_CRYPT: &str = "SHA-crypt";
const APR1: &str = "apr1";

/// Checks a whole hash, and returns its scheme with the parameters.
fn scheme(text: &str) -> Result<HashScheme, HashError> {
    if text.is_empty() {
        return Err(HashError::Empty);
    }
    if text.len() > MAX_TEXT_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(HashError::PlainText);
    }
    for (prefix, name) in [
        ("{SHA}", "plain SHA-1"),
        ("{SSHA}", "salted SHA-1"),
        ("$1$", "MD5-crypt"),
        ("$2$", "the original bcrypt ($2$)"),
        ("$2x$", "the faulty bcrypt variant $2x$"),
        ("$3$", "NTLM"),
        ("$7$", "scrypt"),
        ("$y$", "yescrypt"),
        ("$gy$", "yescrypt"),
        ("$pbkdf2", "PBKDF2"),
        ("$scrypt$", "scrypt"),
    ] {
        if text.starts_with(prefix) {
            return Err(HashError::Refused(name));
        }
    }
    let Some((id, rest)) = text.strip_prefix('$').and_then(|text| text.split_once('$')) else {
        return Err(HashError::PlainText);
    };
    match id {
        "argon2d" => argon2(Argon2Variant::D, rest),
        "argon2i" => argon2(Argon2Variant::I, rest),
        "argon2id" => argon2(Argon2Variant::Id, rest),
        "2a" | "2b" | "2y" => bcrypt(rest),
        // In the Base64 of crypt(3), digests of 32 and 64 bytes have 43 and 86 characters.
        "5" => Ok(HashScheme::Sha256Crypt {
            rounds: sha_crypt(rest, 43)?,
        }),
        "6" => Ok(HashScheme::Sha512Crypt {
            rounds: sha_crypt(rest, 86)?,
        }),
        "apr1" => apr1(rest),
        _ => Err(HashError::PlainText),
    }
}

/// Parses the PHC string format: `v=19$m=19456,t=2,p=1$SALT$HASH`. Without `v`, the version is 16.
fn argon2(variant: Argon2Variant, text: &str) -> Result<HashScheme, HashError> {
    let malformed = HashError::Malformed(ARGON2);
    let (version, text) = match text.strip_prefix("v=") {
        Some(text) => {
            let (version, text) = text.split_once('$').ok_or(malformed)?;
            let version = match version {
                "16" => 0x10,
                "19" => 0x13,
                _ => return Err(malformed),
            };
            (version, text)
        }
        None => (0x10, text),
    };
    let parts: Vec<&str> = text.split('$').collect();
    let &[parameters, salt, hash] = &parts[..] else {
        return Err(malformed);
    };
    let parameters: Vec<&str> = parameters.split(',').collect();
    let &[memory, passes, lanes] = &parameters[..] else {
        return Err(malformed);
    };
    let number = |text: &str, name: &str| text.strip_prefix(name).and_then(decimal).ok_or(malformed);
    let (memory, passes, lanes) = (number(memory, "m=")?, number(passes, "t=")?, number(lanes, "p=")?);
    let has_length = |text, least, most| base64_bytes(text).is_some_and(|bytes| (least..=most).contains(&bytes));
    // The usual programs create digests of whole 4-byte words. RFC 9106 allows other lengths, but here such a length
    // most likely means that the digest was truncated.
    let is_cut = base64_bytes(hash).is_none_or(|bytes| bytes % 4 != 0);
    // RFC 9106 §3.1 requires at least 8 KiB of memory for each lane.
    if !has_length(salt, 8, 64)
        || !has_length(hash, 16, 64)
        || is_cut
        || lanes == 0
        || passes == 0
        || memory < lanes.saturating_mul(8)
    {
        return Err(malformed);
    }
    if memory > MAX_ARGON2_MEMORY {
        return Err(HashError::TooCostly("at most 256 MiB of memory are accepted"));
    }
    if u64::from(memory) * u64::from(passes) > MAX_ARGON2_WORK || lanes > MAX_ARGON2_LANES {
        return Err(HashError::TooCostly(
            "at most 16 lanes, and 1 GiB of memory times passes, are accepted",
        ));
    }
    Ok(HashScheme::Argon2 {
        variant,
        version,
        memory,
        passes,
        lanes,
    })
}

/// Parses `COST$`, 22 characters of salt and 31 characters of digest. The cost has two digits and is at least 4.
fn bcrypt(text: &str) -> Result<HashScheme, HashError> {
    let malformed = HashError::Malformed(BCRYPT);
    let (cost, salt_and_digest) = text.split_once('$').ok_or(malformed)?;
    let number = decimal(cost).filter(|number| cost.len() == 2 && *number >= 4);
    let cost = number.ok_or(malformed)?;
    if salt_and_digest.len() != 53 || !salt_and_digest.bytes().all(is_crypt_byte) {
        return Err(malformed);
    }
    if cost > MAX_BCRYPT_COST {
        return Err(HashError::TooCostly("the cost must be at most 14"));
    }
    Ok(HashScheme::Bcrypt { cost })
}

/// Parses an optional `rounds=N$`, then `SALT$DIGEST` with 1 to 16 characters of salt. Returns the number of rounds:
/// at least 1,000, and 5,000 without `rounds`. `digest_length`: number of characters of the digest.
fn sha_crypt(text: &str, digest_length: usize) -> Result<u32, HashError> {
    let malformed = HashError::Malformed(SHA_CRYPT);
    let (rounds, text) = match text.strip_prefix("rounds=") {
        Some(text) => {
            let (rounds, text) = text.split_once('$').ok_or(malformed)?;
            (decimal(rounds).ok_or(malformed)?, text)
        }
        None => (5_000, text),
    };
    let (salt, digest) = text.split_once('$').ok_or(malformed)?;
    // A colon ends the hash in a password file, so no program writes it into a salt.
    if salt.is_empty() || salt.len() > 16 || salt.contains(':') || rounds < 1_000 {
        return Err(malformed);
    }
    if digest.len() != digest_length || !digest.bytes().all(is_crypt_byte) {
        return Err(malformed);
    }
    if rounds > MAX_SHA_ROUNDS {
        return Err(HashError::TooCostly("at most 500000 rounds are accepted"));
    }
    Ok(rounds)
}

/// Parses `SALT$DIGEST`, with 1 to 8 characters of salt and 22 characters of digest.
fn apr1(text: &str) -> Result<HashScheme, HashError> {
    let parts = text.split_once('$');
    let is_whole = parts.is_some_and(|(salt, digest)| {
        (1..=8).contains(&salt.len()) && !salt.contains(':') && digest.len() == 22 && digest.bytes().all(is_crypt_byte)
    });
    is_whole.then_some(HashScheme::Apr1).ok_or(HashError::Malformed(APR1))
}

/// Returns true for bytes of the alphabet of crypt(3).
fn is_crypt_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/'
}

/// Parses a number of decimal digits, without a sign.
fn decimal(text: &str) -> Option<u32> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

/// Returns the number of bytes that a text in unpadded Base64 encodes; `None` if the encoding is invalid or not
/// canonical.
fn base64_bytes(text: &str) -> Option<usize> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    // Value of the last character, once all characters are known to be valid.
    let last = text.bytes().try_fold(0, |_, byte| value(byte))?;
    // Bits of the last character that do not belong to a byte. They are 0 in a canonical encoding.
    let unused = match text.len() % 4 {
        0 => 0,
        2 => 0b1111,
        3 => 0b11,
        _ => return None,
    };
    (last & unused == 0).then_some(text.len() * 6 / 8)
}

#[cfg(test)]
mod tests;
