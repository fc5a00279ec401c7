//! Passes datagrams that reached the wrong worker to the worker that owns their connection.
//!
//! The kernel selects a socket by the addresses of a datagram. If the address of a client has changed, or if an address
//! was removed from the configuration and added again, the kernel may select the socket of another worker.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::task::Waker;

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

/// Inboxes of all workers of a server that have a UDP socket, by their numbers. Clones refer to the same inboxes.
#[derive(Clone, Default)]
pub struct Forwarding {
    /// Inboxes by number. A number is free if its inbox was dropped.
    inboxes: Arc<RwLock<Vec<Weak<Mutex<Inbox>>>>>,
}

/// Inbox of one worker. Its number is free again once all clones are dropped.
#[derive(Clone)]
pub struct WorkerInbox {
    number: u16,
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
    /// Creates an inbox with the lowest free number. Returns `None` if all numbers of 16 bits, which connection IDs
    /// have for the worker, are in use.
    pub fn register(&self) -> Option<WorkerInbox> {
        let mut inboxes = self.inboxes.write().unwrap_or_else(PoisonError::into_inner);
        let free = inboxes.iter().position(|inbox| inbox.strong_count() == 0);
        let number = u16::try_from(free.unwrap_or(inboxes.len())).ok()?;
        let inbox = Arc::<Mutex<Inbox>>::default();
        match free {
            Some(free) => inboxes[free] = Arc::downgrade(&inbox),
            None => inboxes.push(Arc::downgrade(&inbox)),
        }
        Some(WorkerInbox {
            number,
            inbox,
            forwarding: self.clone(),
        })
    }

    fn inbox(&self, worker: u16) -> Option<Arc<Mutex<Inbox>>> {
        let inboxes = self.inboxes.read().unwrap_or_else(PoisonError::into_inner);
        inboxes.get(usize::from(worker))?.upgrade()
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

    /// Returns the inboxes of all workers of the server.
    pub(crate) fn forwarding(&self) -> &Forwarding {
        &self.forwarding
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
        let workers = [forwarding.register(), forwarding.register()].map(|worker| worker.expect("a number"));
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
        let mut workers: Vec<_> = (0..3).map(|_| forwarding.register().expect("a number")).collect();
        let copy = workers[1].clone();
        workers.remove(1);
        assert!(forwarding.has_worker(1));
        assert_eq!(forwarding.register().expect("a number").number(), 3);
        drop(copy);
        assert!(!forwarding.has_worker(1) && !forwarding.has_worker(3) && !forwarding.has_worker(4));
        assert_eq!(forwarding.register().expect("a number").number(), 1);
    }
}
