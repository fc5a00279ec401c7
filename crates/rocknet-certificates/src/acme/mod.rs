//! Automatic HTTPS: certificates of public CAs, ordered and renewed with ACME (RFC 8555) on the thread `rn-acme`.
//!
//! Neither the start of the server nor a reload waits for this thread. Sites are served with the certificates in the
//! state folder. New certificates are inserted into the store when they are issued.
//!
//! ```text
//! set_requests ──watch──▶ renewal: what is due? ──▶ client: each CA in turn ──▶ order: create, validate, fetch, save
//! missing name ──queue──▶ on_demand ──▶ renewal                                    └▶ challenge: http, tls-alpn, dns
//! ```

mod account;
mod challenge;
mod client;
mod clock;
mod desired_state;
pub(crate) mod dns;
mod https_client;
mod name_state;
mod on_demand;
mod order;
mod persistence;
mod random;
mod renewal;
mod schedule;
mod stored;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rocknet_config::model::{Acme, Challenge, Tls};
use tokio::sync::{mpsc, watch};

pub use clock::Clock;
use desired_state::DesiredState;
use name_state::NameState;
use persistence::StoredCertificate;
use renewal::RenewalLoop;
pub use stored::{StoredState, stored_state};

use super::storage::{FileStorage, Storage};
use super::{Authority, CertificateRequest, CertificateStore, Issuer};
use rocknet_io::owned_thread::OwnedThread;

/// Issuer of certificates for public names, which uses ACME.
pub struct AcmeIssuer {
    settings: Acme,
    storage: Arc<dyn Storage>,
    clock: Clock,
    desired: watch::Sender<Arc<DesiredState>>,
    /// Receivers for the thread; `None` once the thread has started.
    receivers: Option<Receivers>,
    /// Queue of names that clients requested and that have no certificate.
    missing_names: mpsc::Sender<String>,
    /// True once the store reports missing names to this issuer.
    is_subscribed: bool,
    thread: Option<OwnedThread>,
}

/// Receiving ends for the thread.
struct Receivers {
    desired: watch::Receiver<Arc<DesiredState>>,
    missing_names: mpsc::Receiver<String>,
}

impl AcmeIssuer {
    /// Creates an issuer that keeps its state below `state_folder`. Starts no thread, and does not access the folder.
    pub fn new(state_folder: &Path, tls: &Tls) -> AcmeIssuer {
        AcmeIssuer::with_storage(Arc::new(FileStorage::new(state_folder)), &tls.acme, Clock::default())
    }

    /// Creates an issuer with this storage and clock.
    pub fn with_storage(storage: Arc<dyn Storage>, settings: &Acme, clock: Clock) -> AcmeIssuer {
        let (desired, desired_receiver) = watch::channel(Arc::default());
        let (missing_names, receiver) = mpsc::channel(MAX_MISSING_NAMES);
        AcmeIssuer {
            settings: settings.clone(),
            storage,
            clock,
            desired,
            receivers: Some(Receivers {
                desired: desired_receiver,
                missing_names: receiver,
            }),
            missing_names,
            is_subscribed: false,
            thread: None,
        }
    }

    /// Returns the names that need a certificate of a public CA. If a wildcard cannot be validated but `ask` is set,
    /// names below it are ordered on demand instead.
    fn desired_state(&self, requests: &[CertificateRequest]) -> DesiredState {
        let mut desired = DesiredState {
            settings: self.settings.clone(),
            ..DesiredState::default()
        };
        let can_validate_wildcards = self.settings.dns.is_some() && self.settings.challenges.contains(&Challenge::Dns);
        for site in requests.iter().filter(|site| site.authority == Authority::Acme) {
            for name in &site.names {
                match name.strip_prefix("*.") {
                    None => drop(desired.names.insert(name.clone())),
                    Some(_) if can_validate_wildcards => drop(desired.names.insert(name.clone())),
                    Some(parent) if self.settings.ask.is_some() => desired.wildcard_parents.push(parent.to_owned()),
                    Some(_) => tracing::warn!(
                        "site {}: no certificate can be ordered for {name}; set `ask` in [tls], or set `dns` and, if \
                         `challenge` is set, add `dns-01` to it",
                        site.site
                    ),
                }
            }
        }
        desired
    }

