//! The renewal loop: orders certificates that are missing or due, and queries permissions and renewal windows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

use super::account::Accounts;
use super::client::{AcmeClient, IssuanceError};
use super::clock::Clock;
use super::desired_state::DesiredState;
use super::name_state::{MAX_WINDOW_INTERVAL, MIN_WINDOW_INTERVAL, NameState, unix};
use super::on_demand;
use super::persistence::{FailureRecord, StoredCertificate};
use crate::CertificateStore;
use crate::storage::{Lock, Storage};

/// State of the renewal loop on the thread `rn-acme`.
pub struct RenewalLoop {
    pub storage: Arc<dyn Storage>,
    pub clock: Clock,
    pub store: Arc<CertificateStore>,
    pub desired: watch::Receiver<Arc<DesiredState>>,
    /// Names that clients requested and that have no certificate.
    pub missing_names: mpsc::Receiver<String>,
    /// State of each name that needs a certificate.
    pub entries: HashMap<String, NameState>,
}

/// The result of a task.
enum TaskResult {
    /// An order for this name has ended.
    Obtained(String, Result<StoredCertificate, IssuanceError>),
    /// A query of the renewal window has ended: the window, and the delay before the next query; `None` if no CA
    /// returned a window.
    Window(String, Option<((SystemTime, SystemTime), Duration)>),
    /// A permission query for an on-demand name has ended.
    Permission(String, Result<bool, String>),
}

impl RenewalLoop {
    /// Runs until the sender of `desired` is dropped.
    pub async fn run(mut self) {
        let mut running = JoinSet::new();
        let mut client = self.first_client();
        // Denied names, with the time at which each denial expires.
        let mut denied: HashMap<String, SystemTime> = HashMap::new();
        let mut lock = None;
        // Makes the first iteration apply the present configuration.
        self.desired.mark_changed();
        loop {
            if self.desired.has_changed().unwrap_or(false) {
                client = self.apply_desired(&client);
                denied.clear();
            }
            // Only one of the processes that share a state folder orders certificates and stores them. The other
            // processes only serve the stored certificates.
            if lock.is_none() {
                lock = self.follow_or_lock();
            }
            let now = self.clock.now();
            let next = match &lock {
                Some(_) => self.start_due(&client, &mut running, now),
                None => now + LOCK_RETRY,
            };
            tokio::select! {
                changed = self.desired.changed() => match changed {
                    // `changed` has marked the value as seen, but the next iteration applies only a value that is
                    // marked as changed.
                    Ok(()) => self.desired.mark_changed(),
                    // The issuer was stopped.
                    Err(_) => return,
                },
                Some(name) = self.missing_names.recv() => {
                    if lock.is_some() {
                        self.request_permission(name, &mut denied, &mut running);
                    }
                }
                Some(result) = running.join_next_with_id(), if !running.is_empty() => match result {
                    Ok((_, result)) => self.finish(result, &mut denied),
                    Err(error) => self.abandon(&error),
                },
                () = self.clock.wait_until(next) => {}
            }
        }
    }

    /// Locks ACME orders in the state folder if possible, and loads certificates that the process with the lock has
    /// ordered. Returns `None` if another process holds the lock.
    fn follow_or_lock(&mut self) -> Option<Lock> {
        let lock = self.try_lock();
        // The previous holder may have stored certificates until it released the lock. Without them, the names would
        // be ordered again.
        self.load_renewed();
        lock
    }

    /// Locks ACME orders in the state folder. Returns `None` if another process holds the lock.
    fn try_lock(&self) -> Option<Lock> {
        match self.storage.lock("acme/acme") {
            Ok(lock) => lock,
            Err(error) => {
                tracing::error!(
                    "certificates cannot be ordered: the lock in the state folder cannot be acquired: {error}"
                );
                None
            }
        }
    }

