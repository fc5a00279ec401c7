//! Start of a server: binds its addresses, starts its components, and then its workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use rocknet_config::model::{Config, Log};
use rocknet_io::descriptors;
use rocknet_io::socket::{Address, Listener};

use super::{NEGATIVE_CACHE, Server, ServerState, StartError, check_certificates};
use crate::backend::BackendChoice;
use crate::bind::{QuicFailure, bind_all};
use crate::blocking::Pool;
use crate::capacity::{check_descriptors, connections_per_worker, worker_count};
use crate::certificates::resumption::{SessionStores, TicketSecrets};
use crate::certificates::{CertificateManager, state_folder};
use crate::clock::uptime_ms;
use crate::files::cache::FileCache;
use crate::gateway::accounts;
use crate::gateway::php;
use crate::limits::LimitSecrets;
use crate::listener::{ActiveListener, WorkerStart};
use crate::log::Logger;
use crate::metrics::Metrics;
use crate::protocol::remembered_settings;
use crate::registries::Registries;
use crate::snapshot::{Mount, Snapshot, quic_addresses};
use crate::spool;
use crate::takeover::AdoptedSockets;
use crate::transport::quic_secret::QuicKeys;
use crate::worker::Shared;

/// Hooks that a program runs during the start of a server. `()` runs no hooks.
pub trait StartHooks {
    /// Returns the sockets that the server adopts from a previous process or from the service manager. Called first,
    /// and once. Sockets of the service manager that no site listens on are closed, with a warning.
    fn adopted_sockets(&mut self) -> AdoptedSockets {
        AdoptedSockets::default()
    }

    /// Returns the secrets of the session tickets of a previous process; `None` to create new ones. Called once.
    fn ticket_secrets(&mut self) -> Option<TicketSecrets> {
        None
    }

    /// Returns the secrets of the tables of clients (limits, offences, wrong passwords) of a previous process; `None`
    /// to create new ones. Called once.
    fn limit_secrets(&mut self) -> Option<LimitSecrets> {
        None
    }

