//! Bans: clients that are banned after offences or by operators, and networks of ban lists.
//!
//! ```text
//! offence.rs   kinds of offences, and reasons of bans
//! rules.rs     the settings of `[ban]`, prepared for lookups
//! address.rs   addresses and networks as text
//! networks.rs  banned networks: those of files and those that operators have added
//! list_files.rs  the files of `ban.files`, which are read again when they change
//! persistence.rs  loads and writes the bans, and passes them on in an upgrade
//! store.rs     the file in the state folder that keeps bans across restarts
//! ban_file.rs  the format of the store and of the file with passed bans
//! logins.rs    logins in progress, which count as failed until they succeed
//! login_attempts.rs  the logins of a client, and whether it may try another
//! operators.rs  bans that operators add and lift
//! keeper.rs    the thread that reads changed files and writes the store
//! report.rs    bans and offenders for the control API
//! transfer.rs  the offences that a process passes to its successor in an upgrade
//! ```
//! Before the first ban, the check of a connection or request costs two atomic loads. Offences are counted only when a
//! request, login or handshake fails.

mod address;
mod ban_file;
mod keeper;
mod list_files;
mod login_attempts;
mod logins;
mod networks;
mod offence;
mod operators;
mod persistence;
mod report;
mod rules;
mod store;
mod transfer;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocknet_config::client_ranges::client_network;
use rocknet_config::model::Config;
use rocknet_control::text;
use rocknet_limit::bans::BanTable;
use rocknet_limit::offenders::Offenders;
use rocknet_limit::{Budget, KeySeed, RateTable, Taken};
use tracing::Level;

use self::ban_file::Stored;
use self::keeper::Keeper;
use self::list_files::ListFiles;
use self::logins::Logins;
use self::networks::{AddedNetwork, Networks};
use self::rules::Rules;
use self::store::Store;
use crate::exchange::Client;
use crate::log::throttle::Cause;

pub use self::list_files::inspect as inspect_list;
pub use self::logins::CountedLogin;
pub use self::offence::{Offence, Reason};
pub use self::report::BanCounters;

/// Maximum number of networks that operators can add, which bounds the size of the store. Files may have more.
const MAX_ADDED: usize = 1_000;

/// Maximum number of lines per second about bans. A distributed attack can lead to more bans.
const LOG_BURST: u32 = 20;

/// Bans of a server. Reloads keep them.
pub struct Bans {
    /// Banned clients, by the result of [`client_network`]: an IPv4 address, or the /64 network of an IPv6 address.
    clients: BanTable<Reason>,
    networks: RwLock<Arc<Networks>>,
    /// True if there is a banned network.
    has_networks: AtomicBool,
    added: Mutex<Vec<AddedNetwork>>,
    files: Mutex<ListFiles>,
    rules: RwLock<Arc<Rules>>,
    /// True if there are paths of login forms; see `Rules::is_login_path`.
    has_login_paths: AtomicBool,
    /// Offences of clients, by kind.
    rates: [RateTable; Offence::ALL.len()],
    logins: Logins,
    /// Seed of the hashes of clients, which clients cannot know.
    seed: KeySeed,
    /// Clients with the most offences, for the control API. Bans do not depend on them.
    offenders: Mutex<Offenders<{ Offence::ALL.len() }>>,
    counters: Counters,
    /// `None` until [`Bans::open_store`] is called.
    store: Mutex<Option<Store>>,
    /// True if the store does not have the latest bans.
    is_dirty: AtomicBool,
    /// New bans that the store does not have. After an upgrade, the old process passes them to the new one.
    unwritten: Mutex<Stored>,
    /// `None` until a configuration has `[ban]`, and after [`Bans::stop`].
    keeper: Mutex<Option<Keeper>>,
    /// Origin of the times of the rates.
    started: Instant,
}

/// Counters since the start of the server.
#[derive(Default)]
struct Counters {
    /// Connections that were closed because their client is banned.
    connections: AtomicU64,
    /// Requests that were refused because their client is banned.
    requests: AtomicU64,
    /// Bans by the kind of offence.
    bans: [AtomicU64; Offence::ALL.len()],
    /// Bans that offences would have led to without `dry_run`.
    dry_run: AtomicU64,
}

