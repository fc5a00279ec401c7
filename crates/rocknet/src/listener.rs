//! Workers of one listening address. Each address has its own threads, so that load on one port cannot stall another.

mod command;
mod stopping;
mod worker_slot;

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rocknet_io::socket::{Address, Listener};
use tokio::sync::mpsc::unbounded_channel;

use crate::accept_loop::StopTimes;
use crate::heartbeat::Heartbeat;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::transport::quic::QuicSocket;
use crate::worker::Shared;

use self::command::{WorkerCommand, WorkerHandle};
pub use self::stopping::StoppingListener;
use self::worker_slot::WorkerSlot;

/// Sockets of a listening address, for its workers.
pub struct ListenerSockets {
    /// One for each worker.
    pub tcp: Vec<Listener>,
    /// At most one for each worker; empty if the address does not serve HTTP/3.
    pub quic: Vec<QuicSocket>,
}

/// A listening address with its worker threads.
pub struct ActiveListener {
    /// Sockets of the workers, at least one. They keep the address bound while no worker runs.
    sockets: Vec<Arc<Listener>>,
    /// Sockets of removed addresses that this address covers, as `*:443` covers `127.0.0.1:443`. Closing them would
    /// reset the connections in their queues.
    covered: Vec<Arc<Listener>>,
    /// UDP sockets of the workers; empty if the address does not serve HTTP/3.
    quic: Vec<QuicSocket>,
    workers: Vec<WorkerHandle>,
    /// Workers that a reload has stopped, and that still serve their connections.
    retired: Vec<WorkerHandle>,
}

impl ActiveListener {
    /// Starts a worker for each of `sockets`, because the kernel spreads connections over all sockets of an address,
    /// even those that no worker accepts from.
    ///
    /// # Errors
    ///
    /// Fails if `sockets` is empty, a socket cannot be duplicated, or a thread cannot be started.
    pub fn start(address: &Address, sockets: ListenerSockets, start: &WorkerStart<'_>) -> io::Result<ActiveListener> {
        let ListenerSockets { tcp, quic } = sockets;
        if tcp.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let workers = tcp.len();
        let mut listener = ActiveListener {
            sockets: tcp.into_iter().map(Arc::new).collect(),
            covered: Vec::new(),
            quic,
            workers: Vec::with_capacity(workers),
            retired: Vec::new(),
        };
        listener.start_workers(address, workers, start)?;
        Ok(listener)
    }

    /// Starts workers until there are `count` of them, each with its sockets from [`ActiveListener::sockets_of`].
    fn start_workers(&mut self, address: &Address, count: usize, start: &WorkerStart<'_>) -> io::Result<()> {
        let label = self.sockets[0]
            .local_port()
            .map_or_else(|| "unix".to_owned(), |port| port.to_string());
        for number in self.workers.len()..count {
            let (commands, received) = unbounded_channel();
            let heartbeat = Heartbeat::default();
            let slot = WorkerSlot {
                address: address.clone(),
                listeners: self.sockets_of(number, count),
                quic: self.quic.get(number).cloned(),
                receives_quic: true,
                connections: start.connections,
                shared: start.shared.clone(),
                counters: start.metrics.register(),
                snapshot: Arc::clone(start.snapshot),
                max_events: start.snapshot.config.server.events.batch,
                heartbeat: heartbeat.clone(),
            };
            let thread = thread::Builder::new()
                .name(format!("rn-{label}-{number}"))
                .spawn(move || slot.supervise(received))?;
            self.workers.push(WorkerHandle {
                commands,
                heartbeat,
                thread,
            });
        }
        Ok(())
    }

    /// Returns the number of workers that the address has after [`ActiveListener::resize`] to `wanted`. The UDP sockets
    /// stay with their workers, so their number is the minimum.
    pub fn target_workers(&self, wanted: usize) -> usize {
        wanted.max(self.quic.len()).max(1)
    }

    /// Changes the number of workers. Removed workers serve their connections for at most `times.within`, and the
    /// remaining workers accept from the sockets of the removed ones, so no waiting connection is lost. `added`: new
    /// sockets. If there are fewer sockets than `wanted`, each socket gets one worker.
    ///
    /// # Errors
    ///
    /// Fails if a thread cannot be started. The workers that were started before remain.
    pub fn resize(
        &mut self,
        address: &Address,
        wanted: usize,
        added: Vec<Listener>,
        times: StopTimes,
        start: &WorkerStart<'_>,
    ) -> io::Result<()> {
        self.retired.retain(|worker| !worker.thread.is_finished());
        self.sockets.extend(added.into_iter().map(Arc::new));
        let count = self.target_workers(wanted).min(self.sockets.len());
        if count == self.workers.len() {
            return Ok(());
        }
        let started = self.start_workers(address, count, start);
        let count = count.min(self.workers.len());
        // The receiver is dropped, because no caller waits until the removed workers have closed their sockets.
        let (released, _) = mpsc::channel();
        // The remaining workers listen to all sockets before the others stop.
        self.distribute_sockets(count);
        for worker in self.workers.drain(count..) {
            let released = released.clone();
            let _ = worker.commands.send(WorkerCommand::Stop { times, released });
            self.retired.push(worker);
        }
        started
    }

