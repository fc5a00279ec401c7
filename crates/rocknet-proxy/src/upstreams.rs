//! Registry of the upstreams of one server, shared by its routes and across reloads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rocknet_config::model::{self, Health, Resolve};
use rustls_pki_types::ServerName;

use crate::background::BackgroundTasks;
use crate::mirror_queue::MirrorQueue;
use crate::tls_config::{TlsClientConfig, TlsClientConfigs};
use crate::transport::Dialer;
use crate::upstream::Upstream;
use crate::upstream_queue::UpstreamQueue;
use rocknet_handler::clock::TimeSource;

/// Properties that identify an upstream: address, health check, name resolution, and the id of the TLS configuration
/// with the server name.
///
/// The state of an upstream depends on its health check and its name resolution. Its connections depend on the TLS
/// configuration and on the name in the certificate.
type UpstreamKey = (model::Upstream, Option<Health>, Resolve, Option<(u32, String)>);

/// Properties that identify a queue: the ids of its upstreams, each with a flag that is true for a backup, and the
/// limit of requests.
type QueueKey = (Vec<(u32, bool)>, u32);

/// Upstreams of one server, with their background threads.
pub struct Upstreams {
    /// Upstreams that some configuration uses.
    all: Mutex<BTreeMap<UpstreamKey, Weak<Upstream>>>,
    /// Addresses whose upstreams are drained. Kept here because a reload that changes another property of an upstream,
    /// such as its health check, replaces it. Locked after `all`.
    drained: Mutex<BTreeSet<String>>,
    /// Id of the next upstream.
    ids: AtomicU32,
    tls_configs: TlsClientConfigs,
    /// Queues of waiting requests. Routes with the same upstreams and limit share a queue, so that freed capacity is
    /// granted in one common order.
    queues: Mutex<BTreeMap<QueueKey, Weak<UpstreamQueue>>>,
    background: BackgroundTasks,
    /// Queue of mirrored requests.
    pub(super) copies: Arc<MirrorQueue>,
    time: TimeSource,
    dialer: Option<Arc<dyn Dialer>>,
}

/// Maximum wait for lookups that are running when the server stops. They cannot be interrupted, and nothing depends on
/// their results.
const LOOKUP_GRACE: Duration = Duration::from_millis(500);

impl Upstreams {
    /// Returns an empty registry that uses `time`, the clock of the server. Starts no thread.
    pub fn new(time: TimeSource) -> Upstreams {
        Upstreams {
            all: Mutex::default(),
            drained: Mutex::default(),
            ids: AtomicU32::new(0),
            tls_configs: TlsClientConfigs::default(),
            queues: Mutex::default(),
            background: BackgroundTasks::default(),
            copies: Arc::default(),
            time,
            dialer: None,
        }
    }

    /// Returns an empty registry like [`Upstreams::new`]. Its upstreams use links of `dialer` instead of sockets.
    pub fn with_dialer(time: TimeSource, dialer: Arc<dyn Dialer>) -> Upstreams {
        Upstreams {
            dialer: Some(dialer),
            ..Upstreams::new(time)
        }
    }

    /// Returns the dialer that replaces sockets, if there is one.
    pub(super) fn dialer(&self) -> Option<Arc<dyn Dialer>> {
        self.dialer.clone()
    }

    /// Returns the upstream with these properties. All routes with an equal upstream share it, also across reloads.
    /// `tls`: TLS configuration, and the name for which the certificate must be valid.
    pub fn get(
        &self,
        model: &model::Upstream,
        health: Option<&Health>,
        resolve: Resolve,
        tls: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
    ) -> Arc<Upstream> {
        let tls_key = tls
            .as_ref()
            .map(|(config, name)| (config.id, name.to_str().into_owned()));
        let key = (model.clone(), health.cloned(), resolve, tls_key);
        let mut all = lock(&self.all);
        if let Some(upstream) = all.get(&key).and_then(Weak::upgrade) {
            return upstream;
        }
        all.retain(|_, upstream| upstream.strong_count() > 0);
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let upstream = Arc::new(Upstream::new(id, model, tls, self.time.clone()));
        if lock(&self.drained).contains(&*upstream.name) {
            upstream.set_drained(true);
        }
        all.insert(key, Arc::downgrade(&upstream));
        drop(all);
        self.background.watch(&upstream, &model.host, health, resolve);
        upstream
    }

