//! States of the pools of PHP that a server runs itself, and of their sockets. The supervisor thread, requests and
//! reports share them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::lock;
use super::report::PoolProgress;

/// States of the sockets, one entry for each pool.
#[derive(Debug, Default)]
pub struct PhpSockets {
    /// Reasons why php-fpm does not run, by socket; for the error page and the log.
    failures: Mutex<BTreeMap<PathBuf, String>>,
    /// Flags by socket, each set once the php-fpm has responded since its start.
    responded: Mutex<BTreeMap<PathBuf, Arc<AtomicBool>>>,
    /// Progress of the pools by socket.
    progress: Mutex<BTreeMap<PathBuf, PoolProgress>>,
    /// Pool names by socket, for the current configuration and the planned one.
    names: Mutex<BTreeMap<PathBuf, String>>,
}

impl PhpSockets {
    /// Returns why the php-fpm at `socket` does not run; `None` while it runs or is being started.
    pub fn failure(&self, socket: &Path) -> Option<String> {
        lock(&self.failures).get(socket).cloned()
    }

    pub(super) fn set_failure(&self, socket: &Path, failure: Option<String>) {
        let mut all = lock(&self.failures);
        match failure {
            Some(failure) => all.insert(socket.to_owned(), failure),
            None => all.remove(socket),
        };
    }

    /// Returns the flag that requests set when the php-fpm at `socket` responds.
    pub fn responded(&self, socket: &Path) -> Arc<AtomicBool> {
        Arc::clone(lock(&self.responded).entry(socket.to_owned()).or_default())
    }

    /// Returns the name of the pool at `socket`, such as `8.2` or `8.2@alice`; `None` if no pool has this socket.
    pub fn name(&self, socket: &Path) -> Option<String> {
        lock(&self.names).get(socket).cloned()
    }

    /// Replaces the names of all pools.
    pub(super) fn set_names(&self, names: BTreeMap<PathBuf, String>) {
        *lock(&self.names) = names;
    }

    /// Returns the progress of the pool at `socket`.
    pub(super) fn progress(&self, socket: &Path) -> PoolProgress {
        lock(&self.progress).get(socket).copied().unwrap_or_default()
    }

    pub(super) fn set_progress(&self, socket: &Path, progress: PoolProgress) {
        let mut all = lock(&self.progress);
        match all.get_mut(socket) {
            Some(known) => *known = progress,
            None => drop(all.insert(socket.to_owned(), progress)),
        }
    }

    /// Removes the state of a socket that will not be used again.
    pub(super) fn forget(&self, socket: &Path) {
        self.set_failure(socket, None);
        lock(&self.responded).remove(socket);
        lock(&self.progress).remove(socket);
    }
}
