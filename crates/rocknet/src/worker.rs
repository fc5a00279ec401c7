//! Worker: one thread with one event loop, which serves one listening address. Workers share the snapshot and
//! [`Shared`], but no connections.

mod config;
mod open;

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use rocknet_config::model::Events;
use rocknet_io::pipe::PipePool;
use rocknet_io::queue::SendQueue;
use rocknet_io::runtime::{drain_events, spawn};
use rocknet_io::socket::Address;
use rocknet_io::wheel::{Tick, Wheel};
use rocknet_proto::DecodedHead;
use rocknet_proto::request::RequestIndex;

use crate::backend::Backend;
use crate::blocking::Pool;
use crate::certificates::CertificateManager;
use crate::clock::{Clock, MAX_TICK, ReadyLatency};
use crate::exchange::Client;
use crate::files::cache::{FileCache, WorkerCache};
use crate::log::{AccessWriter, Logger};
use crate::metrics::{LocalCounters, WorkerCounters};
use crate::ready_responses::ReadyResponses;
use crate::registries::Registries;
use crate::services::Services;
use crate::snapshot::Snapshot;
use crate::spool;

pub use self::config::{Ticks, WorkerConfig, head_limits};
pub use self::open::{OpenConnection, OpenTunnel};

/// Maximum number of bytes received by one read. It is larger than the initial receive window of a loopback connection
/// (65,483 bytes), so that one read usually receives all available bytes.
const INPUT_SIZE: usize = 64 * 1024;
/// Capacity of the output buffer between ticks. A larger response enlarges the buffer until the next tick.
const OUTPUT_SIZE: usize = 64 * 1024;

/// State that all workers of a server share.
#[derive(Clone)]
pub struct Shared {
    /// I/O back end of every worker.
    pub backend: Backend,
    /// Threads for blocking work.
    pub pool: Pool,
    pub cache: FileCache,
    pub logger: Logger,
    pub certificates: Arc<CertificateManager>,
    /// Storage for request bodies that are received completely before they are passed on.
    pub spool: spool::Store,
    /// Upstreams, applications, libraries and the other registries of the server.
    pub registries: Arc<Registries>,
}

/// State that all connections of one worker share.
pub struct Worker {
    services: Rc<Services>,
    pub shared: Shared,
    pub counters: Arc<WorkerCounters>,
    /// Counters of requests by route, and of upstreams.
    pub metrics: LocalCounters,
    /// Measures the durations of a sample of the immediate responses.
    pub ready_time: ReadyLatency,
    pub buffers: RefCell<Buffers>,
    /// This worker's part of the file cache.
    pub files: Rc<WorkerCache>,
    /// Responses of the response cache that this worker sends without a lookup.
    pub ready_responses: Rc<ReadyResponses>,
    pub log: RefCell<AccessWriter>,
    /// Kernel pipes through which busy tunnels move data.
    pub pipes: PipePool,
    config: RefCell<Rc<WorkerConfig>>,
    /// True if the configuration trusts a proxy, so that the access log has to determine the client of each request.
    pub trusts_proxies: Cell<bool>,
    /// True once the worker is stopping: connections close after their response.
    stopping: Cell<bool>,
    /// True once connections without a request in progress close. This begins with the stop, or after a grace time.
    closes_idle: Cell<bool>,
    /// True once the worker is stopping without a successor, so that clients have little time to close connections.
    is_hurried: Cell<bool>,
    /// Number of ticks after which a stopping worker closes the remaining tunnels, counted from the call that stopped
    /// it. It also limits the time in which clients of HTTP/3 can read their last response (`protocol/h3/drain.rs`).
    tunnel_close_period: Cell<u32>,
    /// Tick at which the worker closes the remaining tunnels once it is stopping.
    tunnel_close_at: Cell<Tick>,
    /// Number of open connections.
    connections: Cell<usize>,
    /// Woken when a connection closes, because the accept loop waits for room or for the last connection.
    close_waker: RefCell<Option<Waker>>,
}

