//! The thread that keeps certificates of public CAs: what is wanted, what is due, what is under way.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocknet_config::model::Acme;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::account::Accounts;
use super::ask;
use super::attempt::{Failed, Office};
use super::chance::chance;
use super::clock::Clock;
use super::record::{Failures, Record};
use super::schedule::{self, Life};
use crate::Shelf;
use crate::storage::{Lock, Storage};

/// What sites want, as of the latest configuration.
#[derive(Default)]
pub struct Wish {
    pub settings: Acme,
    pub names: BTreeSet<String>,
    /// What follows `*.` where names below it are had one by one, when somebody comes for them.
    pub below: Vec<String>,
}

impl Wish {
    pub fn covers(&self, name: &str) -> bool {
        let below = |below: &String| {
            name.strip_suffix(below.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        };
        self.names.contains(name) || self.below.iter().any(below)
    }
}

pub struct Keeper {
    pub storage: Arc<dyn Storage>,
    pub clock: Clock,
    pub shelf: Arc<Shelf>,
    pub wish: watch::Receiver<Arc<Wish>>,
    /// Names that clients came with.
    pub demand: mpsc::Receiver<String>,
    pub entries: HashMap<String, Entry>,
}

/// A name and where its certificate stands.
pub struct Entry {
    record: Option<Record>,
    renew_at: SystemTime,
    /// What the CA suggests, and when it is asked again.
    window: Option<(SystemTime, SystemTime)>,
    ask_window_at: SystemTime,
    failures: Failures,
    busy: bool,
    /// Drawn once for each certificate, so that its renewal does not move to and fro.
    chance: f64,
}

/// What a task brings back.
enum Done {
    Obtained(String, Result<Record, Failed>),
    Window(String, Option<((SystemTime, SystemTime), Duration)>),
    Asked(String, Result<bool, String>),
}

impl Keeper {
    pub async fn run(mut self) {
        let mut running = JoinSet::new();
        let mut office = self.office(&Arc::default());
        let mut denied: HashMap<String, SystemTime> = HashMap::new();
        let mut lock = None;
        self.wish.mark_changed();
        loop {
            if self.wish.has_changed().unwrap_or(false) {
                office = self.take_wish(&office);
                denied.clear();
            }
            // One process of those that share a state folder works with CAs; the others serve what it gets.
            if lock.is_none() {
                lock = self.lock();
                if lock.is_none() {
                    self.look_again();
                }
            }
            let now = self.clock.now();
            let next = match &lock {
                Some(_) => self.start_due(&office, &mut running, now),
                None => now + NEXT_LOCK,
            };
            tokio::select! {
                changed = self.wish.changed() => match changed {
                    Ok(()) => self.wish.mark_changed(),
                    // The server has stopped.
                    Err(_) => return,
                },
                Some(name) = self.demand.recv() => {
                    if lock.is_some() {
                        self.demanded(name, &mut denied, &mut running);
                    }
                }
                Some(done) = running.join_next(), if !running.is_empty() => match done {
                    Ok(done) => self.finish(done, &mut denied),
                    Err(error) => {
                        tracing::error!("an attempt at a certificate died: {error}");
                        self.entries.values_mut().for_each(|entry| entry.busy = false);
                    }
                },
                () = self.clock.wait_until(next) => {}
            }
        }
    }

    fn lock(&self) -> Option<Lock> {
        match self.storage.lock("acme/acme") {
            Ok(lock) => lock,
            Err(error) => {
                tracing::error!("no certificates can be had: the state folder: {error}");
                None
            }
        }
    }

    /// Accounts stay open as long as what they are opened with stays.
    fn take_wish(&mut self, old: &Arc<Office>) -> Arc<Office> {
        let wish = Arc::clone(&self.wish.borrow_and_update());
        let gone = self.entries.keys().filter(|name| !wish.covers(name));
        let gone: Vec<String> = gone.cloned().collect();
        self.shelf.remove(&gone);
        gone.iter().for_each(|name| drop(self.entries.remove(name)));
        for name in &wish.names {
            if !self.entries.contains_key(name) {
                let entry = Entry::load(&*self.storage, name, self.clock.now());
                self.entries.insert(name.clone(), entry);
            }
        }
        if old.settings == wish.settings {
            return Arc::clone(old);
        }
        // What was in the way may have been put right: nobody who reloads wants to wait.
        for entry in self.entries.values_mut() {
            entry.failures.next_try = 0;
        }
        self.office(&wish)
    }

