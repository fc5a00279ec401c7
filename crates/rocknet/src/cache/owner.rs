//! The cache's one owner: everything that changes it passes through this thread, so that no worker waits for a lock.
//!
//! ```text
//! worker ──look up──▶ owner ──job──▶ blocking pool (opens, reads, renders)
//!    ▲                  │ ◀─loaded──────┘
//!    └────entry─────────┘   many workers asking for one path wait for one job
//! ```

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use tokio::sync::oneshot;

use super::entry::{Entry, Found, STALE_AFTER_MS};
use crate::blocking::{Job, Pool};
use crate::clock::uptime_ms;
use crate::handler::files::load::load;
use crate::scope::Scope;

/// Questions that may wait for the owner. It answers one in about a microsecond; a worker that finds the channel full
/// answers 503 instead of waiting.
const MAX_QUESTIONS: usize = 16 * 1024;
/// Entries kept, so that paths without content (redirects, missing files) cannot fill memory: about 64 MB at most.
const MAX_ENTRIES: usize = 64 * 1024;

const THREAD_NAME: &str = "rn-cache";

/// The cache as workers and the server see it.
#[derive(Clone)]
pub struct Cache {
    owner: SyncSender<Message>,
    status: Arc<CacheStatus>,
}

/// What the cache holds.
#[derive(Debug, Default)]
pub struct CacheStatus {
    pub entries: AtomicU64,
    pub bytes: AtomicU64,
}

/// What a look-up gives: the entry, or nothing when the server has too much to do.
pub type Lookup = Option<Arc<Entry>>;

type Key = (u32, Box<str>);

enum Message {
    LookUp {
        scope: Arc<Scope>,
        path: Box<str>,
        reply: oneshot::Sender<Lookup>,
    },
    Refresh {
        scope: Arc<Scope>,
        path: Box<str>,
    },
    Loaded {
        key: Key,
        result: LoadResult,
    },
    Grew {
        key: Key,
        bytes: u64,
    },
    Retain {
        scopes: HashSet<u32>,
    },
    Limit {
        bytes: u64,
    },
    #[cfg(test)]
    Settle {
        reply: std::sync::mpsc::Sender<()>,
    },
}

enum LoadResult {
    New(Box<Entry>),
    Unchanged,
    /// The job was dropped or panicked.
    Lost,
}

impl Cache {
    /// `memory`: bytes of all entries together.
    pub fn start(memory: u64, pool: Pool) -> io::Result<Cache> {
        let (owner, messages) = sync_channel(MAX_QUESTIONS);
        let cache = Cache {
            owner: owner.clone(),
            status: Arc::default(),
        };
        let state = Owner {
            entries: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            limit: memory,
            pool,
            owner,
            status: Arc::clone(&cache.status),
        };
        thread::Builder::new()
            .name(THREAD_NAME.into())
            .spawn(move || state.run(&messages))?;
        Ok(cache)
    }

    /// The entry for a path, looked up anew if what is known of it is old.
    pub async fn look_up(&self, scope: &Arc<Scope>, path: &str) -> Lookup {
        let (reply, entry) = oneshot::channel();
        self.owner
            .try_send(Message::LookUp {
                scope: Arc::clone(scope),
                path: path.into(),
                reply,
            })
            .ok()?;
        entry.await.ok()?
    }

    /// Asks for a new look in the background.
    pub fn refresh(&self, scope: &Arc<Scope>, path: &str) {
        // If the owner has no time now, the next request asks again.
        let _ = self.owner.try_send(Message::Refresh {
            scope: Arc::clone(scope),
            path: path.into(),
        });
    }

    /// Tells that an encoded form was added to an entry.
    pub fn grew(&self, scope: u32, path: &str, bytes: u64) {
        let _ = self.owner.try_send(Message::Grew {
            key: (scope, path.into()),
            bytes,
        });
    }

    /// Forgets everything but the entries of these scopes.
    pub fn retain(&self, scopes: HashSet<u32>, memory: u64) {
        let _ = self.owner.send(Message::Limit { bytes: memory });
        let _ = self.owner.send(Message::Retain { scopes });
    }

    pub fn status(&self) -> &CacheStatus {
        &self.status
    }
}

struct Owner {
    entries: HashMap<Key, State>,
    /// Keys with the time they were put here: evicted from the front, unless used since.
    order: VecDeque<(Key, u64)>,
    bytes: u64,
    limit: u64,
    pool: Pool,
    owner: SyncSender<Message>,
    status: Arc<CacheStatus>,
}

#[derive(Default)]
struct State {
    entry: Option<(Arc<Entry>, u64)>,
    loading: Option<Job<()>>,
    waiting: Vec<oneshot::Sender<Lookup>>,
}

