//! What one server shares among its workers and from one configuration to the next, with the threads behind it.
//!
//! ```text
//! Server ──▶ Registries ◀── Worker (by Shared)      Snapshot ▶ Site ▶ Endpoint take what they need when they are made
//!              ├─ upstreams   who is proxied to: health, circuits, queues; the threads rn-upstreams and rn-mirror
//!              ├─ backends    application servers and connections at rest
//!              ├─ programs    places for CGI programs, and the thread rn-cgi that ends them
//!              ├─ libraries   controllers, with a process and a thread rn-isolated for each isolated library
//!              ├─ folders     open folders of sites
//!              └─ access      verified passwords, and clients that guess them
//! ```
//! Two servers in one process share none of it. These values belong to the process by nature and stay static:
//! - `clock::uptime_ms`: the start of the monotonic clock, a constant once it is set.
//! - `accounts`: the rights that the process gave up, the helper that kept them, and the program that serves as helper.
//! - `controller::isolated`: the program that runs libraries, and in such a process its only connection to the server.
//! - `controller::image`: names for the dynamic loader, which knows one set of names for the whole process.
//! - `log::throttle`: `tracing` has one dispatcher for the process, so error lines are counted for the process too.
//! - `handler::port_exhaustion`: destinations without a free local port. Ports belong to the machine, so what one server learns of a
//!   destination holds for every other.
//! - `certificates::inspection` and `files::load`: the roots of the system and the plain error pages, made once and
//!   never changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use aws_lc_rs::rand;
use rocknet_access::State;
use rocknet_handler::filter::Filters;

use crate::clock::TimeSource;
use crate::files::encode::Streams;
use crate::files::open_folder::{OpenFolders, most_open_folders};
use crate::filter;
use crate::gateway::cgi::Processes;
use crate::gateway::gateway::Backends;
use crate::gateway::php;
use crate::handler::controller::Libraries;
use crate::proxy::{Dialer, Upstreams};

/// The registries of one server.
pub struct Registries {
    /// The clock of all workers.
    pub time: TimeSource,
    pub upstreams: Arc<Upstreams>,
    pub backends: Backends,
    pub programs: Arc<Processes>,
    pub libraries: Libraries,
    pub folders: Arc<OpenFolders>,
    /// Outlives a reload, which thus verifies no password again and frees no client that guesses.
    pub access: Arc<State>,
    /// What responses pass before they are sent.
    pub filters: Filters,
    /// Files that are encoded while they are sent.
    pub streams: Streams,
    tree_ids: AtomicU32,
    generations: AtomicU64,
}

impl Registries {
    /// Starts nothing. `php`: what is known of the PHP that this server runs itself.
    pub fn new(php: Arc<php::PhpSockets>) -> Registries {
        let time = TimeSource::default();
        Registries::with(Upstreams::new(time.clone()), php, time)
    }

    /// For a simulation: by a clock of its own, with links to upstreams in place of sockets.
    pub fn simulated(time: TimeSource, dialer: Arc<dyn Dialer>) -> Registries {
        Registries::with(Upstreams::with_dialer(time.clone(), dialer), Arc::default(), time)
    }

    fn with(upstreams: Upstreams, php: Arc<php::PhpSockets>, time: TimeSource) -> Registries {
        let streams = Streams::default();
        Registries {
            upstreams: Arc::new(upstreams),
            backends: Backends::new(php, time.clone()),
            programs: Arc::default(),
            libraries: Libraries::default(),
            folders: Arc::new(OpenFolders::new(most_open_folders())),
            access: State::new(random_key()),
            filters: filter::all(&streams),
            streams,
            tree_ids: AtomicU32::new(0),
            generations: AtomicU64::new(0),
            time,
        }
    }

    /// The next number of a tree of files. None is used twice in a server, because cached answers carry it.
    pub fn next_tree_id(&self) -> u32 {
        self.tree_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The next number of a snapshot.
    pub fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends every thread and every child process of the registries. Called after the last request: what still uses one of
    /// them is cut. Returns whether all had ended at `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        // All of them: none is skipped because one before it was late.
        let ended = [
            self.upstreams.stop(deadline),
            self.programs.stop(deadline),
            self.libraries.stop(deadline),
        ];
        self.backends.close_all_idle();
        ended.into_iter().all(|ended| ended)
    }
}

/// A key that this server alone knows. Generators of random numbers do not fail once the system runs.
fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    rand::fill(&mut key).expect("the system gives random numbers");
    key
}

impl Default for Registries {
    fn default() -> Registries {
        Registries::new(Arc::default())
    }
}
