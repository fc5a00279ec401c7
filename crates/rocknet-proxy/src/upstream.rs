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
    pub secure: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
    place: UpstreamAddress,
    /// The header of the PROXY protocol that its connections begin with. None of them is used twice, since each belongs to
    /// the client that it names.
    pub announce: Option<ProxyProtocol>,
    /// Its name as a number that lasts.
    pub hash: u64,
    /// Which of its addresses comes next.
    next: AtomicUsize,
    /// Requests that are with the server, and those that wait for it.
    pub(super) slots: ConcurrencyLimit,
    /// Checks in the background found it so.
    is_sick: AtomicBool,
    /// `breaker` remembers something: nobody needs its lock before.
    is_doubted: AtomicBool,
    breaker: Mutex<Breaker>,
    /// When it was well again, in milliseconds of uptime; 0: it was never anything else.
    back_ms: AtomicU64,
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
        secure: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
        time: TimeSource,
    ) -> Upstream {
        let name = model.to_string();
        let place = match &model.host {
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
            hash: balance::hash_name(&name),
            name: name.into(),
            http2: model.http2,
            secure,
            place,
            announce: model.proxy_protocol,
            next: AtomicUsize::new(0),
            slots: ConcurrencyLimit::new(id, time.clone()),
            is_sick: AtomicBool::new(false),
            is_doubted: AtomicBool::new(false),
            breaker: Mutex::default(),
            back_ms: AtomicU64::new(0),
            time,
        }
    }

    /// Where to connect to now. Addresses take turns to be the first.
    pub fn way(&self) -> ConnectTarget<'_> {
        let addresses = match &self.place {
            UpstreamAddress::Unix(path) => return ConnectTarget::Unix(path),
            UpstreamAddress::Address(address) => return ConnectTarget::Tcp(address.to_vec()),
            UpstreamAddress::Name(looked) => match &*lock(looked) {
                Resolution::Pending => return ConnectTarget::Unresolved,
                Resolution::Failed(error) => return ConnectTarget::Failed(Arc::clone(error)),
                Resolution::Resolved(addresses) => Arc::clone(addresses),
            },
        };
        let mut addresses = addresses.to_vec();
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % addresses.len().max(1);
        addresses.rotate_left(turn);
        ConnectTarget::Tcp(addresses)
    }

    /// What the name leads to now. Addresses that were known are not given up because nobody answers.
    pub fn looked_up(&self, found: Resolution) {
        let UpstreamAddress::Name(looked) = &self.place else {
            return;
        };
        let mut looked = lock(looked);
        if !matches!((&*looked, &found), (Resolution::Resolved(_), Resolution::Failed(_))) {
            *looked = found;
        }
    }
}

impl Upstream {
    pub fn is_sick(&self) -> bool {
        self.is_sick.load(Ordering::SeqCst)
    }

    pub fn set_sick(&self, is_sick: bool) {
        // Stored before the look at those that wait: such a request counts itself first, then looks at this.
        self.is_sick.store(is_sick, Ordering::SeqCst);
        if !is_sick {
            self.back_ms.store(self.time.uptime_ms().max(1), Ordering::Relaxed);
        }
        // Requests that wait have one server more, or may have none at all.
        self.slots.offer();
    }

    /// When it came back, if it was ever away.
    pub fn back_since_ms(&self) -> Option<u64> {
        Some(self.back_ms.load(Ordering::Relaxed)).filter(|ms| *ms != 0)
    }

    /// Whether its answers give no reason to leave it alone.
    pub fn admits(&self, now_ms: u64) -> bool {
        !self.is_doubted.load(Ordering::Relaxed) || lock(&self.breaker).admits(now_ms)
    }

    /// A request goes there.
    pub fn begin(&self, now_ms: u64, rules: Rules) {
        if self.is_doubted.load(Ordering::Relaxed) {
            lock(&self.breaker).begin(now_ms, rules);
        }
    }

    pub fn succeeded(&self, now_ms: u64) {
        if !self.is_doubted.load(Ordering::Relaxed) {
            return;
        }
        let mut breaker = lock(&self.breaker);
        let is_back = breaker.succeeded();
        self.is_doubted.store(false, Ordering::Relaxed);
        drop(breaker);
        if is_back {
            tracing::info!(upstream = %self.name, "answers again");
            self.back_ms.store(now_ms.max(1), Ordering::Relaxed);
            // There may be room for more than the one that tried.
            self.slots.offer();
        }
    }

    pub fn failed(&self, now_ms: u64, rules: Rules) {
        let mut breaker = lock(&self.breaker);
        if breaker.failed(now_ms, rules) {
            tracing::warn!(upstream = %self.name, "failed {} times, and is left alone for a while", rules.fails);
        }
        self.is_doubted.store(!breaker.is_closed(), Ordering::Relaxed);
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
        match upstream.way() {
            ConnectTarget::Tcp(addresses) => addresses[0].to_string(),
            ConnectTarget::Unresolved => "unknown".to_owned(),
            ConnectTarget::Failed(error) => error.to_string(),
            ConnectTarget::Unix(path) => path.display().to_string(),
        }
    }

    #[test]
    fn addresses_of_a_name_take_turns_and_stay_while_nobody_answers() {
        let upstream = named();
        assert_eq!(
            (&*upstream.host, first(&upstream)),
            ("app.test:8080", "unknown".to_owned())
        );
        upstream.looked_up(Resolution::Failed("no such name".into()));
        assert_eq!(first(&upstream), "no such name");
        let addresses: [SocketAddr; 2] = [([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 80).into()];
        upstream.looked_up(Resolution::Resolved(addresses.into()));
        let before = first(&upstream);
        assert_ne!(first(&upstream), before);
        assert_eq!(first(&upstream), before);
        upstream.looked_up(Resolution::Failed("no such name".into()));
        assert_ne!(first(&upstream), before);
        upstream.looked_up(Resolution::Resolved([addresses[1]].into()));
        assert_eq!(
            (first(&upstream), first(&upstream)),
            ("10.0.0.2:80".to_owned(), "10.0.0.2:80".to_owned())
        );
    }
}
