//! Worker: one thread with one event loop, which serves one listening address. Workers share the snapshot and
//! [`Shared`], but no connections.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use rocknet_config::model::{Events, Limits};
use rocknet_io::pipe::PipePool;
use rocknet_io::queue::SendQueue;
use rocknet_io::runtime::{drain_events, spawn};
use rocknet_io::socket::Address;
use rocknet_io::wheel::{Tick, Wheel};
use rocknet_proto::DecodedHead;
use rocknet_proto::limits::Limits as HeadLimits;
use rocknet_proto::request::RequestIndex;

use crate::backend::Backend;
use crate::blocking::Pool;
use crate::certificates::CertificateManager;
use crate::clock::{Clock, MAX_TICK, ReadyLatency};
use crate::files::cache::{FileCache, WorkerCache};
use crate::log::{AccessWriter, Logger};
use crate::metrics::{LocalCounters, WorkerCounters};
use crate::registries::Registries;
use crate::services::Services;
use crate::site_table::SiteTable;
use crate::snapshot::{ListenerSites, Snapshot};
use crate::spool;
use crate::traces::WorkerTracer;

/// Maximum number of bytes received by one read. It is larger than the window of a loopback connection, so that one
/// read receives all available bytes.
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
    pub log: RefCell<AccessWriter>,
    /// Kernel pipes through which busy tunnels move data.
    pub pipes: PipePool,
    config: RefCell<Rc<WorkerConfig>>,
    /// True if the configuration trusts a proxy, so that the access log has to determine the client of each request.
    pub trusts_proxies: Cell<bool>,
    /// True once the worker is stopping: connections close after their response.
    stopping: Cell<bool>,
    /// True if connections without a request in progress close, which begins with the stop or some time later.
    closes_idle: Cell<bool>,
    /// True once the worker is stopping without a successor, so that clients have little time to close connections.
    is_hurried: Cell<bool>,
    /// Ticks that tunnels have to end by themselves once the worker is stopping.
    tunnel_close_grace: Cell<u32>,
    /// Number of open connections.
    connections: Cell<usize>,
    /// Woken when a connection closes, because the accept loop waits for room or for the last connection.
    close_waker: RefCell<Option<Waker>>,
}

/// The configuration of one worker: the snapshot, and values derived from it for the worker's listening address.
pub struct WorkerConfig {
    /// Configuration of the whole server.
    pub snapshot: Arc<Snapshot>,
    /// Sites of the listening address. Shared with the TLS handshakes of QUIC.
    pub sites: Arc<SiteTable>,
    /// True if connections use TLS.
    pub is_secure: bool,
    /// True if requests pass the preflight checks: HTTPS redirects, misdirected requests and ACME challenges.
    pub needs_preflight: bool,
    pub head_limits: HeadLimits,
    /// True if clients may use HTTP/2 without TLS, with prior knowledge.
    pub h2c: bool,
    /// True if HTTP/1.1 clients may upgrade to HTTP/2 without TLS.
    pub h2c_upgrade: bool,
    pub ticks: Ticks,
    /// Tracer of requests; `None` if their spans are not recorded.
    pub tracer: Option<WorkerTracer>,
}

/// Timeouts in ticks of the timer wheel, most of them from the keys of `[limits]`.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// Time to receive a request head, or to complete a TLS handshake.
    pub header: u32,
    /// Rate window of a request body.
    pub body: u32,
    /// Rate window in which the client must take response bytes.
    pub send: u32,
    /// Time that a handler has for a response, or for the next piece of its body.
    pub answer: u32,
    /// Like `answer`, but for a client that has closed its sending side.
    pub half_closed: u32,
    /// Time that an idle connection stays open.
    pub keep_alive: u32,
    /// Maximum age of a connection; 0 without keep-alive.
    pub age: u32,
    /// Time that a client has to close the connection after the last response.
    pub linger: u32,
}

/// Buffers that one connection at a time uses while it is served, so that an idle connection has none.
pub struct Buffers {
    /// Received bytes.
    pub input: Box<[u8]>,
    /// Bytes to send.
    pub output: SendQueue,
    /// Bytes that a tunnel forwards.
    pub tunnel_output: SendQueue,
    pub request: RequestIndex,
    /// Scratch space for decoded HPACK field sections.
    pub head: DecodedHead,
}

/// Time that a client has to take the last response and close the connection. A client that has not taken all bytes by
/// then must take the rest at the minimum rate.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of a response for a client that has closed its sending side. The client may still read, as `printf … | nc`
/// does, or it may be gone. The server cannot distinguish the two cases before it sends something.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(5);