    /// Called after the addresses are bound and before threads are started, so that it can drop privileges.
    ///
    /// # Errors
    ///
    /// Returns the error message of the failed start.
    fn before_threads(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Called once the logs are open, before anything is logged.
    fn log_opened(&mut self, _log: &Log, _logger: &Logger) {}

    /// Called when everything but the workers has started. Afterwards the server accepts connections. In an upgrade,
    /// the hook waits until the previous process permits the start. `_sessions`: stores to which the sessions of a
    /// previous process are added. `_registries`: registries to which the limits and offences of its clients are added.
    /// `_unused_udp`: addresses of the previous process whose UDP sockets this server does not read.
    ///
    /// # Errors
    ///
    /// Returns the error message of the failed start.
    fn before_serving(
        &mut self,
        _sessions: &SessionStores,
        _registries: &Registries,
        _unused_udp: &[Address],
    ) -> Result<(), String> {
        Ok(())
    }
}

impl StartHooks for () {}

impl Server {
    /// Binds every address and starts the workers.
    ///
    /// # Errors
    ///
    /// Fails if an address cannot be bound, a hook fails, the configuration cannot be applied, or a thread cannot be
    /// started.
    pub fn start(mut config: Config, mounts: Vec<Mount>, hooks: &mut dyn StartHooks) -> Result<Server, StartError> {
        // The uptime counts from here.
        uptime_ms();
        descriptors::raise();
        let mut adopted = hooks.adopted_sockets();
        let addresses = crate::snapshot::addresses(&config);
        // Determined once, because the default folder changes when `before_threads` changes the user.
        let state_folder = state_folder(&config);
        let quic = quic_addresses(&config);
        let (quic_keys, mut quic_failures) = (QuicKeys::new(&state_folder, adopted.generation()), Vec::new());
        if !quic.is_empty() {
            // Loads the keys before privileges are dropped, because creating the state folder may require privileges.
            quic_keys.get().map_err(StartError::Io)?;
        }
        let workers = worker_count(&config, addresses.len());
        check_descriptors(workers * addresses.len()).map_err(StartError::Setup)?;
        let mut bound = bind_all(
            &addresses,
            workers,
            &[],
            &mut adopted,
            &quic,
            &quic_keys,
            &mut quic_failures,
        )
        .map_err(StartError::Bind)?;
        let quic: BTreeSet<Address> = bound
            .iter()
            .filter(|(_, sockets)| !sockets.quic.is_empty())
            .map(|(address, _)| address.clone())
            .collect();
        let secrets = hooks.ticket_secrets();
        let certificates = CertificateManager::start(&config, &state_folder, secrets).map_err(StartError::Setup)?;
        // Private keys are read before privileges are dropped. The variable keeps them in memory until the snapshot
        // refers to them.
        let _files = certificates.read_files(&config);
        hooks.before_threads().map_err(StartError::Setup)?;
        // Checked with the privileges that the workers will have.
        let backend = BackendChoice::new(config.server.backend).map_err(StartError::Setup)?;

        let logger =
            Logger::start(&config.log).map_err(|error| StartError::Setup(format!("cannot open the log: {error}")))?;
        hooks.log_opened(&config.log, &logger);
        quic_keys.log_warning();
        quic_failures.iter().for_each(QuicFailure::log);
        for unused in adopted.close_unused() {
            tracing::warn!("a socket of the service manager is not used: {unused}");
        }
        // The processes that run PHP are started with the privileges of the workers.
        accounts::apply_default(&mut config);
        let php = php::PhpManager::new(state_folder.clone());
        let php_plan = php.plan(&mut config).map_err(StartError::Setup)?;
        let limit_secrets = hooks.limit_secrets().unwrap_or_else(LimitSecrets::random);
        let registries = Arc::new(Registries::new(Arc::clone(php.sockets()), limit_secrets));
        registries.url_keys.open(&state_folder);
        // Clients of HTTP/3 remember these settings for early data.
        let remembered = remembered_settings(&config.limits);
        registries.oidc.prepare(&config, &state_folder);
        let snapshot = Snapshot::new(config, &mounts, &logger, &certificates, &registries, &quic, &remembered)
            .map_err(StartError::Setup)?;
        if adopted.is_takeover() {
            // A site that the previous process serves would lose TLS.
            check_certificates(&snapshot)?;
        }
        let snapshot = Arc::new(snapshot);
        let config = &snapshot.config;
        // The pool starts even without files in the configuration, because a reload may add some.
        let pool = Pool::new(config.server.blocking_threads.max(1));
        let cache = FileCache::start(config.cache.memory.max(NEGATIVE_CACHE), pool.clone()).map_err(StartError::Io)?;
        registries.set_response_memory(config);
        registries.set_response_disk(config, &state_folder);
        registries.bans.configure(config).map_err(StartError::Io)?;
        certificates.manage(config).map_err(StartError::Io)?;
        php.apply(php_plan).map_err(StartError::Io)?;
        let shared = Shared {
            backend: backend.backend,
            spool: spool::Store::new(pool.clone()),
            pool,
            cache,
            logger,
            certificates,
            registries,
        };
        let threads = bound.values().map(|sockets| sockets.tcp.len()).sum::<usize>().max(1);
        let connections = connections_per_worker(&snapshot, threads);

        hooks
            .before_serving(&shared.certificates.sessions, &shared.registries, &adopted.unused_udp())
            .map_err(StartError::Setup)?;
        // In an upgrade, the previous process can add and lift bans until it permits the start, for which
        // `before_serving` has waited. A takeover opens the store even without `[ban]`, because operators can add bans
        // without it, and this process has to own the store before it serves.
        if config.ban.is_some() || adopted.is_takeover() {
            shared.registries.bans.open_store(&state_folder, adopted.is_takeover());
        }
        bound
            .values()
            .flat_map(|sockets| &sockets.tcp)
            .for_each(Listener::own_socket_file);
        let relays = adopted.all_relays().to_vec();
        adopted.close_rest();
        let metrics = Metrics::default();
        let start = WorkerStart {
            connections,
            shared: &shared,
            metrics: &metrics,
            snapshot: &snapshot,
        };
        let mut listeners = BTreeMap::new();
        while let Some((address, sockets)) = bound.pop_first() {
            let listener = ActiveListener::start(&address, sockets, &start).map_err(StartError::Io)?;
            listeners.insert(address, listener);
        }
        let state = Mutex::new(ServerState {
            snapshot,
            listeners,
            stopping: Vec::new(),
            reloads: 0,
            failed_reloads: 0,
            last_reload_error: None,
        });
        Ok(Server {
            backend,
            shared,
            metrics,
            quic_keys,
            mounts,
            state,
            php,
            relays,
            state_folder,
        })
    }
}
