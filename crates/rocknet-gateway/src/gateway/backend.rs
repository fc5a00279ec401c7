//! A back end (application server) and its connections: counts the requests in flight and keeps idle connections for
//! reuse.
//!
//! All workers share the idle connections. An idle connection holds one process of php-fpm, and a php-fpm pool may have
//! only five processes. If each worker kept its own idle connections, idle workers would hold processes for which other
//! workers wait.
//!
//! For the same reason no connection is kept while a new connection has waited long for its first byte. The new
//! connection may wait for the process that the kept connection would hold. Later requests on kept connections would
//! overtake the new connection.

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

/// Maximum number of requests in flight to one back end. php-fpm has a backlog of 511; further requests wait in this
/// process, and each occupies a descriptor.
const MAX_REQUESTS: usize = 1024;
/// Time in milliseconds without a received byte after which a new connection most likely waits for a process. A free
/// process responds sooner if the script is quick. If scripts are slow, the cost of reconnecting does not matter.
const PENDING_MS: u64 = 20;
/// Time in milliseconds. A back end that was reached within this time and refuses connections is most likely being
/// restarted, so `connect` retries.
const RESTART_MS: u64 = 10_000;

/// A back end with its idle connections, its pending connections and its circuit breaker. In all methods, `now_ms` is
/// the uptime in milliseconds.
pub struct Backend {
    address: BackendAddress,
    /// Name in metrics, access logs and traces.
    label: Arc<str>,
    /// Number of idle connections of all back ends of the server.
    idle_count: Arc<AtomicUsize>,
    /// States of the sockets of the PHP that RockNet runs itself.
    php: Arc<PhpSockets>,
    lookups: Lookups,
    time: TimeSource,
    /// Idle connections, the oldest first, each with the uptime in milliseconds at which it became idle.
    idle: Mutex<VecDeque<(ParkedConnection, u64)>>,
    /// New connections that have not received a byte: number, and uptime in milliseconds at which each was opened.
    pending: Mutex<BTreeMap<u64, u64>>,
    /// Number of the next pending connection.
    next: AtomicU64,
    /// Number of requests in flight.
    requests: AtomicUsize,
    /// True if `breaker` has counted a failure. While this is false, `breaker` need not be locked.
    breaker_has_state: AtomicBool,
    breaker: Mutex<Breaker>,
    /// Set by the first response; the PHP supervisor reads it before it restarts php-fpm. `None` unless RockNet runs
    /// this PHP itself.
    responded: Option<Arc<AtomicBool>>,
    /// Uptime in milliseconds, plus one, at which a connection was last opened or became idle; 0 before the first
    /// connection.
    last_reached_ms: AtomicU64,
}

/// Address of a back end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackendAddress {
    /// Socket file or TCP address.
    pub host: Host,
    /// Version, if the back end is a PHP that RockNet runs itself.
    pub own_php: Option<PhpVersion>,
}

/// Formats the address as the configuration writes it.
impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.own_php {
            Some(version) => version.fmt(f),
            None => self.host.fmt(f),
        }
    }
}

/// Counts a request as in flight until it is dropped.
pub struct InFlightGuard(Arc<Backend>);

