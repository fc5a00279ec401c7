//! A server that is asked, and what all workers know of it.

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

pub struct Upstream {
    /// Never used twice in a server.
    pub id: u32,
    /// The clock of the server.
    pub(super) time: TimeSource,
    /// As it is written.
    pub name: Arc<str>,
    /// What it is called in requests that name nobody: HTTP/1.0 may.
    pub host: Box<str>,
    /// Asked in HTTP/2.
    pub http2: bool,
    /// Asked under TLS: how, and as whom.
    pub tls: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
    address: UpstreamAddress,
    /// The header of the PROXY protocol that its connections begin with. None of them is used twice, since each belongs to
    /// the client that it names.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Its name as a number that lasts.
    pub name_hash: u64,
    /// Which of its addresses comes next.
    next_address: AtomicUsize,
    /// Requests that are with the server, and those that wait for it.
    pub(super) limit: ConcurrencyLimit,
    /// Checks in the background found it so.
    is_unhealthy: AtomicBool,
    /// `breaker` remembers something: nobody needs its lock before.
    has_failures: AtomicBool,
    breaker: Mutex<Breaker>,
    /// When it was well again, in milliseconds of uptime; 0: it was never anything else.
    recovered_ms: AtomicU64,
}

enum UpstreamAddress {
    Unix(Box<Path>),
    Address([SocketAddr; 1]),
    Name(Mutex<Resolution>),
}

/// What is known of the addresses behind a name.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// Nobody has answered yet.
    Pending,
    Resolved(Arc<[SocketAddr]>),
    Failed(Arc<str>),
}

/// Where to connect to.
pub enum ConnectTarget<'u> {
    Unix(&'u Path),
    /// In the order in which they are tried.
    Tcp(Vec<SocketAddr>),
    /// To be asked again in a moment.
    Unresolved,
    /// The name leads nowhere.
    Failed(Arc<str>),
}

impl Upstream {
    /// `id`: used by no other upstream of the server.
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
            has_failures: AtomicBool::new(false),
            breaker: Mutex::default(),
            recovered_ms: AtomicU64::new(0),
            time,
        }
    }

    /// Where to connect to now. Addresses take turns to be the first.
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

    /// What the name leads to now. Addresses that were known are not given up because nobody answers.
    pub fn set_resolution(&self, resolution: Resolution) {
        let UpstreamAddress::Name(known) = &self.address else {
            return;
        };
        let mut known = lock(known);
        if !matches!((&*known, &resolution), (Resolution::Resolved(_), Resolution::Failed(_))) {
            *known = resolution;
        }
    }
}

impl Upstream {
    pub fn is_unhealthy(&self) -> bool {
        self.is_unhealthy.load(Ordering::SeqCst)
    }

    pub fn set_unhealthy(&self, is_unhealthy: bool) {
        // Stored before the look at those that wait: such a request counts itself first, then looks at this.
        self.is_unhealthy.store(is_unhealthy, Ordering::SeqCst);
        if !is_unhealthy {
            self.recovered_ms.store(self.time.uptime_ms().max(1), Ordering::Relaxed);
        }
        // Requests that wait have one server more, or may have none at all.
        self.limit.grant_to_waiting();
    }

    /// When it came back, if it was ever away.
    pub fn recovered_at_ms(&self) -> Option<u64> {
        Some(self.recovered_ms.load(Ordering::Relaxed)).filter(|ms| *ms != 0)
    }

    /// Whether its answers give no reason to leave it alone.
    pub fn is_available(&self, now_ms: u64) -> bool {
        !self.has_failures.load(Ordering::Relaxed) || lock(&self.breaker).admits(now_ms)
    }

    /// A request goes there.
    pub fn request_started(&self, now_ms: u64, rules: Rules) {
        if self.has_failures.load(Ordering::Relaxed) {
            lock(&self.breaker).begin(now_ms, rules);
        }
    }

    pub fn succeeded(&self, now_ms: u64) {
        if !self.has_failures.load(Ordering::Relaxed) {
            return;
        }
        let mut breaker = lock(&self.breaker);
        let is_back = breaker.succeeded();
        self.has_failures.store(false, Ordering::Relaxed);
        drop(breaker);
        if is_back {
            tracing::info!(upstream = %self.name, "answers again");
            self.recovered_ms.store(now_ms.max(1), Ordering::Relaxed);
            // There may be room for more than the one that tried.
            self.limit.grant_to_waiting();
        }
    }

    pub fn failed(&self, now_ms: u64, rules: Rules) {
        let mut breaker = lock(&self.breaker);
        if breaker.failed(now_ms, rules) {
            tracing::warn!(upstream = %self.name, "failed {} times, and is left alone for a while", rules.fails);
        }
        self.has_failures.store(!breaker.is_closed(), Ordering::Relaxed);
    }
}

/// Nothing that can panic runs while one of these is locked.
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
    fn addresses_rotate_and_survive_failed_lookups() {
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
