//! The server as a whole: bind, start workers, swap the configuration, drain, stop.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_config::model::{Config, Workers};
use rocknet_control::{SiteSummary, Status};
use rocknet_io::descriptors;
use rocknet_io::socket::{Address, BindError, BindErrorKind, ListenOptions, Listener};

use crate::backend::BackendChoice;
use crate::blocking::Pool;
use crate::certificates::{CertificateManager, state_folder};
use crate::clock::uptime_ms;
use crate::files::cache::{Cache, most_open_files};
use crate::files::open_folder::most_open_folders;
use crate::gateway::accounts;
use crate::gateway::php;
use crate::listener::{ActiveListener, join_within};
use crate::log::Logger;
use crate::metrics::Metrics;
use crate::registries::Registries;
use crate::report;
use crate::snapshot::{Mount, Snapshot};
use crate::spool;
use crate::worker::Shared;

/// All worker threads together, when their number is left to us.
const MAX_AUTO_WORKERS: usize = 128;
/// Descriptors kept for logs, for files that are being looked up, and for what else nobody counts.
const RESERVED_DESCRIPTORS: u64 = 384;
/// Descriptors of a worker: its listener and a copy to start another worker with, its events, its clock, its ring; with a
/// margin.
const WORKER_DESCRIPTORS: u64 = 10;
/// Workers that are told to leave an address do so in their next turn; one that died is there again within this time.
const RELEASE_GRACE: Duration = Duration::from_secs(1);
/// After the workers' own deadline, time for their threads to end.
const JOIN_GRACE: Duration = Duration::from_secs(1);
/// Behind the last request, time for the processes of isolated controllers to end.
const LIBRARY_GRACE: Duration = Duration::from_secs(6);

/// Why the server did not start, or did not take a new configuration.
#[derive(Debug)]
pub enum StartError {
    Bind(BindError),
    /// What was checked turned out not to work here: a log that cannot be opened, a user that is unknown.
    Setup(String),
    Io(io::Error),
}

/// A running server. Dropping it without [`Server::stop`] leaves its threads running.
pub struct Server {
    backend: BackendChoice,
    shared: Shared,
    metrics: Metrics,
    mounts: Vec<Mount>,
    state: Mutex<ServerState>,
    /// Ended behind the last request.
    php: php::Keeper,
}

struct ServerState {
    snapshot: Arc<Snapshot>,
    listeners: BTreeMap<Address, ActiveListener>,
    reloads: u64,
    last_reload_error: Option<String>,
}

/// What to do between binding and starting threads.
pub type BeforeThreads<'a> = &'a mut dyn FnMut() -> Result<(), String>;

