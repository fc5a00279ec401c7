//! Limits on the archives that one server makes at the same time, and on the folders that it scans for them, in total
//! and for each client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_handler::client::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of archives that one server makes at the same time. Each holds its list of entries, with up to 8 MiB
/// of paths, until it was sent.
pub const MAX_ARCHIVES: usize = 32;
/// Maximum number of requested folders that one server scans at the same time. Each scan occupies at most one thread of
/// the blocking pool. Further scans wait.
const MAX_SCANS: usize = 8;
/// Maximum number of folders that are scanned at the same time for one client. Its further scans wait, so that a few
/// clients cannot occupy all scans of the server with large folders.
const MAX_SCANS_OF_CLIENT: usize = 2;

/// Limits the archives that one server makes at the same time. All clones share the limit.
#[derive(Clone)]
pub struct ArchiveLimit(Arc<Counts>);

struct Counts {
    archives: Arc<Semaphore>,
    scans: Arc<Semaphore>,
    /// Archives of each client that has one. It has at most [`MAX_ARCHIVES`] entries.
    clients: Mutex<HashMap<u128, ClientArchives>>,
}

/// Archives of one client.
struct ClientArchives {
    /// Number of archives.
    count: usize,
    /// Free scans of the client.
    scans: Arc<Semaphore>,
}

/// Reason for which no further archive may be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The server makes as many archives as it may.
    Server,
    /// The client downloads as many archives as it may.
    Client,
}

/// Permission to make one archive, held until it was sent.
pub struct ArchivePermit {
    _archive: OwnedSemaphorePermit,
    counts: Arc<Counts>,
    /// Key of the client with its free scans; `None` for a client without an IP address, which is not counted.
    client: Option<(u128, Arc<Semaphore>)>,
}

/// Permission to scan one folder, held until it was scanned.
pub struct ScanPermit {
    _of_client: Option<OwnedSemaphorePermit>,
    _of_server: OwnedSemaphorePermit,
}

impl Default for ArchiveLimit {
    fn default() -> ArchiveLimit {
        ArchiveLimit(Arc::new(Counts {
            archives: Arc::new(Semaphore::new(MAX_ARCHIVES)),
            scans: Arc::new(Semaphore::new(MAX_SCANS)),
            clients: Mutex::default(),
        }))
    }
}

impl ArchiveLimit {
    /// Counts an archive of a client until the permit is dropped. `per_client`: maximum number of archives of the
    /// client, including this one.
    ///
    /// # Errors
    ///
    /// Fails if the server or the client has as many archives as it may.
    pub fn acquire(&self, client: Client, per_client: usize) -> Result<ArchivePermit, Refusal> {
        let client = client.count_key();
        let mut clients = self.0.clients();
        let count = client.and_then(|client| clients.get(&client));
        let count = count.map_or(0, |archives| archives.count);
        // The limit of the client is checked first, so that a client that has reached it gets this reason even if the
        // server has reached its limit too.
        if client.is_some() && count >= per_client {
            return Err(Refusal::Client);
        }
        let archive = Arc::clone(&self.0.archives);
        let archive = archive.try_acquire_owned().map_err(|_| Refusal::Server)?;
        let client = client.map(|client| {
            let archives = clients.entry(client).or_insert_with(|| ClientArchives {
                count: 0,
                scans: Arc::new(Semaphore::new(MAX_SCANS_OF_CLIENT)),
            });
            archives.count += 1;
            (client, Arc::clone(&archives.scans))
        });
        drop(clients);
        Ok(ArchivePermit {
            _archive: archive,
            counts: Arc::clone(&self.0),
            client,
        })
    }

    /// Waits until the folder of an archive may be scanned. Never returns `None`, because the semaphores are never
    /// closed.
    pub async fn scan(&self, archive: &ArchivePermit) -> Option<ScanPermit> {
        // A scan that waits for other scans of its client does not hold a permit of the server meanwhile.
        let of_client = match &archive.client {
            Some((_, scans)) => Some(Arc::clone(scans).acquire_owned().await.ok()?),
            None => None,
        };
        Some(ScanPermit {
            _of_client: of_client,
            _of_server: Arc::clone(&self.0.scans).acquire_owned().await.ok()?,
        })
    }
}

