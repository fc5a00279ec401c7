//! Tests of the limits of the query channel, of inserts, and of eviction.

use std::pin::{Pin, pin};
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rocknet_config::model::Settings;
use rocknet_proto::status::Status;

use super::storage::MIN_NEEDED;
use super::*;
use crate::cache::file_cache::{FileCache, MAX_QUERIES, MAX_QUERY_BYTES};
use crate::cache::key::MAX_ENTRIES;
use crate::cache::message::LoadOutcome;
use crate::cache::weight;
use crate::entry::Found;
use crate::entry_kind::EntryKind;
use crate::tree::Tree;

#[test]
fn a_full_queue_refuses_queries_immediately_and_accepts_them_when_there_is_room() {
    let stepped = SteppedCache::new();
    // The folder is not open, so a non-blocking lookup is impossible.
    let path = Arc::from("/a.txt");
    let is_accepted = || {
        let query = stepped.cache.look_up(&stepped.tree, &path);
        match pin!(query).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                assert!(result.is_none(), "an entry although the cache thread does not run");
                false
            }
        }
    };
    for number in 0..MAX_QUERIES {
        assert!(is_accepted(), "number {number}");
    }
    assert!(!is_accepted(), "one query too many");
    drop(stepped.messages.recv());
    assert!(is_accepted() && !is_accepted(), "there is room for exactly one");
}

/// A cache without a running thread. The test processes the messages one at a time.
struct SteppedCache {
    cache: FileCache,
    thread: CacheThread,
    messages: Receiver<Message>,
    tree: Arc<Tree>,
    folder: tempfile::TempDir,
}

/// A query for a path, which the test polls.
type Query = Pin<Box<dyn Future<Output = LookupResult>>>;

impl SteppedCache {
    fn new() -> SteppedCache {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "text").expect("a file");
        let settings = Settings {
            root: Some(folder.path().to_owned()),
            // With compression, precompressed files would be looked up, and their names are not in the dentry cache.
            compress: false,
            ..Settings::default()
        };
        // 1 MiB of memory and 16 open files.
        let (cache, thread, messages) = FileCache::with_thread(1 << 20, 16, Pool::new(1));
        SteppedCache {
            cache,
            thread,
            messages,
            tree: Arc::new(Tree::standalone(&settings, 1 << 20).expect("a tree")),
            folder,
        }
    }

    /// Queries the file. Its folder is not open, so the query waits for the cache thread.
    fn query(&self) -> Query {
        let (cache, tree) = (self.cache.clone(), Arc::clone(&self.tree));
        let mut query: Query = Box::pin(async move { cache.look_up(&tree, &"/a.txt".into()).await });
        assert!(poll(&mut query).is_pending());
        query
    }

    /// Queries only the shared cache.
    fn query_shared(&self) -> Query {
        let (cache, tree) = (self.cache.clone(), Arc::clone(&self.tree));
        let mut query: Query = Box::pin(async move { cache.look_up_shared(&tree, &"/a.txt".into()).await });
        assert!(poll(&mut query).is_pending());
        query
    }

    /// Processes this number of messages.
    fn take_messages(&mut self, count: usize) {
        for _ in 0..count {
            let message = self.messages.recv_timeout(Duration::from_secs(30));
            self.thread.handle(message.expect("a message"));
        }
    }
}

