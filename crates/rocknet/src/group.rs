//! The workers of one listening address: threads of its own, so that one port cannot stall another.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rocknet_io::runtime::{Runtime, Timer, spawn};
use rocknet_io::socket::{AcceptTrouble, Address, Listener, accept_trouble};
use rocknet_io::tcp::Acceptor;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::transport;
use crate::worker::{Shared, Worker};

/// Connections taken in one turn, so that those already open are served in between.
const ACCEPTS_PER_TURN: usize = 64;
/// How long accepting rests when descriptors or memory have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a worker that died waits before it is there again: a death at every start must not burn a core.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// What a worker is told from outside.
pub enum Order {
    Swap(Arc<Snapshot>),
    Stop {
        within: Duration,
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
    thread: JoinHandle<()>,
}

impl Group {
    /// `connections`: most that each worker holds at once.
    pub fn start(
        address: &Address,
        listener: Listener,
        count: usize,
        connections: usize,
        shared: &Shared,
        metrics: &Metrics,
        snapshot: &Arc<Snapshot>,
    ) -> io::Result<Group> {
        let mut workers = Vec::with_capacity(count);
        for number in 0..count {
            // The kernel spreads connections over every socket there is, so each must have a worker that accepts from it.
            let own = if number == 0 {
                listener.try_clone()?
            } else {
                listener.sibling().map_err(io::Error::other)?
            };
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

    /// The address as it is bound.
    pub fn bound(&self) -> &Address {
        self.listener.address()
    }

    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    pub fn swap(&self, snapshot: &Arc<Snapshot>) {
        for worker in &self.workers {
            let _ = worker.orders.send(Order::Swap(Arc::clone(snapshot)));
        }
    }

    #[doc(hidden)]
    pub fn kill_one(&self) {
        if let Some(worker) = self.workers.first() {
            let _ = worker.orders.send(Order::Die);
        }
    }

    /// Takes no more connections and gives the open ones time to finish. Returns the threads, to be waited for.
    pub fn stop(self, within: Duration) -> Vec<JoinHandle<()>> {
        self.workers
            .into_iter()
            .map(|worker| {
                let _ = worker.orders.send(Order::Stop { within });
                worker.thread
            })
            .collect()
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

/// Why a worker's loop ended.
enum End {
    Stopped,
    Failed(io::Error),
}

impl Seat {
    /// Runs workers, one after the other, until told to stop.
    fn keep(mut self, mut orders: UnboundedReceiver<Order>) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.run(&mut orders))) {
                Ok(End::Stopped) => return,
                Ok(End::Failed(error)) => {
                    tracing::error!(address = %self.address, "a worker failed: {error}; starting another")
                }
                Err(_) => tracing::error!(address = %self.address, "a worker died; starting another"),
            }
            thread::sleep(RESTART_PAUSE);
        }
    }

    fn run(&mut self, orders: &mut UnboundedReceiver<Order>) -> End {
        match Runtime::new(self.batch) {
            Ok(runtime) => runtime.block_on(self.serve(orders)),
            Err(error) => End::Failed(error),
        }
    }