impl Counts {
    /// Locks the counts of clients. Poisoning is ignored, because no code that can panic runs while they are locked.
    fn clients(&self) -> MutexGuard<'_, HashMap<u128, ClientArchives>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ArchivePermit {
    fn drop(&mut self) {
        let Some((client, _)) = &self.client else { return };
        let mut clients = self.counts.clients();
        match clients.get_mut(client) {
            Some(archives) if archives.count > 1 => archives.count -= 1,
            _ => {
                clients.remove(client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn client(address: &str) -> Client {
        Client::Ip {
            address: address.parse().expect("an address"),
            port: 0,
        }
    }

    #[test]
    fn one_client_leaves_places_for_others() {
        let limit = ArchiveLimit::default();
        let refusal = |client, most| limit.acquire(client, most).err();
        let mut held: Vec<_> = (0..4)
            .map(|n| limit.acquire(client(&format!("2001:db8::{n}")), 4).expect("a permit"))
            .collect();
        // Addresses of one network of 64 bits are one client.
        assert_eq!(refusal(client("2001:db8::ffff"), 4), Some(Refusal::Client));
        assert_eq!(
            refusal(client("2001:db8::ffff"), 5),
            None,
            "the limit of another folder"
        );
        assert_eq!(refusal(client("2001:db8:0:1::"), 4), None, "another network");
        held.pop();
        assert_eq!(refusal(client("2001:db8::ffff"), 4), None, "a permit was released");
        for n in 0..MAX_ARCHIVES - 4 {
            let other = client(&format!("192.0.2.{n}"));
            held.push(limit.acquire(other, 1).expect("a permit"));
            let mapped = client(&format!("::ffff:192.0.2.{n}"));
            assert_eq!(refusal(mapped, 1), Some(Refusal::Client), "the same address");
        }
        // Clients without a known address share the places of the server only.
        held.push(limit.acquire(Client::Local, 1).expect("a permit"));
        assert_eq!(refusal(Client::Local, 1), Some(Refusal::Server));
        assert_eq!(refusal(client("198.51.100.1"), 1), Some(Refusal::Server));
        drop(held);
        assert!(limit.0.clients().is_empty());
        assert_eq!(limit.0.archives.available_permits(), MAX_ARCHIVES);
    }

    #[test]
    fn one_client_leaves_scans_for_others() {
        fn scan(limit: &ArchiveLimit, archive: &ArchivePermit) -> Poll<Option<ScanPermit>> {
            pin!(limit.scan(archive)).poll(&mut Context::from_waker(Waker::noop()))
        }
        let limit = ArchiveLimit::default();
        let archive = |address: &str| limit.acquire(client(address), 4).expect("a permit");
        let held: Vec<ArchivePermit> = (0..4).map(|n| archive(&format!("2001:db8::{n}"))).collect();
        let mut scans: Vec<ScanPermit> = Vec::new();
        for (archive, may_begin) in held.iter().zip([true, true, false, false]) {
            let scan = scan(&limit, archive);
            assert_eq!(scan.is_ready(), may_begin);
            scans.extend(match scan {
                Poll::Ready(scan) => scan,
                Poll::Pending => None,
            });
        }
        let others: Vec<ArchivePermit> = (0..6).map(|n| archive(&format!("192.0.2.{n}"))).collect();
        for other in &others {
            match scan(&limit, other) {
                Poll::Ready(scan) => scans.extend(scan),
                Poll::Pending => panic!("another client has no scan"),
            }
        }
        // The server scans as many folders as it may.
        let another = archive("192.0.2.9");
        assert!(scan(&limit, &another).is_pending());
        scans.remove(0);
        assert!(scan(&limit, &held[2]).is_ready(), "a scan of the client has ended");
    }
}