impl Bans {
    /// Creates the bans without settings. `seed`: secret seed of the hashes of clients.
    pub fn new(seed: KeySeed) -> Bans {
        let budget = Arc::<Budget>::default();
        Bans {
            clients: BanTable::default(),
            networks: RwLock::default(),
            has_networks: AtomicBool::new(false),
            added: Mutex::default(),
            files: Mutex::default(),
            rules: RwLock::default(),
            has_login_paths: AtomicBool::new(false),
            rates: Offence::ALL.map(|_| RateTable::new(&budget)),
            logins: Logins::new(&budget),
            seed,
            offenders: Mutex::default(),
            counters: Counters::default(),
            store: Mutex::default(),
            is_dirty: AtomicBool::new(false),
            unwritten: Mutex::default(),
            keeper: Mutex::default(),
            started: Instant::now(),
        }
    }

    /// Applies a configuration. Starts the thread that keeps files and store up to date, if `[ban]` exists.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started. The new settings apply all the same.
    pub fn configure(self: &Arc<Self>, config: &Config) -> std::io::Result<()> {
        let rules = Rules::new(config);
        self.has_login_paths.store(rules.has_login_paths(), Ordering::Relaxed);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        let paths = config.ban.as_ref().map_or(&[][..], |ban| &ban.files);
        lock(&self.files).set_paths(paths);
        self.rebuild_networks(unix_s());
        if config.ban.is_some() {
            let mut keeper = lock(&self.keeper);
            if keeper.is_none() {
                *keeper = Some({
                    let bans = Arc::downgrade(self);
                    Keeper::start(move || bans.upgrade().map(|bans| bans.maintain()))?
                });
            }
        }
        Ok(())
    }

    /// Returns true if there is or was a ban, so that clients have to be looked up.
    #[inline]
    pub fn has_bans(&self) -> bool {
        // At time 0, bans that have ended count too, so the clock is not read.
        self.has_networks.load(Ordering::Relaxed) || self.clients.may_ban(0)
    }

    /// Returns true if a client is banned, and no exemption applies.
    #[inline]
    pub fn is_banned(&self, client: Client) -> bool {
        self.has_bans() && self.look_up(client)
    }

    #[inline(never)]
    fn look_up(&self, client: Client) -> bool {
        let Client::Ip { address, .. } = client else {
            return false;
        };
        let now = unix_s();
        let rules = self.rules();
        // Without `[ban]`, or with `dry_run`, only bans of operators and lists apply.
        let applies = |reason: &Reason| matches!(reason, Reason::Operator(_)) || rules.bans_offenders();
        let is_banned = self.clients.is_banned(client_network(address), now, applies)
            || self.has_networks.load(Ordering::Relaxed) && self.networks(now).contain(address);
        is_banned && !rules.is_exempt(address)
    }

