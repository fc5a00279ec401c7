//! Connections and tunnels, which are counted as open until they are dropped.

use std::cell::Cell;
use std::rc::Rc;

use super::Worker;

/// Counts a tunnel as open until it is dropped.
pub struct OpenTunnel(Rc<Worker>);

impl OpenTunnel {
    /// Counts a tunnel.
    pub fn new(worker: &Rc<Worker>) -> OpenTunnel {
        worker.counters.tunnels_total.add(1);
        OpenTunnel(Rc::clone(worker))
    }
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.counters.tunnels_closed.add(1);
    }
}

/// Counts a connection as open until it is dropped.
pub struct OpenConnection {
    worker: Rc<Worker>,
    is_quic: bool,
    /// Major version of HTTP; 0 until it is known.
    version: Cell<u8>,
}

impl OpenConnection {
    /// Counts a connection over a socket of its own.
    pub fn new(worker: &Rc<Worker>) -> OpenConnection {
        OpenConnection::counted(worker, false)
    }

    /// Counts a QUIC connection.
    pub fn quic(worker: &Rc<Worker>) -> OpenConnection {
        worker.counters.quic_total.add(1);
        OpenConnection::counted(worker, true)
    }

    /// Counts a connection of either kind.
    fn counted(worker: &Rc<Worker>, is_quic: bool) -> OpenConnection {
        worker.connections.set(worker.connections.get() + 1);
        worker.counters.connections_total.add(1);
        OpenConnection {
            worker: Rc::clone(worker),
            is_quic,
            version: Cell::new(0),
        }
    }

    /// Counts the connection for a major version of HTTP. Called when that version is known.
    pub fn speaks(&self, version: u8) {
        if let Some(counter) = self
            .worker
            .counters
            .versions_total
            .get(usize::from(version).wrapping_sub(1))
        {
            counter.add(1);
            self.version.set(version);
        }
    }

    #[inline]
    pub fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let worker = &self.worker;
        worker.connections.set(worker.connections.get() - 1);
        worker.counters.connections_closed.add(1);
        if self.is_quic {
            worker.counters.quic_closed.add(1);
        }
        match self.version.get() {
            // The version of a QUIC connection is unknown only if its handshake did not complete.
            0 if self.is_quic => worker.counters.handshakes.failed.add(1),
            0 => {}
            version => worker.counters.versions_closed[usize::from(version) - 1].add(1),
        }
        if let Some(waker) = worker.close_waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