    async fn serve(&mut self, orders: &mut UnboundedReceiver<Order>) -> End {
        let Some(listener) = &self.listener else {
            return End::Stopped;
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
        let mut turn = Turn {
            worker: &worker,
            acceptor: Some(acceptor),
            most: self.connections,
            ticking: None,
            resting: None,
            stop_by: None,
        };
        poll_fn(|context| {
            while let Poll::Ready(order) = orders.poll_recv(context) {
                match order {
                    Some(Order::Swap(snapshot)) => {
                        worker.swap(&snapshot);
                        self.snapshot = snapshot;
                    }
                    Some(Order::Stop { within }) => {
                        turn.stop(context, within);
                        self.listener = None;
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

/// What a worker does beside serving connections: accepting them, and noticing that time passes.
struct Turn<'w> {
    worker: &'w Rc<Worker>,
    /// Gone once the worker is to stop.
    acceptor: Option<Acceptor>,
    most: usize,
    /// Runs while there are connections.
    ticking: Option<Timer>,
    /// Accepting rests until then.
    resting: Option<Timer>,
    stop_by: Option<Timer>,
}

impl Turn<'_> {
    fn stop(&mut self, context: &mut Context<'_>, within: Duration) {
        if self.stop_by.is_none() {
            // Whoever waits to be accepted has a connection already, as far as he can tell.
            let _ = self.accept(context);
            self.acceptor = None;
            self.stop_by = Some(Timer::after(within));
            self.worker.stop();
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.tick(context);
        if let Some(trouble) = self.accept(context) {
            return Poll::Ready(End::Failed(trouble));
        }
        if let Some(stop_by) = &mut self.stop_by {
            self.worker.on_close(context.waker());
            if self.worker.connections() == 0 || stop_by.poll_past(context) {
                if self.worker.connections() > 0 {
                    tracing::warn!(address = %self.worker.address, "cut {} connections that did not finish in time", self.worker.connections());
                }
                self.worker.tick();
                return Poll::Ready(End::Stopped);
            }
        }
        Poll::Pending
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        while let Some(timer) = &mut self.ticking {
            if !timer.poll_past(context) {
                return;
            }
            self.worker.tick();
            self.ticking = None;
            self.start_ticking();
        }
    }

    /// With nobody connected nothing has to be looked at: an idle worker sleeps.
    fn start_ticking(&mut self) {
        if self.ticking.is_none() && self.worker.connections() > 0 {
            self.ticking = Some(Timer::after(self.worker.wheel.tick_length()));
        }
    }

    fn accept(&mut self, context: &mut Context<'_>) -> Option<io::Error> {
        if let Some(resting) = &mut self.resting {
            if !resting.poll_past(context) {
                return None;
            }
            self.resting = None;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            let acceptor = self.acceptor.as_ref()?;
            if self.worker.connections() >= self.most {
                // The next one to close makes room, and wakes us.
                self.worker.on_close(context.waker());
                return None;
            }
            match acceptor.poll_accept(context) {
                Poll::Pending => return None,
                Poll::Ready(Ok((socket, peer))) => {
                    if self.ticking.is_none() {
                        // Time may have stood still for this worker.
                        self.worker.tick();
                    }
                    match transport::connection(self.worker, socket, peer) {
                        Ok(connection) => spawn(connection),
                        Err(error) => tracing::debug!("a connection was lost before it began: {error}"),
                    }
                    self.start_ticking();
                    if self.ticking.as_mut().is_some_and(|timer| timer.poll_past(context)) {
                        context.waker().wake_by_ref();
                    }
                }
                Poll::Ready(Err(error)) => match accept_trouble(&error) {
                    AcceptTrouble::Empty | AcceptTrouble::Lost => {}
                    AcceptTrouble::Broken => return Some(error),
                    AcceptTrouble::Exhausted => {
                        self.tell_exhausted(&error);
                        let mut timer = Timer::after(ACCEPT_PAUSE);
                        if !timer.poll_past(context) {
                            self.resting = Some(timer);
                            return None;
                        }
                    }
                },
            }
        }
        context.waker().wake_by_ref();
        None
    }

    fn tell_exhausted(&self, error: &io::Error) {
        const SILENCE_MS: u64 = 10_000;
        thread_local!(static TOLD_MS: Cell<Option<u64>> = const { Cell::new(None) });
        let now = crate::clock::uptime_ms();
        if TOLD_MS.get().is_none_or(|told| now - told >= SILENCE_MS) {
            TOLD_MS.set(Some(now));
            tracing::warn!(address = %self.worker.address, "cannot accept connections for now: {error}; the open ones go on");
        }
    }
}

/// Waits for threads, at most until `deadline` has passed.
pub fn join_all(threads: Vec<JoinHandle<()>>, deadline: Duration) -> bool {
    let (done, all_done) = mpsc::channel();
    thread::spawn(move || {
        for thread in threads {
            let _ = thread.join();
        }
        let _ = done.send(());
    });
    all_done.recv_timeout(deadline).is_ok()
}
