//! Listener that accepts no connections any more, because its address was removed or the server ends. Its workers serve
//! their open connections.

use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rocknet_io::socket::Address;
use tokio::sync::mpsc::UnboundedSender;

use super::command::{WorkerCommand, WorkerHandle};
use crate::accept_loop::StopTimes;
use crate::snapshot::Snapshot;
use crate::transport::quic::{QuicSocket, WeakQuicSocket};

/// Maximum time that the workers take to close their idle connections, from the moment at which the close is due.
const CLOSE_MARGIN: Duration = Duration::from_secs(1);

/// A listener that is stopping. Its connections are cut when it is dropped.
pub struct StoppingListener {
    /// Bound address.
    address: Address,
    commands: Vec<UnboundedSender<WorkerCommand>>,
    /// Threads of the workers. The result of each is true if its worker has cut no connection.
    threads: Vec<JoinHandle<bool>>,
    /// UDP sockets that were bound for the workers, as long as they are open; empty if the workers have never had any.
    quic: Vec<WeakQuicSocket>,
    /// Moment after which no request begins and the configuration is no longer needed.
    idle_closed: Instant,
    /// Never receives a value. The channel is closed once all workers have closed their listening sockets.
    all_released: mpsc::Receiver<()>,
}

impl StoppingListener {
    /// Stops the workers of an address. Connections that have not finished within `times.within` are cut.
    pub(super) fn new(
        address: Address,
        workers: impl IntoIterator<Item = WorkerHandle>,
        quic: &[QuicSocket],
        times: StopTimes,
    ) -> StoppingListener {
        let (released, all_released) = mpsc::channel();
        let (mut commands, mut threads) = (Vec::new(), Vec::new());
        for worker in workers {
            let released = released.clone();
            let _ = worker.commands.send(WorkerCommand::Stop { times, released });
            commands.push(worker.commands);
            threads.push(worker.thread);
        }
        StoppingListener {
            address,
            commands,
            threads,
            quic: quic.iter().map(QuicSocket::downgrade).collect(),
            idle_closed: Instant::now() + times.idle_grace + CLOSE_MARGIN,
            all_released,
        }
    }

    /// Returns the address that was bound.
    pub fn bound(&self) -> &Address {
        &self.address
    }

    /// Returns true once all workers have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Returns duplicates of the UDP sockets that were bound for the workers and are open.
    pub fn udp_sockets(&self) -> Vec<OwnedFd> {
        self.quic.iter().filter_map(WeakQuicSocket::duplicate).collect()
    }

    /// Returns true if the workers have open UDP sockets that were bound for them.
    pub fn has_own_udp(&self) -> bool {
        self.quic.iter().any(WeakQuicSocket::is_open)
    }

    /// Returns true if the workers may have QUIC connections.
    pub fn has_quic(&self) -> bool {
        !self.quic.is_empty()
    }

    /// Sends a command to every worker.
    fn send(&self, command: impl Fn() -> WorkerCommand) {
        for worker in &self.commands {
            // A worker that has ended needs no command.
            let _ = worker.send(command());
        }
    }

    /// Makes the workers read their UDP sockets if `receives` is true, or leave the datagrams to another process.
    /// Each worker drops its clone of `applied` once it has applied the command.
    pub fn receive_quic(&self, receives: bool, applied: &mpsc::Sender<()>) {
        self.send(|| WorkerCommand::ReceiveQuic {
            receives,
            applied: applied.clone(),
        });
    }

    /// Makes the workers switch to the UDP socket of a listener that covers their address, and close their own
    /// sockets.
    pub fn replace_quic(&self, socket: &QuicSocket) {
        self.send(|| WorkerCommand::ReplaceQuic(socket.clone()));
    }

    /// Lets the workers use a new configuration, so that the old one is freed. Without effect while requests may begin,
    /// because the new configuration does not contain the address. `connections`: maximum number of open connections
    /// per worker.
    pub fn swap(&self, snapshot: &Arc<Snapshot>, connections: usize) {
        if Instant::now() >= self.idle_closed {
            self.send(|| WorkerCommand::Swap {
                snapshot: Arc::clone(snapshot),
                connections,
                quic: None,
            });
        }
    }

    /// Stops the workers again. The times can only become shorter.
    pub fn stop(&self, times: StopTimes) {
        // The receiver is dropped, because no caller waits for the listening sockets here.
        let (released, _) = mpsc::channel();
        self.send(|| WorkerCommand::Stop {
            times,
            released: released.clone(),
        });
    }

    /// Takes the worker threads, to be joined. The caller keeps this value meanwhile, because its drop cuts the
    /// connections.
    pub fn take_threads(&mut self) -> Vec<JoinHandle<bool>> {
        std::mem::take(&mut self.threads)
    }

    /// Waits until all workers have closed their listening sockets, so that the address can be bound again. Waits at
    /// most for `limit`.
    pub fn wait_for_address(&self, limit: Duration) {
        let _ = self.all_released.recv_timeout(limit);
    }
}

impl Drop for StoppingListener {
    fn drop(&mut self) {
        self.stop(Duration::ZERO.into());
    }
}
