//! Forwards misrouted datagrams to the worker that owns the connection, or, for a new connection, to a worker that
//! accepts connections.
//!
//! The kernel selects a socket by the addresses of a datagram. It may select the socket of another worker, even of a
//! stopping worker, if the address of a client has changed, or if an address was removed from the configuration and
//! added again.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::task::Waker;

use rocknet_io::socket::Address;
use rocknet_io::udp::Ecn;

/// Maximum number of datagrams that wait for a worker. Further datagrams are dropped, as if a socket buffer were full.
const MAX_WAITING: usize = 1024;

/// Datagram with its metadata.
pub(crate) struct ForwardedDatagram {
    /// Address of the client.
    pub source: SocketAddr,
    /// Local address that the client sent to, if known.
    pub destination: Option<IpAddr>,
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
}

/// Inboxes of all workers of this process that have a UDP socket, by their numbers. Clones refer to the same inboxes.
#[derive(Clone, Default)]
pub struct Forwarding {
    /// Workers by number. A number is free if its inbox was dropped.
    workers: Arc<RwLock<Vec<RegisteredWorker>>>,
}

/// Worker with a UDP socket.
struct RegisteredWorker {
    inbox: Weak<Mutex<Inbox>>,
    /// Address at which the worker accepts connections; `None` once it is stopping.
    accepts: Option<Address>,
}

/// Inbox of one worker. Its number is free again once all clones are dropped.
#[derive(Clone)]
pub struct WorkerInbox {
    number: u16,
    /// Address that the UDP socket of the worker is bound to.
    address: Address,
    inbox: Arc<Mutex<Inbox>>,
    forwarding: Forwarding,
}

/// Datagrams that wait for one worker.
#[derive(Default)]
struct Inbox {
    waiting: VecDeque<ForwardedDatagram>,
    /// Wakes the task of the endpoint.
    waker: Option<Waker>,
}

impl Forwarding {
    /// Creates an inbox with the lowest free number, for a worker that accepts connections at `address`. Connection
    /// IDs have 16 bits for the number; returns `None` if all numbers are in use.
    pub fn register(&self, address: &Address) -> Option<WorkerInbox> {
        let mut workers = self.workers.write().unwrap_or_else(PoisonError::into_inner);
        let free = workers.iter().position(|worker| worker.inbox.strong_count() == 0);
        let number = u16::try_from(free.unwrap_or(workers.len())).ok()?;
        let inbox = Arc::<Mutex<Inbox>>::default();
        let worker = RegisteredWorker {
            inbox: Arc::downgrade(&inbox),
            accepts: Some(address.clone()),
        };
        match free {
            Some(free) => workers[free] = worker,
            None => workers.push(worker),
        }
        Some(WorkerInbox {
            number,
            address: address.clone(),
            inbox,
            forwarding: self.clone(),
        })
    }

    /// Returns the inbox of a worker; `None` if there is no worker with this number.
    fn inbox(&self, worker: u16) -> Option<Arc<Mutex<Inbox>>> {
        let workers = self.workers.read().unwrap_or_else(PoisonError::into_inner);
        workers.get(usize::from(worker))?.inbox.upgrade()
    }

    /// Returns a worker that accepts connections from `client` at the address `to`; `None` if no worker does. The
    /// result stays the same as long as the workers stay the same. As in the kernel, a worker of the address itself has
    /// precedence over a worker of an address that covers it, such as `*`.
    fn acceptor(&self, to: &Address, client: SocketAddr) -> Option<u16> {
        let workers = self.workers.read().unwrap_or_else(PoisonError::into_inner);
        let accepting = |matches: &dyn Fn(&Address) -> bool| {
            let is_accepting = |worker: &RegisteredWorker| {
                worker.accepts.as_ref().is_some_and(matches) && worker.inbox.strong_count() > 0
            };
            let count = workers.iter().filter(|worker| is_accepting(worker)).count();
            let mut hasher = DefaultHasher::new();
            client.hash(&mut hasher);
            let index = hasher.finish().checked_rem(count as u64)?;
            let mut numbers = (0..).zip(workers.iter()).filter(|(_, worker)| is_accepting(worker));
            numbers.nth(index as usize).map(|(number, _)| number)
        };
        accepting(&|address| address == to).or_else(|| accepting(&|address| address.covers(to)))
    }

    /// Returns true if there is a worker with this number.
    pub(crate) fn has_worker(&self, worker: u16) -> bool {
        self.inbox(worker).is_some()
    }

    /// Passes a datagram to a worker. Drops it if [`MAX_WAITING`] datagrams wait for the worker. Returns false if there
    /// is no such worker.
    pub(crate) fn send(&self, worker: u16, datagram: ForwardedDatagram) -> bool {
        let Some(inbox) = self.inbox(worker) else {
            return false;
        };
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.waiting.len() < MAX_WAITING {
            inbox.waiting.push_back(datagram);
        }
        if let Some(waker) = &inbox.waker {
            waker.wake_by_ref();
        }
        true
    }
}

