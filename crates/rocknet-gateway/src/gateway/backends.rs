//! The registry of the application servers that one server uses, shared by its configurations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::backend::{Backend, BackendAddress};
use super::socket::Lookups;
use crate::php::PhpSockets;
use rocknet_handler::clock::TimeSource;

/// A connection that rests longer gives its process back. Under load none rests so long.
const IDLE_MS: u64 = 1000;

pub struct Backends {
    /// Those in use by some snapshot.
    all: Mutex<BTreeMap<BackendAddress, Weak<Backend>>>,
    /// Connections at rest in all of them. Mostly there are none, and then nothing has to be looked at.
    idle_count: Arc<AtomicUsize>,
    php: Arc<PhpSockets>,
    lookups: Lookups,
    time: TimeSource,
}

impl Backends {
    pub fn new(php: Arc<PhpSockets>, time: TimeSource) -> Backends {
        Backends {
            all: Mutex::default(),
            idle_count: Arc::default(),
            lookups: Lookups::default(),
            php,
            time,
        }
    }

    /// Returns the backend at a address. Routes of one configuration and of the next share it.
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

    /// Closes connections that have rested too long. Called by each worker at each tick.
    pub fn tick(&self) {
        if self.idle_count.load(Ordering::Relaxed) > 0 {
            let now = self.time.uptime_ms();
            self.close_idle_connections(|since| now.saturating_sub(since) >= IDLE_MS);
        }
    }

    /// Closes connections at rest. Called by a worker that ticks no more: the others would do it if there were any.
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

    /// Nothing that can panic runs while it is locked.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<BackendAddress, Weak<Backend>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
