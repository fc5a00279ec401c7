//! The server as a whole: binds addresses, starts workers, and replaces the configuration.

mod accessors;
mod address_change;
mod end;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_config::model::Config;
use rocknet_io::socket::{Address, BindError, Listener};
use rocknet_quic::{Relay, Relays};

use crate::accept_loop::StopTimes;
use crate::backend::BackendChoice;
use crate::bind::{QuicFailure, bind_all, quic_or_none, siblings};
use crate::capacity::{connections_per_worker, worker_count};
use crate::gateway::accounts;
use crate::gateway::php;
use crate::listener::{ActiveListener, ListenerSockets, StoppingListener, WorkerStart};
use crate::metrics::Metrics;
use crate::protocol::remembered_settings;
use crate::snapshot::{Mount, Snapshot, quic_addresses};
use crate::transport::quic::QuicSocket;
use crate::transport::quic_secret::QuicKeys;
use crate::worker::Shared;

use self::address_change::{RemovedAddresses, release_covered_udp, stop_removed, udp_addresses};

pub use self::start::StartHooks;

/// Maximum wait until all workers have closed the sockets of a removed address. A running worker closes its sockets in
/// its next poll. A failed worker closes its sockets while it waits for its restart.
const RELEASE_GRACE: Duration = Duration::from_secs(1);

/// Error of a start or a reload.
#[derive(Debug)]
pub enum StartError {
    /// An address cannot be bound.
    Bind(BindError),
    /// A valid configuration cannot be applied on this machine, for instance because a log cannot be opened or a user
    /// is unknown. Also the error of a hook of [`StartHooks`].
    Setup(String),
    /// A thread or another resource of the operating system cannot be created.
    Io(io::Error),
}

/// A running server. Dropping it without [`Server::stop`] cuts its connections, and does not wait for its threads and
/// child processes to end.
pub struct Server {
    backend: BackendChoice,
    shared: Shared,
    metrics: Metrics,
    /// Keys of connection IDs and tokens, which outlive a reload.
    quic_keys: QuicKeys,
    /// Handlers of the embedding program, which each new configuration gets again.
    mounts: Vec<Mount>,
    state: Mutex<ServerState>,
    /// Manager of the PHP processes; stopped after the last request.
    php: php::PhpManager,
    /// Channels to older processes that still serve QUIC connections.
    relays: Vec<Relay>,
    /// Folder of the state that is kept across restarts.
    state_folder: PathBuf,
}

struct ServerState {
    snapshot: Arc<Snapshot>,
    listeners: BTreeMap<Address, ActiveListener>,
    /// Listeners of removed addresses, in the order of their removal, while they serve connections.
    stopping: Vec<StoppingListener>,
    reloads: u64,
    failed_reloads: u64,
    last_reload_error: Option<String>,
}