fn poll(query: &mut Query) -> Poll<LookupResult> {
    query.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn is_found(result: &Poll<LookupResult>) -> bool {
    matches!(result, Poll::Ready(Some(entry)) if matches!(entry.found, Found::Asset(_)))
}

impl SteppedCache {
    /// Opens the folder, so that its files can be looked up without blocking.
    fn open(&self) {
        self.tree.root().expect("it is opened");
    }

    /// Loads an entry without blocking, as a worker does. Retries, because the kernel may fail a non-blocking lookup
    /// while other names in the folder change.
    fn find(&mut self) -> Arc<Entry> {
        loop {
            let (cache, tree) = (self.cache.clone(), Arc::clone(&self.tree));
            let mut query: Query = Box::pin(async move { cache.look_up(&tree, &"/a.txt".into()).await });
            if let Poll::Ready(found) = poll(&mut query) {
                return found.expect("an entry");
            }
            drop(query);
            while let Ok(message) = self.messages.try_recv() {
                self.thread.handle(message);
            }
        }
    }
}

#[test]
fn entries_loaded_by_workers_are_inserted_and_the_first_one_replaces_equal_ones() {
    let mut stepped = SteppedCache::new();
    stepped.open();
    let (first, second) = (stepped.find(), stepped.find());
    assert!(!Arc::ptr_eq(&first, &second) && second.replacement().is_none());
    stepped.take_messages(1);
    assert!(!first.is_retired());
    assert!(
        second.is_retired()
            && second
                .replacement()
                .is_some_and(|replacement| Arc::ptr_eq(&replacement, &first))
    );
    assert_eq!(stepped.thread.entries.len(), 1);
    // A message of another kind does not prevent the notification of a later insert.
    stepped.thread.handle(Message::SetMemory { bytes: 1 << 20 });
    let third = stepped.find();
    stepped.take_messages(1);
    assert!(
        third
            .replacement()
            .is_some_and(|replacement| Arc::ptr_eq(&replacement, &first))
    );
}

#[test]
fn a_changed_file_replaces_the_stored_entry() {
    let mut stepped = SteppedCache::new();
    stepped.open();
    let first = stepped.find();
    stepped.take_messages(1);
    std::fs::write(stepped.folder.path().join("a.txt"), "longer than before").expect("a file");
    let second = stepped.find();
    stepped.take_messages(1);
    assert!(first.is_retired() && first.replacement().is_none());
    assert!(!second.is_retired());
}

#[test]
fn one_job_serves_all_queries_for_a_path() {
    let mut stepped = SteppedCache::new();
    let (mut first, mut second, third) = (stepped.query(), stepped.query(), stepped.query());
    stepped.take_messages(3);
    drop(third);
    // The message with the outcome of the job.
    stepped.take_messages(1);
    assert!(is_found(&poll(&mut first)) && is_found(&poll(&mut second)));
    assert_eq!(stepped.thread.jobs, 1);
}

#[test]
fn a_query_is_served_and_the_entry_is_stored_if_an_insert_arrives_during_a_job() {
    let mut stepped = SteppedCache::new();
    let mut query = stepped.query();
    stepped.take_messages(1);
    stepped.open();
    let found = stepped.find();
    // The messages with the insert and with the outcome of the job.
    stepped.take_messages(2);
    assert!(is_found(&poll(&mut query)));
    let stored = &stepped
        .thread
        .entries
        .values()
        .next()
        .and_then(|state| state.stored.as_ref());
    assert!(stored.is_some_and(|stored| stored.entry.is_same(&found)));
}

#[test]
fn a_job_with_an_equal_result_keeps_the_stored_entry() {
    let mut stepped = SteppedCache::new();
    stepped.open();
    let first = stepped.find();
    stepped.take_messages(1);
    let again = stepped.find();
    let key = (stepped.tree.id, Arc::from("/a.txt"));
    stepped.thread.finish_load(&key, LoadOutcome::New(again));
    let stored = stepped.thread.entries[&key].stored.as_ref();
    assert!(stored.is_some_and(|stored| Arc::ptr_eq(&stored.entry, &first)) && !first.is_retired());
}

#[test]
fn a_purge_also_removes_entries_that_are_being_loaded() {
    let mut stepped = SteppedCache::new();
    let purge = |stepped: &mut SteppedCache| {
        let (done, purged) = sync_channel(1);
        stepped.thread.handle(Message::Purge { done });
        purged.try_recv().expect("a reply");
    };
    // The job has read the file before the purge.
    let mut query = stepped.query();
    stepped.take_messages(1);
    let loaded = stepped
        .messages
        .recv_timeout(Duration::from_secs(30))
        .expect("an outcome");
    purge(&mut stepped);
    stepped.thread.handle(loaded);
    assert!(is_found(&poll(&mut query)));
    assert!(stepped.thread.entries.is_empty());
    // A query after the purge does not get what an earlier job has read.
    let (mut earlier, mut later) = (stepped.query_shared(), stepped.query_shared());
    stepped.take_messages(1);
    let query = stepped
        .messages
        .recv_timeout(Duration::from_secs(30))
        .expect("the later query");
    let outcome = stepped
        .messages
        .recv_timeout(Duration::from_secs(30))
        .expect("an outcome");
    purge(&mut stepped);
    stepped.thread.handle(query);
    stepped.thread.handle(outcome);
    assert!(poll(&mut earlier).is_pending() && poll(&mut later).is_pending());
    stepped.take_messages(1);
    assert!(is_found(&poll(&mut earlier)) && is_found(&poll(&mut later)));
    // A job reports that the file of a stored entry is unchanged.
    stepped.open();
    // An entry that was checked in the millisecond of the purge would not be stored.
    let purged_ms = uptime_ms();
    while uptime_ms() <= purged_ms {
        std::hint::spin_loop();
    }
    let stored = stepped.find();
    stepped.take_messages(1);
    let key = (stepped.tree.id, Arc::from("/a.txt"));
    assert!(stepped.thread.entries.contains_key(&key));
    let tree = Arc::clone(&stepped.tree);
    stepped.thread.load(&tree, &key);
    purge(&mut stepped);
    assert!(stored.is_retired());
    stepped.take_messages(1);
    assert!(stepped.thread.entries.is_empty());
}

#[test]
fn a_late_insert_does_not_replace_a_newer_entry() {
    let mut stepped = SteppedCache::new();
    stepped.open();
    let first = stepped.find();
    stepped.take_messages(1);
    let key = (stepped.tree.id, Arc::from("/a.txt"));
    first.mark_checked(uptime_ms() + 1000);
    let late = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), uptime_ms()));
    let used = stepped.thread.insert(&key, Arc::clone(&late));
    assert!(Arc::ptr_eq(&used, &first) && late.is_retired() && !first.is_retired());
}

