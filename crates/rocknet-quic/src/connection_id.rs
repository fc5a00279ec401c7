//! Connection IDs that name their owner: the worker, and the generation of its process.
//!
//! ```text
//! one AES block, with lengths in bytes, encrypted with a key of the server:
//! CHECK (4) | generation (2) | worker (2) | random (8)
//! ```
//!
//! An observer must not find out which connection IDs belong together (RFC 9000 §5.1), so the block is encrypted. If
//! the address of a client has changed, the kernel may send its datagrams to any worker. That worker reads the owner
//! from the connection ID and forwards the datagram. The right worker finds the connection by the whole ID, without
//! decryption.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lc_rs::cipher::{AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};

use crate::forwarding::Forwarding;

/// Length of a connection ID in bytes: one AES block.
pub const CONNECTION_ID_LENGTH: usize = 16;
/// Length of the key that encrypts connection IDs, in bytes.
pub const KEY_LENGTH: usize = 16;
/// Constant at the start of each block. A random ID has it with a probability of 2^-32.
const CHECK: [u8; 4] = *b"rock";

/// Owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Number of the process, 0 for the first. Processes that serve a port at the same time need different generations.
    /// Connections of generations without a process are reset.
    pub generation: u16,
    /// Number of the worker among the workers of the process that have a UDP socket.
    pub worker: u16,
}

/// Reads owners from connection IDs and creates connection IDs.
pub struct ConnectionIdKey {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

impl ConnectionIdKey {
    /// Creates a key. `None` if the cryptographic library rejects the key, which cannot happen with a key of this
    /// length.
    pub fn new(key: &[u8; KEY_LENGTH]) -> Option<ConnectionIdKey> {
        let unbound = || UnboundCipherKey::new(&AES_128, key).ok();
        Some(ConnectionIdKey {
            encrypting: EncryptingKey::ecb(unbound()?).ok()?,
            decrypting: DecryptingKey::ecb(unbound()?).ok()?,
        })
    }

    /// Returns a connection ID that names this owner; `None` if the encryption fails.
    fn encode(&self, owner: Owner, random: [u8; 8]) -> Option<[u8; CONNECTION_ID_LENGTH]> {
        let mut block = [0; CONNECTION_ID_LENGTH];
        block[..4].copy_from_slice(&CHECK);
        block[4..6].copy_from_slice(&owner.generation.to_be_bytes());
        block[6..8].copy_from_slice(&owner.worker.to_be_bytes());
        block[8..].copy_from_slice(&random);
        self.encrypting.encrypt(&mut block).ok()?;
        Some(block)
    }

    /// Returns the owner that a connection ID names; `None` if the server has not issued it.
    pub fn owner(&self, id: &[u8]) -> Option<Owner> {
        let mut block: [u8; CONNECTION_ID_LENGTH] = id.try_into().ok()?;
        let block = self.decrypting.decrypt(&mut block, DecryptionContext::None).ok()?;
        if block[..4] != CHECK {
            return None;
        }
        Some(Owner {
            generation: u16::from_be_bytes([block[4], block[5]]),
            worker: u16::from_be_bytes([block[6], block[7]]),
        })
    }
}

/// Worker to which a rejected datagram has to be forwarded, because it owns the connection. The [`Generator`] stores it
/// while `quinn-proto` handles the datagram, and the endpoint takes it afterwards. The value is atomic, because
/// `quinn-proto` requires generators of connection IDs to be `Sync`.
#[derive(Default)]
pub(crate) struct MisroutedOwner(AtomicU64);

impl MisroutedOwner {
    /// Bit that is set if there is an owner.
    const PRESENT: u64 = 1 << 32;

    fn put(&self, owner: Owner) {
        let value = u64::from(owner.generation) << 16 | u64::from(owner.worker);
        self.0.store(Self::PRESENT | value, Ordering::Relaxed);
    }

