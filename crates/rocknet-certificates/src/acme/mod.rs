//! Automatic HTTPS: certificates of public CAs, had and renewed by ACME (RFC 8555) on a thread of their own.
//!
//! NoCertificate waits for it. Sites are served with what the state folder holds; what comes from a CA is put on the store when
//! it is there.
//!
//! ```text
//! want ──watch──▶ keeper: what is due? ──▶ attempt: one CA after the other ──▶ order: place, prove, fetch, keep
//! a client came ──queue──▶ ask ──▶ keeper                                        └▶ challenge: http, tls-alpn, dns
//! ```

mod account;
mod challenge;
mod client;
mod clock;
pub(crate) mod dns;
mod https_client;
mod on_demand;
mod order;
mod persistence;
mod random;
mod renewal;
mod schedule;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rocknet_config::model::{Acme, Challenge, Tls};
use tokio::sync::{mpsc, watch};

pub use clock::Clock;
use persistence::StoredCertificate;
use renewal::{DesiredState, NameState, RenewalLoop};

use super::storage::{FileStorage, Storage};
use super::{Authority, CertificateRequest, CertificateStore, Issuer};
use rocknet_io::owned_thread::OwnedThread;

/// The issuer for public names.
pub struct AcmeIssuer {
    settings: Acme,
    storage: Arc<dyn Storage>,
    clock: Clock,
    desired: watch::Sender<Arc<DesiredState>>,
    /// Taken by the thread once there is something to do.
    receivers: Option<Receivers>,
    missing_names: mpsc::Sender<String>,
    is_subscribed: bool,
    thread: Option<OwnedThread>,
}

struct Receivers {
    desired: watch::Receiver<Arc<DesiredState>>,
    missing_names: mpsc::Receiver<String>,
}

impl AcmeIssuer {
    pub fn new(state_folder: &Path, tls: &Tls) -> io::Result<AcmeIssuer> {
        Ok(AcmeIssuer::with_storage(
            Arc::new(FileStorage::new(state_folder)),
            &tls.acme,
            Clock::default(),
        ))
    }

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

    fn desired_state(&self, requests: &[CertificateRequest]) -> DesiredState {
        let mut desired = DesiredState {
            settings: self.settings.clone(),
            ..DesiredState::default()
        };
        let proves_all = self.settings.dns.is_some() && self.settings.challenges.contains(&Challenge::Dns);
        for site in requests.iter().filter(|site| site.authority == Authority::Acme) {
            for name in &site.names {
                match name.strip_prefix("*.") {
                    None => drop(desired.names.insert(name.clone())),
                    Some(_) if proves_all => drop(desired.names.insert(name.clone())),
                    Some(parent) if self.settings.ask.is_some() => desired.wildcard_parents.push(parent.to_owned()),
                    Some(_) => tracing::warn!(
                        "no certificate can be had for {name} of site {}: write dns below [tls], or ask",
                        site.site
                    ),
                }
            }
        }
        desired
    }

    /// What the storage has for the names that are wanted, those had on demand included.
    fn entries(&self, desired: &DesiredState) -> HashMap<String, NameState> {
        let now = self.clock.now();
        let on_demand = if desired.wildcard_parents.is_empty() {
            Vec::new()
        } else {
            persistence::stored_names(&*self.storage)
        };
        let on_demand = on_demand.into_iter().filter(|name| desired.covers(name));
        let names = desired.names.iter().cloned().chain(on_demand);
        names
            .map(|name| (name.clone(), NameState::load(&*self.storage, &name, now)))
            .collect()
    }

    fn subscribe(&mut self, store: &Arc<CertificateStore>) {
        if !std::mem::replace(&mut self.is_subscribed, true) {
            let missing_names = self.missing_names.clone();
            // A name that finds no place is asked for again by the next client.
            store.on_missing(move |name| drop(missing_names.try_send(name.to_owned())));
        }
    }

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
                // A lookup of a name cannot be interrupted; its thread ends by itself.
                runtime.shutdown_background();
            }
            Err(error) => tracing::error!("no certificates can be had: {error}"),
        };
        match OwnedThread::start("rn-acme", run) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => tracing::error!("no certificates can be had: {error}"),
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
        let gone: Vec<String> = before
            .names
            .iter()
            .filter(|name| !desired.covers(name))
            .cloned()
            .collect();
        store.remove(&gone);
        if !desired.wildcard_parents.is_empty() {
            self.subscribe(store);
        }
        let nothing = desired.names.is_empty() && desired.wildcard_parents.is_empty();
        if self.receivers.is_some() && nothing {
            return;
        }
        // What was wanted before is on the store.
        let mut entries = self.entries(&desired);
        entries.retain(|name, _| !before.names.contains(name));
        let records: Vec<(&String, &StoredCertificate)> = entries
            .iter()
            .filter_map(|(name, entry)| Some((name, entry.record()?)))
            .collect();
        store.insert_all(
            records
                .iter()
                .map(|(name, record)| (std::slice::from_ref(*name), record.set())),
        );
        self.desired.send_replace(Arc::new(desired));
        self.start_thread(entries, store);
    }

    /// The thread has a clock of its own.
    fn renew_due(&mut self, _: SystemTime, _: &Arc<CertificateStore>) {}

    fn stop(&mut self, deadline: Instant) -> bool {
        // Without its sender the thread returns, and drops the orders that are under way.
        self.desired = watch::channel(Arc::default()).0;
        self.thread.take().is_none_or(|thread| thread.join(deadline))
    }
}

/// Names that clients came with and nobody has looked at yet.
const MAX_MISSING_NAMES: usize = 64;
