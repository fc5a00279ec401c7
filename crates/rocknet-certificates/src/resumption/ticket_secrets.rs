//! The secrets from which the keys of session tickets are derived. They are replaced regularly, and are passed to a
//! process that takes over.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use aws_lc_rs::rand;
use zeroize::Zeroizing;

/// Size of a secret in bytes.
pub(super) const SECRET_LENGTH: usize = 32;
/// Time for which a secret encrypts tickets. Afterwards, it decrypts them for the same time. A leaked secret therefore
/// reveals the connections of at most twice this time.
pub(super) const PERIOD: Duration = Duration::from_secs(6 * 60 * 60);

/// Size in bytes of the encoded time of the next replacement.
const TIME_LENGTH: usize = 8;

/// The secrets of all session tickets of a server.
pub struct TicketSecrets {
    pair: ArcSwap<SecretPair>,
    /// Held while the secrets are replaced, so that this is done once.
    replacing: Mutex<()>,
}

/// The secret in use and its predecessor.
pub(super) struct SecretPair {
    /// Encrypts new tickets.
    pub current: Zeroizing<[u8; SECRET_LENGTH]>,
    /// Decrypts the tickets of the previous period; `None` in the first period, and once those tickets have expired.
    pub previous: Option<Zeroizing<[u8; SECRET_LENGTH]>>,
    /// End of the period of `current`, in seconds of Unix time.
    ends: u64,
}

impl TicketSecrets {
    /// Creates a random secret.
    ///
    /// # Errors
    ///
    /// Returns a message if the system has no random bytes.
    pub fn new() -> Result<TicketSecrets, String> {
        let pair = SecretPair {
            current: random()?,
            previous: None,
            ends: unix_time() + PERIOD.as_secs(),
        };
        Ok(TicketSecrets::with(pair))
    }

    fn with(pair: SecretPair) -> TicketSecrets {
        TicketSecrets {
            pair: ArcSwap::from_pointee(pair),
            replacing: Mutex::default(),
        }
    }

    /// Returns the secrets of the current period. Replaces them first if the period has ended.
    pub(super) fn pair(&self) -> Arc<SecretPair> {
        self.pair_at(unix_time())
    }

    /// Returns the secrets like [`TicketSecrets::pair`]. `now`: current time in seconds of Unix time.
    pub(super) fn pair_at(&self, now: u64) -> Arc<SecretPair> {
        let pair = self.pair.load_full();
        if !pair.is_over(now) {
            return pair;
        }
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = self.pair.load_full();
        if !pair.is_over(now) {
            return pair;
        }
        // Without random bytes, the old secret stays in use: the next handshake tries again.
        let Ok(current) = random() else {
            return pair;
        };
        let ended = now.saturating_sub(pair.ends);
        let next = Arc::new(SecretPair {
            current,
            previous: (ended < PERIOD.as_secs()).then(|| pair.current.clone()),
            ends: now + PERIOD.as_secs(),
        });
        self.pair.store(Arc::clone(&next));
        next
    }

    #[cfg(test)]
    pub(super) fn end(&self) -> u64 {
        self.pair().ends
    }

    /// Encodes the secrets for a process that takes over.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let pair = self.pair();
        // With its full capacity from the start, the vector leaves no copy of a secret behind.
        let mut encoded = Zeroizing::new(Vec::with_capacity(TIME_LENGTH + 2 * SECRET_LENGTH));
        encoded.extend_from_slice(&pair.ends.to_le_bytes());
        encoded.extend_from_slice(&*pair.current);
        if let Some(previous) = &pair.previous {
            encoded.extend_from_slice(&**previous);
        }
        encoded
    }

    /// Decodes the secrets of another process; `None` if the bytes do not have the form of [`TicketSecrets::encode`].
    pub fn decode(encoded: &[u8]) -> Option<TicketSecrets> {
        let (ends, secrets) = encoded.split_first_chunk::<TIME_LENGTH>()?;
        let (current, previous) = secrets.split_first_chunk::<SECRET_LENGTH>()?;
        let previous = match previous {
            [] => None,
            previous => Some(Zeroizing::new(previous.try_into().ok()?)),
        };
        Some(TicketSecrets::with(SecretPair {
            current: Zeroizing::new(*current),
            previous,
            ends: u64::from_le_bytes(*ends),
        }))
    }
}

impl SecretPair {
    /// Returns true if the period is over. Also true if it seems to last longer than a period, because the clock was
    /// set back.
    fn is_over(&self, now: u64) -> bool {
        now >= self.ends || self.ends - now > PERIOD.as_secs()
    }
}

/// Shows no secret.
impl fmt::Debug for TicketSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketSecrets").finish_non_exhaustive()
    }
}

fn random() -> Result<Zeroizing<[u8; SECRET_LENGTH]>, String> {
    let mut secret = Zeroizing::new([0; SECRET_LENGTH]);
    rand::fill(&mut *secret).map_err(|_| "the system has no random bytes".to_owned())?;
    Ok(secret)
}

fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_replaced_after_its_period_and_kept_for_another() {
        let secrets = TicketSecrets::new().unwrap();
        let first = secrets.pair();
        let ends = first.ends;
        assert!(Arc::ptr_eq(&secrets.pair_at(ends - 1), &first) && first.previous.is_none());
        let second = secrets.pair_at(ends);
        assert_eq!(second.previous.as_ref(), Some(&first.current));
        assert_ne!(second.current, first.current);
        assert!(Arc::ptr_eq(&secrets.pair_at(ends + PERIOD.as_secs() - 1), &second));
        let third = secrets.pair_at(ends + PERIOD.as_secs());
        assert_eq!(third.previous.as_ref(), Some(&second.current));
        // A server without a handshake for a whole period forgets the secrets of the period before it.
        let later = secrets.pair_at(ends + 3 * PERIOD.as_secs());
        assert!(later.previous.is_none() && later.current != third.current);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_prolong_a_period() {
        let secrets = TicketSecrets::new().unwrap();
        let first = secrets.pair();
        let second = secrets.pair_at(first.ends - PERIOD.as_secs() - 1);
        assert_ne!(second.current, first.current);
        assert_eq!(second.previous.as_ref(), Some(&first.current));
    }

    #[test]
    fn the_schedule_continues_in_the_process_that_takes_over() {
        let secrets = TicketSecrets::new().unwrap();
        for _ in 0..2 {
            let pair = secrets.pair();
            let passed = TicketSecrets::decode(&secrets.encode()).unwrap();
            let same = passed.pair_at(pair.ends - 1);
            assert_eq!(
                (&same.current, &same.previous, same.ends),
                (&pair.current, &pair.previous, pair.ends)
            );
            assert_eq!(passed.pair_at(pair.ends).previous.as_ref(), Some(&pair.current));
            // The second round has a previous secret.
            let next = SecretPair {
                current: random().unwrap(),
                previous: Some(pair.current.clone()),
                ends: pair.ends,
            };
            secrets.pair.store(Arc::new(next));
        }
        // Only lengths of 40 and 72 bytes are valid: a time of 8 bytes, and one or two secrets of 32 bytes.
        let encoded = secrets.encode();
        for length in [0, 7, 8, 39, 41, 71] {
            assert!(TicketSecrets::decode(&encoded[..length]).is_none(), "{length}");
        }
        assert!(TicketSecrets::decode(&[&encoded[..], &[0]].concat()).is_none());
    }
}
