//! The state of each socket of the PHP that a server runs itself, shared by the thread that runs it and by requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::lock;

/// As many entries as there are pools.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Why the php-fpm of a socket does not run, for the error page and the log.
    troubles: Mutex<BTreeMap<PathBuf, String>>,
    /// Whether the php-fpm of a socket has answered anything since it was started.
    answered: Mutex<BTreeMap<PathBuf, Arc<AtomicBool>>>,
}

impl Sockets {
    /// Returns what keeps the php-fpm at `socket` from running; `None` while it runs or is being started.
    pub fn trouble(&self, socket: &Path) -> Option<String> {
        lock(&self.troubles).get(socket).cloned()
    }

    pub(super) fn set_trouble(&self, socket: &Path, trouble: Option<String>) {
        let mut all = lock(&self.troubles);
        match trouble {
            Some(trouble) => all.insert(socket.to_owned(), trouble),
            None => all.remove(socket),
        };
    }

    /// Returns the mark that requests set when the php-fpm at `socket` answers.
    pub fn answered(&self, socket: &Path) -> Arc<AtomicBool> {
        Arc::clone(lock(&self.answered).entry(socket.to_owned()).or_default())
    }

    /// Forgets a socket that is not used again.
    pub(super) fn forget(&self, socket: &Path) {
        self.set_trouble(socket, None);
        lock(&self.answered).remove(socket);
    }
}
