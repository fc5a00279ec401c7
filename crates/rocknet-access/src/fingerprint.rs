//! Keyed hashes that stand for a user with a password and a hash, so that no password is kept.

use blake2::{Blake2b256, Digest};
use rocknet_config::model::PasswordHash;

use crate::credentials::Credentials;

/// Identifies credentials that were checked against one hash.
pub(crate) type Fingerprint = [u8; 32];

/// Makes fingerprints with the key of one server: without it they say nothing about a password.
pub(crate) struct Fingerprints {
    key: [u8; 32],
}

impl Fingerprints {
    pub fn new(key: [u8; 32]) -> Fingerprints {
        Fingerprints { key }
    }

    /// BLAKE2 with the key as its first bytes is a message authentication code, because its output cannot be continued
    /// with more input. The lengths keep the end of one part from being read as the begin of the next.
    pub fn of(&self, credentials: &Credentials, hash: &PasswordHash) -> Fingerprint {
        let mut blake = Blake2b256::new().chain_update(self.key);
        for part in [credentials.user(), credentials.password(), hash.text()] {
            blake.update((part.len() as u64).to_le_bytes());
            blake.update(part);
        }
        blake.finalize().into()
    }
}
