//! Workers of one listening address. Each address has its own threads, so that load on one port cannot stall another.

mod command;
mod stopping;

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rocknet_io::epoll::Acceptor;
use rocknet_io::runtime::Runtime;
use rocknet_io::socket::{Address, Listener};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::accept_loop::{AcceptLoop, LoopExit, StopTimes};
use crate::backend::Backend;
use crate::heartbeat::Heartbeat;
use crate::metrics::Metrics;
use crate::restart_delay::{RestartDelay, wait_at_most};
use crate::snapshot::Snapshot;
use crate::transport::quic::QuicSocket;
use crate::worker::{Shared, Worker};

use self::command::{WorkerCommand, WorkerHandle};
pub use self::stopping::StoppingListener;

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
    /// Sockets of removed addresses that this address covers. Closing them would reset the connections in their queues.
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

/// State of a worker that survives a restart of the worker.
struct WorkerSlot {
    address: Address,
    /// Empty once the worker is stopping. While any descriptor of a socket is open, the kernel assigns connections to
    /// it that a successor on the same port would otherwise accept.
    listeners: Vec<Arc<Listener>>,
    /// UDP socket of the worker, if the address serves HTTP/3.
    quic: Option<QuicSocket>,
    /// False while another process reads the UDP socket.
    receives_quic: bool,
    /// Maximum number of open connections.
    connections: usize,
    shared: Shared,
    counters: Arc<crate::metrics::WorkerCounters>,
    snapshot: Arc<Snapshot>,
    /// Maximum number of events per call to the kernel (`events.batch`). A reload does not change it.
    max_events: usize,
    heartbeat: Heartbeat,
}

impl WorkerSlot {
    /// Runs workers, one after the other, until one is stopped. Returns true if that worker cut no connection. A worker
    /// that fails while it is stopping has cut its connections.
    fn supervise(mut self, mut commands: UnboundedReceiver<WorkerCommand>) -> bool {
        let mut delay = RestartDelay::default();
        loop {
            let started = Instant::now();
            let failure = match catch_unwind(AssertUnwindSafe(|| self.run(&mut commands))) {
                Ok(LoopExit::Stopped { clean }) => return clean,
                Ok(LoopExit::Failed(error)) if self.listeners.is_empty() => {
                    tracing::error!(address = %self.address, "a worker failed while it was stopping: {error}");
                    return false;
                }
                Ok(LoopExit::Failed(error)) => format!("failed: {error}"),
                Err(_) if self.listeners.is_empty() => {
                    tracing::error!(address = %self.address, "a worker panicked while it was stopping");
                    return false;
                }
                Err(_) => "panicked".to_owned(),
            };
            let pause = delay.next(started.elapsed());
            self.counters.restarts.add(1);
            tracing::error!(
                address = %self.address,
                "a worker {failure}; it is restarted after {} ms (failures in a row: {})",
                pause.as_millis(),
                delay.failures()
            );
            if let Some(is_clean) = self.wait(pause, &mut commands) {
                return is_clean;
            }
        }
    }

