//! Registry of the back ends of one server, shared by its configurations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::backend::{Backend, BackendAddress};
use super::socket::Lookups;
use crate::php::PhpSockets;
use rocknet_handler::clock::TimeSource;

/// Time in milliseconds after which an idle connection is closed, so that its process is free again. Under load,
/// connections are reused sooner.
const IDLE_MS: u64 = 1000;

/// Registry of back ends.
pub struct Backends {
    /// Back ends that some snapshot uses.
    all: Mutex<BTreeMap<BackendAddress, Weak<Backend>>>,
    /// Number of idle connections of all back ends. Usually it is 0, so that no back end has to be checked.
    idle_count: Arc<AtomicUsize>,
    php: Arc<PhpSockets>,
    lookups: Lookups,
    time: TimeSource,
}

impl Backends {
    /// Creates an empty registry. `php`: states of the sockets of the PHP that the server runs itself.
    pub fn new(php: Arc<PhpSockets>, time: TimeSource) -> Backends {
        Backends {
            all: Mutex::default(),
            idle_count: Arc::default(),
            lookups: Lookups::default(),
            php,
            time,
        }
    }

    /// Returns the back end at an address. All routes with this address share the back end, also across reloads.
    pub fn backend(&self, address: &BackendAddress) -> Arc<Backend> {
        let mut all = self.lock();
        if let Some(backend) = all.get(address).and_then(Weak::upgrade) {
            return backend;
        }
        all.retain(|_, backend| backend.strong_count() > 0);
        let backend = Arc::new(Backend::new(
            address.clone(),
            &self.idle_count,
            &self.php,
            &self.lookups,
            &self.time,
        ));
        all.insert(address.clone(), Arc::downgrade(&backend));
        backend
    }

    /// Closes connections that have been idle too long. Called by each worker at each tick.
    pub fn tick(&self) {
        if self.idle_count.load(Ordering::Relaxed) > 0 {
            let now = self.time.uptime_ms();
            self.close_idle_connections(|since| now.saturating_sub(since) >= IDLE_MS);
        }
    }

    /// Closes all idle connections. Called by a worker that stops ticking, because it may be the last worker that could
    /// close them.
    pub fn close_all_idle(&self) {
        self.close_idle_connections(|_| true);
    }

    fn close_idle_connections(&self, is_old: impl Fn(u64) -> bool) {
        if self.idle_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let all: Vec<Arc<Backend>> = self.lock().values().filter_map(Weak::upgrade).collect();
        for backend in all {
            backend.close_idle(&is_old);
        }
    }

    /// Locks the registry. Poisoning is ignored, because no code that can panic runs while it is locked.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<BackendAddress, Weak<Backend>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