    /// Returns the client with the settings of the start. [`RenewalLoop::apply_desired`] must not consider these
    /// settings new. Otherwise each start would retry all names regardless of earlier failures. A server that restarts
    /// repeatedly would then reach the rate limits of the CA.
    fn first_client(&self) -> Arc<AcmeClient> {
        let desired = Arc::clone(&self.desired.borrow());
        self.client(&desired)
    }

    /// Applies the latest configuration. The client, with its open accounts, is kept if the ACME settings are
    /// unchanged.
    fn apply_desired(&mut self, old: &Arc<AcmeClient>) -> Arc<AcmeClient> {
        let desired = Arc::clone(&self.desired.borrow_and_update());
        let removed = self.entries.keys().filter(|name| !desired.covers(name));
        let removed: Vec<String> = removed.cloned().collect();
        self.store.remove(&removed);
        removed.iter().for_each(|name| drop(self.entries.remove(name)));
        for name in desired.known_names(&*self.storage) {
            if !self.entries.contains_key(&name) {
                let entry = NameState::load(&*self.storage, &name, self.clock.now());
                self.entries.insert(name, entry);
            }
        }
        if old.settings == desired.settings {
            return Arc::clone(old);
        }
        // The operator may have fixed the cause, so a reload with new settings retries immediately.
        for entry in self.entries.values_mut() {
            entry.failures.next_try = 0;
        }
        self.client(&desired)
    }

    /// Creates a client with the settings of `desired` and no open account.
    fn client(&self, desired: &DesiredState) -> Arc<AcmeClient> {
        Arc::new(AcmeClient {
            settings: desired.settings.clone(),
            storage: Arc::clone(&self.storage),
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
            accounts: Accounts::new(Arc::clone(&self.storage), &desired.settings),
            paused_until: Arc::default(),
        })
    }

    /// Loads certificates that another process has ordered.
    fn load_renewed(&mut self) {
        for (name, entry) in &mut self.entries {
            if let Ok(Some(record)) = StoredCertificate::load(&*self.storage, name)
                && entry.record.as_ref().is_none_or(|old| old.leaf != record.leaf)
            {
                self.store.insert(std::slice::from_ref(name), record.certificate_set());
                entry.set_record(record);
            }
        }
    }

    /// Starts due tasks, a few at a time. Returns the time of the next check.
    fn start_due(
        &mut self,
        client: &Arc<AcmeClient>,
        running: &mut JoinSet<TaskResult>,
        now: SystemTime,
    ) -> SystemTime {
        let mut next = now + MAX_WAIT;
        for (name, entry) in &mut self.entries {
            if entry.task.is_some() {
                continue;
            }
            let due = entry.renew_at.max(entry.failures.next_try());
            let queries_window = entry.record.is_some() && entry.query_window_at < due;
            let at = if queries_window { entry.query_window_at } else { due };
            if at > now {
                next = next.min(at);
                continue;
            }
            if running.len() >= MAX_TASKS {
                // The end of a task wakes the loop.
                break;
            }
            let (client, name, old) = (Arc::clone(client), name.clone(), entry.record.clone());
            let task = match (queries_window, old) {
                (true, Some(record)) => running.spawn(async move {
                    let window = client.renewal_window(&record).await;
                    TaskResult::Window(name, window)
                }),
                (_, old) => {
                    let failures = entry.failures.count;
                    running.spawn(async move {
                        let result = client.obtain(&name, failures, old.as_ref()).await;
                        TaskResult::Obtained(name, result)
                    })
                }
            };
            entry.task = Some(task.id());
        }
        next
    }

    /// Frees the name of a task that has panicked, so that it is tried again after a pause.
    fn abandon(&mut self, error: &JoinError) {
        tracing::error!("an ACME task panicked: {error}");
        let now = self.clock.now();
        for entry in self.entries.values_mut().filter(|entry| entry.task == Some(error.id())) {
            entry.task = None;
            entry.failures.next_try = unix(now + PANIC_PAUSE);
            entry.query_window_at = now + MIN_WINDOW_INTERVAL;
        }
    }

