//! A worker: one thread, one event loop, one listening port. It shares nothing that changes with other workers but
//! counters.

use std::cell::{Cell, OnceCell, RefCell};
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
use rocknet_io::wheel::Wheel;
use rocknet_proto::DecodedHead;
use rocknet_proto::limits::Limits as HeadLimits;
use rocknet_proto::request::RequestIndex;
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};

use crate::backend::Backend;
use crate::blocking::Pool;
use crate::certificates::CertificateManager;
use crate::clock::{Clock, MAX_TICK, ReadyLatency};
use crate::files::cache::{Cache, WorkerCache};
use crate::log::{AccessWriter, Logger};
use crate::metrics::{Histogram, WorkerCounters};
use crate::registries::Registries;
use crate::routing::HostTable;
use crate::services::Services;
use crate::snapshot::{ListenerSites, Snapshot};
use crate::spool;

/// Bytes received at once. Larger than a send window on loopback fills, so that one read finds all that is there.
const INPUT_SIZE: usize = 64 * 1024;
/// Room for answers rendered in one go; more is taken for a moment if it must be.
const OUTPUT_SIZE: usize = 64 * 1024;

/// What all workers have in common.
#[derive(Clone)]
pub struct Shared {
    /// What drives the sockets of every worker.
    pub backend: Backend,
    pub pool: Pool,
    pub cache: Cache,
    pub logger: Logger,
    pub certificates: Arc<CertificateManager>,
    /// Request bodies that are received whole.
    pub spool: spool::Store,
    /// Registries of the server.
    pub registries: Arc<Registries>,
}

/// What all connections of one worker have in common.
pub struct Worker {
    services: Rc<Services>,
    pub shared: Shared,
    pub counters: Arc<WorkerCounters>,
    /// Times a share of the responses that are ready.
    pub ready_time: ReadyLatency,
    pub buffers: RefCell<Buffers>,
    /// The file cache as this worker sees it.
    pub files: Rc<WorkerCache>,
    pub log: RefCell<AccessWriter>,
    /// What tunnels that carry much move it through.
    pub pipes: Pipes,
    config: RefCell<Rc<WorkerConfig>>,
    /// Some proxy in front is believed: the log has to ask whose each request is.
    pub trusts_proxies: Cell<bool>,
    /// No new requests are taken: connections end when they have answered.
    stopping: Cell<bool>,
    connections: Cell<usize>,
    /// Woken when a connection closes: whoever waits for room, or for the end.
    close_waker: RefCell<Option<Waker>>,
}

/// The configuration as this worker sees it.
pub struct WorkerConfig {
    pub snapshot: Arc<Snapshot>,
    hosts: HostTable<u32>,
    /// Sites that answer on one address of the machine alone.
    by_ip: Vec<(IpAddr, HostTable<u32>)>,
    /// The first of all that listen here.
    first: Option<u32>,
    /// Whether TLS is spoken here.
    pub is_secure: bool,
    /// Whether requests have to be looked at before they are routed: whether they came the right way.
    pub needs_preflight: bool,
    pub head_limits: HeadLimits,
    /// Whether clients may speak HTTP/2 in the clear.
    pub h2c: bool,
    /// Whether they may ask for it in HTTP/1.1.
    pub h2c_upgrade: bool,
    pub ticks: Ticks,
    /// How long responses took, by the number of their site: set when the site is first asked for something.
    durations: Box<[OnceCell<Arc<Histogram>>]>,
}

/// The time limits in ticks of the wheel.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    pub header: u32,
    pub body: u32,
    pub send: u32,
    pub answer: u32,
    pub half_closed: u32,
    pub keep_alive: u32,
    pub age: u32,
    pub linger: u32,
    pub tunnel_close_grace: u32,
}

/// What connections use while they are being served, one at a time: an idle connection has no buffer.
pub struct Buffers {
    pub input: Box<[u8]>,
    pub output: SendQueue,
    /// What a tunnel sends on.
    pub tunnel_output: SendQueue,
    pub request: RequestIndex,
    /// Where compressed heads are decoded.
    pub head: DecodedHead,
}

/// After the last answer, time for the client to take it before the connection is cut.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// A client that has ended its side may still listen, as `printf … | nc` does, or be gone: nobody can tell before
/// something is sent to it. What is made for it gets so long, and no more.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(5);