/// Inserts an entry as a worker does.
fn insert(stepped: &mut SteppedCache, path: &str, found: Found) -> Arc<Entry> {
    let entry = Arc::new(Entry::new(found, Vec::new(), uptime_ms()));
    stepped.thread.insert(&(stepped.tree.id, path.into()), entry)
}

/// Returns the number of entries, and the bytes of those that are stored.
fn stored(stepped: &SteppedCache) -> (usize, u64) {
    let bytes = stepped.thread.entries.iter().filter_map(|((_, path), state)| {
        let stored = state.stored.as_ref()?;
        Some(weight(path, &stored.entry))
    });
    (stepped.thread.entries.len(), bytes.sum())
}

const NOT_FOUND: Found = Found::Failed(Status::NOT_FOUND);

#[test]
fn short_missing_paths_are_stored_up_to_a_limit_and_evict_no_named_entries() {
    let mut stepped = SteppedCache::new();
    stepped.thread.handle(Message::SetMemory { bytes: 256 << 20 });
    let named = insert(&mut stepped, "/there", Found::WithoutSlash);
    let most = EntryKind::Missing.limit(256 << 20);
    let mut evicted = 0;
    for number in 0..20_000 {
        let path = format!("/{number}/{}", "x".repeat(200));
        let before = stepped.thread.entries.len();
        insert(&mut stepped, &path, NOT_FOUND);
        evicted += usize::from(stepped.thread.entries.len() <= before);
        assert!(stepped.thread.queues.of(Bound::Missing).used() <= most);
    }
    assert!(evicted > 0 && !named.is_retired());
    let (entries, bytes) = stored(&stepped);
    assert_eq!(
        stepped.thread.queues.of(Bound::Total).used(),
        bytes,
        "paths are counted"
    );
    assert!(bytes <= most + weight("/there", &named));
    // The maximum length of a missing path is 256 bytes.
    for (length, is_kept) in [(256, true), (257, false)] {
        let path = "y".repeat(length);
        let entry = insert(&mut stepped, &path, NOT_FOUND);
        assert_eq!(entry.is_retired(), !is_kept, "a missing path of {length} bytes");
    }
    assert!(stepped.thread.entries.len() <= entries + 1);
    assert_eq!(stored(&stepped).1, stepped.thread.queues.of(Bound::Total).used());
}

#[test]
fn paths_and_tables_count_against_the_memory() {
    let mut stepped = SteppedCache::new();
    let (short, long) = ("/a", "/".repeat(8000));
    let both = {
        let entry = Entry::new(Found::WithoutSlash, Vec::new(), 0);
        weight(short, &entry) + weight(&long, &entry)
    };
    assert!(both > 8000 + 2 * size_of::<(Key, EntryState)>() as u64);
    for (memory, evicted) in [(both, false), (both - 1, true)] {
        stepped.thread.handle(Message::SetMemory { bytes: memory });
        let first = insert(&mut stepped, short, Found::WithoutSlash);
        insert(&mut stepped, &long, Found::WithoutSlash);
        assert_eq!(first.is_retired(), evicted, "{memory} bytes for two entries of {both}");
    }
}

#[test]
fn the_number_of_entries_is_bounded_and_tables_shrink() {
    let mut stepped = SteppedCache::new();
    stepped.thread.handle(Message::SetMemory { bytes: 1 << 40 });
    let oldest = insert(&mut stepped, "/0", Found::WithoutSlash);
    for number in 1..MAX_ENTRIES {
        insert(&mut stepped, &format!("/{number}"), Found::WithoutSlash);
    }
    assert!(!oldest.is_retired(), "{MAX_ENTRIES} entries fit");
    insert(&mut stepped, &format!("/{MAX_ENTRIES}"), Found::WithoutSlash);
    assert!(oldest.is_retired(), "one more evicts the oldest");
    assert_eq!(stepped.thread.entries.len(), MAX_ENTRIES);
    stepped.thread.handle(Message::SetMemory { bytes: 1 });
    assert_eq!(stepped.thread.entries.len(), 0);
    assert_eq!(stepped.thread.queues.of(Bound::Total).len(), 0);
    assert!(
        stepped.thread.entries.capacity() <= 8 * MIN_NEEDED,
        "{}",
        stepped.thread.entries.capacity()
    );
}

#[test]
fn queued_queries_are_bounded_in_bytes() {
    let stepped = SteppedCache::new();
    let path: Arc<str> = format!("/{}", "x".repeat(8000)).into();
    let is_accepted = || {
        let query = stepped.cache.look_up_shared(&stepped.tree, &path);
        pin!(query).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    };
    let most = MAX_QUERY_BYTES as usize / path.len();
    // A query counts with its path and the size of its message, so fewer than `most` are accepted.
    let taken = (0..most).take_while(|_| is_accepted()).count();
    assert!((most * 3 / 4..most).contains(&taken), "{taken} of {most}");
    let mut stepped = stepped;
    stepped.take_messages(1);
    let query = stepped.cache.look_up_shared(&stepped.tree, &path);
    assert!(
        pin!(query).poll(&mut Context::from_waker(Waker::noop())).is_pending(),
        "there is room for one"
    );
}
