//! The registry of the servers that one RockNet server passes requests on to, with what its routes share about them.

use std::collections::BTreeMap;
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

/// What makes two upstreams the same: what is known of one depends on how it is checked and looked up, and what a connection
/// is worth on who was believed when it was made.
type UpstreamKey = (model::Upstream, Option<Health>, Resolve, Option<(u32, String)>);

/// Who are asked, whether as a backup, and how many requests each may have.
type QueueKey = (Vec<(u32, bool)>, u32);

pub struct Upstreams {
    /// Those in use by some snapshot.
    all: Mutex<BTreeMap<UpstreamKey, Weak<Upstream>>>,
    ids: AtomicU32,
    tls_configs: TlsClientConfigs,
    /// The queues of those that are limited: one for those that have the same servers, so that no server is offered to two
    /// queues for one request.
    queues: Mutex<BTreeMap<QueueKey, Weak<UpstreamQueue>>>,
    background: BackgroundTasks,
    pub(super) copies: Arc<MirrorQueue>,
    time: TimeSource,
    dialer: Option<Arc<dyn Dialer>>,
}

/// For lookups of names that are under way when the server stops: they cannot be interrupted, and nothing depends on them.
const LOOKUP_GRACE: Duration = Duration::from_millis(500);

impl Upstreams {
    /// `time`: the clock of the server. Starts no thread.
    pub fn new(time: TimeSource) -> Upstreams {
        Upstreams {
            all: Mutex::default(),
            ids: AtomicU32::new(0),
            tls_configs: TlsClientConfigs::default(),
            queues: Mutex::default(),
            background: BackgroundTasks::default(),
            copies: Arc::default(),
            time,
            dialer: None,
        }
    }

    /// As [`Upstreams::new`], with links in place of sockets.
    pub fn with_dialer(time: TimeSource, dialer: Arc<dyn Dialer>) -> Upstreams {
        Upstreams {
            dialer: Some(dialer),
            ..Upstreams::new(time)
        }
    }

    pub(super) fn dialer(&self) -> Option<Arc<dyn Dialer>> {
        self.dialer.clone()
    }

    /// Returns the upstream at a place. Routes of one configuration and of the next share it.
    pub fn get(
        &self,
        model: &model::Upstream,
        health: Option<&Health>,
        resolve: Resolve,
        tls: Option<(Arc<TlsClientConfig>, ServerName<'static>)>,
    ) -> Arc<Upstream> {
        let verified = tls
            .as_ref()
            .map(|(secure, name)| (secure.id, name.to_str().into_owned()));
        let key = (model.clone(), health.cloned(), resolve, verified);
        let mut all = lock(&self.all);
        if let Some(upstream) = all.get(&key).and_then(Weak::upgrade) {
            return upstream;
        }
        all.retain(|_, upstream| upstream.strong_count() > 0);
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let upstream = Arc::new(Upstream::new(id, model, tls, self.time.clone()));
        all.insert(key, Arc::downgrade(&upstream));
        drop(all);
        self.background.watch(&upstream, &model.host, health, resolve);
        upstream
    }

    /// Returns the configuration for handshakes. The error is for the operator.
    pub(super) fn tls_config(&self, model: &model::UpstreamTls, http2: bool) -> Result<Arc<TlsClientConfig>, String> {
        self.tls_configs.get(model, http2)
    }

    /// Returns the queue for servers, each with whether it is a backup, with `most` requests at each.
    pub(super) fn queue(&self, servers: Vec<(Arc<Upstream>, bool)>, max_requests: u32) -> Arc<UpstreamQueue> {
        let mut ids: Vec<_> = servers
            .iter()
            .map(|(server, is_backup)| (server.id, *is_backup))
            .collect();
        ids.sort_unstable();
        let mut queues = lock(&self.queues);
        queues.retain(|_, queue| queue.strong_count() > 0);
        let key = (ids, max_requests);
        if let Some(queue) = queues.get(&key).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(UpstreamQueue::new(servers, max_requests as usize));
        queues.insert(key, Arc::downgrade(&queue));
        queue.register();
        queue
    }

    /// Ends lookups, checks and copies of requests. Returns whether their threads had ended at `deadline`.
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

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::Host;

    use super::*;

    #[test]
    fn one_address_is_one_upstream_in_one_server() {
        let model = |port| model::Upstream::at(Host::Address([127, 0, 0, 1].into(), port));
        let (upstreams, others) = (Upstreams::default(), Upstreams::default());
        let (one, key, other, elsewhere) = (
            upstreams.get(&model(1), None, Resolve::Ttl, None),
            upstreams.get(&model(1), None, Resolve::Ttl, None),
            upstreams.get(&model(2), None, Resolve::Ttl, None),
            others.get(&model(1), None, Resolve::Ttl, None),
        );
        assert!(Arc::ptr_eq(&one, &key) && !Arc::ptr_eq(&one, &other) && one.id != other.id);
        assert!(!Arc::ptr_eq(&one, &elsewhere), "shared by two servers");
    }
}
