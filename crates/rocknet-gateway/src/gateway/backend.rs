//! One application server and the connections to it: those in use are counted, those at rest are kept for the next.
//!
//! What is kept is shared by all workers. A connection at rest holds one process of php-fpm, of which there may be five:
//! if each worker kept its own, processes would wait for workers that are idle while others wait for a process. For the same
//! reason none is kept while a new one waits to be heard for long: its request may be waiting for that very process, and
//! those who come later would pass it on the connections that are kept.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_config::model::{Host, PhpVersion};
use rocknet_io::epoll::ParkedConnection;

use super::error::BackendError;
use super::socket::{Lookups, Socket};
use crate::php::PhpSockets;
use rocknet_handler::breaker::{Breaker, Rules};
use rocknet_handler::clock::TimeSource;
use rocknet_handler::services::Services;

/// Requests that are with one application server, or on their way to it. php-fpm has a queue of 511; what is beyond waits
/// here, and each holds a descriptor.
const MAX_REQUESTS: usize = 1024;
/// A new connection that has not been heard for so long waits for a process, most likely: one that is free answers a quick
/// page sooner, and where pages are slow, a connection more costs nothing that counts.
const PENDING_MS: u64 = 20;
/// One that was reached in this time and is gone is being started again, most likely: that is may_wait for.
const RESTART_MS: u64 = 10_000;

pub struct Backend {
    address: BackendAddress,
    /// Connections at rest in all backends of the server.
    idle_count: Arc<AtomicUsize>,
    /// What is known of the PHP that RockNet starts itself.
    php: Arc<PhpSockets>,
    lookups: Lookups,
    time: TimeSource,
    idle: Mutex<VecDeque<(ParkedConnection, u64)>>,
    /// New connections of which nothing was heard yet, in their order, and since when.
    pending: Mutex<BTreeMap<u64, u64>>,
    next: AtomicU64,
    requests: AtomicUsize,
    /// `breaker` remembers something: nobody needs its lock before.
    breaker_has_state: AtomicBool,
    breaker: Mutex<Breaker>,
    /// Set when it answers, for whoever restarts the PHP that RockNet runs itself.
    responded: Option<Arc<AtomicBool>>,
    /// When it was reached the last time, in milliseconds of uptime, with one added so that 0 means never.
    last_reached_ms: AtomicU64,
}

/// Where an application listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackendAddress {
    pub host: Host,
    /// It is PHP, and RockNet runs it.
    pub own_php: Option<PhpVersion>,
}

/// As it is written.
impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.own_php {
            Some(version) => version.fmt(f),
            None => self.host.fmt(f),
        }
    }
}

/// Counts a request for as long as it lives.
pub struct InFlightGuard(Arc<Backend>);