impl Owner {
    fn run(mut self, messages: &Receiver<Message>) {
        // Ends when the process does: the owner holds a sender itself, for the jobs it starts.
        while let Ok(message) = messages.recv() {
            self.handle(message);
            self.status.entries.store(self.entries.len() as u64, Ordering::Relaxed);
            self.status.bytes.store(self.bytes, Ordering::Relaxed);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::LookUp { scope, path, reply } => self.look_up(&scope, path, reply),
            Message::Refresh { scope, path } => {
                let key = (scope.id, path);
                if self.entries.get(&key).is_some_and(|state| state.loading.is_none()) {
                    self.load(&scope, &key);
                }
            }
            Message::Loaded { key, result } => self.loaded(&key, result),
            Message::Grew { key, bytes } => {
                if let Some((_, size)) = self.entries.get_mut(&key).and_then(|state| state.entry.as_mut()) {
                    *size += bytes;
                    self.bytes += bytes;
                    self.evict();
                }
            }
            Message::Retain { scopes } => {
                let bytes = &mut self.bytes;
                self.entries.retain(|(scope, _), state| {
                    let keep = scopes.contains(scope) || state.loading.is_some();
                    if !keep && let Some((entry, size)) = &state.entry {
                        entry.retire();
                        *bytes -= size;
                    }
                    keep
                });
                self.order.retain(|(key, _)| self.entries.contains_key(key));
            }
            Message::Limit { bytes } => {
                self.limit = bytes;
                self.evict();
            }
            #[cfg(test)]
            Message::Settle { reply } => {
                let _ = reply.send(());
            }
        }
    }

    fn look_up(&mut self, scope: &Arc<Scope>, path: Box<str>, reply: oneshot::Sender<Lookup>) {
        let key = (scope.id, path);
        let state = self.entries.entry(key.clone()).or_default();
        if let Some((entry, _)) = &state.entry
            && entry.age_ms(uptime_ms()) < STALE_AFTER_MS
        {
            let _ = reply.send(Some(Arc::clone(entry)));
            return;
        }
        state.waiting.push(reply);
        if state.loading.is_none() {
            self.load(scope, &key);
        }
    }

    /// Starts a job; what it finds comes back as a message, even if that is that it was lost.
    fn load(&mut self, scope: &Arc<Scope>, key: &Key) {
        let Some(state) = self.entries.get_mut(key) else { return };
        let previous = state.entry.as_ref().map(|(entry, _)| Arc::clone(entry));
        let report = Report {
            owner: self.owner.clone(),
            key: key.clone(),
            result: Some(LoadResult::Lost),
        };
        let (job_scope, job_path) = (Arc::clone(scope), key.1.clone());
        let job = self.pool.spawn(scope.priority, move || {
            report.send(match load(&job_scope, &job_path, previous.as_deref()) {
                Some(entry) => LoadResult::New(Box::new(entry)),
                None => LoadResult::Unchanged,
            });
        });
        if job.is_refused() {
            // Its report may have found the channel full; nobody shall wait for ever.
            self.loaded(key, LoadResult::Lost);
        } else {
            state.loading = Some(job);
        }
    }

    fn loaded(&mut self, key: &Key, result: LoadResult) {
        let Some(state) = self.entries.get_mut(key) else { return };
        state.loading = None;
        let waiting = std::mem::take(&mut state.waiting);
        let answer = match result {
            LoadResult::New(entry) => {
                let entry = Arc::new(*entry);
                if let Some((old, size)) = state.entry.take() {
                    old.retire();
                    self.bytes -= size;
                }
                if matches!(&entry.found, Found::Failed(status) if status.code() >= 500) {
                    // A shortage may be over with the next request.
                    entry.retire();
                    self.entries.remove(key);
                } else {
                    let size = entry.size();
                    self.bytes += size;
                    state.entry = Some((Arc::clone(&entry), size));
                    self.order.push_back((key.clone(), uptime_ms()));
                }
                Some(entry)
            }
            LoadResult::Unchanged => {
                let entry = state.entry.as_ref().map(|(entry, _)| Arc::clone(entry));
                if let Some(entry) = &entry {
                    entry.looked_at(uptime_ms());
                }
                entry
            }
            LoadResult::Lost => {
                if state.entry.is_none() {
                    self.entries.remove(key);
                }
                None
            }
        };
        for reply in waiting {
            let _ = reply.send(answer.clone());
        }
        self.evict();
    }

    /// Second chance: the oldest goes, unless it was used since it was put into the order.
    fn evict(&mut self) {
        let mut chances = self.order.len();
        while self.bytes > self.limit.max(1) || self.entries.len() > MAX_ENTRIES {
            let Some((key, since)) = self.order.pop_front() else {
                return;
            };
            let Some(state) = self.entries.get(&key) else { continue };
            let Some((entry, size)) = &state.entry else { continue };
            let used_since = entry.used_ms() > since;
            if (used_since && chances > 0) || state.loading.is_some() {
                if chances == 0 {
                    return;
                }
                chances -= 1;
                self.order.push_back((key, uptime_ms()));
                continue;
            }
            entry.retire();
            self.bytes -= size;
            self.entries.remove(&key);
        }
        // Replaced entries leave their old places behind.
        if self.order.len() > 2 * self.entries.len() + 64 {
            let mut seen = HashSet::new();
            self.order
                .retain(|(key, _)| self.entries.contains_key(key) && seen.insert(key.clone()));
        }
    }
}

/// Brings what a job found to the owner however the job ends: done, panicked, or dropped before it began.
struct Report {
    owner: SyncSender<Message>,
    key: Key,
    /// Taken when it is sent.
    result: Option<LoadResult>,
}

impl Report {
    fn send(mut self, result: LoadResult) {
        self.result = Some(result);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let Some(result) = self.result.take() else { return };
        let message = Message::Loaded {
            key: std::mem::take(&mut self.key),
            result,
        };
        match self.owner.try_send(message) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            // On a thread of the pool, waiting is allowed; on the owner's own (a refused job) it would be for ever.
            Err(TrySendError::Full(message)) if thread::current().name() != Some(THREAD_NAME) => {
                let _ = self.owner.send(message);
            }
            Err(TrySendError::Full(_)) => {}
        }
    }
}
