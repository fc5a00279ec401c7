//! The state of each socket of the PHP that a server runs itself, shared by the thread that runs it and by requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::lock;

/// As many entries as there are pools.
#[derive(Debug, Default)]
pub struct PhpSockets {
    /// Why the php-fpm of a socket does not run, for the error page and the log.
    failures: Mutex<BTreeMap<PathBuf, String>>,
    /// Whether the php-fpm of a socket has answered anything since it was started.
    responded: Mutex<BTreeMap<PathBuf, Arc<AtomicBool>>>,
}

impl PhpSockets {
    /// Returns what keeps the php-fpm at `socket` from running; `None` while it runs or is being started.
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

    /// Returns the mark that requests set when the php-fpm at `socket` answers.
    pub fn responded(&self, socket: &Path) -> Arc<AtomicBool> {
        Arc::clone(lock(&self.responded).entry(socket.to_owned()).or_default())
    }

    /// Forgets a socket that is not used again.
    pub(super) fn forget(&self, socket: &Path) {
        self.set_failure(socket, None);
        lock(&self.responded).remove(socket);
    }
}