/// Buffers that one connection at a time uses while it is served, so that an idle connection has none.
pub struct Buffers {
    /// Received bytes.
    pub input: Box<[u8]>,
    /// Bytes to send.
    pub output: SendQueue,
    /// Bytes that a tunnel forwards.
    pub tunnel_output: SendQueue,
    /// Positions of the parts of an HTTP/1 request in its bytes.
    pub request: RequestIndex,
    /// Decoded head or trailers of a request over HTTP/2 or HTTP/3.
    pub head: DecodedHead,
}

/// Divisor of the time limit of a stop. Tunnels may end by themselves within this part of the limit. Afterwards the
/// server closes them in an orderly way, while there is still time for that.
const TUNNEL_GRACE_DIVISOR: u32 = 2;

impl Deref for Worker {
    type Target = Services;

    #[inline]
    fn deref(&self) -> &Services {
        &self.services
    }
}

impl Worker {
    /// Creates the worker of the listening address `address`.
    pub fn new(
        address: Address,
        shared: Shared,
        counters: Arc<WorkerCounters>,
        snapshot: &Arc<Snapshot>,
    ) -> Rc<Worker> {
        let Events { wait, connections, .. } = snapshot.config.server.events;
        // The wheel reserves memory for one deadline per connection.
        let wheel = Wheel::new(wait.min(MAX_TICK), connections);
        let config = WorkerConfig::new(snapshot, &address, &wheel);
        let clock = Clock::new(shared.registries.time.clone());
        let services = Services::new(address, clock, wheel, shared.pool.clone(), shared.spool.clone());
        let memory = snapshot.config.cache.memory;
        let files = Rc::new(WorkerCache::new(
            shared.cache.clone(),
            shared.registries.encoder_limit.clone(),
            memory,
            snapshot.generation,
        ));
        services.add(Rc::clone(&files));
        let ready_responses = Rc::<ReadyResponses>::default();
        services.add(Rc::clone(&ready_responses));
        let now = services.wheel.now();
        Rc::new(Worker {
            log: RefCell::new(shared.logger.writer()),
            services: Rc::new(services),
            ready_time: ReadyLatency::default(),
            metrics: LocalCounters::new(Arc::clone(&counters), Arc::clone(&shared.registries.routes)),
            shared,
            counters,
            buffers: RefCell::new(Buffers {
                input: vec![0; INPUT_SIZE].into_boxed_slice(),
                output: SendQueue::with_capacity(OUTPUT_SIZE),
                tunnel_output: SendQueue::default(),
                request: RequestIndex::default(),
                head: DecodedHead::default(),
            }),
            files,
            ready_responses,
            pipes: PipePool::default(),
            config: RefCell::new(Rc::new(config)),
            trusts_proxies: Cell::new(trusts_proxies(snapshot)),
            stopping: Cell::new(false),
            closes_idle: Cell::new(false),
            is_hurried: Cell::new(false),
            tunnel_close_period: Cell::new(0),
            tunnel_close_at: Cell::new(now),
            connections: Cell::new(0),
            close_waker: RefCell::new(None),
        })
    }

    /// Returns the configuration in use.
    pub fn config(&self) -> Rc<WorkerConfig> {
        Rc::clone(&self.config.borrow())
    }

    /// Returns the services that handlers use.
    #[inline]
    pub fn services(&self) -> &Rc<Services> {
        &self.services
    }

    /// Replaces the configuration, and empties the first level of the worker cache and the ready responses. The new
    /// configuration applies to all requests that start from now on.
    pub fn swap(&self, snapshot: &Arc<Snapshot>) {
        *self.config.borrow_mut() = Rc::new(WorkerConfig::new(snapshot, &self.address, &self.wheel));
        self.trusts_proxies.set(trusts_proxies(snapshot));
        self.files.reset(snapshot.config.cache.memory, snapshot.generation);
        self.ready_responses.clear();
    }

    /// Starts stopping the worker: connections end after their responses in progress. `within`: time after which the
    /// accept loop cuts the remaining connections. Must be called on the worker's event loop.
    pub fn stop(&self, within: Duration) {
        self.is_hurried.set(true);
        self.begin_drain(within);
        self.close_idle();
    }

