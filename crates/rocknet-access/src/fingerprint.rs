//! Keyed hashes that identify verified credentials, so that no password is stored.

use blake2::{Blake2b256, Digest};
use rocknet_config::model::PasswordHash;

use crate::credentials::Credentials;

/// Identifies credentials together with the hash they were verified against.
pub(crate) type Fingerprint = [u8; 32];

/// Computes fingerprints with the key of one server. Without the key, they reveal nothing about a password.
pub(crate) struct Fingerprints {
    key: [u8; 32],
}

impl Fingerprints {
    pub fn new(key: [u8; 32]) -> Fingerprints {
        Fingerprints { key }
    }

    /// Computes the fingerprint. BLAKE2 with the key as its first bytes is a message authentication code, because it
    /// has no length-extension weakness. The lengths separate the parts unambiguously.
    pub fn of(&self, credentials: &Credentials, hash: &PasswordHash) -> Fingerprint {
        let mut blake = Blake2b256::new().chain_update(self.key);
        for part in [credentials.user(), credentials.password(), hash.text()] {
            blake.update((part.len() as u64).to_le_bytes());
            blake.update(part);
        }
        blake.finalize().into()
    }
}
