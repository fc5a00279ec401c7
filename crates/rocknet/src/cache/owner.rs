//! The cache's one owner: everything that changes it passes through this thread, so that no worker waits for a lock.
//!
//! ```text
//! worker ──look up──▶ owner ──job──▶ blocking pool (opens, reads, renders)
//!    ▲                  │ ◀─loaded──────┘
//!    └────entry─────────┘   many workers asking for one path wait for one job
//! ```

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use rocknet_io::descriptors;
use tokio::sync::oneshot;

use super::entry::{Entry, Found, STALE_AFTER_MS};
use super::order::{Order, Place};
use crate::blocking::{Job, Pool};
use crate::clock::uptime_ms;
use crate::handler::files::load::load;
use crate::scope::Scope;

/// Questions that may wait for the owner. It answers one in about a microsecond; a worker that finds the channel full
/// answers 503 instead of waiting.
const MAX_QUESTIONS: usize = 16 * 1024;
/// Entries kept, so that paths without content (redirects, missing files) cannot fill memory: about 64 MB at most.
const MAX_ENTRIES: usize = 64 * 1024;
/// Of the process's descriptors, the part that cached files may hold open: 1/8, most being for connections.
const FILE_SHARE: u64 = 8;
/// Open files at most, however many descriptors there are: as many paths as a worker remembers. One that was closed is
/// opened again when it is asked for, which costs little beside sending it.
const MAX_OPEN_FILES: u64 = 8192;
/// Open files at least, or a page of a few large pictures would be opened anew with every request.
const MIN_OPEN_FILES: u64 = 16;

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
    /// Files held open.
    pub files: AtomicU64,
}

/// What a look-up gives: the entry, or nothing when the server has too much to do.
pub type Lookup = Option<Arc<Entry>>;

