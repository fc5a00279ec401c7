//! Secrets by which the server hides clients and passwords in its tables of limits, offences and wrong passwords. A
//! process passes them to its successor, which gets the tables too.

use aws_lc_rs::rand;
use rocknet_limit::KeySeed;
use zeroize::Zeroizing;

/// Size of the key of access control in bytes.
const ACCESS_KEY_SIZE: usize = 32;

/// The secrets. With the same ones, a successor finds the entries of its predecessor.
pub struct LimitSecrets {
    /// Seed with which the tables hash clients and the values of `limit.key`.
    pub seed: KeySeed,
    /// Key with which access control computes fingerprints of passwords.
    access_key: Zeroizing<[u8; ACCESS_KEY_SIZE]>,
}

impl LimitSecrets {
    /// Creates new secrets.
    ///
    /// # Panics
    ///
    /// Panics if the system provides no random numbers, which never happens after boot.
    pub fn random() -> LimitSecrets {
        let mut bytes = Zeroizing::new([0; KeySeed::SIZE + ACCESS_KEY_SIZE]);
        rand::fill(&mut *bytes).expect("the system provides random numbers");
        LimitSecrets::decode(&*bytes).expect("the bytes have the size of the secrets")
    }

    /// Returns the bytes of the secrets.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // With its full capacity from the start, the vector leaves no copy of a secret behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(KeySeed::SIZE + ACCESS_KEY_SIZE));
        bytes.extend_from_slice(&self.seed.bytes());
        bytes.extend_from_slice(&*self.access_key);
        bytes
    }

    /// Decodes secrets; `None` if they have another size.
    pub fn decode(bytes: &[u8]) -> Option<LimitSecrets> {
        let (seed, access_key) = bytes.split_first_chunk()?;
        Some(LimitSecrets {
            seed: KeySeed::new(seed),
            access_key: Zeroizing::new(access_key.try_into().ok()?),
        })
    }

    /// Returns the key of access control.
    pub fn access_key(&self) -> [u8; ACCESS_KEY_SIZE] {
        *self.access_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_decoded() {
        let secrets = LimitSecrets::random();
        let bytes = secrets.encode();
        let decoded = LimitSecrets::decode(&bytes).unwrap();
        assert_eq!(decoded.access_key(), secrets.access_key());
        assert_eq!(decoded.seed.bytes(), secrets.seed.bytes());
        assert_ne!(LimitSecrets::random().encode(), bytes);
        for size in [0, bytes.len() - 1] {
            assert!(LimitSecrets::decode(&bytes[..size]).is_none());
        }
        assert!(LimitSecrets::decode(&[&bytes[..], b"x"].concat()).is_none());
    }
}