/// While the server stops, tunnels may end by themselves within the shutdown timeout divided by this number. Afterwards
/// the server closes them in an orderly way, while there is still time for that.
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
            pipes: PipePool::default(),
            config: RefCell::new(Rc::new(config)),
            trusts_proxies: Cell::new(trusts_proxies(snapshot)),
            stopping: Cell::new(false),
            closes_idle: Cell::new(false),
            is_hurried: Cell::new(false),
            tunnel_close_grace: Cell::new(0),
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

    /// Replaces the configuration, and empties the first level of the worker cache. The new configuration applies to
    /// all requests that start from now on.
    pub fn swap(&self, snapshot: &Arc<Snapshot>) {
        *self.config.borrow_mut() = Rc::new(WorkerConfig::new(snapshot, &self.address, &self.wheel));
        self.trusts_proxies.set(trusts_proxies(snapshot));
        self.files.reset(snapshot.config.cache.memory, snapshot.generation);
    }

    /// Starts stopping the worker: connections end after their responses in progress. `within`: time after which the
    /// accept loop cuts the remaining connections. Must be called on the worker's event loop.
    pub fn stop(&self, within: Duration) {
        self.is_hurried.set(true);
        self.begin_drain(within);
        self.close_idle();
    }

    /// Starts stopping the worker like [`Worker::stop`], but connections without a request in progress stay open, and
    /// end after their next response. A client may be sending its next request at this moment.
    pub fn begin_drain(&self, within: Duration) {
        self.stopping.set(true);
        let grace = self.wheel.ticks(within / TUNNEL_GRACE_DIVISOR);
        self.tunnel_close_grace.set(grace);
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

    /// Returns the ticks that a tunnel has to end by itself; `None` unless the worker is stopping.
    pub fn tunnel_close_grace(&self) -> Option<u32> {
        self.is_stopping().then(|| self.tunnel_close_grace.get())
    }

    /// Returns true if a connection that was accepted at `born` has reached its maximum age.
    #[inline]
    pub fn is_old(&self, born: Tick, config: &WorkerConfig) -> bool {
        self.wheel.now().since(born) >= config.ticks.age
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
    /// Also called once when such a time starts and once when it ends.
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

impl WorkerConfig {
    fn new(snapshot: &Arc<Snapshot>, address: &Address, wheel: &Wheel) -> WorkerConfig {
        let limits = &snapshot.config.limits;
        let listener = snapshot.listeners.get(address);
        WorkerConfig {
            tracer: WorkerTracer::new(snapshot.tracer.as_ref()),
            snapshot: Arc::clone(snapshot),
            sites: Arc::new(SiteTable::new(listener)),
            is_secure: listener.is_some_and(|listener| listener.secure),
            needs_preflight: listener.is_some_and(|listener| needs_preflight(snapshot, listener)),
            head_limits: head_limits(limits),
            h2c: snapshot.config.server.h2c,
            h2c_upgrade: snapshot.config.server.h2c_upgrade,
            ticks: Ticks {
                header: wheel.ticks(limits.header_timeout),
                body: wheel.ticks(limits.body_idle),
                send: wheel.ticks(limits.send_stall),
                answer: wheel.ticks(limits.answer_timeout),
                half_closed: wheel.ticks(limits.answer_timeout.min(HALF_CLOSED_TIMEOUT)),
                keep_alive: wheel.ticks(limits.keep_alive),
                // Without keep-alive every connection has reached its maximum age at its first response.
                age: if limits.keep_alive.is_zero() {
                    0
                } else {
                    wheel.ticks(limits.connection_age)
                },
                linger: wheel.ticks(LINGER_TIMEOUT),
            },
        }
    }

    /// Returns the minimum number of request-body bytes that a client must send in each rate window, and the length of
    /// the window in ticks.
    pub fn receive_window(&self) -> (u64, u32) {
        let limits = &self.snapshot.config.limits;
        (bytes_in(limits.body_rate, limits.body_idle), self.ticks.body)
    }

    /// Returns the minimum number of response bytes that a client must receive in each rate window, and the length of
    /// the window in ticks.
    pub fn send_window(&self) -> (u64, u32) {
        let limits = &self.snapshot.config.limits;
        // `body_rate` is the minimum rate of request bodies and of responses.
        (bytes_in(limits.body_rate, limits.send_stall), self.ticks.send)
    }

    /// Returns the site of an authority (`Host` or `:authority`). Without a site with this host, returns the site for
    /// every name; `None` if there is no such site either.
    #[inline]
    pub fn site(&self, local: Option<IpAddr>, authority: &[u8]) -> Option<u32> {
        self.sites.site(local, authority)
    }

    /// Returns the default site, for requests that have no host or cannot be parsed: the site for every name, or the
    /// first site.
    pub fn default_site(&self, local: Option<IpAddr>) -> Option<u32> {
        self.sites.default_site(local)
    }
}

fn trusts_proxies(snapshot: &Snapshot) -> bool {
    !snapshot.config.server.trusted_proxies.is_empty()
}

/// Returns true if requests of a listener pass the preflight checks. Under TLS, the requested site must be one that the
/// handshake permits. Without TLS, a site may redirect to HTTPS, and if any site of the server uses TLS, requests for
/// ACME challenges may arrive for its names.
fn needs_preflight(snapshot: &Snapshot, listener: &ListenerSites) -> bool {
    listener.secure || snapshot.sites.iter().any(|site| site.secure.is_some())
}

/// Returns the number of bytes that `rate` bytes per second amount to in `time`, which may be a fraction of a second.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_millis() / 1000).unwrap_or(u64::MAX)
}

/// Returns the limits of request heads.
pub fn head_limits(limits: &Limits) -> HeadLimits {
    HeadLimits {
        head_size: limits.header_size,
        fields: limits.header_fields,
        target_size: limits.target_size,
        ..HeadLimits::default()
    }
}

/// Counts a tunnel as open until it is dropped.
pub struct OpenTunnel(Rc<Worker>);

impl OpenTunnel {
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
