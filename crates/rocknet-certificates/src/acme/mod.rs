//! Automatic HTTPS: certificates of public CAs, had and renewed by ACME (RFC 8555) on a thread of their own.
//!
//! Nobody waits for it. Sites are served with what the state folder holds; what comes from a CA is put on the shelf when
//! it is there.
//!
//! ```text
//! want ──watch──▶ keeper: what is due? ──▶ attempt: one CA after the other ──▶ order: place, prove, fetch, keep
//! a client came ──queue──▶ ask ──▶ keeper                                        └▶ challenge: http, tls-alpn, dns
//! ```

mod account;
mod ask;
mod attempt;
mod challenge;
mod chance;
mod clock;
pub(crate) mod dns;
mod http;
mod keeper;
mod order;
mod record;
mod schedule;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rocknet_config::model::{Acme, Challenge, Tls};
use tokio::sync::{mpsc, watch};

pub use clock::Clock;
use keeper::{Entry, Keeper, Wish};
use record::Record;

use super::storage::{FileStorage, Storage};
use super::{Authority, Issuer, Shelf, Wanted};
use rocknet_io::owned_thread::OwnedThread;

/// The issuer for public names.
pub struct AcmeIssuer {
    settings: Acme,
    storage: Arc<dyn Storage>,
    clock: Clock,
    wish: watch::Sender<Arc<Wish>>,
    /// Taken by the thread once there is something to do.
    seat: Option<Seat>,
    demand: mpsc::Sender<String>,
    listens: bool,
    thread: Option<OwnedThread>,
}

struct Seat {
    wish: watch::Receiver<Arc<Wish>>,
    demand: mpsc::Receiver<String>,
}

impl AcmeIssuer {
    pub fn start(state: &Path, tls: &Tls) -> io::Result<AcmeIssuer> {
        Ok(AcmeIssuer::with(
            Arc::new(FileStorage::new(state)),
            &tls.acme,
            Clock::default(),
        ))
    }

    pub fn with(storage: Arc<dyn Storage>, settings: &Acme, clock: Clock) -> AcmeIssuer {
        let (wish, seen) = watch::channel(Arc::default());
        let (demand, demanded) = mpsc::channel(MAX_DEMAND);
        AcmeIssuer {
            settings: settings.clone(),
            storage,
            clock,
            wish,
            seat: Some(Seat {
                wish: seen,
                demand: demanded,
            }),
            demand,
            listens: false,
            thread: None,
        }
    }

    fn wish(&self, wanted: &[Wanted]) -> Wish {
        let mut wish = Wish {
            settings: self.settings.clone(),
            ..Wish::default()
        };
        let proves_all = self.settings.dns.is_some() && self.settings.challenges.contains(&Challenge::Dns);
        for site in wanted.iter().filter(|site| site.authority == Authority::Acme) {
            for name in &site.names {
                match name.strip_prefix("*.") {
                    None => drop(wish.names.insert(name.clone())),
                    Some(_) if proves_all => drop(wish.names.insert(name.clone())),
                    Some(below) if self.settings.ask.is_some() => wish.below.push(below.to_owned()),
                    Some(_) => tracing::warn!(
                        "no certificate can be had for {name} of site {}: write dns below [tls], or ask",
                        site.site
                    ),
                }
            }
        }
        wish
    }

    /// What the storage has for the names that are wanted, those had on demand included.
    fn entries(&self, wish: &Wish) -> HashMap<String, Entry> {
        let now = self.clock.now();
        let on_demand = if wish.below.is_empty() {
            Vec::new()
        } else {
            record::kept(&*self.storage)
        };
        let on_demand = on_demand.into_iter().filter(|name| wish.covers(name));
        let names = wish.names.iter().cloned().chain(on_demand);
        names
            .map(|name| (name.clone(), Entry::load(&*self.storage, &name, now)))
            .collect()
    }

    fn listen(&mut self, shelf: &Arc<Shelf>) {
        if !std::mem::replace(&mut self.listens, true) {
            let demand = self.demand.clone();
            // A name that finds no place is asked for again by the next client.
            shelf.on_missing(move |name| drop(demand.try_send(name.to_owned())));
        }
    }

    fn start_thread(&mut self, entries: HashMap<String, Entry>, shelf: &Arc<Shelf>) {
        let Some(seat) = self.seat.take() else { return };
        let keeper = Keeper {
            storage: Arc::clone(&self.storage),
            clock: self.clock.clone(),
            shelf: Arc::clone(shelf),
            wish: seat.wish,
            demand: seat.demand,
            entries,
        };
        let run = move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                runtime.block_on(keeper.run());
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

    fn want(&mut self, wanted: &[Wanted], shelf: &Arc<Shelf>) {
        let wish = self.wish(wanted);
        let before = Arc::clone(&self.wish.borrow());
        let gone: Vec<String> = before.names.iter().filter(|name| !wish.covers(name)).cloned().collect();
        shelf.remove(&gone);
        if !wish.below.is_empty() {
            self.listen(shelf);
        }
        let nothing = wish.names.is_empty() && wish.below.is_empty();
        if self.seat.is_some() && nothing {
            return;
        }
        // What was wanted before is on the shelf.
        let mut entries = self.entries(&wish);
        entries.retain(|name, _| !before.names.contains(name));
        let records: Vec<(&String, &Record)> = entries
            .iter()
            .filter_map(|(name, entry)| Some((name, entry.record()?)))
            .collect();
        shelf.put_all(
            records
                .iter()
                .map(|(name, record)| (std::slice::from_ref(*name), record.set())),
        );
        self.wish.send_replace(Arc::new(wish));
        self.start_thread(entries, shelf);
    }

    /// The thread has a clock of its own.
    fn tick(&mut self, _: SystemTime, _: &Arc<Shelf>) {}

    fn stop(&mut self, deadline: Instant) -> bool {
        // Without its sender the thread returns, and drops the orders that are under way.
        self.wish = watch::channel(Arc::default()).0;
        self.thread.take().is_none_or(|thread| thread.join(deadline))
    }
}

/// Names that clients came with and nobody has looked at yet.
const MAX_DEMAND: usize = 64;
