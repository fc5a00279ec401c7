//! Workers of one listening address. Each address has its own threads, so that load on one port cannot stall another.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rocknet_io::epoll::Acceptor;
use rocknet_io::runtime::Runtime;
use rocknet_io::socket::{Address, Listener};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::accept_loop::{AcceptLoop, LoopExit, StopTimes};
use crate::backend::Backend;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::transport::quic::QuicSocket;
use crate::worker::{Shared, Worker};

/// Delay before a failed worker is restarted, so that a failure at every start does not occupy a core.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// Command of the server to a worker.
pub enum WorkerCommand {
    /// Replaces the configuration.
    Swap {
        snapshot: Arc<Snapshot>,
        /// Maximum number of open connections of this worker from now on.
        connections: usize,
        /// UDP socket of the worker, if HTTP/3 is switched on at an address that did not have it.
        quic: Option<QuicSocket>,
    },
    /// Stops accepting, and ends the worker once its connections have finished or the times are over.
    Stop {
        times: StopTimes,
        /// Dropped once the worker has closed its listening socket.
        released: mpsc::Sender<()>,
    },
    /// Reads the UDP socket, or leaves its datagrams to another process.
    ReceiveQuic {
        receives: bool,
        /// Dropped once the worker does so.
        applied: mpsc::Sender<()>,
    },
    /// Makes the worker panic, for tests of the restart.
    #[doc(hidden)]
    Panic,
}

/// Sockets of a listening address, one of each kind for each worker.
pub struct ListenerSockets {
    pub tcp: Vec<Listener>,
    /// Empty if the address does not serve HTTP/3.
    pub quic: Vec<QuicSocket>,
}

/// A listening address with its worker threads.
pub struct ActiveListener {
    /// Sockets of the workers, at least one. They keep the address bound while no worker runs.
    sockets: Vec<Arc<Listener>>,
    /// UDP sockets of the workers; empty if the address does not serve HTTP/3.
    quic: Vec<QuicSocket>,
    workers: Vec<WorkerHandle>,
}

struct WorkerHandle {
    commands: UnboundedSender<WorkerCommand>,
    /// Thread of the worker. Its result is true if the worker has stopped without cutting a connection.
    thread: JoinHandle<bool>,
}

impl ActiveListener {
    /// Starts a worker for each of `sockets`, because the kernel spreads connections over all sockets of an address,
    /// even those that no worker accepts from. `connections` is the maximum number of open connections per worker.
    ///
    /// # Errors
    ///
    /// Fails if `sockets` is empty, a socket cannot be duplicated, or a thread cannot be started.
    pub fn start(
        address: &Address,
        sockets: ListenerSockets,
        connections: usize,
        shared: &Shared,
        metrics: &Metrics,
        snapshot: &Arc<Snapshot>,
    ) -> io::Result<ActiveListener> {
        let ListenerSockets { tcp, quic } = sockets;
        let mut worker_quic = quic.clone().into_iter();
        let sockets: Vec<Arc<Listener>> = tcp.into_iter().map(Arc::new).collect();
        let first = sockets.first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut workers = Vec::with_capacity(sockets.len());
        for (number, worker_socket) in sockets.iter().enumerate() {
            let (commands, received) = unbounded_channel();
            let label = first
                .local_port()
                .map_or_else(|| "unix".to_owned(), |port| port.to_string());
            let slot = WorkerSlot {
                address: address.clone(),
                listener: Some(Arc::clone(worker_socket)),
                quic: worker_quic.next(),
                receives_quic: true,
                connections,
                shared: shared.clone(),
                counters: metrics.register(),
                snapshot: Arc::clone(snapshot),
                max_events: snapshot.config.server.events.batch,
            };
            let thread = thread::Builder::new()
                .name(format!("rn-{label}-{number}"))
                .spawn(move || slot.supervise(received))?;
            workers.push(WorkerHandle { commands, thread });
        }
        Ok(ActiveListener { sockets, quic, workers })
    }

