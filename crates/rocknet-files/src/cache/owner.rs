//! The cache's one owner: everything that changes it passes through this thread, so that no worker waits for a lock.
//!
//! ```text
//! worker ──found by itself: an offer──────▶ owner
//!    │                                       │ ▲
//!    ├──not in memory: look up──────────────▶│ └──what was found──┐
//!    ◀──an entry─────────────────────────────┘ ──job──▶ blocking pool (opens, reads, renders)
//!         many workers asking for one path wait for one job
//! ```

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rocknet_io::descriptors;
use tokio::sync::oneshot;

use super::key::{Key, Lookup, THREAD_NAME};
use super::message::{Message, Outcome};
use super::offers::{Offered, Offers, offers};
use super::order::Place;
use super::orders::{Orders, Places, Which};
use super::report::Report;
use super::sight::{Looks, is_passing, see};
use super::weight::ENTRY_BYTES;
use crate::entry::{Entry, STALE_AFTER_MS};
use crate::load::load;
use crate::look::Look;
use crate::tree::Tree;
use rocknet_blocking::{Job, Pool};
use rocknet_handler::clock::uptime_ms;
use rocknet_io::byte_budget::ByteBudget;
use rocknet_io::owned_thread::OwnedThread;

/// Questions that may wait for the owner. It answers one in about a microsecond; a worker that finds the channel full
/// answers 503 instead of waiting.
const MAX_QUESTIONS: usize = 16 * 1024;
/// Bytes of questions that wait, with their paths and the entries that come with them. A worker that finds no more room
/// answers 503.
const MAX_QUESTION_BYTES: u64 = 16 << 20;
/// Below this many places a table is not made smaller.
const MIN_TABLE: usize = 1024;
/// Of the process's descriptors, the part that cached files may hold open: 1/8, most being for connections.
const FILE_SHARE: u64 = 8;
/// Open files at most, however many descriptors there are: as many paths as a worker remembers. One that was closed is
/// opened again when it is asked for, which costs little beside sending it.
const MAX_OPEN_FILES: u64 = 8192;
/// Open files at least, or a page of a few large pictures would be opened anew with every request.
const MIN_OPEN_FILES: u64 = 16;
/// How long offers are gathered before they are looked at.
const GATHERING: Duration = Duration::from_millis(10);

/// The cache as workers and the server see it.
#[derive(Clone)]
pub struct Cache {
    owner: SyncSender<Message>,
    offers: Offers,
    /// For questions that wait.
    room: ByteBudget,
    status: Arc<CacheStatus>,
    looks: Looks,
    thread: Arc<Thread>,
}

/// The owner's thread, which ends when the last clone of the cache is dropped.
struct Thread {
    owner: SyncSender<Message>,
    /// Taken by [`Cache::stop`].
    running: Mutex<Option<OwnedThread>>,
}

impl Thread {
    fn running(&self) -> MutexGuard<'_, Option<OwnedThread>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if self.running().is_some() {
            let _ = self.owner.send(Message::Stop);
        }
    }
}

/// What the cache holds.
#[derive(Debug, Default)]
pub struct CacheStatus {
    pub entries: AtomicU64,
    pub bytes: AtomicU64,
    /// Files held open.
    pub files: AtomicU64,
    /// Lookups of workers that did not remember the path.
    pub misses: AtomicU64,
}

impl CacheStatus {
    pub fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}

impl Cache {
    /// `memory`: bytes of all entries together.
    pub fn start(memory: u64, pool: Pool) -> io::Result<Cache> {
        Cache::with_files(memory, most_open_files(), pool)
    }

    /// As [`Cache::start`], with a bound of its own for the files held open.
    pub fn with_files(memory: u64, files: u64, pool: Pool) -> io::Result<Cache> {
        let (cache, owner, messages) = Cache::with_owner(memory, files, pool);
        let thread = OwnedThread::start(THREAD_NAME, move || owner.run(&messages))?;
        *cache.thread.running() = Some(thread);
        Ok(cache)
    }