    /// Waits before a restart, and carries out commands meanwhile. Returns `None` after the pause, and `Some(true)` if
    /// the worker is stopped, because a worker that does not run cuts no connection.
    fn wait(&mut self, pause: Duration, commands: &mut UnboundedReceiver<WorkerCommand>) -> Option<bool> {
        let deadline = Instant::now() + pause;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match wait_at_most(left, commands.recv())? {
                Some(WorkerCommand::Swap {
                    snapshot,
                    connections,
                    quic,
                }) => {
                    (self.snapshot, self.connections) = (snapshot, connections);
                    if quic.is_some() {
                        self.quic = quic;
                    }
                }
                Some(WorkerCommand::Listen(listeners)) => self.listeners = listeners,
                Some(WorkerCommand::ReceiveQuic { receives, applied }) => {
                    self.receives_quic = receives;
                    drop(applied);
                }
                Some(WorkerCommand::ReplaceQuic(other)) => self.use_quic_of(&other),
                Some(WorkerCommand::Heartbeat(number)) => self.heartbeat.receive(number),
                // A worker that does not run cannot panic.
                Some(WorkerCommand::Panic) => {}
                Some(WorkerCommand::Stop { released, .. }) => {
                    (self.listeners, self.quic) = (Vec::new(), None);
                    drop(released);
                    return Some(true);
                }
                // The server has dropped the sender, which stops the worker too.
                None => return Some(true),
            }
        }
    }

    /// Uses the UDP socket of a worker of another address.
    fn use_quic_of(&mut self, other: &QuicSocket) {
        if let Some(quic) = &mut self.quic {
            quic.use_socket_of(other);
        }
    }

    /// Runs one worker with its event loop, until it has stopped or failed.
    fn run(&mut self, commands: &mut UnboundedReceiver<WorkerCommand>) -> LoopExit {
        match self.runtime() {
            Ok(runtime) => runtime.block_on(self.serve(commands)),
            Err(error) => LoopExit::Failed(error),
        }
    }

    /// Creates the event loop of a worker.
    fn runtime(&self) -> io::Result<Runtime> {
        if self.shared.backend == Backend::Ring {
            match Runtime::with_io_uring(self.max_events) {
                Ok(runtime) => return Ok(runtime),
                // io_uring worked when the server started, so a resource has run out since.
                Err(error) => {
                    tracing::warn!(address = %self.address, "a worker cannot use io_uring and falls back to epoll: {error}");
                }
            }
        }
        Runtime::new(self.max_events)
    }

    /// Accepts and serves connections, and carries out commands, until the worker has stopped or failed.
    async fn serve(&mut self, commands: &mut UnboundedReceiver<WorkerCommand>) -> LoopExit {
        // The previous worker failed while it was stopping, so no other worker is started.
        if self.listeners.is_empty() {
            return LoopExit::Stopped { clean: false };
        }
        let acceptors = match register(&self.listeners) {
            Ok(acceptors) => acceptors,
            Err(error) => return LoopExit::Failed(error),
        };
        let worker = Worker::new(
            self.address.clone(),
            self.shared.clone(),
            Arc::clone(&self.counters),
            &self.snapshot,
        );
        let mut accept_loop = match AcceptLoop::new(&worker, acceptors, self.connections) {
            Ok(accept_loop) => accept_loop,
            Err(error) => return LoopExit::Failed(error),
        };
        match self.quic.as_ref().map(|quic| quic.endpoint(&worker)) {
            Some(Ok(endpoint)) => {
                accept_loop.add_quic(endpoint);
                accept_loop.set_receiving_quic(self.receives_quic);
            }
            Some(Err(error)) => return LoopExit::Failed(error),
            None => {}
        }
        poll_fn(|context| {
            while let Poll::Ready(command) = commands.poll_recv(context) {
                match command {
                    // The configuration is stored before it is applied. If applying it panics, the restarted worker
                    // uses it too.
                    Some(WorkerCommand::Swap {
                        snapshot,
                        connections,
                        quic,
                    }) => {
                        (self.snapshot, self.connections) = (snapshot, connections);
                        worker.swap(&self.snapshot);
                        accept_loop.set_max_connections(connections);
                        match quic {
                            None => accept_loop.reconfigure_quic(),
                            Some(quic) => match self.quic.insert(quic).endpoint(&worker) {
                                Ok(endpoint) => accept_loop.add_quic(endpoint),
                                Err(error) => return Poll::Ready(LoopExit::Failed(error)),
                            },
                        }
                    }
                    Some(WorkerCommand::Listen(listeners)) => {
                        self.listeners = listeners;
                        match register(&self.listeners) {
                            Ok(acceptors) => accept_loop.set_acceptors(acceptors),
                            Err(error) => return Poll::Ready(LoopExit::Failed(error)),
                        }
                    }
                    Some(WorkerCommand::Stop { times, released }) => {
                        self.listeners = Vec::new();
                        accept_loop.stop(context, times);
                        drop(released);
                    }
                    Some(WorkerCommand::ReceiveQuic { receives, applied }) => {
                        self.receives_quic = receives;
                        accept_loop.set_receiving_quic(receives);
                        drop(applied);
                    }
                    Some(WorkerCommand::ReplaceQuic(other)) => {
                        // Connections that wait at the old socket are accepted before it is closed.
                        accept_loop.accept_quic(context);
                        match other.udp_socket() {
                            Ok(socket) => {
                                accept_loop.replace_quic_socket(socket);
                                self.use_quic_of(&other);
                            }
                            // Without a free descriptor, the worker continues with its own socket.
                            Err(error) => {
                                tracing::warn!(address = %self.address, "the UDP socket is not replaced: {error}");
                            }
                        }
                    }
                    Some(WorkerCommand::Heartbeat(number)) => self.heartbeat.receive(number),
                    Some(WorkerCommand::Panic) => panic!("the command to panic was received"),
                    None => {
                        // The server has dropped the sender. A worker that is already stopping keeps its times.
                        if !accept_loop.is_stopping() {
                            accept_loop.stop(context, Duration::ZERO.into());
                        }
                        break;
                    }
                }
            }
            accept_loop.poll(context)
        })
        .await
    }
}

/// Registers sockets with the event loop of this thread.
fn register(listeners: &[Arc<Listener>]) -> io::Result<Vec<Acceptor>> {
    let acceptors = listeners.iter().map(|listener| Acceptor::new(listener.try_clone()?));
    acceptors.collect()
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
