//! Thread of a worker: runs the worker, restarts it after a failure, and carries out the commands of the server.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use rocknet_io::epoll::Acceptor;
use rocknet_io::runtime::Runtime;
use rocknet_io::socket::{Address, Listener};
use tokio::sync::mpsc::UnboundedReceiver;

use super::command::WorkerCommand;
use crate::accept_loop::{AcceptLoop, LoopExit};
use crate::backend::Backend;
use crate::heartbeat::Heartbeat;
use crate::restart_delay::{RestartDelay, wait_at_most};
use crate::snapshot::Snapshot;
use crate::transport::quic::QuicSocket;
use crate::worker::{Shared, Worker};

/// State of a worker that survives a restart of the worker.
pub struct WorkerSlot {
    pub address: Address,
    /// Empty once the worker is stopping. While any descriptor of a socket is open, the kernel assigns connections to
    /// it that a successor on the same port would otherwise accept.
    pub listeners: Vec<Arc<Listener>>,
    /// UDP socket of the worker, if the address serves HTTP/3.
    pub quic: Option<QuicSocket>,
    /// False while another process reads the UDP socket.
    pub receives_quic: bool,
    /// Maximum number of open connections.
    pub connections: usize,
    pub shared: Shared,
    pub counters: Arc<crate::metrics::WorkerCounters>,
    pub snapshot: Arc<Snapshot>,
    /// Maximum number of events per call to the kernel (`events.batch`). A reload does not change it.
    pub max_events: usize,
    pub heartbeat: Heartbeat,
}

impl WorkerSlot {
    /// Runs workers, one after the other, until one is stopped. Returns true if that worker cut no connection. A worker
    /// that fails while it is stopping has cut its connections.
    pub fn supervise(mut self, mut commands: UnboundedReceiver<WorkerCommand>) -> bool {
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
                // A worker that waits for its restart is not hung.
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
        // A worker without listening sockets is stopping. `supervise` does not restart it, so this is only a safeguard.
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