    fn with_owner(memory: u64, files: u64, pool: Pool) -> (Cache, Owner, Receiver<Message>) {
        let (owner, messages) = sync_channel(MAX_QUESTIONS);
        let (offers, offered) = offers();
        let room = ByteBudget::new(MAX_QUESTION_BYTES);
        let cache = Cache {
            owner: owner.clone(),
            offers,
            room: room.clone(),
            status: Arc::default(),
            looks: Looks::default(),
            thread: Arc::new(Thread {
                owner: owner.clone(),
                running: Mutex::default(),
            }),
        };
        let state = Owner {
            entries: HashMap::new(),
            orders: Orders::new(memory, files),
            room,
            jobs: 0,
            offered,
            oldest_tree: 0,
            pool,
            owner,
            status: Arc::clone(&cache.status),
        };
        (cache, state, messages)
    }

    /// The entry for a path, looked up anew if what is known of it is old. To be called on a worker, which takes a look by
    /// itself first.
    pub async fn look_up(&self, tree: &Arc<Tree>, path: &Arc<str>) -> Lookup {
        let offer = match see(&self.looks, tree, path).await {
            // Of a shortage here the cache may know nothing.
            Some(entry) if is_passing(&entry) => None,
            Some(entry) if !entry.kind().keeps(path.len()) => {
                entry.retire();
                return Some(entry);
            }
            Some(entry) if entry.is_to_be_shared() => Some(entry),
            Some(entry) => match self.offer(tree, path, &entry) {
                Ok(()) => return Some(entry),
                Err(entry) => Some(entry),
            },
            None => None,
        };
        self.question(tree, path, offer).await
    }

    /// As [`Cache::look_up`], for those who remember no entry: it is most likely known to the cache already.
    pub async fn ask(&self, tree: &Arc<Tree>, path: &Arc<str>) -> Lookup {
        self.question(tree, path, None).await
    }

    async fn question(&self, tree: &Arc<Tree>, path: &Arc<str>, offer: Option<Arc<Entry>>) -> Lookup {
        const BESIDE: usize = size_of::<Message>() + size_of::<State>();
        let bytes = (BESIDE + path.len()) as u64 + offer.as_ref().map_or(0, |entry| entry.size());
        if !self.room.try_reserve(bytes) {
            return None;
        }
        let (reply, entry) = oneshot::channel();
        let message = Message::LookUp {
            tree: Arc::clone(tree),
            path: Arc::clone(path),
            bytes,
            offer,
            reply,
        };
        if self.owner.try_send(message).is_err() {
            self.room.release(bytes);
            return None;
        }
        entry.await.ok()?
    }

    fn offer(&self, tree: &Tree, path: &Arc<str>, entry: &Arc<Entry>) -> Result<(), Arc<Entry>> {
        self.offers.put((tree.id, Arc::clone(path)), Arc::clone(entry), || {
            self.owner.try_send(Message::Offered).is_ok()
        })
    }

    /// Asks for a new look in the background.
    pub fn refresh(&self, tree: &Arc<Tree>, path: &Arc<str>) {
        // If the owner has no time now, the next request asks again.
        let _ = self.owner.try_send(Message::Refresh {
            tree: Arc::clone(tree),
            path: Arc::clone(path),
        });
    }

    /// Tells that an encoded form was added to an entry.
    pub fn grew(&self, tree: u32, path: &Arc<str>, bytes: u64) {
        let _ = self.owner.try_send(Message::Grew {
            key: (tree, Arc::clone(path)),
            bytes,
        });
    }

    /// Forgets everything but the entries of these trees.
    pub fn retain(&self, trees: HashSet<u32>, memory: u64) {
        let _ = self.owner.send(Message::Limit { bytes: memory });
        let _ = self.owner.send(Message::Retain { trees });
    }

    /// Ends when all that was found or told so far has been seen to.
    pub async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        if self.owner.send(Message::Settle { done }).is_ok() {
            let _ = settled.await;
        }
    }

    /// Ends the thread, with all that the cache holds. Returns whether it had ended at `deadline`. Look-ups from now on find
    /// nothing.
    pub fn stop(&self, deadline: Instant) -> bool {
        let running = self.thread.running().take();
        running.is_none_or(|running| {
            let _ = self.owner.send(Message::Stop);
            running.join(deadline)
        })
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
    orders: Orders,
    room: ByteBudget,
    /// Jobs started so far.
    jobs: u64,
    offered: Offered,
    /// Trees with lower numbers belong to configurations that are gone: numbers only grow.
    oldest_tree: u32,
    pool: Pool,
    owner: SyncSender<Message>,
    status: Arc<CacheStatus>,
}