    /// Loads the state of all requested names, including those ordered on demand.
    fn entries(&self, desired: &DesiredState) -> HashMap<String, NameState> {
        let now = self.clock.now();
        let names = desired.known_names(&*self.storage).into_iter();
        names
            .map(|name| {
                let state = NameState::load(&*self.storage, &name, now);
                (name, state)
            })
            .collect()
    }

    /// Registers with the store for missing names, at the first call only.
    fn subscribe(&mut self, store: &Arc<CertificateStore>) {
        if !std::mem::replace(&mut self.is_subscribed, true) {
            let missing_names = self.missing_names.clone();
            // If the queue is full, the name is dropped. The store reports it again when the next client requests it.
            store.on_missing(move |name| drop(missing_names.try_send(name.to_owned())));
        }
    }

    /// Starts the thread, unless an earlier call has started it. `entries` is its initial state.
    fn start_thread(&mut self, entries: HashMap<String, NameState>, store: &Arc<CertificateStore>) {
        let Some(receivers) = self.receivers.take() else { return };
        let renewal = RenewalLoop {
            storage: Arc::clone(&self.storage),
            clock: self.clock.clone(),
            store: Arc::clone(store),
            desired: receivers.desired,
            missing_names: receivers.missing_names,
            entries,
        };
        let run = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                runtime.block_on(renewal.run());
                // A DNS lookup cannot be interrupted; its thread ends by itself.
                runtime.shutdown_background();
            }
            Err(error) => tracing::error!("certificates cannot be ordered: {error}"),
        };
        match OwnedThread::start("rn-acme", run) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => tracing::error!("certificates cannot be ordered: {error}"),
        }
    }
}

impl Issuer for AcmeIssuer {
    fn authority(&self) -> Authority {
        Authority::Acme
    }

    fn configure(&mut self, tls: &Tls) {
        self.settings = tls.acme.clone();
    }

    fn set_requests(&mut self, requests: &[CertificateRequest], store: &Arc<CertificateStore>) {
        let desired = self.desired_state(requests);
        let before = Arc::clone(&self.desired.borrow());
        let removed: Vec<String> = before
            .names
            .iter()
            .filter(|name| !desired.covers(name))
            .cloned()
            .collect();
        store.remove(&removed);
        if !desired.wildcard_parents.is_empty() {
            self.subscribe(store);
        }
        let is_empty = desired.names.is_empty() && desired.wildcard_parents.is_empty();
        // The thread is not started before a name is requested.
        if self.receivers.is_some() && is_empty {
            return;
        }
        // Names that were requested before are in the store already.
        let mut entries = self.entries(&desired);
        entries.retain(|name, _| !before.names.contains(name));
        let records: Vec<(&String, &StoredCertificate)> = entries
            .iter()
            .filter_map(|(name, entry)| Some((name, entry.record()?)))
            .collect();
        store.insert_all(
            records
                .iter()
                .map(|(name, record)| (std::slice::from_ref(*name), record.certificate_set())),
        );
        self.desired.send_replace(Arc::new(desired));
        self.start_thread(entries, store);
    }

    /// Does nothing, because the thread of this issuer has its own timer.
    fn renew_due(&mut self, _: SystemTime, _: &Arc<CertificateStore>) {}

    fn stop(&mut self, deadline: Instant) -> bool {
        // Dropping the sender stops the thread, which drops the orders in progress.
        self.desired = watch::channel(Arc::default()).0;
        self.thread.take().is_none_or(|thread| thread.join(deadline))
    }
}

/// Maximum number of missing names in the queue.
const MAX_MISSING_NAMES: usize = 64;
