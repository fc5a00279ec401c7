//! Queries and load jobs: an entry is served from memory, or loaded once for all queries that wait for it.

use std::sync::Arc;

use rocknet_handler::clock::uptime_ms;
use tokio::sync::oneshot;

use super::CacheThread;
use crate::cache::job_report::JobReport;
use crate::cache::key::{Key, LookupResult};
use crate::cache::message::LoadOutcome;
use crate::cache::non_blocking::is_transient;
use crate::disk_lookup::DiskLookup;
use crate::entry::{Entry, STALE_AFTER_MS};
use crate::load::load;
use crate::tree::Tree;

impl CacheThread {
    /// Replies with the entry of a path. An entry that is missing, stale or retired is loaded first.
    pub(super) fn look_up(&mut self, tree: &Arc<Tree>, path: Arc<str>, reply: oneshot::Sender<LookupResult>) {
        let key = (tree.id, path);
        let state = self.entries.entry(key.clone()).or_default();
        if let Some(stored) = &state.stored
            && stored.entry.age_ms(uptime_ms()) < STALE_AFTER_MS
            && !stored.entry.is_retired()
        {
            let _ = reply.send(Some(Arc::clone(&stored.entry)));
            return;
        }
        // If a disk hangs, waiting requests time out while new requests arrive. Removing the waiters that have timed
        // out bounds the list.
        if state.waiters.len() == state.waiters.capacity() {
            state.waiters.retain(|waiter| !waiter.is_closed());
            // Doubles the capacity, so that the list is not scanned for each new waiter.
            state.waiters.reserve(state.waiters.len().max(1));
        }
        state.waiters.push(reply);
        // A job that was started before a purge may have read the old contents. It is replaced, also for the earlier
        // queries.
        let is_current = state.loading.as_ref().is_some_and(|(job, _)| *job > self.purged_jobs);
        if !is_current {
            self.load(tree, &key);
        }
    }

    /// Stores an entry that a worker has loaded. Returns the entry to be used: the previously stored entry if it is
    /// equal or newer, otherwise the new entry.
    pub(super) fn insert(&mut self, key: &Key, entry: Arc<Entry>) -> Arc<Entry> {
        let state = self.entries.entry(key.clone()).or_default();
        let current = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        // A purge may have retired the stored entry while it was being loaded again.
        let current = current.filter(|current| !current.is_retired());
        match current {
            // The later lookup counts, regardless of the order of arrival.
            Some(current) if current.is_same(&entry) || current.checked_ms() > entry.checked_ms() => {
                entry.replace_with(&current);
                if current.is_same(&entry) {
                    let at_ms = entry.checked_ms();
                    self.finish_load(key, LoadOutcome::Unchanged { at_ms });
                }
                current
            }
            _ => {
                self.finish_load(key, LoadOutcome::New(Arc::clone(&entry)));
                entry
            }
        }
    }

    /// Starts a load job. Its outcome arrives as a message, even if the job is lost.
    pub(super) fn load(&mut self, tree: &Arc<Tree>, key: &Key) {
        let Some(state) = self.entries.get_mut(key) else { return };
        let previous = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        let previous = previous.filter(|previous| !previous.is_retired());
        self.jobs += 1;
        let report = JobReport::new(self.messages.clone(), key.clone(), self.jobs);
        let job_tree = Arc::clone(tree);
        let job = self.pool.spawn(tree.route.priority, move || {
            let at_ms = uptime_ms();
            let found = load(&DiskLookup::blocking(), &job_tree, report.path(), previous.as_deref());
            report.send(match found {
                Some(entry) => LoadOutcome::New(Arc::new(entry)),
                None => LoadOutcome::Unchanged { at_ms },
            });
        });
        if job.is_rejected() {
            // The report of the refused job is lost if the channel is full, but the waiters must be released anyway.
            self.finish_load(key, LoadOutcome::Lost);
        } else {
            state.loading = Some((self.jobs, job));
        }
    }

    /// Applies the outcome of a lookup by a job or a worker: stores the entry if necessary, and replies to the queries
    /// that wait for it. Drops the load job in progress, if there is one.
    pub(super) fn finish_load(&mut self, key: &Key, outcome: LoadOutcome) {
        let Some(state) = self.entries.get_mut(key) else { return };
        state.loading = None;
        let waiters = std::mem::take(&mut state.waiters);
        let current = state.stored.as_ref().map(|stored| Arc::clone(&stored.entry));
        let result = match outcome {
            // If the new entry equals the stored one, for example because a file is still missing, all workers keep the
            // stored entry.
            LoadOutcome::New(entry)
                if current
                    .as_ref()
                    .is_some_and(|current| !current.is_retired() && current.is_same(&entry)) =>
            {
                if let Some(current) = &current {
                    current.mark_checked(entry.checked_ms());
                }
                current
            }
            LoadOutcome::New(entry) => {
                self.remove(key);
                let is_outdated = self.purged_ms.is_some_and(|purged_ms| entry.checked_ms() <= purged_ms);
                if is_outdated || is_transient(&entry) || !entry.kind().caches_path_of(key.1.len()) {
                    entry.retire();
                } else {
                    self.store(key, &entry);
                }
                Some(entry)
            }
            LoadOutcome::Unchanged { at_ms } => {
                if let Some(entry) = &current {
                    entry.mark_checked(at_ms);
                }
                current
            }
            LoadOutcome::Lost => None,
        };
        let stored = self.entries.get(key).and_then(|state| state.stored.as_ref());
        // A retired entry, such as one that was purged during the load, is only sent to the workers that wait for it.
        // No later lookup finds it.
        let is_usable = stored.is_some_and(|stored| !stored.entry.is_retired());
        if !is_usable || key.0 < self.oldest_tree {
            self.remove(key);
        }
        for reply in waiters {
            let _ = reply.send(result.clone());
        }
        self.evict();
    }
}