impl InFlightGuard {
    pub fn backend(&self) -> &Backend {
        &self.0
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A new connection, until something is heard of it.
pub struct PendingConnection {
    backend: Arc<Backend>,
    number: u64,
}

impl PendingConnection {
    /// The first of an answer has come.
    pub fn response_received(self) {
        if let Some(responded) = &self.backend.responded {
            responded.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        lock(&self.backend.pending).remove(&self.number);
    }
}

/// A connection in use.
pub struct BackendConnection {
    pub socket: Socket,
    pub is_new: bool,
    /// Dropped when something is heard.
    pub pending: Option<PendingConnection>,
    /// Counts for as long as it lives; a program is counted elsewhere.
    pub in_flight: Option<InFlightGuard>,
}

impl Backend {
    pub(super) fn new(
        address: BackendAddress,
        idle_count: &Arc<AtomicUsize>,
        php: &Arc<PhpSockets>,
        lookups: &Lookups,
        time: &TimeSource,
    ) -> Backend {
        let responded = match (&address.host, address.own_php) {
            (Host::Unix(socket), Some(_)) => Some(php.responded(socket)),
            _ => None,
        };
        Backend {
            responded,
            address,
            idle_count: Arc::clone(idle_count),
            php: Arc::clone(php),
            lookups: lookups.clone(),
            time: time.clone(),
            idle: Mutex::default(),
            pending: Mutex::default(),
            next: AtomicU64::new(0),
            breaker_has_state: AtomicBool::new(false),
            breaker: Mutex::default(),
            requests: AtomicUsize::new(0),
            last_reached_ms: AtomicU64::new(0),
        }
    }

    pub fn address(&self) -> &BackendAddress {
        &self.address
    }

    /// What keeps the PHP that RockNet starts itself from running.
    pub fn own_failure(&self) -> Option<String> {
        match (&self.address.host, self.address.own_php) {
            (Host::Unix(socket), Some(_)) => self.php.failure(socket),
            _ => None,
        }
    }

    /// Requests that are with it, or on their way.
    pub fn load(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// A connection that was kept and still stands.
    pub fn take_idle(self: &Arc<Backend>) -> Option<BackendConnection> {
        loop {
            // The youngest first: the older ones may go when there is little to do.
            let (idle, _) = lock(&self.idle).pop_back()?;
            self.idle_count.fetch_sub(1, Ordering::Relaxed);
            if let Some(link) = idle.resume() {
                return Some(BackendConnection {
                    socket: Socket::Server(link),
                    is_new: false,
                    pending: None,
                    in_flight: Some(self.begin_request().ok()?),
                });
            }
        }
    }

    fn take_oldest_idle(&self) -> Option<ParkedConnection> {
        let (idle, _) = lock(&self.idle).pop_front()?;
        self.idle_count.fetch_sub(1, Ordering::Relaxed);
        Some(idle)
    }

    /// Keeps a connection whose request is over, unless `most` are kept or somebody waits for what it holds.
    pub fn put_idle(&self, connection: BackendConnection, max_idle: usize) {
        let BackendConnection { socket, in_flight, .. } = connection;
        drop(in_flight);
        let now = self.time.uptime_ms();
        self.last_reached_ms.store(now + 1, Ordering::Relaxed);
        let oldest = lock(&self.pending).first_key_value().map(|(_, since)| *since);
        if oldest.is_some_and(|since| now.saturating_sub(since) >= PENDING_MS) {
            return;
        }
        let Some(resting) = socket.into_idle() else { return };
        let mut all = lock(&self.idle);
        if all.len() < max_idle {
            all.push_back((resting, now));
            self.idle_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A new connection. Where there is no other application to turn to, one that is full or is being started again is
    /// `may_wait` for.
    pub async fn connect(
        self: &Arc<Backend>,
        services: &Services,
        timeout: Duration,
        may_wait: bool,
    ) -> Result<BackendConnection, BackendError> {
        let in_flight = self.begin_request()?;
        // A new one wants a process. One that rests gives its own, or all could rest while this one waits.
        drop(self.take_oldest_idle());
        let wheel = &services.wheel;
        let (deadline, pause) = (wheel.deadline(), wheel.deadline());
        deadline.set(wheel.ticks(timeout));
        let connect = async || {
            services.connect_limiter.acquire().await;
            Socket::connect(&self.address.host, &self.lookups).await
        };
        // What came of it before tells more than that the time is over.
        let mut refused = None;
        loop {
            let connected = match deadline.within(connect()).await {
                Some(connected) => connected,
                None => {
                    let error = refused.take().unwrap_or_else(|| ErrorKind::TimedOut.into());
                    return Err(connect_error(error));
                }
            };
            let error = match connected {
                Ok(socket) => {
                    self.last_reached_ms.store(self.time.uptime_ms() + 1, Ordering::Relaxed);
                    return Ok(BackendConnection {
                        socket,
                        is_new: true,
                        pending: Some(self.pending()),
                        in_flight: Some(in_flight),
                    });
                }
                Err(error) => error,
            };
            if !may_wait || !self.is_worth_retrying(&error) {
                return Err(connect_error(error));
            }
            pause.set(1);
            if deadline.within(pause.past()).await.is_none() {
                return Err(connect_error(error));
            }
            refused = Some(error);
        }
    }

    fn pending(self: &Arc<Backend>) -> PendingConnection {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.pending).insert(number, self.time.uptime_ms());
        let backend = Arc::clone(self);
        PendingConnection { backend, number }
    }

    fn begin_request(self: &Arc<Backend>) -> Result<InFlightGuard, BackendError> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        // InFlightGuard already, so that leaving it counts it down.
        let in_flight = InFlightGuard(Arc::clone(self));
        if before < MAX_REQUESTS {
            Ok(in_flight)
        } else {
            Err(BackendError::Full)
        }
    }

    /// Whether it is worth trying again a moment later.
    fn is_worth_retrying(&self, error: &io::Error) -> bool {
        match error.kind() {
            // A socket file says so when its queue is full.
            ErrorKind::WouldBlock => true,
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                // Our own is being started, unless that is known to have failed.
                if self.address.own_php.is_some() {
                    return self.own_failure().is_none();
                }
                let reached = self.last_reached_ms.load(Ordering::Relaxed);
                reached != 0 && self.time.uptime_ms().saturating_sub(reached) < RESTART_MS
            }
            _ => false,
        }
    }

    /// Whether its answers give no reason to leave it alone.
    pub fn admits(&self, now_ms: u64) -> bool {
        !self.breaker_has_state.load(Ordering::Relaxed) || lock(&self.breaker).admits(now_ms)
    }

    /// A request goes there.
    pub fn begin(&self, now_ms: u64, rules: Rules) {
        if self.breaker_has_state.load(Ordering::Relaxed) {
            lock(&self.breaker).begin(now_ms, rules);
        }
    }

    /// An answer has begun.
    pub fn succeeded(&self) {
        if self.breaker_has_state.load(Ordering::Relaxed) {
            if lock(&self.breaker).succeeded() {
                tracing::info!(application = %self.address, "answers again");
            }
            self.breaker_has_state.store(false, Ordering::Relaxed);
        }
    }

    /// There was none.
    pub fn failed(&self, now_ms: u64, rules: Rules) {
        let mut breaker = lock(&self.breaker);
        if breaker.failed(now_ms, rules) {
            tracing::warn!(application = %self.address, "failed {} times, and is left alone for a while", rules.fails);
        }
        self.breaker_has_state.store(!breaker.is_closed(), Ordering::Relaxed);
    }

    pub(super) fn close_idle(&self, is_old: impl Fn(u64) -> bool) {
        let mut idle = lock(&self.idle);
        let before = idle.len();
        idle.retain(|(_, since)| !is_old(*since));
        self.idle_count.fetch_sub(before - idle.len(), Ordering::Relaxed);
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.close_idle(|_| true);
    }
}

/// Why there was no connection all the time.
fn connect_error(error: io::Error) -> BackendError {
    match error.kind() {
        ErrorKind::WouldBlock => BackendError::Full,
        _ => BackendError::Unreachable(error),
    }
}

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
