//! States of the pools of PHP that a server runs itself, and of their sockets. The supervisor thread, requests and
//! reports share them.

use std::collections::BTreeMap;
use std::fs;
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
    /// Names and sites of the pools by socket: of those in force, of those that retire, and of planned ones that are
    /// not in force yet.
    descriptions: Mutex<BTreeMap<PathBuf, PoolDescription>>,
}

/// Name and sites of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolDescription {
    /// Name for operators, such as `8.2`, `8.2@alice` or `8.2/example.com`.
    pub name: String,
    /// Roots of the sites and routes that use the pool, each with the name of its site.
    pub roots: Vec<(PathBuf, String)>,
}

impl PhpSockets {
    /// Returns why the php-fpm at `socket` does not run; `None` while it runs, and while requests may wait for its
    /// start.
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

    /// Returns the name of the pool at `socket`; `None` if no pool has this socket.
    pub fn name(&self, socket: &Path) -> Option<String> {
        let all = lock(&self.descriptions);
        all.get(socket).map(|description| description.name.clone())
    }

    /// Returns the site that a script of the pool at `socket` belongs to: the one with the longest root that contains
    /// the script. `None` if no root contains it. Blocks on the disk.
    pub(super) fn site(&self, socket: &Path, script: &Path) -> Option<String> {
        let roots = lock(&self.descriptions).get(socket)?.roots.clone();
        let real = roots
            .into_iter()
            .filter_map(|(root, site)| Some((fs::canonicalize(root).ok()?, site)));
        let containing = real.filter(|(root, _)| script.starts_with(root));
        let longest = containing.max_by_key(|(root, _)| root.as_os_str().len());
        longest.map(|(_, site)| site)
    }

    /// Sets the names and sites of pools, and removes those of pools that are not `kept`.
    pub(super) fn describe(&self, pools: BTreeMap<PathBuf, PoolDescription>, kept: impl Fn(&Path) -> bool) {
        let mut all = lock(&self.descriptions);
        all.retain(|socket, _| kept(socket));
        all.extend(pools);
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
        lock(&self.descriptions).remove(socket);
        lock(&self.progress).remove(socket);
    }
}
