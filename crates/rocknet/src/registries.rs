//! State that one server shares among its workers and keeps across reloads, with its background threads.
//!
//! ```text
//! Server ──▶ Registries ◀── Worker (in Shared)
//!              ├─ time        clock of all workers
//!              ├─ upstreams   upstream servers: health, circuit breakers, queues; threads rn-upstreams and rn-mirror
//!              ├─ backends    application servers and idle connections
//!              ├─ programs    permits for CGI programs; thread rn-cgi, which kills them at their time limit
//!              ├─ libraries   controllers; a process and a thread rn-isolated for each isolated library
//!              ├─ folders     open folders of sites
//!              ├─ responses   stored responses of proxies and applications; thread rn-responses, which writes to disk,
//!              │              and threads that read there
//!              ├─ access      verified passwords, and clients that guess passwords
//!              ├─ auth_counters  outcomes of forward authentication, logins and signed URLs
//!              ├─ oidc        keys of cookies, and providers of logins; thread rn-oidc
//!              ├─ bans        banned clients, and offences of clients; thread rn-bans
//!              ├─ url_keys    key of signed URLs, which the server generates
//!              ├─ limits      clients that have used up a part of a limit
//!              ├─ filters     steps that responses pass, with a limit on files that are encoded while they are sent
//!              ├─ archive_limit  limit on folders that are sent as zip archives
//!              ├─ qlog        traces of QUIC connections; thread rn-qlog
//!              ├─ routes      numbers of routes, for their metrics
//!              └─ traces      spans on their way to a collector; thread rn-traces
//! ```
//! A snapshot uses the registries while its sites and endpoints are built.
//!
//! Two servers in one process share none of this state. The following values belong to the process and remain static:
//! - `clock::uptime_ms`: the start of the monotonic clock, a constant once it is set.
//! - `accounts`: the privileges that the process dropped, the helper that kept them, and the helper's program.
//! - `controller::isolated`: the program that runs isolated libraries, and, within the process of such a library, its
//!   connection to the server.
//! - `controller::private_copy`: names for the dynamic loader, which has one set of names per process.
//! - `rocknet_controller::host`: the receiver of libraries' log lines that belong to no request.
//! - `log::throttle`: `tracing` has one dispatcher per process, so error lines are counted per process too.
//! - `rocknet_handler::port_exhaustion`: destinations without a free local port. Ports belong to the machine, so the
//!   result of one server holds for every other.
//! - `certificates::inspection` and `files::load`: the system's root certificates and the plain error pages, created
//!   once and constant.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use rocknet_access::State;
use rocknet_cache::Responses;
use rocknet_config::model::{Config, ResponseDisk, Site};
use rocknet_handler::filter::Filters;
use rocknet_telemetry::TraceExporter;

use crate::bans::Bans;
use crate::clock::TimeSource;
use crate::files::archive::ArchiveLimit;
use crate::files::encode::EncoderLimit;
use crate::files::open_folder::{OpenFolders, most_open_folders};
use crate::filter;
use crate::gateway::cgi::Processes;
use crate::gateway::gateway::Backends;
use crate::gateway::php;
use crate::handler::controller::Libraries;
use crate::limits::{LimitRegistry, LimitSecrets};
use crate::metrics::{AuthCounters, RouteLabels};
use crate::oidc::OidcRegistry;
use crate::proxy::{Dialer, Upstreams};
use crate::qlog::QlogWriter;
use crate::url_keys::UrlKeyStore;

/// The registries of one server.
pub struct Registries {
    /// Clock of all workers.
    pub time: TimeSource,
    /// Upstream servers of the proxy.
    pub upstreams: Arc<Upstreams>,
    /// Application servers, including those that run PHP.
    pub backends: Backends,
    /// Running CGI programs.
    pub programs: Arc<Processes>,
    /// Libraries of controllers.
    pub libraries: Libraries,
    /// Open folders of the sites.
    pub folders: Arc<OpenFolders>,
    /// Stored responses of proxies and applications. A reload keeps them.
    pub responses: Arc<Responses>,
    /// State of access control. A reload keeps it, so that verified passwords are not verified again, and clients that
    /// guess passwords remain blocked.
    pub access: Arc<State>,
    /// Outcomes of forward authentication, logins and signed URLs, by site.
    pub auth_counters: AuthCounters,
    /// Logins by OpenID Connect. A reload keeps their keys and providers.
    pub oidc: OidcRegistry,
    /// Banned clients, and offences of clients. A reload keeps them.
    pub bans: Arc<Bans>,
    /// Key of signed URLs, which the server generates.
    pub url_keys: UrlKeyStore,
    /// Limits of requests. A reload keeps them, so that clients do not start again.
    pub limits: LimitRegistry,
    /// Secrets of `limits`, `bans` and `access`, which an upgrade passes on with their entries.
    pub limit_secrets: LimitSecrets,
    /// Filters that responses pass before they are sent.
    pub filters: Filters,
    /// Limit on the number of files that are encoded at the same time while they are sent.
    pub encoder_limit: EncoderLimit,
    /// Limit on the number of folders that are sent as zip archives at the same time.
    pub archive_limit: ArchiveLimit,
    /// Writer of the traces of QUIC connections.
    pub qlog: Arc<QlogWriter>,
    /// Numbers of the routes, for their metrics.
    pub routes: Arc<RouteLabels>,
    /// Exporter of the traces of requests.
    pub traces: TraceExporter,
    /// ID of the next directory tree.
    tree_ids: AtomicU32,
    /// Number of the next snapshot.
    generations: AtomicU64,
    /// Shared with each snapshot, so that its references count the snapshots in memory.
    snapshots: Arc<()>,
}

