//! Keys that encrypt cookies: sealing, opening, rotation, and the form in which the keys are stored.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::{digest, rand};
use zeroize::Zeroizing;

use crate::encoding::{decode, encode};

/// Maximum lifetime of a session in seconds.
pub const MAX_LIFETIME_S: u64 = 30 * DAY_S;

const DAY_S: u64 = 24 * 60 * 60;

/// Age after which a key is replaced for new cookies.
const ROTATION_S: u64 = 7 * DAY_S;

/// Age after which a key opens no cookie any more: it sealed cookies for [`ROTATION_S`], and each was valid for
/// [`MAX_LIFETIME_S`] at most. The rest is a margin for a rotation that is late, because the server was stopped or
/// unused.
const EXPIRY_S: u64 = ROTATION_S + MAX_LIFETIME_S + 8 * DAY_S;

/// Maximum number of keys. A larger number would mean that the clock of the machine jumps.
const MAX_KEYS: usize = 16;

/// Length of a secret in bytes, as AES-256 requires.
const KEY_BYTES: usize = 32;
/// Length in bytes of the identifier of a key, which has to distinguish at most [`MAX_KEYS`] keys.
const ID_BYTES: usize = 4;

/// First byte of sealed values. Another format would have another number.
const FORMAT: u8 = 1;

/// Keys of a server. The newest one seals cookies, and all of them open cookies.
///
/// The algorithm is AES-256-GCM-SIV (RFC 8452), because its random nonces may repeat without revealing a key.
pub struct KeyRing {
    /// Keys from the newest to the oldest, at least one.
    keys: Vec<CookieKey>,
}

struct CookieKey {
    /// Begins the values that the key has sealed, so that no other key is tried.
    id: [u8; ID_BYTES],
    /// Unix time of its creation in seconds.
    created: u64,
    secret: Zeroizing<[u8; KEY_BYTES]>,
    key: RandomizedNonceKey,
}

impl CookieKey {
    fn new(secret: [u8; KEY_BYTES], created: u64) -> Option<CookieKey> {
        let secret = Zeroizing::new(secret);
        let hash = digest::digest(&digest::SHA256, &*secret);
        Some(CookieKey {
            id: hash.as_ref().get(..ID_BYTES)?.try_into().ok()?,
            created,
            key: RandomizedNonceKey::new(&AES_256_GCM_SIV, &*secret).ok()?,
            secret,
        })
    }

    fn random(now: u64) -> Option<CookieKey> {
        let mut secret = [0; KEY_BYTES];
        rand::fill(&mut secret).ok()?;
        CookieKey::new(secret, now)
    }

    fn copy(&self) -> Option<CookieKey> {
        CookieKey::new(*self.secret, self.created)
    }

    fn is_expired(&self, now: u64) -> bool {
        now.saturating_sub(self.created) > EXPIRY_S
    }
}

impl KeyRing {
    /// Creates a ring with one random key; `None` if the system has no random numbers.
    pub fn random(now: u64) -> Option<KeyRing> {
        Some(KeyRing {
            keys: vec![CookieKey::random(now)?],
        })
    }

    /// Reads stored keys; `None` if there is no key, or if the text is damaged.
    pub fn parse(stored: &[u8]) -> Option<KeyRing> {
        let text = std::str::from_utf8(stored).ok()?;
        let mut keys = Vec::new();
        for line in text.lines().take(MAX_KEYS) {
            let (created, secret) = line.split_once(' ')?;
            let secret = Zeroizing::new(decode(secret)?);
            keys.push(CookieKey::new(
                secret.as_slice().try_into().ok()?,
                created.parse().ok()?,
            )?);
        }
        (!keys.is_empty()).then_some(KeyRing { keys })
    }

    /// Returns the keys in the form in which they are stored: a line for each, with its time and its secret.
    pub fn to_stored(&self) -> Zeroizing<Vec<u8>> {
        let mut text = Zeroizing::new(Vec::new());
        for key in &self.keys {
            let secret = Zeroizing::new(encode(&*key.secret));
            text.extend_from_slice(format!("{} ", key.created).as_bytes());
            text.extend_from_slice(secret.as_bytes());
            text.push(b'\n');
        }
        text
    }

    /// Returns true if the newest key is old enough to be replaced.
    pub fn is_rotation_due(&self, now: u64) -> bool {
        self.keys
            .first()
            .is_none_or(|key| now.saturating_sub(key.created) > ROTATION_S)
    }

    /// Returns true if the newest key is too old to open a value, so that it should seal none either.
    pub fn is_expired(&self, now: u64) -> bool {
        self.keys.first().is_none_or(|key| key.is_expired(now))
    }

    /// Returns a ring with a new key, and with the keys that are not too old; `None` if the system has no random
    /// numbers.
    pub fn rotated(&self, now: u64) -> Option<KeyRing> {
        self.with_newest(CookieKey::random(now)?, now)
    }

    /// Returns a ring with the newest key of another ring, and with the keys of this one that are not too old.
    pub fn with_newest_of(&self, other: &KeyRing, now: u64) -> Option<KeyRing> {
        self.with_newest(other.keys.first()?.copy()?, now)
    }

    fn with_newest(&self, newest: CookieKey, now: u64) -> Option<KeyRing> {
        let kept = self
            .keys
            .iter()
            .filter(|key| key.id != newest.id && !key.is_expired(now));
        let kept: Option<Vec<CookieKey>> = kept.take(MAX_KEYS - 1).map(CookieKey::copy).collect();
        let mut keys = vec![newest];
        keys.extend(kept?);
        Some(KeyRing { keys })
    }