impl InFlightGuard {
    /// Returns the back end of the request.
    pub fn backend(&self) -> &Backend {
        &self.0
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Marks a new connection as pending until its first byte is received.
pub struct PendingConnection {
    backend: Arc<Backend>,
    number: u64,
}

impl PendingConnection {
    /// Called when the first bytes of a response have been received. The connection is then no longer pending.
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
    /// The connection, or the pipes of a program.
    pub socket: Socket,
    /// True if the connection was opened for this request, not taken from the idle connections.
    pub is_new: bool,
    /// Dropped when the first bytes are received. `None` afterwards, for a reused connection, and for a program.
    pub pending: Option<PendingConnection>,
    /// Counts the request. `None` for a CGI program, because its permit counts it.
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
        let pool = match (&address.host, address.own_php) {
            (Host::Unix(socket), Some(_)) => php.name(socket),
            _ => None,
        };
        let label = pool.map_or_else(|| address.to_string(), |pool| format!("php:{pool}"));
        Backend {
            responded,
            label: label.into(),
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

    /// Returns the address of the back end.
    pub fn address(&self) -> &BackendAddress {
        &self.address
    }

    /// Returns the name of the back end in metrics, access logs and traces. If RockNet runs this PHP itself, the name
    /// is `php:` with the name of the pool, otherwise the address.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Returns why a PHP that RockNet runs itself is down. `None` while it runs, while requests may wait for its start,
    /// and for any other back end.
    pub fn own_failure(&self) -> Option<String> {
        match (&self.address.host, self.address.own_php) {
            (Host::Unix(socket), Some(_)) => self.php.failure(socket),
            _ => None,
        }
    }

    /// Returns the number of requests in flight.
    pub fn load(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Takes an idle connection that is still open. Returns `None` if there is no such connection. If too many requests
    /// are in flight, closes the connection and returns `None`.
    pub fn take_idle(self: &Arc<Backend>) -> Option<BackendConnection> {
        loop {
            // The connection that was used last is taken first, so that the others expire when load is low.
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

    /// Keeps a connection whose request is complete. Closes it if `max_idle` connections are idle already, or if a
    /// pending connection may wait for the process of this connection.
    pub fn put_idle(&self, connection: BackendConnection, max_idle: usize) {
        let BackendConnection { socket, in_flight, .. } = connection;
        drop(in_flight);
        let now = self.time.uptime_ms();
        self.last_reached_ms.store(now + 1, Ordering::Relaxed);
        let oldest = lock(&self.pending).first_key_value().map(|(_, since)| *since);
        if oldest.is_some_and(|since| now.saturating_sub(since) >= PENDING_MS) {
            return;
        }
        let Some(parked) = socket.into_idle() else { return };
        let mut all = lock(&self.idle);
        if all.len() < max_idle {
            all.push_back((parked, now));
            self.idle_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Opens a new connection within `timeout`. With `may_wait`, connecting to a back end that is full or being
    /// restarted is retried until the timeout. A caller that can try other back ends passes `false`.
    ///
    /// # Errors
    ///
    /// Returns [`BackendError::Full`] or [`BackendError::Unreachable`]. In both cases no byte of the request has been
    /// sent.
    pub async fn connect(
        self: &Arc<Backend>,
        services: &Services,
        timeout: Duration,
        may_wait: bool,
    ) -> Result<BackendConnection, BackendError> {
        let in_flight = self.begin_request()?;
        // A new connection needs a process. The oldest idle connection is closed to free one. Otherwise idle
        // connections could hold all processes while the new one waits.
        drop(self.take_oldest_idle());
        let wheel = &services.wheel;
        let (deadline, pause) = (wheel.deadline(), wheel.deadline());
        deadline.set(wheel.ticks(timeout));
        let connect = async || {
            services.connect_limiter.acquire().await;
            Socket::connect(&self.address.host, &self.lookups).await
        };
        // At the timeout, the error of an earlier attempt is returned, because it explains more.
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
                        pending: Some(self.register_pending()),
                        in_flight: Some(in_flight),
                    });
                }
                Err(error) => error,
            };
            if !may_wait || !self.is_worth_retrying(&error) {
                return Err(connect_error(error));
            }
            // Waits for one tick before the next attempt.
            pause.set(1);
            if deadline.within(pause.past()).await.is_none() {
                return Err(connect_error(error));
            }
            refused = Some(error);
        }
    }

    /// Registers a new connection as pending.
    fn register_pending(self: &Arc<Backend>) -> PendingConnection {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.pending).insert(number, self.time.uptime_ms());
        let backend = Arc::clone(self);
        PendingConnection { backend, number }
    }

    /// Counts a request as in flight.
    ///
    /// # Errors
    ///
    /// Returns [`BackendError::Full`] if `MAX_REQUESTS` are in flight already.
    fn begin_request(self: &Arc<Backend>) -> Result<InFlightGuard, BackendError> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        // Created before the check, so that its drop undoes the increment.
        let in_flight = InFlightGuard(Arc::clone(self));
        if before < MAX_REQUESTS {
            Ok(in_flight)
        } else {
            Err(BackendError::Full)
        }
    }

    /// Returns whether another attempt to connect may succeed a moment later.
    fn is_worth_retrying(&self, error: &io::Error) -> bool {
        match error.kind() {
            // `EAGAIN`: the backlog of a Unix socket is full.
            ErrorKind::WouldBlock => true,
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                // A PHP that RockNet runs itself is being started, unless its start has failed.
                if self.address.own_php.is_some() {
                    return self.own_failure().is_none();
                }
                let reached = self.last_reached_ms.load(Ordering::Relaxed);
                reached != 0 && self.time.uptime_ms().saturating_sub(reached) < RESTART_MS
            }
            _ => false,
        }
    }

    /// Returns whether the circuit breaker permits a request.
    pub fn admits(&self, now_ms: u64) -> bool {
        !self.breaker_has_state.load(Ordering::Relaxed) || lock(&self.breaker).admits(now_ms)
    }

    /// Called when a request is sent to the back end.
    pub fn begin(&self, now_ms: u64, rules: Rules) {
        if self.breaker_has_state.load(Ordering::Relaxed) {
            lock(&self.breaker).begin(now_ms, rules);
        }
    }

    /// Called when a response has begun; closes the circuit breaker.
    pub fn succeeded(&self) {
        if self.breaker_has_state.load(Ordering::Relaxed) {
            // The flag is stored before the lock is released. Otherwise it could overwrite that of a failure in
            // between, and an open circuit would block no request.
            let mut breaker = lock(&self.breaker);
            let was_open = breaker.succeeded();
            self.breaker_has_state.store(false, Ordering::Relaxed);
            drop(breaker);
            if was_open {
                tracing::info!(application = %self.address, "responds again");
            }
        }
    }

    /// Called when a request has failed; may open the circuit breaker.
    pub fn failed(&self, now_ms: u64, rules: Rules) {
        let mut breaker = lock(&self.breaker);
        if breaker.failed(now_ms, rules) {
            tracing::warn!(
                application = %self.address,
                "failed {} times and is out of rotation for {} ms: see its log",
                rules.fails,
                rules.window_ms
            );
        }
        self.breaker_has_state.store(!breaker.is_closed(), Ordering::Relaxed);
    }

    /// Closes the idle connections for which `is_old` returns true. Its argument is the uptime in milliseconds at which
    /// the connection became idle.
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

/// Converts the last I/O error of `connect`. `EAGAIN` means that the backlog of a Unix socket is full.
fn connect_error(error: io::Error) -> BackendError {
    match error.kind() {
        ErrorKind::WouldBlock => BackendError::Full,
        _ => BackendError::Unreachable(error),
    }
}

/// Locks the mutex. Poisoning is ignored, because no code that can panic runs while it is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