/// What part of the time for stopping tunnels have to come to their end by themselves; behind it they are closed in an
/// orderly way, while there is still time for that.
const TUNNEL_GRACE_DIVISOR: u32 = 2;

impl Deref for Worker {
    type Target = Services;

    #[inline]
    fn deref(&self) -> &Services {
        &self.services
    }
}

impl Worker {
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
            shared.registries.streams.clone(),
            memory,
            snapshot.generation,
        ));
        services.add(Rc::clone(&files));
        Rc::new(Worker {
            log: RefCell::new(shared.logger.writer()),
            services: Rc::new(services),
            ready_time: ReadyLatency::default(),
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
            pipes: Pipes::default(),
            config: RefCell::new(Rc::new(config)),
            trusts_proxies: Cell::new(trusts_proxies(snapshot)),
            stopping: Cell::new(false),
            connections: Cell::new(0),
            close_waker: RefCell::new(None),
        })
    }

    pub fn config(&self) -> Rc<WorkerConfig> {
        Rc::clone(&self.config.borrow())
    }

    /// What the worker lends to handlers.
    #[inline]
    pub fn services(&self) -> &Rc<Services> {
        &self.services
    }

    /// Requests from now on are answered by `snapshot`.
    pub fn swap(&self, snapshot: &Arc<Snapshot>) {
        *self.config.borrow_mut() = Rc::new(WorkerConfig::new(snapshot, &self.address, &self.wheel));
        self.trusts_proxies.set(trusts_proxies(snapshot));
        self.files.renew(snapshot.config.cache.memory, snapshot.generation);
    }

    /// To be called on the worker's loop.
    pub fn stop(&self) {
        self.stopping.set(true);
        let wheel = Rc::clone(&self.wheel);
        // Requests may lie in sockets whose events nobody has looked at yet. The loop looks before it goes on behind the
        // yield, so that who seems idle then is idle.
        spawn(async move {
            drain_events().await;
            wheel.wake_all();
        });
    }

    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    pub fn connections(&self) -> usize {
        self.connections.get()
    }

    /// Wakes `waker` when the next connection closes.
    pub fn on_close(&self, waker: &Waker) {
        *self.close_waker.borrow_mut() = Some(waker.clone());
    }

    /// The last connection has gone: what this worker remembers will be too old when the next comes, and would keep
    /// memory and open files that the cache has let go.
    pub fn release_idle(&self) {
        self.shared.registries.backends.rest();
        self.services.release();
        self.pipes.close_idle();
    }

    /// What is done once a tick while there are connections, and once more when the last has gone.
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
        buffers.tunnel_output.shrink(INPUT_SIZE);
    }
}