const _: () = assert!(
    size_of::<(Key, State)>() == ENTRY_BYTES,
    "ENTRY_BYTES is not the size of an entry"
);

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    loading: Option<(u64, Job<()>)>,
    waiting: Vec<oneshot::Sender<Lookup>>,
}

/// An entry with its places in the orders.
struct Kept {
    entry: Arc<Entry>,
    places: Places,
}

impl Owner {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut due: Option<Instant> = None;
        loop {
            let message = match due {
                Some(due) => messages.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Stop) => return,
                Ok(Message::Offered) => due = due.or(Some(Instant::now() + GATHERING)),
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {
                    due = None;
                    self.handle(Message::Offered);
                }
                // Never: the owner holds a sender itself, for looks.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tell_status();
        }
    }

    fn tell_status(&self) {
        self.status.entries.store(self.entries.len() as u64, Ordering::Relaxed);
        self.status
            .bytes
            .store(self.orders.of(Which::All).used(), Ordering::Relaxed);
        self.status
            .files
            .store(self.orders.of(Which::Files).used(), Ordering::Relaxed);
    }

    fn handle(&mut self, message: Message) {
        if let Message::Offered = message {
            self.offered.listen();
        }
        // They were made before.
        while let Some(offer) = self.offered.take() {
            self.offer(&offer.key, offer.entry);
        }
        if let Message::LookUp { bytes, .. } = &message {
            self.room.release(*bytes);
        }
        match message {
            Message::Offered | Message::Stop => {}
            Message::Settle { done } => {
                self.tell_status();
                let _ = done.send(());
            }
            Message::LookUp {
                tree,
                path,
                offer: Some(entry),
                reply,
                ..
            } => {
                let entry = self.offer(&(tree.id, path), entry);
                let _ = reply.send(Some(entry));
            }
            Message::LookUp {
                tree,
                path,
                offer: None,
                reply,
                ..
            } => self.look_up(&tree, path, reply),
            Message::Refresh { tree, path } => {
                let key = (tree.id, path);
                if self.entries.get(&key).is_some_and(|state| state.loading.is_none()) {
                    self.load(&tree, &key);
                }
            }
            Message::Loaded { key, job, outcome } => {
                // What a refused job left behind says nothing of the one that was started since.
                let current = self.entries.get(&key).and_then(|state| state.loading.as_ref());
                if current.is_some_and(|(number, _)| *number == job) {
                    self.loaded(&key, outcome);
                }
            }
            Message::Grew { key, bytes } => {
                if let Some(kept) = self.entries.get(&key).and_then(|state| state.kept.as_ref()) {
                    self.orders.grow(&kept.places, bytes);
                    self.evict();
                }
            }
            Message::Retain { trees } => {
                // What is being loaded for a tree that is gone is answered, and then not kept.
                self.oldest_tree = trees.iter().min().copied().unwrap_or(self.oldest_tree);
                let gone: Vec<Key> = self
                    .entries
                    .iter()
                    .filter(|((tree, _), state)| !trees.contains(tree) && state.loading.is_none())
                    .map(|(key, _)| key.clone())
                    .collect();
                gone.iter().for_each(|key| self.forget(key));
            }
            Message::Limit { bytes } => {
                self.orders.set_memory(bytes);
                self.evict();
            }
        }
    }

    fn look_up(&mut self, tree: &Arc<Tree>, path: Arc<str>, reply: oneshot::Sender<Lookup>) {
        let key = (tree.id, path);
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
            self.load(tree, &key);
        }
    }

    /// Keeps what a worker has found; gives back what is to be used, which is what was known before if that is the same.
    fn offer(&mut self, key: &Key, entry: Arc<Entry>) -> Arc<Entry> {
        let state = self.entries.entry(key.clone()).or_default();
        let known = state.kept.as_ref().map(|kept| Arc::clone(&kept.entry));
        match known {
            // What was found later counts, in whatever order it comes.
            Some(known) if known.is_same(&entry) || known.checked_ms() > entry.checked_ms() => {
                entry.give_way(&known);
                if known.is_same(&entry) {
                    let at_ms = entry.checked_ms();
                    self.loaded(key, Outcome::Unchanged { at_ms });
                }
                known
            }
            _ => {
                self.loaded(key, Outcome::New(Arc::clone(&entry)));
                entry
            }
        }
    }

    /// Starts a job; what it finds comes back as a message, even if that is that it was lost.
    fn load(&mut self, tree: &Arc<Tree>, key: &Key) {
        let Some(state) = self.entries.get_mut(key) else { return };
        let previous = state.kept.as_ref().map(|kept| Arc::clone(&kept.entry));
        self.jobs += 1;
        let report = Report::new(self.owner.clone(), key.clone(), self.jobs);
        let job_tree = Arc::clone(tree);
        let job = self.pool.spawn(tree.route.priority, move || {
            let at_ms = uptime_ms();
            let found = load(&Look::patient(), &job_tree, report.path(), previous.as_deref());
            report.send(match found {
                Some(entry) => Outcome::New(Arc::new(entry)),
                None => Outcome::Unchanged { at_ms },
            });
        });
        if job.is_rejected() {
            // Its report may have found the channel full; nobody shall wait for ever.
            self.loaded(key, Outcome::Lost);
        } else {
            state.loading = Some((self.jobs, job));
        }
    }

    fn loaded(&mut self, key: &Key, outcome: Outcome) {
        let Some(state) = self.entries.get_mut(key) else { return };
        state.loading = None;
        let waiting = std::mem::take(&mut state.waiting);
        let known = state.kept.as_ref().map(|kept| Arc::clone(&kept.entry));
        let answer = match outcome {
            // A missing file, say: all workers may go on with what they have.
            Outcome::New(entry) if known.as_ref().is_some_and(|known| known.is_same(&entry)) => {
                if let Some(known) = &known {
                    known.looked_at(entry.checked_ms());
                }
                known
            }
            Outcome::New(entry) => {
                self.forget(key);
                if is_passing(&entry) || !entry.kind().keeps(key.1.len()) {
                    entry.retire();
                } else {
                    self.keep(key, &entry);
                }
                Some(entry)
            }
            Outcome::Unchanged { at_ms } => {
                if let Some(entry) = &known {
                    entry.looked_at(at_ms);
                }
                known
            }
            Outcome::Lost => None,
        };
        let is_empty = self.entries.get(key).is_some_and(|state| state.kept.is_none());
        if is_empty || key.0 < self.oldest_tree {
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
            places: self.orders.push(key, entry, uptime_ms()),
        };
        self.entries.entry(key.clone()).or_default().kept = Some(kept);
    }

    fn forget(&mut self, key: &Key) {
        let state = self.entries.remove(key);
        if let Some(kept) = state.and_then(|state| state.kept) {
            kept.entry.retire();
            self.orders.remove(&kept.places);
        }
        // Shrinks the table after a flood. Twice the needed size is left, so that this happens seldom.
        let needed = self.entries.len().max(MIN_TABLE);
        if self.entries.capacity() > 8 * needed {
            self.entries.shrink_to(2 * needed);
        }
    }

    fn evict(&mut self) {
        for which in Which::EACH {
            self.evict_from(which);
        }
    }

    /// Second chance: the oldest of those that count goes, unless it was used since it was put into the order.
    fn evict_from(&mut self, which: Which) {
        let mut chances = self.orders.of(which).len();
        while self.orders.of(which).is_over() {
            let Some(Place { key, since, share }) = self.orders.of_mut(which).pop() else {
                return;
            };
            let state = self.entries.get_mut(&key);
            let Some((kept, is_loading)) =
                state.and_then(|state| Some((state.kept.as_mut()?, state.loading.is_some())))
            else {
                continue;
            };
            let used = kept.entry.used_ms() > since;
            if !is_loading && (!used || chances == 0) {
                self.forget(&key);
                continue;
            }
            // It keeps a place, even if nobody has chances left: what has none could never be evicted.
            let number = self.orders.of_mut(which).push(key, uptime_ms(), share);
            kept.places[which as usize] = Some(number);
            if chances == 0 {
                return;
            }
            chances -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