    /// Returns the owner and clears it; `None` if no datagram was rejected since the last call.
    pub fn take(&self) -> Option<Owner> {
        // A plain load is tried first, because nearly all datagrams reach the right worker.
        if self.0.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let value = self.0.swap(0, Ordering::Relaxed);
        (value & Self::PRESENT != 0).then_some(Owner {
            generation: (value >> 16) as u16,
            worker: value as u16,
        })
    }
}

/// Generates the connection IDs of one worker.
pub(crate) struct Generator {
    pub key: Arc<ConnectionIdKey>,
    pub owner: Owner,
    pub misrouted: Arc<MisroutedOwner>,
    /// Inboxes of the workers of this process.
    pub forwarding: Forwarding,
}

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random).expect("the random generator of the system works");
        let id = self.key.encode(self.owner, random);
        ConnectionId::new(&id.expect("AES encrypts a whole block"))
    }

    /// Called only for a short header whose connection ID belongs to no connection of this worker. An accepted ID makes
    /// `quinn-proto` send a stateless reset; the datagram of a rejected ID is dropped. An ID that the server has not
    /// issued is rejected. If the ID names another worker of this process, it is rejected, and the owner is recorded,
    /// so that the datagram can be forwarded instead. The ID of a worker that no longer exists, or of another process,
    /// is accepted, because nothing could receive the datagram. The endpoint has already passed on the datagrams of
    /// older processes that still run, and a replaced process receives no datagrams of its successor's connections.
    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        match self.key.owner(id) {
            Some(owner) if owner == self.owner => Ok(()),
            Some(owner) if owner.generation != self.owner.generation || !self.forwarding.has_worker(owner.worker) => {
                Ok(())
            }
            Some(owner) => {
                self.misrouted.put(owner);
                Err(InvalidCid)
            }
            None => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocknet_io::socket::Address;

    use crate::forwarding::WorkerInbox;

    fn generator(worker: u16, forwarding: &Forwarding) -> Generator {
        Generator {
            key: Arc::new(ConnectionIdKey::new(&[7; KEY_LENGTH]).expect("a key")),
            owner: Owner { generation: 3, worker },
            misrouted: Arc::default(),
            forwarding: forwarding.clone(),
        }
    }

    /// Returns the inboxes of three workers, which exist as long as the second value.
    fn three_workers() -> (Forwarding, Vec<WorkerInbox>) {
        let forwarding = Forwarding::default();
        let workers = (0..3)
            .map(|_| {
                forwarding
                    .register(&Address::Unix("unused".into()))
                    .expect("a free worker number")
            })
            .collect();
        (forwarding, workers)
    }

    #[test]
    fn an_id_names_its_owner() {
        let (forwarding, _workers) = three_workers();
        let (mut first, second) = (generator(1, &forwarding), generator(2, &forwarding));
        let id = first.generate_cid();
        assert_eq!(first.key.owner(&id), Some(first.owner));
        assert!(first.validate(&id).is_ok());
        assert_eq!(first.misrouted.take(), None);

        assert!(second.validate(&id).is_err());
        assert_eq!(second.misrouted.take(), Some(first.owner));
        assert_eq!(second.misrouted.take(), None);
    }

    #[test]
    fn an_id_of_a_missing_worker_or_process_is_reset_and_not_forwarded() {
        let (forwarding, _workers) = three_workers();
        let (first, mut missing) = (generator(1, &forwarding), generator(3, &forwarding));
        let id = missing.generate_cid();
        assert!(first.validate(&id).is_ok());
        assert_eq!(first.misrouted.take(), None);
        missing.owner.generation = 4;
        let id = missing.generate_cid();
        assert!(first.validate(&id).is_ok());
        missing.owner = Owner {
            generation: 4,
            worker: 1,
        };
        let id = missing.generate_cid();
        assert!(first.validate(&id).is_ok());
        assert_eq!(first.misrouted.take(), None);
    }

    #[test]
    fn ids_of_one_owner_look_unrelated_and_foreign_ids_have_no_owner() {
        let (forwarding, _workers) = three_workers();
        let mut generator = generator(1, &forwarding);
        let (a, b) = (generator.generate_cid(), generator.generate_cid());
        // Two random bytes are equal with a probability of 1/256.
        let same = a.iter().zip(b.iter()).filter(|(a, b)| a == b).count();
        assert!(same < 8, "{a} {b}");
        let mut changed = a;
        changed[15] ^= 1;
        for id in [&changed[..], &[0; 16], &[0; 8], &[]] {
            assert_eq!(generator.key.owner(id), None, "{id:?}");
        }
        assert!(generator.validate(&changed).is_err());
        assert_eq!(generator.misrouted.take(), None);
    }
}