impl ServerState {
    fn reload_failed(&mut self, error: String) {
        self.failed_reloads += 1;
        self.last_reload_error = Some(error);
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the configuration, completely or not at all. Connections of addresses that the new configuration does
    /// not contain have `limits.upgrade_drain` to finish, and are then cut. All other connections are kept.
    ///
    /// # Errors
    ///
    /// Fails if a new address cannot be bound or the configuration cannot be applied. The old configuration then
    /// remains in use.
    pub fn reload(&self, config: Config) -> Result<(), StartError> {
        self.close_ended_relays();
        let mut state = self.state();
        let result = self.swap(&mut state, config);
        match &result {
            Ok(()) => {
                state.reloads += 1;
                state.last_reload_error = None;
            }
            Err(error) => state.reload_failed(error.to_string()),
        }
        result
    }

    /// Returns the error of the last reload, if it failed.
    pub fn last_reload_error(&self) -> Option<String> {
        self.state().last_reload_error.clone()
    }

    /// Records the error of a configuration that was rejected before [`Server::reload`] was called.
    pub fn reload_failed(&self, error: String) {
        self.state().reload_failed(error);
    }

    /// Restores the result of an earlier reload, after a failed change of the configuration was undone. `error`: `None`
    /// if that reload succeeded.
    pub fn restore_reload_error(&self, error: Option<String>) {
        self.state().last_reload_error = error;
    }

    /// Does the work of [`Server::reload`], without recording the result.
    fn swap(&self, state: &mut ServerState, mut config: Config) -> Result<(), StartError> {
        let setup = |error| StartError::Setup(error);
        accounts::apply_default(&mut config);
        let php_plan = self.php.plan(&mut config).map_err(setup)?;
        let Shared {
            logger,
            certificates,
            registries,
            ..
        } = &self.shared;
        let mut quic = quic_addresses(&config);
        // A kept address gets UDP sockets at the first reload that requires them, and keeps them.
        let mut added_quic = BTreeMap::new();
        let mut quic_failures = Vec::new();
        // Addresses at which the server already has UDP sockets.
        let with_udp = udp_addresses(&state.listeners, &state.stopping);
        quic.retain(|address| match state.listeners.get(address) {
            Some(kept) if !kept.has_quic() => {
                let keys = self.quic_keys.get();
                let is_shared = with_udp.iter().any(|other| other.overlaps(kept.bound()));
                let relays = Relays::new(address.to_string(), self.relays.clone());
                let sockets =
                    keys.and_then(|keys| QuicSocket::bind(kept.bound(), kept.workers(), &keys, is_shared, &relays));
                let sockets = quic_or_none(sockets, address, &mut quic_failures);
                let is_bound = !sockets.is_empty();
                added_quic.insert(address.clone(), sockets);
                is_bound
            }
            _ => true,
        });
        // Clients of HTTP/3 remember these settings for early data.
        let remembered = remembered_settings(&config.limits);
        let mounts = &self.mounts;
        registries.oidc.prepare(&config, &self.state_folder);
        let prepare = |config, quic: &BTreeSet<Address>| {
            let snapshot = Snapshot::new(config, mounts, logger, certificates, registries, quic, &remembered);
            snapshot.map(Arc::new).map_err(setup)
        };
        let mut snapshot = prepare(config, &quic)?;
        // A site without a usable certificate would lose TLS. The configuration in use has working certificates, so the
        // new one is rejected.
        check_certificates(&snapshot)?;
        let addresses: Vec<Address> = snapshot.listeners.keys().cloned().collect();
        let new: Vec<Address> = addresses
            .iter()
            .filter(|address| !state.listeners.contains_key(address))
            .cloned()
            .collect();
        let workers = worker_count(&snapshot.config, addresses.len());
        let held = state.listeners.values().flat_map(ActiveListener::all_sockets);
        let held: Vec<&Listener> = held.map(Arc::as_ref).collect();
        state.stopping.retain(|listener| !listener.is_finished());
        let gone = state
            .listeners
            .iter()
            .filter(|(address, _)| !addresses.contains(address));
        // The server may still have sockets of a new address, if an earlier configuration contained it. They are used
        // again.
        let changes = RemovedAddresses {
            removed: gone.map(|(_, listener)| listener).collect(),
            stopping: &state.stopping,
        };
        let mut adopted = changes.sockets_for(&new).map_err(StartError::Io)?;
        adopted.set_udp_neighbours(with_udp);
        self.relays.iter().cloned().for_each(|relay| adopted.add_relay(relay));
        let bound = bind_all(
            &new,
            workers,
            &held,
            &mut adopted,
            &quic,
            &self.quic_keys,
            &mut quic_failures,
        )
        .map_err(StartError::Bind)?;
        let has_no_udp = |address: &Address| bound.get(address).is_some_and(|sockets| sockets.quic.is_empty());
        if quic.iter().any(has_no_udp) {
            // The sites of an address without UDP sockets must not announce HTTP/3 there, so a second snapshot is made.
            // The first one was made before the addresses were bound, so that an invalid configuration binds no new
            // address.
            quic.retain(|address| !has_no_udp(address));
            snapshot = prepare(snapshot.config.clone(), &quic)?;
        }
        // `bind_all` may have loaded the keys, with a warning about their file.
        self.quic_keys.log_warning();
        quic_failures.iter().for_each(QuicFailure::log);
        let kept = state
            .listeners
            .iter()
            .filter(|(address, _)| addresses.contains(address));
        let kept_workers = kept.map(|(_, listener)| listener.target_workers(workers));
        let threads = kept_workers.sum::<usize>() + workers * new.len();

        self.apply_log(&snapshot)
            .map_err(|error| StartError::Setup(format!("cannot open the log: {error}")))?;
        let connections = connections_per_worker(&snapshot, threads);
        let worker_start = WorkerStart {
            connections,
            shared: &self.shared,
            metrics: &self.metrics,
            snapshot: &snapshot,
        };
        let start = |(address, sockets): (Address, ListenerSockets)| {
            let listener = ActiveListener::start(&address, sockets, &worker_start)?;
            Ok((address, listener))
        };
        // If a listener fails to start, the listeners started before it are dropped, which stops them.
        let started: io::Result<Vec<_>> = bound.into_iter().map(start).collect();
        let applied = started.and_then(|started| {
            self.shared.certificates.manage(&snapshot.config)?;
            self.php.apply(php_plan)?;
            Ok(started)
        });
        let started = applied.map_err(|error| {
            // The previous settings were applied without errors, and need no new thread.
            let _ = self.apply_log(&state.snapshot);
            let _ = self.shared.certificates.manage(&state.snapshot.config);
            StartError::Io(error)
        })?;

        // From here on, the reload succeeds: later errors are only logged.
        state.listeners.extend(started);
        let times = StopTimes::of_drain(snapshot.config.limits.upgrade_drain);
        let gone: Vec<Address> = state
            .listeners
            .keys()
            .filter(|address| !addresses.contains(address))
            .cloned()
            .collect();
        let stopped_before = state.stopping.len();
        for address in &gone {
            if let Some(listener) = state.listeners.remove(address) {
                let stopping = stop_removed(listener, &mut state.listeners, times);
                state.stopping.push(stopping);
            }
        }
        release_covered_udp(&state.stopping, &state.listeners);
        for (address, listener) in &mut state.listeners {
            listener.swap(&snapshot, connections, added_quic.remove(address).unwrap_or_default());
            let missing = workers.saturating_sub(listener.sockets().len());
            let added = siblings(address, &listener.sockets()[0], missing);
            if let Err(error) = listener.resize(address, workers, added, times, &worker_start) {
                tracing::error!(%address, "the number of workers cannot be changed: {error}");
            }
        }
        for listener in &state.stopping {
            listener.swap(&snapshot, connections);
        }
        self.shared
            .cache
            .retain_trees(snapshot.tree_ids(), snapshot.config.cache.memory.max(NEGATIVE_CACHE));
        self.shared.registries.set_response_memory(&snapshot.config);
        self.shared
            .registries
            .set_response_disk(&snapshot.config, &self.state_folder);
        self.apply_bans(&snapshot.config);
        state.snapshot = snapshot;
        // The next reload may bind a released address immediately, so this reload waits until the sockets of the
        // address are closed.
        state.stopping[stopped_before..]
            .iter()
            .for_each(|listener| listener.wait_for_address(RELEASE_GRACE));
        Ok(())
    }

    /// Applies the log settings of `snapshot`, or changes nothing.
    fn apply_log(&self, snapshot: &Snapshot) -> io::Result<()> {
        self.shared.logger.reconfigure(&snapshot.config.log)?;
        for site in &snapshot.config.sites {
            // Marks the log as used: it is open already, but `reconfigure` has marked all logs as unused. An unused log
            // is closed, and the server may lack the permission to open it again.
            let access = &site.access;
            let _ = self.shared.logger.sink(&access.target, &access.format, &site.name);
        }
        Ok(())
    }

    /// Applies the settings of bans.
    fn apply_bans(&self, config: &Config) {
        let bans = &self.shared.registries.bans;
        if let Err(error) = bans.configure(config) {
            tracing::error!("ban lists are not watched, because a thread cannot be started: {error}");
        }
        if config.ban.is_some() {
            self.keep_bans();
        }
    }

    /// Keeps bans in the state folder, and loads those that an earlier process has kept there. A server with `[ban]`
    /// does so without this call. Without `[ban]`, the bans of operators need it to last across restarts.
    pub fn keep_bans(&self) {
        // A process that takes over from another one has opened the store at its start. This call then does nothing.
        let takes_over = false;
        self.shared.registries.bans.open_store(&self.state_folder, takes_over);
    }

    /// Returns each address with a worker that has not confirmed the heartbeat of an earlier call. Sends a new
    /// heartbeat to the other workers. A call so soon after the last one that no worker had time to confirm returns all
    /// addresses.
    pub fn hung_workers(&self) -> Vec<Address> {
        let mut state = self.state();
        let listeners = state.listeners.iter_mut();
        let hung = listeners.filter_map(|(address, listener)| listener.is_hung().then(|| address.clone()));
        hung.collect()
    }

    /// Makes one worker panic, for tests of the restart.
    #[doc(hidden)]
    pub fn kill_worker(&self) {
        if let Some(listener) = self.state().listeners.values().next() {
            listener.kill_worker();
        }
    }
}

/// Returns an error if a site has no usable certificate.
fn check_certificates(snapshot: &Snapshot) -> Result<(), StartError> {
    let errors: Vec<_> = snapshot
        .certificate_errors()
        .take(MAX_REPORTED_ERRORS)
        .map(|(site, error)| format!("site {site}: {error}"))
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(StartError::Setup(errors.join("; ")))
    }
}

/// Maximum number of sites that the error of a rejected configuration lists.
const MAX_REPORTED_ERRORS: usize = 10;

/// Minimum cache size in bytes: even without memory for files, redirects and missing files are worth caching.
const NEGATIVE_CACHE: u64 = 4 << 20;

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