impl WorkerInbox {
    /// Returns the number of the worker, which its connection IDs name.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the inboxes of all workers of this process.
    pub(crate) fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// Records that the worker no longer accepts connections.
    pub(crate) fn stop_accepting(&self) {
        let mut workers = self.forwarding.workers.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = workers.get_mut(usize::from(self.number)) {
            worker.accepts = None;
        }
    }

    /// Returns a worker that accepts a connection from `client` in place of this one; `None` if no worker listens at
    /// the address any more. `destination` is the local address that the client sent to, if known.
    pub(crate) fn acceptor(&self, destination: Option<IpAddr>, client: SocketAddr) -> Option<u16> {
        // `Address::Tcp` stands for an IP address with a port, also of a UDP socket.
        match (destination, self.address.port()) {
            (Some(ip), Some(port)) => self.forwarding.acceptor(&Address::Tcp { ip: Some(ip), port }, client),
            _ => self.forwarding.acceptor(&self.address, client),
        }
    }

    /// Takes the datagrams that wait for the worker. `waker` is woken when more datagrams arrive.
    pub(crate) fn take(&self, waker: &Waker) -> VecDeque<ForwardedDatagram> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if !inbox.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inbox.waker = Some(waker.clone());
        }
        std::mem::take(&mut inbox.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address of workers in tests.
    fn address(ip: &str) -> Address {
        Address::Tcp {
            ip: ip.parse().ok(),
            port: 443,
        }
    }

    fn datagram(byte: u8) -> ForwardedDatagram {
        ForwardedDatagram {
            source: ([127, 0, 0, 1], 1).into(),
            destination: None,
            ecn: Ecn::None,
            bytes: vec![byte],
        }
    }

    #[test]
    fn datagrams_reach_their_worker_in_order_and_in_bounded_number() {
        let forwarding = Forwarding::default();
        let workers = [(); 2].map(|()| forwarding.register(&address("*")).expect("a number"));
        assert!(forwarding.send(1, datagram(1)));
        assert!(forwarding.send(1, datagram(2)));
        assert!(!forwarding.send(2, datagram(3)));
        assert!(workers[0].take(Waker::noop()).is_empty());
        let bytes: Vec<u8> = workers[1].take(Waker::noop()).iter().map(|one| one.bytes[0]).collect();
        assert_eq!(bytes, [1, 2]);
        for _ in 0..2 * MAX_WAITING {
            forwarding.send(0, datagram(0));
        }
        assert_eq!(workers[0].take(Waker::noop()).len(), MAX_WAITING);
        assert!(workers[0].take(Waker::noop()).is_empty());
    }

    #[test]
    fn numbers_are_unique_and_used_again() {
        let forwarding = Forwarding::default();
        let register = || forwarding.register(&address("*")).expect("a number");
        let mut workers: Vec<_> = (0..3).map(|_| register()).collect();
        let copy = workers[1].clone();
        workers.remove(1);
        assert!(forwarding.has_worker(1));
        assert_eq!(register().number(), 3);
        drop(copy);
        assert!(!forwarding.has_worker(1) && !forwarding.has_worker(3) && !forwarding.has_worker(4));
        assert_eq!(register().number(), 1);
    }

    #[test]
    fn new_connections_have_a_worker_of_their_address_or_of_all() {
        let forwarding = Forwarding::default();
        // The workers have the numbers 0 to 4. Workers 0 and 3 have the same address.
        let [one, other, all, fourth, v6] = ["127.0.0.1", "127.0.0.2", "*", "127.0.0.1", "::1"]
            .map(|ip| forwarding.register(&address(ip)).expect("a number"));
        let client = SocketAddr::from(([127, 0, 0, 9], 7));
        let ip = |ip: &str| ip.parse().ok();
        assert_eq!(one.acceptor(ip("127.0.0.2"), client), Some(1));
        assert_eq!(one.acceptor(ip("127.0.0.3"), client), Some(2));
        assert_eq!(v6.acceptor(None, client), Some(4));
        let workers: Vec<_> = (0..100)
            .map(|port| one.acceptor(None, SocketAddr::from(([127, 0, 0, 9], port))))
            .collect();
        assert!(workers.contains(&Some(0)) && workers.contains(&Some(3)), "{workers:?}");
        assert_eq!(one.acceptor(None, client), one.acceptor(None, client));

        one.stop_accepting();
        assert_eq!(one.acceptor(None, client), Some(3));
        drop(fourth);
        assert_eq!(one.acceptor(None, client), Some(2));
        all.stop_accepting();
        assert_eq!(one.acceptor(None, client), None);
        assert_eq!(all.acceptor(None, client), None);
        // Only the destination shows that another address accepts the connection.
        assert_eq!(all.acceptor(ip("127.0.0.2"), client), Some(other.number()));
    }
}
