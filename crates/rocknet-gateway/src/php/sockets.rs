//! States of the sockets of the PHP that a server runs itself. The supervisor thread and requests share them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::lock;

/// States of the sockets, one entry for each pool.
#[derive(Debug, Default)]
pub struct PhpSockets {
    /// Reasons why php-fpm does not run, by socket; for the error page and the log.
    failures: Mutex<BTreeMap<PathBuf, String>>,
    /// Flags by socket, each set once the php-fpm has responded since its start.
    responded: Mutex<BTreeMap<PathBuf, Arc<AtomicBool>>>,
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

    /// Removes the state of a socket that will not be used again.
    pub(super) fn forget(&self, socket: &Path) {
        self.set_failure(socket, None);
        lock(&self.responded).remove(socket);
    }
}