    /// Applies the result of a task, and plans the next action for its name.
    fn finish(&mut self, result: TaskResult, denied: &mut HashMap<String, SystemTime>) {
        let now = self.clock.now();
        match result {
            TaskResult::Obtained(name, result) => {
                let Some(entry) = self.entries.get_mut(&name) else {
                    return;
                };
                entry.task = None;
                match result {
                    Ok(record) => {
                        tracing::info!("obtained a new certificate for {name}");
                        self.store.insert(std::slice::from_ref(&name), record.certificate_set());
                        entry.set_record(record);
                        entry.failures = FailureRecord::default();
                        entry.failures.save(&*self.storage, &name);
                        // Prevents immediate renewal, however short the validity period is.
                        entry.failures.next_try = unix(now + MIN_RENEWAL_INTERVAL);
                    }
                    Err(failed) => entry.fail(&*self.storage, &name, &failed, now),
                }
            }
            TaskResult::Window(name, found) => {
                let Some(entry) = self.entries.get_mut(&name) else {
                    return;
                };
                entry.task = None;
                let delay = found.map_or(MAX_WINDOW_INTERVAL, |(_, delay)| delay);
                entry.query_window_at = now + delay.clamp(MIN_WINDOW_INTERVAL, MAX_WINDOW_INTERVAL);
                if let Some((window, _)) = found {
                    entry.window = Some(window);
                }
                entry.plan();
            }
            TaskResult::Permission(name, result) => {
                let is_allowed = match result {
                    Ok(is_allowed) => is_allowed,
                    Err(reason) => {
                        tracing::warn!("no certificate for {name}: the permission query failed: {reason}");
                        false
                    }
                };
                if is_allowed && self.desired.borrow().covers(&name) && self.entries.len() < MAX_NAMES {
                    denied.remove(&name);
                    let entry = NameState::load(&*self.storage, &name, now);
                    self.entries.insert(name, entry);
                } else {
                    denied.insert(name, now + DENIAL_TTL);
                }
            }
        }
    }

    /// Starts a permission query for a name that a client requested and that has no certificate. Does nothing if the
    /// configuration has no `ask` or does not cover the name. Also does nothing if the name is known or was denied
    /// recently, or if a limit is reached.
    fn request_permission(
        &mut self,
        name: String,
        denied: &mut HashMap<String, SystemTime>,
        running: &mut JoinSet<TaskResult>,
    ) {
        let desired = Arc::clone(&self.desired.borrow());
        let now = self.clock.now();
        let Some(url) = desired.settings.ask.clone() else {
            return;
        };
        if self.entries.contains_key(&name) || !desired.covers(&name) || running.len() >= MAX_TASKS {
            return;
        }
        denied.retain(|_, until| *until > now);
        if denied.contains_key(&name) || denied.len() >= MAX_DENIED {
            return;
        }
        // The name counts as denied until the response arrives, so that a name has at most one query in progress.
        denied.insert(name.clone(), now + DENIAL_TTL);
        running.spawn(async move {
            let result = on_demand::is_allowed(&url, &name).await;
            TaskResult::Permission(name, result)
        });
    }
}

/// Maximum number of concurrent tasks, so that a server with many sites does not start all its orders at once. The CA
/// may limit the rate of orders further.
const MAX_TASKS: usize = 4;

/// Pause before the next attempt for a name whose task has panicked.
const PANIC_PAUSE: Duration = Duration::from_secs(3600);

/// Maximum time between two checks for due tasks.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Interval between attempts to take the lock while another process holds it.
const LOCK_RETRY: Duration = Duration::from_secs(5);

/// Minimum time between the issuance of a certificate and the next order for its name, in case a CA issues certificates
/// that are nearly expired.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(3600);

/// Number of names at which no further name is ordered on demand.
const MAX_NAMES: usize = 100_000;

/// Time for which a denial is stored, and the maximum number of stored denials. At the maximum, no permission is
/// queried until denials expire.
const DENIAL_TTL: Duration = Duration::from_secs(300);
const MAX_DENIED: usize = 10_000;

#[cfg(test)]
mod tests;