    /// Returns the upstreams that a configuration uses, in the order of their addresses.
    pub fn in_use(&self) -> Vec<Arc<Upstream>> {
        let mut all: Vec<_> = lock(&self.all).values().filter_map(Weak::upgrade).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Drains the upstreams with an address, or ends their drain if `is_drained` is false. The drain also applies to
    /// upstreams with this address that a later configuration adds. Returns false if neither an upstream nor a drain
    /// has this address.
    pub fn set_drained(&self, address: &str, is_drained: bool) -> bool {
        let all = lock(&self.all);
        let upstreams = all.values().filter_map(Weak::upgrade);
        let named: Vec<_> = upstreams.filter(|upstream| &*upstream.name == address).collect();
        let mut drained = lock(&self.drained);
        if named.is_empty() && !drained.contains(address) {
            return false;
        }
        if is_drained {
            drained.insert(address.to_owned());
        } else {
            drained.remove(address);
        }
        drop(drained);
        for upstream in named {
            upstream.set_drained(is_drained);
        }
        true
    }

    /// Returns the TLS configuration for handshakes. `http2`: true to offer HTTP/2, false to offer HTTP/1.1.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if a file cannot be used, or if the system has no certificate authority.
    pub(super) fn tls_config(&self, model: &model::UpstreamTls, http2: bool) -> Result<Arc<TlsClientConfig>, String> {
        self.tls_configs.get(model, http2)
    }

    /// Returns the queue for these upstreams, each with a flag that is true for a backup. `max_requests`: maximum
    /// number of concurrent requests at one upstream.
    pub(super) fn queue(&self, upstreams: Vec<(Arc<Upstream>, bool)>, max_requests: u32) -> Arc<UpstreamQueue> {
        let mut ids: Vec<_> = upstreams
            .iter()
            .map(|(upstream, is_backup)| (upstream.id, *is_backup))
            .collect();
        ids.sort_unstable();
        let mut queues = lock(&self.queues);
        queues.retain(|_, queue| queue.strong_count() > 0);
        let key = (ids, max_requests);
        if let Some(queue) = queues.get(&key).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(UpstreamQueue::new(upstreams, max_requests as usize));
        queues.insert(key, Arc::downgrade(&queue));
        queue.register();
        queue
    }

    /// Ends lookups, health checks and mirrored requests. Returns true if their threads ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let has_ended = self.background.stop(deadline.min(Instant::now() + LOOKUP_GRACE));
        self.copies.stop(deadline) && has_ended
    }
}

impl Default for Upstreams {
    fn default() -> Upstreams {
        Upstreams::new(TimeSource::default())
    }
}

/// Locks `mutex`. Poisoning is ignored, because no code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::Host;

    use super::*;

    #[test]
    fn routes_of_one_server_share_the_upstream_of_an_address() {
        let model = |port| model::Upstream::at(Host::Address([127, 0, 0, 1].into(), port));
        let (upstreams, others) = (Upstreams::default(), Upstreams::default());
        let (one, same, other, elsewhere) = (
            upstreams.get(&model(1), None, Resolve::Ttl, None),
            upstreams.get(&model(1), None, Resolve::Ttl, None),
            upstreams.get(&model(2), None, Resolve::Ttl, None),
            others.get(&model(1), None, Resolve::Ttl, None),
        );
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other) && one.id != other.id);
        assert!(!Arc::ptr_eq(&one, &elsewhere), "shared by two servers");
    }

    #[test]
    fn a_drain_survives_a_change_of_other_properties() {
        let model = model::Upstream::at(Host::Address([127, 0, 0, 1].into(), 1));
        let upstreams = Upstreams::default();
        assert!(!upstreams.set_drained("other", true), "there is no such upstream");
        let first = upstreams.get(&model, None, Resolve::Ttl, None);
        let address = first.name.to_string();
        assert!(upstreams.set_drained(&address, true) && first.is_drained());
        let second = upstreams.get(&model, None, Resolve::Every(Duration::from_secs(1)), None);
        assert!(!Arc::ptr_eq(&first, &second) && second.is_drained());
        drop((first, second));
        assert!(upstreams.get(&model, None, Resolve::Ttl, None).is_drained());
        assert!(upstreams.set_drained(&address, false));
        assert!(!upstreams.get(&model, None, Resolve::Ttl, None).is_drained());
    }
}