    /// Encrypts a value, and encodes it as base64url. `context` has to be the same when the value is opened: it names
    /// what the value is for, so that the value is not accepted elsewhere. `None` if the system has no random numbers.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Option<String> {
        let key = self.keys.first()?;
        let mut text = plain.to_vec();
        let aad = Aad::from(context.as_bytes());
        let nonce = key.key.seal_in_place_append_tag(aad, &mut text).ok()?;
        let mut sealed = vec![FORMAT];
        sealed.extend_from_slice(&key.id);
        sealed.extend_from_slice(nonce.as_ref());
        sealed.extend_from_slice(&text);
        Some(encode(&sealed))
    }

    /// Decrypts a value that [`KeyRing::seal`] has returned for the same context. `None` for any other value, and if
    /// its key is too old.
    pub fn open(&self, context: &str, sealed: &str, now: u64) -> Option<Vec<u8>> {
        let sealed = decode(sealed)?;
        let (format, rest) = sealed.split_first()?;
        let (id, rest) = rest.split_at_checked(ID_BYTES)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN)?;
        let key = self.keys.iter().find(|key| key.id == id && !key.is_expired(now))?;
        if *format != FORMAT {
            return None;
        }
        let mut text = rest.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let aad = Aad::from(context.as_bytes());
        let length = key.key.open_in_place(nonce, aad, &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn a_value_is_opened_by_its_key_for_its_context_alone() {
        let ring = KeyRing::random(NOW).expect("a key");
        let sealed = ring.seal("session of a", b"secret").expect("a value");
        assert!(!sealed.contains("secret") && sealed.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_ne!(
            ring.seal("session of a", b"secret"),
            Some(sealed.clone()),
            "a nonce repeats"
        );
        assert_eq!(ring.open("session of a", &sealed, NOW).as_deref(), Some(&b"secret"[..]));
        assert_eq!(ring.open("session of b", &sealed, NOW), None);
        assert_eq!(
            KeyRing::random(NOW).expect("a key").open("session of a", &sealed, NOW),
            None
        );
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let ring = KeyRing::random(NOW).expect("a key");
        let sealed = decode(&ring.seal("x", b"secret").expect("a value")).expect("base64url");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(ring.open("x", &encode(&changed), NOW), None, "byte {at}");
            assert_eq!(ring.open("x", &encode(&sealed[..at]), NOW), None, "{at} bytes");
        }
        for junk in ["", "=", "AA==", "ä", "%"] {
            assert_eq!(ring.open("x", junk, NOW), None, "{junk}");
        }
    }

    #[test]
    fn keys_are_rotated_and_expire() {
        let first = KeyRing::random(NOW).expect("a key");
        let sealed = first.seal("x", b"a").expect("a value");
        assert!(!first.is_rotation_due(NOW + ROTATION_S) && !first.is_rotation_due(NOW - DAY_S));
        let later = NOW + ROTATION_S + 1;
        assert!(first.is_rotation_due(later));
        let mut ring = first.rotated(later).expect("keys");
        assert!(!ring.is_rotation_due(later) && ring.keys.len() == 2);
        assert_eq!(ring.open("x", &sealed, later).as_deref(), Some(&b"a"[..]));
        assert_eq!(first.open("x", &ring.seal("x", b"b").expect("a value"), later), None);
        assert!(!first.is_expired(NOW + EXPIRY_S) && first.is_expired(NOW + EXPIRY_S + 1));
        assert!(!ring.is_expired(NOW + EXPIRY_S + 1));
        assert_eq!(ring.open("x", &sealed, NOW + EXPIRY_S + 1), None);
        ring = ring.rotated(NOW + EXPIRY_S + 1).expect("keys");
        assert_eq!(ring.keys.len(), 2, "the oldest key is still there");
        for _ in 0..2 * MAX_KEYS {
            ring = ring.rotated(NOW).expect("keys");
        }
        assert_eq!(ring.keys.len(), MAX_KEYS);
        let other = KeyRing::random(later).expect("a key");
        let merged = first.with_newest_of(&other, later).expect("keys");
        let sealed_by_other = other.seal("x", b"c").expect("a value");
        assert_eq!(merged.keys[0].id, other.keys[0].id);
        assert!(merged.open("x", &sealed, later).is_some() && merged.open("x", &sealed_by_other, later).is_some());
        let merged = merged.with_newest_of(&other, NOW + EXPIRY_S + 1).expect("keys");
        assert_eq!(merged.keys.len(), 1);
    }

    #[test]
    fn stored_keys_are_read_back_and_damaged_ones_refused() {
        let ring = KeyRing::random(NOW)
            .and_then(|ring| ring.rotated(NOW + 1))
            .expect("keys");
        let sealed = ring.seal("x", b"a").expect("a value");
        let stored = ring.to_stored();
        let read = KeyRing::parse(&stored).expect("keys");
        assert_eq!(read.open("x", &sealed, NOW).as_deref(), Some(&b"a"[..]));
        assert_eq!(*read.to_stored(), *stored);
        for damaged in [
            &b""[..],
            b"x",
            b"1 AAAA\n",
            b"1\n",
            b"\xff",
            &stored[1..stored.len() - 2],
        ] {
            let read = KeyRing::parse(damaged);
            let is_other = read.is_none_or(|read| read.open("x", &sealed, NOW).is_none());
            assert!(is_other, "{}", String::from_utf8_lossy(damaged));
        }
    }
}