/// A scope and a path in it.
pub type Key = (u32, Box<str>);

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
        /// Which job found it.
        job: u64,
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
        Cache::with_files(memory, most_open_files(), pool)
    }

    /// As [`Cache::start`], with a bound of its own for the files held open.
    pub fn with_files(memory: u64, files: u64, pool: Pool) -> io::Result<Cache> {
        let (owner, messages) = sync_channel(MAX_QUESTIONS);
        let cache = Cache {
            owner: owner.clone(),
            status: Arc::default(),
        };
        let state = Owner {
            entries: HashMap::new(),
            order: Order::default(),
            files_order: Order::default(),
            bytes: 0,
            limit: memory,
            files: 0,
            most_files: files,
            jobs: 0,
            oldest_scope: 0,
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

/// How many files the cache holds open at most, by the limits of the process as they are now.
pub fn most_open_files() -> u64 {
    (descriptors::limit() / FILE_SHARE).clamp(MIN_OPEN_FILES, MAX_OPEN_FILES)
}

struct Owner {
    entries: HashMap<Key, State>,
    order: Order,
    /// Those of them that hold files open.
    files_order: Order,
    bytes: u64,
    limit: u64,
    files: u64,
    most_files: u64,
    /// Jobs started so far.
    jobs: u64,
    /// Scopes before this one belong to configurations that are gone: numbers only grow.
    oldest_scope: u32,
    pool: Pool,
    owner: SyncSender<Message>,
    status: Arc<CacheStatus>,
}

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    loading: Option<(u64, Job<()>)>,
    waiting: Vec<oneshot::Sender<Lookup>>,
}

/// An entry with what it is accounted for.
struct Kept {
    entry: Arc<Entry>,
    bytes: u64,
    files: u64,
}

impl Owner {
    fn run(mut self, messages: &Receiver<Message>) {
        // Ends when the process does: the owner holds a sender itself, for the jobs it starts.
        while let Ok(message) = messages.recv() {
            self.handle(message);
            self.status.entries.store(self.entries.len() as u64, Ordering::Relaxed);
            self.status.bytes.store(self.bytes, Ordering::Relaxed);
            self.status.files.store(self.files, Ordering::Relaxed);
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
            Message::Loaded { key, job, result } => {
                // What a refused job left behind says nothing of the one that was started since.
                let current = self.entries.get(&key).and_then(|state| state.loading.as_ref());
                if current.is_some_and(|(number, _)| *number == job) {
                    self.loaded(&key, result);
                }
            }
            Message::Grew { key, bytes } => {
                if let Some(kept) = self.entries.get_mut(&key).and_then(|state| state.kept.as_mut()) {
                    kept.bytes += bytes;
                    self.bytes += bytes;
                    self.evict();
                }
            }
            Message::Retain { scopes } => {
                // What is being loaded for a scope that is gone is answered, and then not kept.
                self.oldest_scope = scopes.iter().min().copied().unwrap_or(self.oldest_scope);
                let gone: Vec<Key> = self
                    .entries
                    .iter()
                    .filter(|((scope, _), state)| !scopes.contains(scope) && state.loading.is_none())
                    .map(|(key, _)| key.clone())
                    .collect();
                gone.iter().for_each(|key| self.forget(key));
                let entries = &self.entries;
                self.order.retain(|key| entries.contains_key(key));
                self.files_order.retain(|key| entries.contains_key(key));
            }
            Message::Limit { bytes } => {
                self.limit = bytes;
                self.evict();
            }
        }
    }

    fn look_up(&mut self, scope: &Arc<Scope>, path: Box<str>, reply: oneshot::Sender<Lookup>) {
        let key = (scope.id, path);
        let state = self.entries.entry(key.clone()).or_default();
        if let Some(kept) = &state.kept
            && kept.entry.age_ms(uptime_ms()) < STALE_AFTER_MS
        {
            let _ = reply.send(Some(Arc::clone(&kept.entry)));
            return;
        }
        // On a disk that hangs those who wait give up, and others come: the list is to hold no more than wait now.
        if state.waiting.len() == state.waiting.capacity() {
            state.waiting.retain(|waiting| !waiting.is_closed());
            // Room for as many again, or a list of the living would be looked through with every one that comes.
            state.waiting.reserve(state.waiting.len().max(1));
        }
        state.waiting.push(reply);
        if state.loading.is_none() {
            self.load(scope, &key);
        }
    }

    /// Starts a job; what it finds comes back as a message, even if that is that it was lost.
    fn load(&mut self, scope: &Arc<Scope>, key: &Key) {
        let Some(state) = self.entries.get_mut(key) else { return };
        let previous = state.kept.as_ref().map(|kept| Arc::clone(&kept.entry));
        self.jobs += 1;
        let number = self.jobs;
        let report = Report {
            owner: self.owner.clone(),
            key: key.clone(),
            job: number,
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
            state.loading = Some((number, job));
        }
    }

    fn loaded(&mut self, key: &Key, result: LoadResult) {
        let Some(state) = self.entries.get_mut(key) else { return };
        state.loading = None;
        let waiting = std::mem::take(&mut state.waiting);
        let known = state.kept.as_ref().map(|kept| Arc::clone(&kept.entry));
        let answer = match result {
            LoadResult::New(entry) => {
                let entry = Arc::new(*entry);
                self.forget(key);
                // A shortage may be over with the next request.
                if matches!(&entry.found, Found::Failed(status) if status.code() >= 500) {
                    entry.retire();
                } else {
                    self.keep(key, &entry);
                }
                Some(entry)
            }
            LoadResult::Unchanged => {
                if let Some(entry) = &known {
                    entry.looked_at(uptime_ms());
                }
                known
            }
            LoadResult::Lost => None,
        };
        let is_empty = self.entries.get(key).is_some_and(|state| state.kept.is_none());
        if is_empty || key.0 < self.oldest_scope {
            self.forget(key);
        }
        for reply in waiting {
            let _ = reply.send(answer.clone());
        }
        self.evict();
    }

    fn keep(&mut self, key: &Key, entry: &Arc<Entry>) {
        let kept = Kept {
            entry: Arc::clone(entry),
            bytes: entry.size(),
            files: entry.descriptors(),
        };
        self.bytes += kept.bytes;
        self.files += kept.files;
        let now = uptime_ms();
        self.order.push(key.clone(), now);
        if kept.files > 0 {
            self.files_order.push(key.clone(), now);
        }
        self.entries.entry(key.clone()).or_default().kept = Some(kept);
    }

    fn forget(&mut self, key: &Key) {
        let state = self.entries.remove(key);
        if let Some(kept) = state.and_then(|state| state.kept) {
            kept.entry.retire();
            self.bytes -= kept.bytes;
            self.files -= kept.files;
        }
    }

    fn evict(&mut self) {
        self.evict_while(
            |owner| &mut owner.order,
            |_| true,
            |owner| owner.bytes > owner.limit.max(1) || owner.entries.len() > MAX_ENTRIES,
        );
        self.evict_while(
            |owner| &mut owner.files_order,
            |kept| kept.files > 0,
            |owner| owner.files > owner.most_files,
        );
        let entries = &self.entries;
        self.order.tidy(entries.len(), |key| entries.contains_key(key));
        let has_files = |key: &Key| {
            entries
                .get(key)
                .and_then(|state| state.kept.as_ref())
                .is_some_and(|kept| kept.files > 0)
        };
        self.files_order.tidy(self.files as usize, has_files);
    }

    /// Second chance: the oldest of those that count goes, unless it was used since it was put into the order.
    fn evict_while(
        &mut self,
        order: fn(&mut Owner) -> &mut Order,
        counts: fn(&Kept) -> bool,
        too_much: fn(&Owner) -> bool,
    ) {
        let mut chances = order(self).len();
        while too_much(self) {
            let Some(Place { key, since }) = order(self).pop() else {
                return;
            };
            let Some(state) = self.entries.get(&key) else { continue };
            let Some(kept) = state.kept.as_ref().filter(|kept| counts(kept)) else {
                continue;
            };
            let used = kept.entry.used_ms() > since;
            if state.loading.is_none() && (!used || chances == 0) {
                self.forget(&key);
                continue;
            }
            // It keeps a place, even if nobody has chances left: what has none could never be evicted.
            order(self).push(key, uptime_ms());
            if chances == 0 {
                return;
            }
            chances -= 1;
        }
    }
}

/// Brings what a job found to the owner however the job ends: done, panicked, or dropped before it began.
struct Report {
    owner: SyncSender<Message>,
    key: Key,
    job: u64,
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
            job: self.job,
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

#[cfg(test)]
mod tests;