    fn office(&self, wish: &Arc<Wish>) -> Arc<Office> {
        Arc::new(Office {
            settings: wish.settings.clone(),
            storage: Arc::clone(&self.storage),
            shelf: Arc::clone(&self.shelf),
            clock: self.clock.clone(),
            accounts: Accounts::new(Arc::clone(&self.storage), &wish.settings),
            rests: Arc::default(),
        })
    }

    /// What the process that works with CAs has got meanwhile.
    fn look_again(&mut self) {
        for (name, entry) in &mut self.entries {
            if let Ok(Some(record)) = Record::load(&*self.storage, name)
                && entry.record.as_ref().is_none_or(|old| old.leaf != record.leaf)
            {
                self.shelf.put(std::slice::from_ref(name), record.set());
                entry.take(record);
            }
        }
    }

    /// Starts what is due, a few at a time, and says when to look again.
    fn start_due(&mut self, office: &Arc<Office>, running: &mut JoinSet<Done>, now: SystemTime) -> SystemTime {
        let mut next = now + NEXT_LOOK;
        for (name, entry) in &mut self.entries {
            if entry.busy {
                continue;
            }
            let due = entry.renew_at.max(entry.failures.next_try());
            let asks = entry.record.is_some() && entry.ask_window_at < due;
            let at = if asks { entry.ask_window_at } else { due };
            if at > now {
                next = next.min(at);
                continue;
            }
            if running.len() >= MAX_AT_ONCE {
                // The end of one wakes us.
                break;
            }
            entry.busy = true;
            let (office, name, old) = (Arc::clone(office), name.clone(), entry.record.clone());
            match (asks, old) {
                (true, Some(record)) => running.spawn(async move {
                    let window = office.window(&record).await;
                    Done::Window(name, window)
                }),
                (_, old) => {
                    let failures = entry.failures.count;
                    running.spawn(async move {
                        let done = office.obtain(&name, failures, old.as_ref()).await;
                        Done::Obtained(name, done)
                    })
                }
            };
        }
        next
    }

    fn finish(&mut self, done: Done, denied: &mut HashMap<String, SystemTime>) {
        let now = self.clock.now();
        match done {
            Done::Obtained(name, done) => {
                let Some(entry) = self.entries.get_mut(&name) else {
                    return;
                };
                entry.busy = false;
                match done {
                    Ok(record) => {
                        tracing::info!("a new certificate for {name}");
                        self.shelf.put(std::slice::from_ref(&name), record.set());
                        entry.take(record);
                        entry.failures = Failures::default();
                        entry.failures.keep(&*self.storage, &name);
                        // Whatever the certificate says of its life.
                        entry.failures.next_try = unix(now + AFTER_SUCCESS);
                    }
                    Err(failed) => entry.fail(&*self.storage, &name, &failed, now),
                }
            }
            Done::Window(name, found) => {
                let Some(entry) = self.entries.get_mut(&name) else {
                    return;
                };
                entry.busy = false;
                let again = found.map_or(LONGEST_WINDOW_PAUSE, |(_, again)| again);
                entry.ask_window_at = now + again.clamp(SHORTEST_WINDOW_PAUSE, LONGEST_WINDOW_PAUSE);
                if let Some((window, _)) = found {
                    entry.window = Some(window);
                }
                entry.plan();
            }
            Done::Asked(name, answer) => {
                let may = match answer {
                    Ok(may) => may,
                    Err(why) => {
                        tracing::warn!("no certificate for {name}: {why}");
                        false
                    }
                };
                if may && self.wish.borrow().covers(&name) && self.entries.len() < MAX_NAMES {
                    denied.remove(&name);
                    let entry = Entry::load(&*self.storage, &name, now);
                    self.entries.insert(name, entry);
                } else {
                    denied.insert(name, now + DENIAL);
                }
            }
        }
    }