impl Server {
    /// Binds every address, then starts. `before_threads` runs between: the place to give rights away.
    pub fn start(
        mut config: Config,
        mounts: Vec<Mount>,
        before_threads: BeforeThreads<'_>,
    ) -> Result<Server, StartError> {
        uptime_ms();
        descriptors::raise();
        let addresses = crate::snapshot::addresses(&config);
        let mut bound = bind_all(&addresses, worker_count(&config, addresses.len()), &[])?;
        // Decided once: after `before_threads` the default would be another folder.
        let state_folder = state_folder(&config);
        let certificates = CertificateManager::start(&config, &state_folder).map_err(StartError::Setup)?;
        // Keys are read while the rights for it are there.
        let _files = certificates.read_files(&config);
        before_threads().map_err(StartError::Setup)?;
        // Asked with the rights that the workers will have.
        let backend = BackendChoice::new(config.server.backend).map_err(StartError::Setup)?;

        let logger =
            Logger::start(&config.log).map_err(|error| StartError::Setup(format!("cannot open the log: {error}")))?;
        // What runs PHP is started with the rights that the workers have.
        accounts::apply_default(&mut config);
        let php = php::Keeper::new(state_folder);
        let settled = php.settle(&mut config).map_err(StartError::Setup)?;
        let registries = Arc::new(Registries::new(Arc::clone(php.sockets())));
        let snapshot =
            Snapshot::new(config, &mounts, &logger, &certificates, &registries).map_err(StartError::Setup)?;
        let snapshot = Arc::new(snapshot);
        let config = &snapshot.config;
        // Files are opened and read there, and a later configuration may bring some.
        let pool = Pool::new(config.server.blocking_threads.max(1));
        let cache = Cache::start(config.cache.memory.max(NEGATIVE_CACHE), pool.clone()).map_err(StartError::Io)?;
        certificates.manage(config).map_err(StartError::Io)?;
        php.want(settled).map_err(StartError::Io)?;
        let shared = Shared {
            backend: backend.backend,
            spool: spool::Store::new(pool.clone()),
            pool,
            cache,
            logger,
            certificates,
            registries,
        };
        let workers = worker_count(config, bound.len());
        let threads = workers * bound.len().max(1);
        let connections = connections_per_worker(&snapshot, threads);

        let metrics = Metrics::default();
        let mut listeners = BTreeMap::new();
        while let Some((address, sockets)) = bound.pop_first() {
            let listener = ActiveListener::start(&address, sockets, connections, &shared, &metrics, &snapshot)
                .map_err(StartError::Io)?;
            listeners.insert(address, listener);
        }
        let state = Mutex::new(ServerState {
            snapshot,
            listeners,
            reloads: 0,
            last_reload_error: None,
        });
        Ok(Server {
            backend,
            shared,
            metrics,
            mounts,
            state,
            php,
        })
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// How the server is, as of now.
    pub fn status(&self) -> Status {
        let bound = self.listeners();
        let state = self.state();
        Status {
            reloads: state.reloads,
            last_reload_error: state.last_reload_error.clone(),
            log_drops: self.shared.logger.drops(),
            ..report::status(&state.snapshot, &bound, &self.metrics, self.shared.cache.status())
        }
    }

    /// What the server serves, and where.
    pub fn sites(&self) -> Vec<SiteSummary> {
        report::sites(&self.snapshot(), &self.listeners())
    }

    /// What drives the sockets, and why.
    pub fn backend(&self) -> &BackendChoice {
        &self.backend
    }

    /// Who looks after certificates.
    pub fn certificates(&self) -> &Arc<CertificateManager> {
        &self.shared.certificates
    }

    /// The registries of this server.
    pub fn registries(&self) -> &Arc<Registries> {
        &self.shared.registries
    }

    pub fn logger(&self) -> &Logger {
        &self.shared.logger
    }

    /// The addresses as they are bound, with the number of workers of each.
    pub fn listeners(&self) -> Vec<(Address, Address, usize)> {
        let state = self.state();
        state
            .listeners
            .iter()
            .map(|(asked, listener)| (asked.clone(), listener.bound().clone(), listener.workers()))
            .collect()
    }

    /// Takes a new configuration: all of it, or, if anything in it does not work, nothing. No connection is cut.
    pub fn reload(&self, config: Config) -> Result<(), StartError> {
        let mut state = self.state();
        let result = self.swap(&mut state, config);
        match &result {
            Ok(()) => {
                state.reloads += 1;
                state.last_reload_error = None;
            }
            Err(error) => state.last_reload_error = Some(error.to_string()),
        }
        result
    }

    /// Notes a configuration that was refused before it came here.
    pub fn reload_failed(&self, error: String) {
        self.state().last_reload_error = Some(error);
    }

    fn swap(&self, state: &mut ServerState, mut config: Config) -> Result<(), StartError> {
        let setup = |error| StartError::Setup(error);
        accounts::apply_default(&mut config);
        let settled = self.php.settle(&mut config).map_err(setup)?;
        let Shared {
            logger,
            certificates,
            registries,
            ..
        } = &self.shared;
        let snapshot = Arc::new(Snapshot::new(config, &self.mounts, logger, certificates, registries).map_err(setup)?);
        // What was served under TLS until now must not go dark: the configuration in use has a certificate that works.
        let errors: Vec<_> = snapshot
            .certificate_errors()
            .take(MAX_REPORTED_ERRORS)
            .map(|(site, error)| format!("site {site}: {error}"))
            .collect();
        if !errors.is_empty() {
            return Err(StartError::Setup(errors.join("; ")));
        }
        let addresses: Vec<Address> = snapshot.listeners.keys().cloned().collect();
        let new: Vec<Address> = addresses
            .iter()
            .filter(|address| !state.listeners.contains_key(address))
            .cloned()
            .collect();
        let workers = worker_count(&snapshot.config, addresses.len());
        let held: Vec<&Listener> = state.listeners.values().map(ActiveListener::socket).collect();
        let bound = bind_all(&new, workers, &held)?;
        let kept = state
            .listeners
            .iter()
            .filter(|(address, _)| addresses.contains(address));
        let threads = kept.map(|(_, listener)| listener.workers()).sum::<usize>() + workers * new.len();

        self.apply_log(&snapshot)
            .map_err(|error| StartError::Setup(format!("cannot open the log: {error}")))?;
        let connections = connections_per_worker(&snapshot, threads);
        let start = |(address, sockets): (Address, Vec<Listener>)| {
            let listener =
                ActiveListener::start(&address, sockets, connections, &self.shared, &self.metrics, &snapshot)?;
            Ok((address, listener))
        };
        // Groups that started before one that did not are dropped, and stop.
        let started: io::Result<Vec<_>> = bound.into_iter().map(start).collect();
        let started = started.map_err(|error| {
            let _ = self.apply_log(&state.snapshot);
            StartError::Io(error)
        })?;

        self.shared
            .certificates
            .manage(&snapshot.config)
            .map_err(StartError::Io)?;
        self.php.want(settled).map_err(StartError::Io)?;

        // Nothing fails from here on.
        state.listeners.extend(started);
        let within = snapshot.config.limits.shutdown;
        let gone: Vec<Address> = state
            .listeners
            .keys()
            .filter(|address| !addresses.contains(address))
            .cloned()
            .collect();
        let stopping: Vec<_> = gone
            .iter()
            .filter_map(|address| Some(state.listeners.remove(address)?.stop(within)))
            .collect();
        for listener in state.listeners.values() {
            listener.swap(&snapshot, connections);
        }
        self.shared
            .cache
            .retain(snapshot.tree_ids(), snapshot.config.cache.memory.max(NEGATIVE_CACHE));
        state.snapshot = snapshot;
        // Who reloads again at once, with an address that has just gone, is not to be told that it is in use.
        stopping
            .iter()
            .for_each(|listener| listener.wait_for_address(RELEASE_GRACE));
        Ok(())
    }

    /// Makes the logs those of `snapshot`, or changes nothing.
    fn apply_log(&self, snapshot: &Snapshot) -> io::Result<()> {
        self.shared.logger.reconfigure(&snapshot.config.log)?;
        for site in &snapshot.config.sites {
            // Open already, but the change has just marked all as used no more: a log closed for that would have to be
            // opened again by a user who may not.
            let _ = self.shared.logger.sink(&site.access.target, site.access.format);
        }
        Ok(())
    }

    /// Stops: no new connections, answers in flight finish, the rest is cut at the deadline. True if none was cut late.
    ///
    /// Every thread, child process and descriptor of the server is gone then, but for calls that cannot be interrupted: a
    /// lookup of a name, or a disk that does not answer.
    pub fn stop(self) -> bool {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let within = state.snapshot.config.limits.shutdown;
        let threads = state
            .listeners
            .into_values()
            .flat_map(|listener| listener.stop(within).threads)
            .collect();
        let clean = join_within(threads, within + JOIN_GRACE);
        let Shared {
            pool,
            cache,
            certificates,
            registries,
            ..
        } = &self.shared;
        pool.stop(JOIN_GRACE);
        drop(state.snapshot);
        // Behind the last request. The log is the last of all, because the others write to it.
        if !registries.stop(Instant::now() + LIBRARY_GRACE) {
            tracing::warn!("a thread of the server has not ended in time and is left behind");
        }
        self.php.stop();
        cache.stop(Instant::now() + JOIN_GRACE);
        certificates.stop(Instant::now() + JOIN_GRACE);
        self.shared.logger.flush_and_stop(JOIN_GRACE);
        clean
    }

    #[doc(hidden)]
    pub fn kill_worker(&self) {
        if let Some(listener) = self.state().listeners.values().next() {
            listener.kill_worker();
        }
    }
}

/// Most sites that the refusal of a configuration names.
const MAX_REPORTED_ERRORS: usize = 10;

/// With no memory for content, redirects and missing files are still worth remembering.
const NEGATIVE_CACHE: u64 = 4 << 20;

/// One socket for each worker of each address. They are all made here, before rights are given up: the kernel lets a
/// socket share a port only with those of the same user.
///
/// `held` are sockets of ours: an address that overlaps with one of them, as `*:80` does with `127.0.0.1:80`, is shared
/// with it until it is closed.
fn bind_all(
    addresses: &[Address],
    workers: usize,
    held: &[&Listener],
) -> Result<BTreeMap<Address, Vec<Listener>>, StartError> {
    let options = ListenOptions {
        reuse_port: workers > 1,
        ..ListenOptions::default()
    };
    let bind = |address: &Address| {
        let mut sockets = vec![bind_with_retry(address, options, held)?];
        for _ in 1..workers {
            sockets.push(sockets[0].sibling()?);
        }
        Ok((address.clone(), sockets))
    };
    addresses
        .iter()
        .map(|address| bind(address).map_err(StartError::Bind))
        .collect()
}

/// Our own socket at an address that has just been left lives on in a program that is being started at that moment, until the
/// program runs and has it no more.
const LINGER_TIMEOUT: Duration = Duration::from_millis(300);
const LINGER_POLL_INTERVAL: Duration = Duration::from_millis(5);

fn bind_with_retry(address: &Address, options: ListenOptions, held: &[&Listener]) -> Result<Listener, BindError> {
    let start = Instant::now();
    loop {
        match Listener::bind_overlapping(address, options, held) {
            // Before anything was held, nothing of ours can linger.
            Err(error)
                if !held.is_empty()
                    && matches!(error.kind, BindErrorKind::InUse(None))
                    && start.elapsed() < LINGER_TIMEOUT =>
            {
                thread::sleep(LINGER_POLL_INTERVAL);
            }
            bound => return bound,
        }
    }
}

/// Kernel threads per listening address.
fn worker_count(config: &Config, addresses: usize) -> usize {
    match config.server.workers {
        Workers::Count(count) => usize::from(count).max(1),
        Workers::Auto => automatic_workers(thread::available_parallelism().map_or(1, usize::from), addresses),
    }
}

fn automatic_workers(cores: usize, addresses: usize) -> usize {
    cores.min(MAX_AUTO_WORKERS / addresses.max(1)).max(1)
}

/// Connections that each of `threads` workers holds at most.
fn connections_per_worker(snapshot: &Snapshot, threads: usize) -> usize {
    let folders = snapshot.folders().min(most_open_folders());
    let files = most_open_files() + spool::most_files();
    let max = max_connections(descriptors::limit(), threads, folders, files);
    snapshot
        .config
        .limits
        .connections
        // More than there are descriptors for would take them from the files that are to be sent.
        .map_or(max, |limit| limit.min(max))
        .div_ceil(threads.max(1))
        .max(1)
}

/// As many connections as descriptors allow, with some left for everything else: workers, the folders of sites, files
/// that the cache holds open or that hold request bodies. Half at least are for connections: a shortage is survived, a server that takes nobody is
/// of no use.
fn max_connections(limit: u64, workers: usize, folders: usize, files: u64) -> usize {
    let others = RESERVED_DESCRIPTORS + workers as u64 * WORKER_DESCRIPTORS + folders as u64 + files;
    usize::try_from(limit.saturating_sub(others).max(limit / 2)).unwrap_or(usize::MAX)
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Bind(error) => error.fmt(f),
            StartError::Setup(error) => f.write_str(error),
            StartError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_per_core_until_there_are_many_addresses() {
        for (cores, addresses, expected) in [
            (4, 0, 4),
            (64, 2, 64),
            (64, 3, 42),
            (128, 1, 128),
            (129, 1, 128),
            (8, 128, 1),
            (8, 10_000, 1),
        ] {
            let found = automatic_workers(cores, addresses);
            assert_eq!(found, expected, "{cores} cores, {addresses} addresses");
        }
    }

    #[test]
    fn connections_leave_descriptors_for_other_uses() {
        for (limit, workers, folders, files, expected) in [
            (1 << 20, 2, 3, 8192, (1 << 20) - 384 - 20 - 3 - 8192),
            (4096, 4, 10, 512, 4096 - 384 - 40 - 10 - 512),
            (4096, 128, 10_000, 512, 2048),
            (64, 1, 1, 16, 32),
        ] {
            let found = max_connections(limit, workers, folders, files);
            assert_eq!(found, expected, "of {limit}, with {workers}, {folders}, {files}");
        }
    }
}