    /// Returns the listening sockets of this address.
    pub fn sockets(&self) -> &[Arc<Listener>] {
        &self.sockets
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

    /// Lets the workers read their UDP sockets, or leave the datagrams to another process. `applied` is dropped by each
    /// worker once it does so.
    pub fn receive_quic(&self, receives: bool, applied: &mpsc::Sender<()>) {
        for worker in &self.workers {
            let applied = applied.clone();
            let _ = worker.commands.send(WorkerCommand::ReceiveQuic { receives, applied });
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Replaces the configuration of all workers. `connections` is the maximum number of open connections per worker.
    /// `quic`: UDP sockets, one for each worker, that are added; empty if none are.
    pub fn swap(&mut self, snapshot: &Arc<Snapshot>, connections: usize, quic: Vec<QuicSocket>) {
        self.quic.extend(quic.iter().cloned());
        let mut quic = quic.into_iter();
        for worker in &self.workers {
            let _ = worker.commands.send(WorkerCommand::Swap {
                snapshot: Arc::clone(snapshot),
                connections,
                quic: quic.next(),
            });
        }
    }

    /// Makes the first worker panic, for tests of the restart.
    #[doc(hidden)]
    pub fn kill_worker(&self) {
        if let Some(worker) = self.workers.first() {
            let _ = worker.commands.send(WorkerCommand::Panic);
        }
    }

    /// Stops accepting. Connections that have not finished at the end of `times` are cut.
    pub fn stop(self, times: StopTimes) -> StoppingListener {
        let (released, all_released) = mpsc::channel();
        let stop = |worker: WorkerHandle| {
            let released = released.clone();
            let _ = worker.commands.send(WorkerCommand::Stop { times, released });
            worker.thread
        };
        StoppingListener {
            threads: self.workers.into_iter().map(stop).collect(),
            all_released,
        }
    }
}

/// A listener that is stopping.
pub struct StoppingListener {
    /// Worker threads to join.
    pub threads: Vec<JoinHandle<bool>>,
    /// Never receives a value. The channel is closed once all workers have closed their listening sockets.
    all_released: mpsc::Receiver<()>,
}

impl StoppingListener {
    /// Waits until another process can bind the address, at most for `limit`.
    pub fn wait_for_address(&self, limit: Duration) {
        let _ = self.all_released.recv_timeout(limit);
    }
}

/// State of a worker that survives a restart of the worker.
struct WorkerSlot {
    address: Address,
    /// `None` once the worker is stopping. While any descriptor of the socket is open, the kernel assigns connections
    /// to it that a successor on the same port would otherwise accept.
    listener: Option<Arc<Listener>>,
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
}

impl WorkerSlot {
    /// Runs workers, one after the other, until one is stopped. Returns true if that worker cut no connection. A worker
    /// that fails while it is stopping has cut its connections.
    fn supervise(mut self, mut commands: UnboundedReceiver<WorkerCommand>) -> bool {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.run(&mut commands))) {
                Ok(LoopExit::Stopped { clean }) => return clean,
                Ok(LoopExit::Failed(error)) => {
                    tracing::error!(address = %self.address, "a worker failed and is restarted: {error}");
                }
                Err(_) if self.listener.is_none() => {
                    tracing::error!(address = %self.address, "a worker panicked while it was stopping");
                    return false;
                }
                Err(_) => tracing::error!(address = %self.address, "a worker panicked and is restarted"),
            }
            thread::sleep(RESTART_PAUSE);
        }
    }

    fn run(&mut self, commands: &mut UnboundedReceiver<WorkerCommand>) -> LoopExit {
        match self.runtime() {
            Ok(runtime) => runtime.block_on(self.serve(commands)),
            Err(error) => LoopExit::Failed(error),
        }
    }

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

    async fn serve(&mut self, commands: &mut UnboundedReceiver<WorkerCommand>) -> LoopExit {
        // The previous worker failed while it was stopping, so no other worker is started.
        let Some(listener) = &self.listener else {
            return LoopExit::Stopped { clean: false };
        };
        let acceptor = match listener.try_clone().and_then(Acceptor::new) {
            Ok(acceptor) => acceptor,
            Err(error) => return LoopExit::Failed(error),
        };
        let worker = Worker::new(
            self.address.clone(),
            self.shared.clone(),
            Arc::clone(&self.counters),
            &self.snapshot,
        );
        let mut accept_loop = match AcceptLoop::new(&worker, acceptor, self.connections) {
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
                    Some(WorkerCommand::Stop { times, released }) => {
                        (self.listener, self.quic) = (None, None);
                        accept_loop.stop(context, times);
                        drop(released);
                    }
                    Some(WorkerCommand::ReceiveQuic { receives, applied }) => {
                        self.receives_quic = receives;
                        accept_loop.set_receiving_quic(receives);
                        drop(applied);
                    }
                    Some(WorkerCommand::Panic) => panic!("the command to panic was received"),
                    None => {
                        accept_loop.stop(context, Duration::ZERO.into());
                        break;
                    }
                }
            }
            accept_loop.poll(context)
        })
        .await
    }
}

/// Joins `threads` within `timeout`. Returns true if all have ended in time, and none has cut a connection or panicked.
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