impl WorkerConfig {
    fn new(snapshot: &Arc<Snapshot>, address: &Address, wheel: &Wheel) -> WorkerConfig {
        let limits = &snapshot.config.limits;
        let names = snapshot.listeners.get(address);
        WorkerConfig {
            durations: snapshot.sites.iter().map(|_| OnceCell::new()).collect(),
            snapshot: Arc::clone(snapshot),
            hosts: names.map_or_else(HostTable::new, |names| names.any.clone()),
            by_ip: names.map_or_else(Vec::new, |names| names.by_ip.clone().into_iter().collect()),
            first: names.and_then(ListenerSites::first),
            is_secure: names.is_some_and(|names| names.secure),
            needs_preflight: names.is_some_and(|names| needs_preflight(snapshot, names)),
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
                // Without keep-alive every connection is old enough at its first answer.
                age: if limits.keep_alive.is_zero() {
                    0
                } else {
                    wheel.ticks(limits.connection_age)
                },
                linger: wheel.ticks(LINGER_TIMEOUT),
                tunnel_close_grace: wheel.ticks(limits.shutdown / TUNNEL_GRACE_DIVISOR),
            },
        }
    }

    /// Returns the bytes that a client must send of a request body in each window of its deadline, and the ticks of a window.
    pub fn receive_window(&self) -> (u64, u32) {
        let limits = &self.snapshot.config.limits;
        (bytes_in(limits.body_rate, limits.body_idle), self.ticks.body)
    }

    /// Returns the bytes of responses that a client must take in each window of its deadline, and the ticks of a window.
    pub fn send_window(&self) -> (u64, u32) {
        let limits = &self.snapshot.config.limits;
        (bytes_in(limits.body_rate, limits.send_stall), self.ticks.send)
    }

    /// Counts the duration of a response of a site, in microseconds.
    #[inline]
    pub fn record_duration(&self, counters: &WorkerCounters, site: u32, duration_us: u64) {
        let Some(durations) = self.durations.get(site as usize) else {
            return;
        };
        let name = || counters.durations.of_site(&self.snapshot.sites[site as usize].name);
        durations.get_or_init(name).add(duration_us);
    }

    /// Whether it matters on which address of the machine a connection came in.
    pub fn has_address_sites(&self) -> bool {
        !self.by_ip.is_empty()
    }

    /// The site that a handshake is for, and whether the name is one of its own.
    pub fn site_of_server_name(&self, local: Option<IpAddr>, name: Option<&str>) -> Option<(u32, bool)> {
        let own = local.and_then(|local| self.by_ip.iter().find(|(ip, _)| *ip == local));
        let tables = own.map(|(_, hosts)| hosts).into_iter().chain([&self.hosts]);
        let named = name.and_then(|name| tables.clone().find_map(|hosts| hosts.lookup_named(name)));
        let default = || tables.clone().find_map(HostTable::default_value);
        named
            .map(|site| (site, true))
            .or_else(|| default().map(|site| (site, false)))
    }

    /// The site that answers for an authority (`Host`, `:authority`), if any does.
    #[inline]
    pub fn site(&self, local: Option<IpAddr>, authority: &[u8]) -> Option<u32> {
        if let Some(local) = local
            && let Some((_, hosts)) = self.by_ip.iter().find(|(ip, _)| *ip == local)
            && let Some(site) = find(hosts, authority)
        {
            return Some(site);
        }
        find(&self.hosts, authority)
    }

    /// The site that stands for requests that name none, or that nobody can read: the one that answers to every name,
    /// or the first.
    pub fn default_site(&self, local: Option<IpAddr>) -> Option<u32> {
        let own = self.by_ip.iter().find(|(ip, _)| Some(*ip) == local);
        own.and_then(|(_, hosts)| hosts.default_value())
            .or_else(|| self.hosts.default_value())
            .or(self.first)
    }
}

fn trusts_proxies(snapshot: &Snapshot) -> bool {
    !snapshot.config.server.trusted_proxies.is_empty()
}

/// Under TLS, the site that is asked has to be one that the handshake was for. In the clear, a site may have its requests
/// sent to https://, and anybody's challenge may be asked for while there are sites with certificates at all.
fn needs_preflight(snapshot: &Snapshot, names: &ListenerSites) -> bool {
    names.secure || snapshot.sites.iter().any(|site| site.secure.is_some())
}

#[inline]
fn find(hosts: &HostTable<u32>, authority: &[u8]) -> Option<u32> {
    if hosts.is_empty() {
        return hosts.default_value();
    }
    let mut lower = [0; HOST_BUFFER];
    match Authority::parse(authority) {
        Some(authority) => hosts.lookup(authority.lower_host(&mut lower)),
        None => hosts.default_value(),
    }
}

/// Bytes that `rate` a second makes in `time`, which may be a fraction of a second.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_millis() / 1000).unwrap_or(u64::MAX)
}

fn head_limits(limits: &Limits) -> HeadLimits {
    HeadLimits {
        head_size: limits.header_size,
        fields: limits.header_fields,
        target_size: limits.target_size,
        ..HeadLimits::default()
    }
}

/// Counts a tunnel as open for as long as it lives.
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

/// Counts a connection as open for as long as it lives.
pub struct OpenConnection(Rc<Worker>);

impl OpenConnection {
    pub fn new(worker: &Rc<Worker>) -> OpenConnection {
        worker.connections.set(worker.connections.get() + 1);
        worker.counters.connections_total.add(1);
        OpenConnection(Rc::clone(worker))
    }

    #[inline]
    pub fn worker(&self) -> &Rc<Worker> {
        &self.0
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
        self.0.counters.connections_closed.add(1);
        if let Some(waker) = self.0.close_waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
