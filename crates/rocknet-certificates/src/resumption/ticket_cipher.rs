//! Encryption of session tickets with AES-256-GCM-SIV. This cipher stays secure if two tickets have the same random
//! nonce, which AES-GCM does not.
//!
//! ```text
//! ticket = key name (16 bytes) ‖ nonce (12) ‖ encrypted session ‖ tag (16)
//! ```

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{hkdf, rand};
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use super::ticket_secrets::{PERIOD, SECRET_LENGTH, SecretPair, TicketSecrets};

/// Size of a key name in bytes.
const NAME_LENGTH: usize = 16;

/// Encrypts and decrypts the tickets of one context: the sites that accept each other's sessions.
pub struct TicketCipher {
    secrets: Arc<TicketSecrets>,
    /// Name of the context, from which the keys are derived in addition to a secret.
    context: Vec<u8>,
    /// Keys that were derived last; `None` before the first ticket.
    keys: ArcSwapOption<PeriodKeys>,
}

/// Keys that are derived from the secrets of the current and the previous period.
struct PeriodKeys {
    /// Secrets that the keys are derived from.
    pair: Arc<SecretPair>,
    current: TicketKey,
    /// Key of the previous period; `None` without [`SecretPair::previous`].
    previous: Option<TicketKey>,
}

/// Key for tickets in one period and one context. Its name is derived like the key, so tickets of other contexts have
/// other names and are not decrypted.
struct TicketKey {
    name: [u8; NAME_LENGTH],
    key: LessSafeKey,
}

impl TicketCipher {
    /// Creates the cipher of a context. The keys of two contexts are independent of each other.
    pub fn new(secrets: Arc<TicketSecrets>, context: Vec<u8>) -> TicketCipher {
        TicketCipher {
            secrets,
            context,
            keys: ArcSwapOption::empty(),
        }
    }

    fn keys(&self) -> Result<Arc<PeriodKeys>, Unspecified> {
        self.keys_of(self.secrets.pair())
    }

    fn keys_of(&self, pair: Arc<SecretPair>) -> Result<Arc<PeriodKeys>, Unspecified> {
        if let Some(keys) = &*self.keys.load()
            && Arc::ptr_eq(&keys.pair, &pair)
        {
            return Ok(Arc::clone(keys));
        }
        let derive = |secret: &Zeroizing<[u8; SECRET_LENGTH]>| TicketKey::derive(secret, &self.context);
        let keys = Arc::new(PeriodKeys {
            current: derive(&pair.current)?,
            previous: pair.previous.as_ref().map(derive).transpose()?,
            pair,
        });
        self.keys.store(Some(Arc::clone(&keys)));
        Ok(keys)
    }
}

impl PeriodKeys {
    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, sealed) = ticket.split_first_chunk::<NAME_LENGTH>()?;
        let mut keys = std::iter::once(&self.current).chain(&self.previous);
        keys.find(|key| key.name == *name)?.decrypt(sealed)
    }
}

impl TicketKey {
    fn derive(secret: &[u8; SECRET_LENGTH], context: &[u8]) -> Result<TicketKey, Unspecified> {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"rocknet session tickets").extract(secret);
        let (mut key, mut name) = (Zeroizing::new([0; SECRET_LENGTH]), [0; NAME_LENGTH]);
        root.expand(&[&b"key "[..], context], hkdf::HKDF_SHA256)?
            .fill(&mut *key)?;
        root.expand(&[&b"name "[..], context], NameLength)?.fill(&mut name)?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, &*key)?);
        Ok(TicketKey { name, key })
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(NAME_LENGTH + NONCE_LEN + session.len() + AES_256_GCM_SIV.tag_len());
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(&nonce);
        let start = ticket.len();
        ticket.extend_from_slice(session);
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(self.name));
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aad, &mut ticket[start..])
            .ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    /// Decrypts a ticket without its name; `None` if it was not encrypted with this key.
    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let (nonce, aad) = (Nonce::assume_unique_for_key(*nonce), Aad::from(self.name));
        let mut session = sealed.to_vec();
        let length = self.key.open_in_place(nonce, aad, &mut session).ok()?.len();
        session.truncate(length);
        Some(session)
    }
}

/// Length of a derived name.
struct NameLength;

impl hkdf::KeyType for NameLength {
    fn len(&self) -> usize {
        NAME_LENGTH
    }
}

impl ProducesTickets for TicketCipher {
    fn enabled(&self) -> bool {
        true
    }

    /// Returns the time in seconds after which no key decrypts a ticket that is encrypted now.
    fn lifetime(&self) -> u32 {
        2 * PERIOD.as_secs() as u32
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.keys().ok()?.current.encrypt(session)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.keys().ok()?.decrypt(ticket)
    }
}

/// Shows no key.
impl fmt::Debug for TicketCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketCipher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cipher(secrets: &Arc<TicketSecrets>, context: &str) -> TicketCipher {
        TicketCipher::new(Arc::clone(secrets), context.as_bytes().to_vec())
    }

    #[test]
    fn tickets_are_valid_in_their_context_only() {
        let secrets = Arc::new(TicketSecrets::new().unwrap());
        let (a, b) = (cipher(&secrets, "a"), cipher(&secrets, "b"));
        for session in [&b""[..], b"session", &[7; 10_000]] {
            let ticket = a.encrypt(session).unwrap();
            assert_eq!(a.decrypt(&ticket).as_deref(), Some(session));
            assert_eq!(cipher(&secrets, "a").decrypt(&ticket).as_deref(), Some(session));
            assert_eq!(b.decrypt(&ticket), None);
            assert_ne!(
                a.encrypt(session).unwrap(),
                ticket,
                "every ticket has a nonce of its own"
            );
            let visible = ticket.windows(7).any(|window| window == b"session");
            assert!(!visible);
        }
    }

    #[test]
    fn changed_tickets_are_rejected() {
        let cipher = cipher(&Arc::new(TicketSecrets::new().unwrap()), "");
        let ticket = cipher.encrypt(b"session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(cipher.decrypt(&changed), None, "{at}");
            assert_eq!(cipher.decrypt(&ticket[..at]), None, "{at}");
        }
        assert_eq!(cipher.decrypt(&[&ticket[..], &[0]].concat()), None);
    }

    #[test]
    fn tickets_outlive_one_replacement_of_the_secrets() {
        let secrets = Arc::new(TicketSecrets::new().unwrap());
        let cipher = cipher(&secrets, "");
        let ticket = cipher.encrypt(b"session").unwrap();
        let now = secrets.end();
        let next = cipher.keys_of(secrets.pair_at(now)).unwrap();
        assert_eq!(next.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        let later = cipher.keys_of(secrets.pair_at(now + PERIOD.as_secs())).unwrap();
        assert_eq!(later.decrypt(&ticket), None);
    }

    #[test]
    fn a_process_that_takes_over_decrypts_the_tickets() {
        let secrets = Arc::new(TicketSecrets::new().unwrap());
        let ticket = cipher(&secrets, "a").encrypt(b"session").unwrap();
        let passed = Arc::new(TicketSecrets::decode(&secrets.encode()).unwrap());
        assert_eq!(cipher(&passed, "a").decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        let own = Arc::new(TicketSecrets::new().unwrap());
        assert_eq!(cipher(&own, "a").decrypt(&ticket), None);
    }
}
