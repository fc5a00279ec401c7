//! An upstream with its state, which all workers share.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_config::model::{self, Host, ProxyProtocol};
use rustls_pki_types::ServerName;

use crate::concurrency_limit::ConcurrencyLimit;
use crate::tls_config::TlsClientConfig;
use rocknet_handler::balance;
use rocknet_handler::breaker::{Breaker, Rules};
use rocknet_handler::clock::TimeSource;

/// Server that requests are forwarded to. In all methods, `now_ms` is the uptime in milliseconds.
pub struct Upstream {
    /// Identifies the upstream within a server.
    pub id: u32,
    /// Clock of the server.
    pub(super) time: TimeSource,
    /// Address as written in the configuration.
    pub name: Arc<str>,
    /// Value of `Host` in health checks, and in requests without this field, which HTTP/1.0 permits.
    pub host: Box<str>,
    /// True if requests are sent in HTTP/2.
    pub http2: bool,
    /// TLS configuration, and the name for which the certificate must be valid; `None` without TLS.
    pub tls: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
    address: UpstreamAddress,
    /// Version of the PROXY protocol header at the start of connections to the upstream; `None`: no header is sent. A
    /// connection with this header belongs to one client and is not reused.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Stable hash of `name`, for sticky cookies and balancing by key.
    pub name_hash: u64,
    /// Counter by which the addresses of a name are rotated.
    next_address: AtomicUsize,
    /// Counts of the requests that are in flight or waiting.
    pub(super) limit: ConcurrencyLimit,
    /// Set by health checks.
    is_unhealthy: AtomicBool,
    /// Set by an operator.
    is_drained: AtomicBool,
    /// True if `breaker` has recorded a failure since the last success. While this is false, `breaker` need not be
    /// locked.
    has_failures: AtomicBool,
    breaker: Mutex<Breaker>,
    /// Time of the last recovery, in milliseconds of uptime; 0 before the first one.
    recovered_ms: AtomicU64,
}

enum UpstreamAddress {
    Unix(Box<Path>),
    Address([SocketAddr; 1]),
    Name(Mutex<Resolution>),
}

/// Result of resolving a name.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The first lookup has not finished.
    Pending,
    /// Addresses of the name.
    Resolved(Arc<[SocketAddr]>),
    /// The last lookup failed, for this reason, and no earlier lookup succeeded.
    Failed(Arc<str>),
}

/// Address to connect to.
pub enum ConnectTarget<'u> {
    /// Path of a Unix socket.
    Unix(&'u Path),
    /// Addresses in the order of the attempts.
    Tcp(Vec<SocketAddr>),
    /// The first lookup has not finished; the caller should retry soon.
    Unresolved,
    /// The name could not be resolved, for this reason.
    Failed(Arc<str>),
}

impl Upstream {
    /// Returns an upstream without requests. `id` must be unique within the server.
    pub(super) fn new(
        id: u32,
        model: &model::Upstream,
        tls: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
        time: TimeSource,
    ) -> Upstream {
        let name = model.to_string();
        let address = match &model.host {
            Host::Unix(path) => UpstreamAddress::Unix(path.clone().into()),
            Host::Address(ip, port) => UpstreamAddress::Address([SocketAddr::new(*ip, *port)]),
            Host::Name(..) => UpstreamAddress::Name(Mutex::new(Resolution::Pending)),
        };
        let host = match &model.host {
            Host::Unix(_) => "localhost",
            _ => name.split_once("://").map_or("localhost", |(_, host)| host),
        };
        Upstream {
            id,
            host: host.into(),
            name_hash: balance::hash_name(&name),
            name: name.into(),
            http2: model.http2,
            tls,
            address,
            proxy_protocol: model.proxy_protocol,
            next_address: AtomicUsize::new(0),
            limit: ConcurrencyLimit::new(id, time.clone()),
            is_unhealthy: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
            has_failures: AtomicBool::new(false),
            breaker: Mutex::default(),
            recovered_ms: AtomicU64::new(0),
            time,
        }
    }

    /// Returns host and port as they occur in URLs of the upstream; `None` for a Unix socket.
    pub fn origin_host(&self) -> Option<&str> {
        (!matches!(self.address, UpstreamAddress::Unix(_))).then_some(&*self.host)
    }