impl Registries {
    /// Creates the registries without starting a thread. `php`: states of the sockets of the php-fpm processes that
    /// this server runs. `limit_secrets`: secrets of the process that this one replaces, or new ones.
    pub fn new(php: Arc<php::PhpSockets>, limit_secrets: LimitSecrets) -> Registries {
        let time = TimeSource::default();
        Registries::with(Upstreams::new(time.clone()), php, time, limit_secrets)
    }

    /// Creates registries for a simulation: with a simulated clock, and with links from `dialer` in place of sockets to
    /// upstreams.
    pub fn simulated(time: TimeSource, dialer: Arc<dyn Dialer>) -> Registries {
        let upstreams = Upstreams::with_dialer(time.clone(), dialer);
        Registries::with(upstreams, Arc::default(), time, LimitSecrets::random())
    }

    /// Creates the registries with these upstreams, PHP sockets, clock and secrets.
    fn with(
        upstreams: Upstreams,
        php: Arc<php::PhpSockets>,
        time: TimeSource,
        limit_secrets: LimitSecrets,
    ) -> Registries {
        let encoder_limit = EncoderLimit::default();
        Registries {
            upstreams: Arc::new(upstreams),
            backends: Backends::new(php, time.clone()),
            programs: Arc::default(),
            libraries: Libraries::default(),
            folders: Arc::new(OpenFolders::new(most_open_folders())),
            responses: Arc::default(),
            access: State::new(limit_secrets.access_key()),
            auth_counters: AuthCounters::default(),
            oidc: OidcRegistry::default(),
            bans: Arc::new(Bans::new(limit_secrets.seed.clone())),
            url_keys: UrlKeyStore::default(),
            limits: LimitRegistry::new(limit_secrets.seed.clone()),
            limit_secrets,
            filters: filter::all(&encoder_limit),
            encoder_limit,
            archive_limit: ArchiveLimit::default(),
            qlog: Arc::default(),
            routes: Arc::default(),
            traces: TraceExporter::default(),
            tree_ids: AtomicU32::new(0),
            generations: AtomicU64::new(0),
            snapshots: Arc::default(),
            time,
        }
    }

    /// Sets the memory of stored responses to that of a configuration.
    pub fn set_response_memory(&self, config: &Config) {
        let own = config.sites.iter().filter_map(|site| {
            let memory = site.settings.cache.as_ref()?.memory?;
            Some((&*site.name, memory))
        });
        self.responses.set_sizes(config.cache.responses, own);
    }

    /// Stores responses on disk as a configuration demands. `state_folder`: state folder of the server.
    pub fn set_response_disk(&self, config: &Config, state_folder: &Path) {
        let folder = config.cache.responses_folder.as_deref().unwrap_or(state_folder);
        // With memory 0, no response is stored.
        let size = match config.cache.responses {
            0 => 0,
            _ => config.cache.responses_disk,
        };
        let quotas = config
            .sites
            .iter()
            .filter_map(|site| Some((&*site.name, disk_quota(site)?)));
        if let Err(error) = self.responses.set_disk(&folder.join("responses"), size, quotas) {
            tracing::error!("responses are not stored on disk, because a thread cannot be started: {error}");
        }
    }

    /// Returns a new ID for a directory tree. Cached responses carry it, so a server never uses an ID twice.
    pub fn next_tree_id(&self) -> u32 {
        self.tree_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of the next snapshot.
    pub fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a value that counts a snapshot until it is dropped.
    pub fn snapshot_token(&self) -> Arc<()> {
        Arc::clone(&self.snapshots)
    }

    /// Returns the number of snapshots in memory.
    pub fn snapshots(&self) -> usize {
        // One reference is the field itself.
        Arc::strong_count(&self.snapshots) - 1
    }

    /// Ends every thread and every child process of the registries. Must be called after the last request, because it
    /// cuts requests that still use a thread or process. Returns true if all have ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        // Each registry is stopped, even if an earlier one missed the deadline.
        let ended = [
            self.upstreams.stop(deadline),
            self.programs.stop(deadline),
            self.libraries.stop(deadline),
            self.qlog.stop(deadline),
            self.traces.stop(deadline),
            self.bans.stop(deadline),
            self.responses.stop(deadline),
            self.oidc.stop(deadline),
        ];
        self.backends.close_all_idle();
        ended.into_iter().all(|ended| ended)
    }
}

/// Returns the maximum size of the responses of a site on disk, in bytes; `None`: only the size of all is limited.
fn disk_quota(site: &Site) -> Option<u64> {
    match site.settings.cache.as_ref()?.disk {
        ResponseDisk::Quota(size) => Some(size),
        ResponseDisk::Shared => None,
        ResponseDisk::Off => {
            let mut routes = site.routes.iter().filter_map(|route| route.settings.cache.as_ref());
            // If no route stores responses on disk either, the quota 0 drops those of earlier configurations.
            routes.all(|cache| cache.disk == ResponseDisk::Off).then_some(0)
        }
    }
}

impl Default for Registries {
    fn default() -> Registries {
        Registries::new(Arc::default(), LimitSecrets::random())
    }
}