    /// Starts stopping the worker like [`Worker::stop`], but connections without a request in progress stay open, and
    /// end after their next response. A client may be sending its next request at this moment. A later call can only
    /// shorten the time until tunnels are closed.
    pub fn begin_drain(&self, within: Duration) {
        let period = self.wheel.ticks(within / TUNNEL_GRACE_DIVISOR);
        let close_at = self.wheel.now().after(period);
        let is_first = !self.stopping.replace(true);
        if is_first || self.tunnel_close_at.get().is_later(close_at) {
            self.tunnel_close_at.set(close_at);
        }
        // A shorter period matters even if all tunnels are closed already, because it shortens the time in which
        // clients of HTTP/3 can read their last response.
        if is_first || period < self.tunnel_close_period.get() {
            self.tunnel_close_period.set(period);
        }
        self.wake_connections();
    }

    /// Closes the connections without a request in progress. Called after [`Worker::begin_drain`].
    pub fn close_idle(&self) {
        self.closes_idle.set(true);
        self.wake_connections();
    }

    /// Wakes the tasks of all connections, so that they notice that the worker is stopping.
    fn wake_connections(&self) {
        let wheel = Rc::clone(&self.wheel);
        // Sockets may contain requests whose readiness events have not been read yet. The event loop reads all events
        // before it resumes this task, so a connection that seems idle afterwards really is idle.
        spawn(async move {
            drain_events().await;
            wheel.wake_all();
        });
    }

    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Returns true if the worker is stopping, and no other worker or process has taken over.
    #[inline]
    pub fn is_hurried(&self) -> bool {
        self.is_hurried.get()
    }

    /// Returns true if the worker is stopping, and closes connections without a request in progress.
    #[inline]
    pub fn closes_idle(&self) -> bool {
        self.closes_idle.get()
    }

    /// Returns the number of ticks until the worker closes the remaining tunnels, at least 1. Returns `None` unless the
    /// worker is stopping.
    pub fn tunnel_close_grace(&self) -> Option<u32> {
        let (close_at, now) = (self.tunnel_close_at.get(), self.wheel.now());
        let left = if close_at.is_later(now) { close_at.since(now) } else { 1 };
        self.is_stopping().then_some(left)
    }

    /// Returns the number of ticks between the call that stopped the worker and the close of the remaining tunnels.
    /// Returns `None` unless the worker is stopping.
    pub fn tunnel_close_period(&self) -> Option<u32> {
        self.is_stopping().then(|| self.tunnel_close_period.get())
    }

    /// Returns true if a connection that was accepted at `born` has reached its maximum age.
    #[inline]
    pub fn is_old(&self, born: Tick, config: &WorkerConfig) -> bool {
        self.wheel.now().since(born) >= config.ticks.age
    }

    /// Returns true if a client is banned.
    #[inline]
    pub fn is_banned(&self, client: Client) -> bool {
        self.shared.registries.bans.is_banned(client)
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }

    /// Wakes `waker` when the next connection closes. A later call replaces the waker.
    pub fn on_close(&self, waker: &Waker) {
        *self.close_waker.borrow_mut() = Some(waker.clone());
    }

    /// Releases memory and descriptors after the last connection has closed. Cached values would be stale by the
    /// next connection, and they keep memory and open files alive that the shared cache has evicted.
    pub fn release_idle(&self) {
        self.shared.registries.backends.close_all_idle();
        self.services.release();
        self.pipes.close_idle();
    }

    /// Does the periodic work. Called once per tick while connections are open, accepting pauses, or the worker stops.
    /// Also called once at the beginning and once at the end of such a period.
    pub fn tick(&self) {
        self.clock.update();
        self.wheel.advance();
        let mut log = self.log.borrow_mut();
        log.set_time(self.clock.unix_ms());
        log.flush();
        drop(log);
        self.shared.registries.backends.tick();
        self.services.tick();
        self.pipes.tick();
        let buffers = &mut *self.buffers.borrow_mut();
        buffers.output.shrink(OUTPUT_SIZE);
        // A tunnel copies the bytes of one read at a time.
        buffers.tunnel_output.shrink(INPUT_SIZE);
    }
}

fn trusts_proxies(snapshot: &Snapshot) -> bool {
    !snapshot.config.server.trusted_proxies.is_empty()
}