    /// Returns the address to connect to. Each call starts with the next address of a name.
    pub fn connect_target(&self) -> ConnectTarget<'_> {
        let addresses = match &self.address {
            UpstreamAddress::Unix(path) => return ConnectTarget::Unix(path),
            UpstreamAddress::Address(address) => return ConnectTarget::Tcp(address.to_vec()),
            UpstreamAddress::Name(resolution) => match &*lock(resolution) {
                Resolution::Pending => return ConnectTarget::Unresolved,
                Resolution::Failed(error) => return ConnectTarget::Failed(Arc::clone(error)),
                Resolution::Resolved(addresses) => Arc::clone(addresses),
            },
        };
        let mut addresses = addresses.to_vec();
        let first = self.next_address.fetch_add(1, Ordering::Relaxed) % addresses.len().max(1);
        addresses.rotate_left(first);
        ConnectTarget::Tcp(addresses)
    }

    /// Records the result of a lookup. A failed lookup does not replace addresses that were found before.
    pub fn set_resolution(&self, resolution: Resolution) {
        let UpstreamAddress::Name(current) = &self.address else {
            return;
        };
        let mut current = lock(current);
        if !matches!(
            (&*current, &resolution),
            (Resolution::Resolved(_), Resolution::Failed(_))
        ) {
            *current = resolution;
        }
    }

    /// Returns true if the upstream fails its health checks.
    pub fn is_unhealthy(&self) -> bool {
        self.is_unhealthy.load(Ordering::SeqCst)
    }

    /// Records the state of the health checks.
    pub fn set_unhealthy(&self, is_unhealthy: bool) {
        // The flag is stored before waiting requests are counted. A waiting request counts itself before it reads the
        // flag. Therefore at least one side notices the other.
        self.is_unhealthy.store(is_unhealthy, Ordering::SeqCst);
        if !is_unhealthy {
            self.recovered_ms.store(self.time.uptime_ms().max(1), Ordering::Relaxed);
        }
        // Waiting requests may now use one more upstream. If all upstreams are unhealthy, the requests receive a permit
        // and then an error.
        self.limit.grant_to_waiting();
    }

    /// Returns true if an operator has drained the upstream: only clients that are bound to it by a cookie use it.
    pub fn is_drained(&self) -> bool {
        self.is_drained.load(Ordering::SeqCst)
    }

    /// Returns the number of requests and tunnels in progress.
    pub fn requests_in_flight(&self) -> u64 {
        self.limit.load() as u64
    }

    /// Drains the upstream, or ends its drain if `is_drained` is false.
    pub fn set_drained(&self, is_drained: bool) {
        self.is_drained.store(is_drained, Ordering::SeqCst);
        // Waiting requests may now use this upstream, or, if it is drained, a backup. If all upstreams are drained, the
        // requests receive a permit and then an error.
        self.limit.grant_to_waiting();
    }

    /// Returns the time of the last recovery in milliseconds of uptime, if there was one.
    pub fn recovered_at_ms(&self) -> Option<u64> {
        Some(self.recovered_ms.load(Ordering::Relaxed)).filter(|ms| *ms != 0)
    }

    /// Returns false while the breaker keeps the upstream out of rotation.
    pub fn is_available(&self, now_ms: u64) -> bool {
        !self.has_failures.load(Ordering::Relaxed) || lock(&self.breaker).admits(now_ms)
    }

    /// Records that a request is sent to the upstream.
    pub fn request_started(&self, now_ms: u64, rules: Rules) {
        if self.has_failures.load(Ordering::Relaxed) {
            lock(&self.breaker).begin(now_ms, rules);
        }
    }

    /// Records that a response has begun.
    pub fn succeeded(&self, now_ms: u64) {
        if !self.has_failures.load(Ordering::Relaxed) {
            return;
        }
        let mut breaker = lock(&self.breaker);
        let is_back = breaker.succeeded();
        self.has_failures.store(false, Ordering::Relaxed);
        drop(breaker);
        if is_back {
            tracing::info!(upstream = %self.name, "responds again and is back in rotation");
            self.recovered_ms.store(now_ms.max(1), Ordering::Relaxed);
            // Until now only the trial request was permitted, so there may be capacity for waiting requests.
            self.limit.grant_to_waiting();
        }
    }

    /// Records a failure that is the upstream's fault.
    pub fn failed(&self, now_ms: u64, rules: Rules) {
        let mut breaker = lock(&self.breaker);
        if breaker.failed(now_ms, rules) {
            tracing::warn!(
                upstream = %self.name,
                "failed {} times and is out of rotation until a trial request succeeds",
                rules.fails
            );
        }
        self.has_failures.store(!breaker.is_closed(), Ordering::Relaxed);
    }
}

/// Locks `mutex`. Poisoning is ignored, because no code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> Upstream {
        let host = Host::Name("app.test".to_owned(), 8080);
        Upstream::new(1, &model::Upstream::at(host), None, TimeSource::default())
    }

    fn first(upstream: &Upstream) -> String {
        match upstream.connect_target() {
            ConnectTarget::Tcp(addresses) => addresses[0].to_string(),
            ConnectTarget::Unresolved => "unknown".to_owned(),
            ConnectTarget::Failed(error) => error.to_string(),
            ConnectTarget::Unix(path) => path.display().to_string(),
        }
    }

    #[test]
    fn addresses_rotate_and_are_kept_after_failed_lookups() {
        let upstream = named();
        assert_eq!(
            (&*upstream.host, first(&upstream)),
            ("app.test:8080", "unknown".to_owned())
        );
        upstream.set_resolution(Resolution::Failed("no such name".into()));
        assert_eq!(first(&upstream), "no such name");
        let addresses: [SocketAddr; 2] = [([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 80).into()];
        upstream.set_resolution(Resolution::Resolved(addresses.into()));
        let before = first(&upstream);
        assert_ne!(first(&upstream), before);
        assert_eq!(first(&upstream), before);
        upstream.set_resolution(Resolution::Failed("no such name".into()));
        assert_ne!(first(&upstream), before);
        upstream.set_resolution(Resolution::Resolved([addresses[1]].into()));
        assert_eq!(
            (first(&upstream), first(&upstream)),
            ("10.0.0.2:80".to_owned(), "10.0.0.2:80".to_owned())
        );
    }
}
