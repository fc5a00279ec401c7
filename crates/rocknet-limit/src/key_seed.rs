//! Secret seed with which the keys of limits are hashed. A key is, for example, the client that a limit counts.
//!
//! A [`crate::RateTable`] consists of small sets, and the hash of a key selects its set. In a full set, a new key
//! evicts another one, whose limit then starts again. The seed is secret because a client that knows it could choose
//! addresses whose keys share a set, and so evade its limits.
//!
//! A process passes the seed to its successor in an upgrade, so that both compute the same hash of a key. The hash is
//! therefore a part of the format of [`crate::transfer`]: another hash needs another version there.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Secret seed with which keys are hashed.
#[derive(Clone)]
pub struct KeySeed(SipHasher13);

/// Hash of one key, to which the parts of the key are added.
pub struct KeyHasher(SipHasher13);

impl KeySeed {
    /// Size of a seed in bytes.
    pub const SIZE: usize = 16;

    /// Creates a seed. `bytes`: random and secret.
    pub fn new(bytes: &[u8; KeySeed::SIZE]) -> KeySeed {
        KeySeed(SipHasher13::new_with_key(bytes))
    }

    /// Returns the bytes from which the seed was created.
    pub fn bytes(&self) -> [u8; KeySeed::SIZE] {
        self.0.key()
    }

    /// Begins the hash of a key.
    #[inline]
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }

    /// Returns the hash of a key that is only a client. `client`: the bits of its address, or of its IPv6 network.
    #[inline]
    pub fn of_client(&self, client: u128) -> u64 {
        let mut hasher = self.hasher();
        hasher.add_client(client);
        hasher.finish()
    }

    /// Returns a number by which a successor recognises that it has the same seed.
    pub fn check_value(&self) -> u64 {
        let mut hasher = self.hasher();
        hasher.add_value(b"rocknet-limit check value");
        hasher.finish()
    }
}

impl KeyHasher {
    /// Adds a client. `client`: as for [`KeySeed::of_client`].
    #[inline]
    pub fn add_client(&mut self, client: u128) {
        self.0.write_u64(client as u64);
        self.0.write_u64((client >> 64) as u64);
    }

    /// Adds a value. Its length separates it from the next part.
    #[inline]
    pub fn add_value(&mut self, value: &[u8]) {
        self.0.write_u64(value.len() as u64);
        self.0.write(value);
    }

    /// Returns the hash.
    #[inline]
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_earlier_versions() {
        let seed = KeySeed::new(&std::array::from_fn(|at| at as u8));
        assert_eq!(KeySeed::new(&seed.bytes()).check_value(), seed.check_value());
        let mut of_values = seed.hasher();
        of_values.add_client(7);
        of_values.add_value(b"a");
        of_values.add_value(b"");
        // Other values need another version of the messages that pass the seed and the tables in an upgrade.
        let hashes = [seed.check_value(), seed.of_client(u128::MAX - 7), of_values.finish()];
        let expected = [0xbe93_a0ac_98c6_6ec7, 0xe8fd_8c7f_a969_85b2, 0x1ef5_ee81_88b5_04b3];
        assert_eq!(hashes, expected);
    }

    #[test]
    fn values_are_separate() {
        let seed = KeySeed::new(&[7; KeySeed::SIZE]);
        let hash = |values: &[&[u8]]| {
            let mut hasher = seed.hasher();
            values.iter().for_each(|value| hasher.add_value(value));
            hasher.finish()
        };
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_ne!(hash(&[b"a"]), hash(&[b"a", b""]));
        assert_eq!(format!("{seed:?}"), "KeySeed");
    }
}