    /// A client came with a name that there is no certificate for.
    fn demanded(&mut self, name: String, denied: &mut HashMap<String, SystemTime>, running: &mut JoinSet<Done>) {
        let wish = Arc::clone(&self.wish.borrow());
        let now = self.clock.now();
        let Some(url) = wish.settings.ask.clone() else { return };
        if self.entries.contains_key(&name) || !wish.covers(&name) || running.len() >= MAX_AT_ONCE {
            return;
        }
        denied.retain(|_, until| *until > now);
        if denied.contains_key(&name) || denied.len() >= MAX_DENIED {
            return;
        }
        // Noted until the answer is there, so that it is asked for once.
        denied.insert(name.clone(), now + DENIAL);
        running.spawn(async move {
            let answer = ask::may_have(&url, &name).await;
            Done::Asked(name, answer)
        });
    }
}

impl Entry {
    /// As the storage has it: what is broken there is had anew.
    pub fn load(storage: &dyn Storage, name: &str, now: SystemTime) -> Entry {
        let record = Record::load(storage, name).unwrap_or_else(|error| {
            tracing::warn!("the certificate kept for {name} is of no use: {error}");
            None
        });
        let mut failures = Failures::load(storage, name);
        // Whoever starts a server has most likely changed something.
        failures.next_try = failures.next_try.min(unix(now + AFTER_START));
        let chance = chance();
        let mut entry = Entry {
            record: None,
            renew_at: UNIX_EPOCH,
            window: None,
            // Not all at once, and not anew with each of many starts.
            ask_window_at: now + SHORTEST_WINDOW_PAUSE.mul_f64(chance),
            failures,
            busy: false,
            chance,
        };
        if let Some(record) = record {
            entry.take(record);
        }
        entry
    }

    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    fn take(&mut self, record: Record) {
        self.record = Some(record);
        self.window = None;
        self.chance = chance();
        self.plan();
    }

    fn plan(&mut self) {
        self.renew_at = self
            .life()
            .map_or(UNIX_EPOCH, |life| schedule::renew_at(life, self.window, self.chance));
    }

    fn life(&self) -> Option<Life> {
        self.record.as_ref().map(|record| Life {
            from: record.certified.not_before(),
            to: record.certified.not_after(),
        })
    }

    fn fail(&mut self, storage: &dyn Storage, name: &str, failed: &Failed, now: SystemTime) {
        if !failed.idle {
            self.failures.count = self.failures.count.saturating_add(1);
        }
        let pause = schedule::pause(self.failures.count, failed.rest, chance());
        self.failures.next_try = unix(now + pause);
        self.failures.last.clone_from(&failed.why);
        self.failures.keep(storage, name);
        let again = pause.as_secs().div_ceil(60);
        let left = self
            .life()
            .map(|life| life.to.duration_since(now).unwrap_or_default().as_secs() / 86_400);
        match left {
            Some(days) if days > FEW_DAYS => {
                tracing::warn!(
                    "the certificate for {name} is not renewed, next try in {again} min: {}",
                    failed.why
                );
            }
            Some(days) => tracing::error!(
                "the certificate for {name} has {days} days left and is not renewed, next try in {again} min: {}",
                failed.why
            ),
            None => tracing::error!("no certificate for {name}, next try in {again} min: {}", failed.why),
        }
    }
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Orders under way at once: a server with a thousand sites is done in half an hour, and no CA takes offence.
const MAX_AT_ONCE: usize = 4;

/// How long nothing may be due.
const NEXT_LOOK: Duration = Duration::from_secs(60);

/// How often it is tried to follow a process that worked with CAs.
const NEXT_LOCK: Duration = Duration::from_secs(5);

/// A CA that signs what is nearly over is not asked again at once.
const AFTER_SUCCESS: Duration = Duration::from_secs(3600);

/// What a failure of an earlier process keeps a new one waiting.
const AFTER_START: Duration = Duration::from_secs(300);

/// RFC 9773 §4.3.3 leaves it to us within reason: a CA that has to revoke says so hours before.
const SHORTEST_WINDOW_PAUSE: Duration = Duration::from_secs(3600);
const LONGEST_WINDOW_PAUSE: Duration = Duration::from_secs(86_400);

/// When failures to renew become errors.
const FEW_DAYS: u64 = 9;

/// Names of one server, those had on demand included.
const MAX_NAMES: usize = 100_000;

/// How long a name that may not have a certificate is not asked for again, and how many are remembered: with more
/// coming, none is asked for until some are forgotten.
const DENIAL: Duration = Duration::from_secs(300);
const MAX_DENIED: usize = 10_000;
