//! Passes datagrams that reached the wrong worker to the worker that owns their connection.
//!
//! The kernel selects a socket by the addresses of a datagram. If the address of a client or the number of workers has
//! changed, the kernel may select the socket of another worker.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
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

/// Inboxes of the workers of one listening address, in the order of their numbers.
#[derive(Clone)]
pub struct Forwarding {
    inboxes: Arc<[Mutex<Inbox>]>,
}

/// Datagrams that wait for one worker.
#[derive(Default)]
struct Inbox {
    waiting: VecDeque<ForwardedDatagram>,
    /// Wakes the task of the endpoint.
    waker: Option<Waker>,
}

impl Forwarding {
    /// Creates an inbox for each of `workers` workers.
    pub fn new(workers: usize) -> Forwarding {
        Forwarding {
            inboxes: (0..workers).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns the number of workers.
    pub(crate) fn workers(&self) -> u16 {
        // Connection IDs have 16 bits for the worker, so further workers could not be named.
        u16::try_from(self.inboxes.len()).unwrap_or(u16::MAX)
    }

    /// Passes a datagram to a worker. Drops it if there is no such worker, or if [`MAX_WAITING`]
    /// datagrams wait for it.
    pub(crate) fn send(&self, worker: u16, datagram: ForwardedDatagram) {
        let Some(inbox) = self.inboxes.get(usize::from(worker)) else {
            return;
        };
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.waiting.len() < MAX_WAITING {
            inbox.waiting.push_back(datagram);
        }
        if let Some(waker) = &inbox.waker {
            waker.wake_by_ref();
        }
    }

    /// Takes the datagrams that wait for a worker. `waker` is woken when more datagrams arrive.
    pub(crate) fn take(&self, worker: u16, waker: &Waker) -> VecDeque<ForwardedDatagram> {
        let Some(inbox) = self.inboxes.get(usize::from(worker)) else {
            return VecDeque::new();
        };
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
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
        let forwarding = Forwarding::new(2);
        forwarding.send(1, datagram(1));
        forwarding.send(1, datagram(2));
        forwarding.send(2, datagram(3));
        assert!(forwarding.take(0, Waker::noop()).is_empty());
        let bytes: Vec<u8> = forwarding
            .take(1, Waker::noop())
            .iter()
            .map(|one| one.bytes[0])
            .collect();
        assert_eq!(bytes, [1, 2]);
        for _ in 0..2 * MAX_WAITING {
            forwarding.send(0, datagram(0));
        }
        assert_eq!(forwarding.take(0, Waker::noop()).len(), MAX_WAITING);
        assert!(forwarding.take(0, Waker::noop()).is_empty());
    }
}
