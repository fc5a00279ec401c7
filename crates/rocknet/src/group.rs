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

use crate::backend::Backend;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::turn::{End, Turn};
use crate::worker::{Shared, Worker};

/// How long a worker that died waits before it is there again: a death at every start must not burn a core.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// What a worker is told from outside.
pub enum Order {
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
    Die,
}

/// The threads that serve one address.
pub struct Group {
    /// Held so that the address stays ours, and for workers started later.
    listener: Listener,
    workers: Vec<Handle>,
}

struct Handle {
    orders: UnboundedSender<Order>,
    /// Gives back whether it stopped without cutting anybody off.
    thread: JoinHandle<bool>,
}

impl Group {
    /// A worker for each of the sockets: the kernel spreads connections over all of them, attended or not.
    /// `connections`: most that each worker holds at once.
    pub fn start(
        address: &Address,
        listeners: Vec<Listener>,
        connections: usize,
        shared: &Shared,
        metrics: &Metrics,
        snapshot: &Arc<Snapshot>,
    ) -> io::Result<Group> {
        let first = listeners.first().ok_or(io::ErrorKind::InvalidInput)?;
        let listener = first.try_clone()?;
        let mut workers = Vec::with_capacity(listeners.len());
        for (number, own) in listeners.into_iter().enumerate() {
            let (orders, received) = unbounded_channel();
            let label = listener
                .local_port()
                .map_or_else(|| "unix".to_owned(), |port| port.to_string());
            let seat = Seat {
                address: address.clone(),
                listener: Some(own),
                connections,
                shared: shared.clone(),
                counters: metrics.enrol(),
                snapshot: Arc::clone(snapshot),
                batch: snapshot.config.server.events.batch,
            };
            let thread = thread::Builder::new()
                .name(format!("rn-{label}-{number}"))
                .spawn(move || seat.keep(received))?;
            workers.push(Handle { orders, thread });
        }
        Ok(Group { listener, workers })
    }

    /// One of its sockets.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The address as it is bound.
    pub fn bound(&self) -> &Address {
        self.listener.address()
    }

    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// `connections`: most that each worker holds at once.
    pub fn swap(&self, snapshot: &Arc<Snapshot>, connections: usize) {
        for worker in &self.workers {
            let snapshot = Arc::clone(snapshot);
            let _ = worker.orders.send(Order::Swap { snapshot, connections });
        }
    }

    #[doc(hidden)]
    pub fn kill_one(&self) {
        if let Some(worker) = self.workers.first() {
            let _ = worker.orders.send(Order::Die);
        }
    }

    /// Takes no more connections and gives the open ones time to finish.
    pub fn stop(self, within: Duration) -> Stopping {
        let (released, all_released) = mpsc::channel();
        let stop = |worker: Handle| {
            let released = released.clone();
            let _ = worker.orders.send(Order::Stop { within, released });
            worker.thread
        };
        Stopping {
            threads: self.workers.into_iter().map(stop).collect(),
            all_released,
        }
    }
}

/// A group on its way to the end.
pub struct Stopping {
    /// To be waited for.
    pub threads: Vec<JoinHandle<bool>>,
    /// Nothing is ever sent: it ends when all workers have let go of the address.
    all_released: mpsc::Receiver<()>,
}

impl Stopping {
    /// Waits until the address is free for others, at most so long.
    pub fn wait_for_address(&self, limit: Duration) {
        let _ = self.all_released.recv_timeout(limit);
    }
}

/// A worker's place: what stays when the worker in it dies.
struct Seat {
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

impl Seat {
    /// Runs workers, one after the other, until told to stop.
    fn keep(mut self, mut orders: UnboundedReceiver<Order>) -> bool {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.run(&mut orders))) {
                Ok(End::Stopped { clean }) => return clean,
                Ok(End::Failed(error)) => {
                    tracing::error!(address = %self.address, "a worker failed: {error}; starting another");
                }
                Err(_) => tracing::error!(address = %self.address, "a worker died; starting another"),
            }
            thread::sleep(RESTART_PAUSE);
        }
    }

    fn run(&mut self, orders: &mut UnboundedReceiver<Order>) -> End {
        match self.runtime() {
            Ok(runtime) => runtime.block_on(self.serve(orders)),
            Err(error) => End::Failed(error),
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

    async fn serve(&mut self, orders: &mut UnboundedReceiver<Order>) -> End {
        let Some(listener) = &self.listener else {
            return End::Stopped { clean: true };
        };
        let acceptor = match listener.try_clone().and_then(Acceptor::new) {
            Ok(acceptor) => acceptor,
            Err(error) => return End::Failed(error),
        };
        let worker = Worker::new(
            self.address.clone(),
            self.shared.clone(),
            Arc::clone(&self.counters),
            &self.snapshot,
        );
        let mut turn = match Turn::new(&worker, acceptor, self.connections) {
            Ok(turn) => turn,
            Err(error) => return End::Failed(error),
        };
        poll_fn(|context| {
            while let Poll::Ready(order) = orders.poll_recv(context) {
                match order {
                    // Noted before it acts: a worker that dies of it must not have its successor forget it.
                    Some(Order::Swap { snapshot, connections }) => {
                        (self.snapshot, self.connections) = (snapshot, connections);
                        worker.swap(&self.snapshot);
                        turn.set_most(connections);
                    }
                    Some(Order::Stop { within, released }) => {
                        self.listener = None;
                        turn.stop(context, within);
                        drop(released);
                    }
                    Some(Order::Die) => panic!("told to die"),
                    None => {
                        turn.stop(context, Duration::ZERO);
                        break;
                    }
                }
            }
            turn.poll(context)
        })
        .await
    }
}

/// Waits for threads, at most until `deadline` has passed; true if all ended in time and none had to cut anybody off.
pub fn join_all(threads: Vec<JoinHandle<bool>>, deadline: Duration) -> bool {
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