    /// Counts a connection that was closed because its client is banned.
    #[cold]
    pub fn count_connection(&self) {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was refused because its client is banned.
    #[cold]
    pub fn count_request(&self) {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the time of the rates, in nanoseconds.
    fn elapsed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Counts an offence of a client, and bans the client if it has committed too many.
    #[cold]
    pub fn offend(self: &Arc<Self>, client: Client, offence: Offence) {
        let Client::Ip { address, .. } = client else { return };
        let (key, now, kind) = (client_network(address), unix_s(), offence as usize);
        if self.is_banned(client) {
            // The request was in progress when the ban began, or a trusted proxy sent it for the banned client.
            return;
        }
        let rules = self.rules();
        // A proxy would be listed for the offences of all its clients.
        if !rules.is_proxy(address) {
            lock(&self.offenders).add(key, kind, now);
        }
        let Some((settings, rate)) = rules.rate(offence) else {
            return;
        };
        if rules.is_exempt(address) {
            return;
        }
        let elapsed = self.elapsed();
        let is_admitted = |rate| {
            matches!(
                self.rates[kind].take(rate, self.seed.of_client(key), elapsed),
                Taken::Admitted { .. }
            )
        };
        // `admitted`: `None` if the first offence already leads to a ban.
        if rate.admitted.as_ref().is_some_and(is_admitted) {
            return;
        }
        if settings.dry_run {
            self.counters.dry_run.fetch_add(1, Ordering::Relaxed);
            log_ban(
                address,
                offence,
                &format!("would be banned: {}", rate.describe(offence)),
            );
            return;
        }
        let (first, max) = (settings.time.as_secs(), settings.max_time.as_secs());
        let reason = Reason::Offence(offence);
        // `None`: another thread has banned the client since the check above.
        if let Some(ban) = self.clients.ban_again(key, now, first, max, reason) {
            // After the ban, the client may log in again.
            self.logins.forget(self.seed.of_client(key), elapsed);
            self.counters.bans[kind].fetch_add(1, Ordering::Relaxed);
            let time = text::duration(ban.until - ban.since);
            log_ban(
                address,
                offence,
                &format!("banned for {time}: {}", rate.describe(offence)),
            );
            self.changed(|unwritten| unwritten.clients.push((key, ban)));
        }
    }

    /// Does the periodic work: reads changed files, ends bans of networks, and writes the store. Returns the time until
    /// the next work.
    fn maintain(&self) -> Duration {
        let now = unix_s();
        let has_predecessor = self.take_passed(now);
        let has_changed = lock(&self.files).read_changed();
        let mut added = lock(&self.added);
        let before = added.len();
        added.retain(|network| network.is_active(now));
        let has_ended = added.len() < before;
        drop(added);
        if has_changed || has_ended {
            self.rebuild_networks(now);
        }
        let forgotten = self.clients.forget(now);
        if self.is_dirty.load(Ordering::Relaxed) || has_ended || forgotten > 0 {
            self.save();
        }
        match lock(&self.files).is_empty() && !has_predecessor {
            true => keeper::IDLE_INTERVAL,
            false => keeper::FILES_INTERVAL,
        }
    }

    /// Ends the thread, and writes the store. Returns false if the thread has not ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let keeper = lock(&self.keeper).take();
        let has_ended = keeper.is_none_or(|keeper| keeper.stop(deadline));
        self.flush();
        has_ended
    }

    fn wake_keeper(&self) {
        if let Some(keeper) = &*lock(&self.keeper) {
            keeper.wake();
        }
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the banned networks. Those whose ban has ended are removed first, unless files are being read, which a
    /// worker must not wait for.
    fn networks(&self, now: u64) -> Arc<Networks> {
        let networks = Arc::clone(&self.networks.read().unwrap_or_else(PoisonError::into_inner));
        if now < networks.next_end {
            return networks;
        }
        let files = match self.files.try_lock() {
            Ok(files) => files,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return networks,
        };
        self.rebuild_from(&files, now);
        Arc::clone(&self.networks.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn rebuild_networks(&self, now: u64) {
        self.rebuild_from(&lock(&self.files), now);
    }

    /// Replaces the banned networks. The lock of `files` is held until they are stored, so that no older result
    /// replaces them.
    fn rebuild_from(&self, files: &MutexGuard<'_, ListFiles>, now: u64) {
        let networks = Networks::new(files.lists(), &lock(&self.added), now);
        self.has_networks.store(!networks.is_empty(), Ordering::Relaxed);
        *self.networks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(networks);
    }
}

/// Logs that a client was banned, or would be, with a bound on the lines per second.
fn log_ban(address: IpAddr, offence: Offence, what: &str) {
    let cause = Cause {
        level: Level::WARN,
        what: "bans of clients",
        site: "",
        subject: offence.name(),
    };
    if cause.may_be_logged_in_burst(LOG_BURST) {
        let client = address::client_text(client_network(address));
        tracing::warn!(%client, "{what}");
    }
}

/// Returns the time in seconds of the Unix clock.
fn unix_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bans with a network whose ban has ended at the returned time.
    fn with_ended_network() -> (Bans, u64) {
        let bans = Bans::new(KeySeed::new(&[0; KeySeed::SIZE]));
        bans.add("192.0.2.0/24", Some(Duration::from_secs(60)), "test").unwrap();
        (bans, unix_s() + 120)
    }

    #[test]
    fn a_lookup_removes_ended_networks_unless_files_are_being_read() {
        let (bans, later) = with_ended_network();
        let is_removed = || bans.networks(later).is_empty();
        let reading = lock(&bans.files);
        assert!(!is_removed());
        drop(reading);
        assert!(is_removed());
    }

    #[test]
    fn a_panic_of_another_thread_does_not_keep_ended_networks() {
        let (bans, later) = with_ended_network();
        std::thread::scope(|scope| {
            let panicked = scope.spawn(|| {
                let _reading = lock(&bans.files);
                panic!("for the test");
            });
            assert!(panicked.join().is_err());
        });
        assert!(bans.files.is_poisoned() && bans.networks(later).is_empty());
    }
}
