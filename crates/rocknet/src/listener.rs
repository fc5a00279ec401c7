//! The workers of one listening address: threads of its own, so that one port cannot stall another.

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

use crate::accept_loop::{AcceptLoop, LoopExit};
use crate::backend::Backend;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::worker::{Shared, Worker};

/// How long a worker that died waits before it is there again: a death at every start must not burn a core.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// What a worker is told from outside.
pub enum WorkerCommand {
    Swap {
        snapshot: Arc<Snapshot>,
        /// Most connections that this worker holds at once from now on.
        connections: usize,
    },
    Stop {
        within: Duration,
        /// Dropped as soon as nothing is accepted any more.
        released: mpsc::Sender<()>,
    },
    /// For tests of what happens when a worker dies.
    #[doc(hidden)]
    Panic,
}

/// The threads that serve one address.
pub struct ActiveListener {
    /// Held so that the address stays ours, and for workers started later.
    socket: Listener,
    workers: Vec<WorkerHandle>,
}

struct WorkerHandle {
    commands: UnboundedSender<WorkerCommand>,
    /// Gives back whether it stopped without cutting anybody off.
    thread: JoinHandle<bool>,
}

impl ActiveListener {
    /// A worker for each of the sockets: the kernel spreads connections over all of them, attended or not.
    /// `connections`: most that each worker holds at once.
    pub fn start(
        address: &Address,
        sockets: Vec<Listener>,
        connections: usize,
        shared: &Shared,
        metrics: &Metrics,
        snapshot: &Arc<Snapshot>,
    ) -> io::Result<ActiveListener> {
        let first = sockets.first().ok_or(io::ErrorKind::InvalidInput)?;
        let socket = first.try_clone()?;
        let mut workers = Vec::with_capacity(sockets.len());
        for (number, own) in sockets.into_iter().enumerate() {
            let (commands, received) = unbounded_channel();
            let label = socket
                .local_port()
                .map_or_else(|| "unix".to_owned(), |port| port.to_string());
            let slot = WorkerSlot {
                address: address.clone(),
                listener: Some(own),
                connections,
                shared: shared.clone(),
                counters: metrics.register(),
                snapshot: Arc::clone(snapshot),
                batch: snapshot.config.server.events.batch,
            };
            let thread = thread::Builder::new()
                .name(format!("rn-{label}-{number}"))
                .spawn(move || slot.supervise(received))?;
            workers.push(WorkerHandle { commands, thread });
        }
        Ok(ActiveListener { socket, workers })
    }

    /// One of its sockets.
    pub fn socket(&self) -> &Listener {
        &self.socket
    }

    /// The address as it is bound.
    pub fn bound(&self) -> &Address {
        self.socket.address()
    }

    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// `connections`: most that each worker holds at once.
    pub fn swap(&self, snapshot: &Arc<Snapshot>, connections: usize) {
        for worker in &self.workers {
            let snapshot = Arc::clone(snapshot);
            let _ = worker.commands.send(WorkerCommand::Swap { snapshot, connections });
        }
    }

    #[doc(hidden)]
    pub fn kill_worker(&self) {
        if let Some(worker) = self.workers.first() {
            let _ = worker.commands.send(WorkerCommand::Panic);
        }
    }

    /// Takes no more connections and gives the open ones time to finish.
    pub fn stop(self, within: Duration) -> StoppingListener {
        let (released, all_released) = mpsc::channel();
        let stop = |worker: WorkerHandle| {
            let released = released.clone();
            let _ = worker.commands.send(WorkerCommand::Stop { within, released });
            worker.thread
        };
        StoppingListener {
            threads: self.workers.into_iter().map(stop).collect(),
            all_released,
        }
    }
}

/// A group on its way to the end.
pub struct StoppingListener {
    /// To be waited for.
    pub threads: Vec<JoinHandle<bool>>,
    /// Nothing is ever sent: it ends when all workers have let go of the address.
    all_released: mpsc::Receiver<()>,
}

impl StoppingListener {
    /// Waits until the address is free for others, at most so long.
    pub fn wait_for_address(&self, limit: Duration) {
        let _ = self.all_released.recv_timeout(limit);
    }
}

/// A worker's place: what stays when the worker in it dies.
struct WorkerSlot {
    address: Address,
    /// Gone once the worker is to stop: while any handle of it is open, the kernel goes on taking connections for us,
    /// and takes them away from a successor on the same port.
    listener: Option<Listener>,
    connections: usize,
    shared: Shared,
    counters: Arc<crate::metrics::WorkerCounters>,
    snapshot: Arc<Snapshot>,
    batch: usize,
}

impl WorkerSlot {
    /// Runs workers, one after the other, until told to stop.
    fn supervise(mut self, mut commands: UnboundedReceiver<WorkerCommand>) -> bool {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.run(&mut commands))) {
                Ok(LoopExit::Stopped { clean }) => return clean,
                Ok(LoopExit::Failed(error)) => {
                    tracing::error!(address = %self.address, "a worker failed: {error}; starting another");
                }
                Err(_) => tracing::error!(address = %self.address, "a worker died; starting another"),
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
            match Runtime::with_io_uring(self.batch) {
                Ok(runtime) => return Ok(runtime),
                // It worked at the start: something has run out since.
                Err(error) => {
                    tracing::warn!(address = %self.address, "a worker has no io_uring and goes on with epoll: {error}");
                }
            }
        }
        Runtime::new(self.batch)
    }

    async fn serve(&mut self, commands: &mut UnboundedReceiver<WorkerCommand>) -> LoopExit {
        let Some(listener) = &self.listener else {
            return LoopExit::Stopped { clean: true };
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
        poll_fn(|context| {
            while let Poll::Ready(command) = commands.poll_recv(context) {
                match command {
                    // Noted before it acts: a worker that dies of it must not have its successor forget it.
                    Some(WorkerCommand::Swap { snapshot, connections }) => {
                        (self.snapshot, self.connections) = (snapshot, connections);
                        worker.swap(&self.snapshot);
                        accept_loop.set_max_connections(connections);
                    }
                    Some(WorkerCommand::Stop { within, released }) => {
                        self.listener = None;
                        accept_loop.stop(context, within);
                        drop(released);
                    }
                    Some(WorkerCommand::Panic) => panic!("told to die"),
                    None => {
                        accept_loop.stop(context, Duration::ZERO);
                        break;
                    }
                }
            }
            accept_loop.poll(context)
        })
        .await
    }
}

/// Waits for threads, at most until `deadline` has passed; true if all ended in time and none had to cut anybody off.
pub fn join_within(threads: Vec<JoinHandle<bool>>, deadline: Duration) -> bool {
    let (done, all_done) = mpsc::channel();
    thread::spawn(move || {
        let mut clean = true;
        for thread in threads {
            clean &= thread.join().unwrap_or(false);
        }
        let _ = done.send(clean);
    });
    all_done.recv_timeout(deadline).unwrap_or(false)
}