    /// Sends the first `count` workers their listening sockets.
    fn distribute_sockets(&self, count: usize) {
        for (number, worker) in self.workers.iter().take(count).enumerate() {
            let listeners = self.sockets_of(number, count);
            let _ = worker.commands.send(WorkerCommand::Listen(listeners));
        }
    }

    /// Returns the sockets of the worker with the number `worker` of `workers`. Each socket has one worker, even if
    /// there are more sockets than workers.
    fn sockets_of(&self, worker: usize, workers: usize) -> Vec<Arc<Listener>> {
        let own = self.sockets.iter().skip(worker).step_by(workers.max(1));
        let covered = self.covered.iter().skip(worker).step_by(workers.max(1));
        own.chain(covered).cloned().collect()
    }

    /// Accepts from the sockets of a removed address that this address covers.
    pub fn take_sockets(&mut self, sockets: Vec<Arc<Listener>>) {
        self.covered.extend(sockets);
        self.distribute_sockets(self.workers.len());
    }

    /// Returns the listening sockets of this address.
    pub fn sockets(&self) -> &[Arc<Listener>] {
        &self.sockets
    }

    /// Returns the listening sockets of this address, and those of removed addresses that it covers.
    pub fn all_sockets(&self) -> impl Iterator<Item = &Arc<Listener>> {
        self.sockets.iter().chain(&self.covered)
    }

    /// Returns the address that is bound, with the port that the kernel chose for port 0.
    pub fn bound(&self) -> &Address {
        self.sockets[0].address()
    }

    /// Returns true if the workers have UDP sockets.
    pub fn has_quic(&self) -> bool {
        !self.quic.is_empty()
    }

    /// Returns the UDP sockets of the workers.
    pub fn quic_sockets(&self) -> &[QuicSocket] {
        &self.quic
    }

    /// Makes the workers read their UDP sockets if `receives` is true, or leave the datagrams to another process.
    /// Each worker drops its clone of `applied` once it has applied the command.
    pub fn receive_quic(&self, receives: bool, applied: &mpsc::Sender<()>) {
        for worker in &self.workers {
            let applied = applied.clone();
            let _ = worker.commands.send(WorkerCommand::ReceiveQuic { receives, applied });
        }
    }

    /// Makes the workers switch to the UDP socket of a listener that covers their address, and close their own
    /// sockets.
    pub fn replace_quic(&self, socket: &QuicSocket) {
        for worker in &self.workers {
            let _ = worker.commands.send(WorkerCommand::ReplaceQuic(socket.clone()));
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Replaces the configuration of all workers. `connections` is the maximum number of open connections per worker.
    /// `quic`: UDP sockets to add, one for each worker; empty if none are added.
    pub fn swap(&mut self, snapshot: &Arc<Snapshot>, connections: usize, quic: Vec<QuicSocket>) {
        self.quic.extend(quic.iter().cloned());
        let mut quic = quic.into_iter();
        // Removed workers use the new configuration too, so that the old one is freed.
        for worker in self.workers.iter().chain(&self.retired) {
            let _ = worker.commands.send(WorkerCommand::Swap {
                snapshot: Arc::clone(snapshot),
                connections,
                quic: quic.next(),
            });
        }
    }

    /// Returns true if a worker has not confirmed the heartbeat of an earlier call. Sends a new heartbeat to each of
    /// the other workers, which the next call checks.
    pub fn is_hung(&mut self) -> bool {
        let mut is_hung = false;
        for worker in &mut self.workers {
            match worker.heartbeat.next() {
                Some(number) => drop(worker.commands.send(WorkerCommand::Heartbeat(number))),
                None => is_hung = true,
            }
        }
        is_hung
    }

    /// Makes the first worker panic, for tests of the restart.
    #[doc(hidden)]
    pub fn kill_worker(&self) {
        if let Some(worker) = self.workers.first() {
            let _ = worker.commands.send(WorkerCommand::Panic);
        }
    }

    /// Stops accepting. Connections that have not finished within `times.within` are cut.
    pub fn stop(self, times: StopTimes) -> StoppingListener {
        let address = self.bound().clone();
        StoppingListener::new(address, self.workers.into_iter().chain(self.retired), &self.quic, times)
    }
}

/// Parameters of the start of a worker.
pub struct WorkerStart<'a> {
    /// Maximum number of open connections.
    pub connections: usize,
    pub shared: &'a Shared,
    pub metrics: &'a Metrics,
    pub snapshot: &'a Arc<Snapshot>,
}

/// Joins worker threads within `timeout`. Returns true if all threads ended in time without a panic and without
/// cutting a connection.
pub fn join_within(threads: Vec<JoinHandle<bool>>, timeout: Duration) -> bool {
    let (done, all_done) = mpsc::channel();
    thread::spawn(move || {
        let mut clean = true;
        for thread in threads {
            clean &= thread.join().unwrap_or(false);
        }
        let _ = done.send(clean);
    });
    all_done.recv_timeout(timeout).unwrap_or(false)
}
