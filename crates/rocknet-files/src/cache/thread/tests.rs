//! Tests of the query channel's bounds, of inserts, and of the eviction queues.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rocknet_config::model::Settings;
use rocknet_proto::status::Status;

use super::*;
use crate::cache::key::MAX_ENTRIES;
use crate::cache::weight;
use crate::entry::Found;
use crate::entry_kind::EntryKind;

#[test]
fn a_full_queue_refuses_at_once_and_accepts_queries_when_there_is_room() {
    let slow = Slow::new();
    // The folder is not open, so a non-blocking lookup is impossible.
    let path = Arc::from("/a.txt");
    let is_accepted = || {
        let query = slow.cache.look_up(&slow.tree, &path);
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
    drop(slow.messages.recv());
    assert!(is_accepted() && !is_accepted(), "there is room for exactly one");
}

/// A cache whose thread processes one message at a time.
struct Slow {
    cache: FileCache,
    thread: CacheThread,
    messages: Receiver<Message>,
    tree: Arc<Tree>,
    folder: tempfile::TempDir,
}

type Query = Pin<Box<dyn Future<Output = LookupResult>>>;

impl Slow {
    fn new() -> Slow {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "text").expect("a file");
        let settings = Settings {
            root: Some(folder.path().to_owned()),
            // Otherwise precompressed files would be looked up, which are not in the dentry cache.
            compress: false,
            ..Settings::default()
        };
        let (cache, thread, messages) = FileCache::with_thread(1 << 20, 16, Pool::new(1));
        Slow {
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

impl Slow {
    /// Opens the folder, so that its files can be looked up without blocking.
    fn open(&self) {
        self.tree.root().expect("it is opened");
    }

    /// Loads an entry without blocking, as a worker does. Retries, because the kernel may fail a lookup while names
    /// nearby change.
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
fn entries_loaded_by_workers_are_inserted_and_the_first_is_stored() {
    let mut slow = Slow::new();
    slow.open();
    let (first, second) = (slow.find(), slow.find());
    assert!(!Arc::ptr_eq(&first, &second) && second.replacement().is_none());
    slow.take_messages(1);
    assert!(!first.is_retired());
    assert!(
        second.is_retired()
            && second
                .replacement()
                .is_some_and(|instead| Arc::ptr_eq(&instead, &first))
    );
    assert_eq!(slow.thread.entries.len(), 1);
    // The cache thread is not notified of this insert, but it precedes the next message.
    slow.thread.handle(Message::SetMemory { bytes: 1 << 20 });
    let third = slow.find();
    slow.take_messages(1);
    assert!(third.replacement().is_some_and(|instead| Arc::ptr_eq(&instead, &first)));
}

#[test]
fn a_changed_file_replaces_the_stored_entry() {
    let mut slow = Slow::new();
    slow.open();
    let first = slow.find();
    slow.take_messages(1);
    std::fs::write(slow.folder.path().join("a.txt"), "longer than before").expect("a file");
    let second = slow.find();
    slow.take_messages(1);
    assert!(first.is_retired() && first.replacement().is_none());
    assert!(!second.is_retired());
}

#[test]
fn one_job_serves_all_queries_for_a_path() {
    let mut slow = Slow::new();
    let (mut first, mut second, third) = (slow.query(), slow.query(), slow.query());
    slow.take_messages(3);
    drop(third);
    // The outcome of the job.
    slow.take_messages(1);
    assert!(is_found(&poll(&mut first)) && is_found(&poll(&mut second)));
    assert_eq!(slow.thread.jobs, 1);
}

#[test]
fn an_insert_ends_the_wait_for_a_job() {
    let mut slow = Slow::new();
    let mut query = slow.query();
    slow.take_messages(1);
    slow.open();
    let found = slow.find();
    // The insert, and the outcome of the job.
    slow.take_messages(2);
    assert!(is_found(&poll(&mut query)));
    let stored = &slow
        .thread
        .entries
        .values()
        .next()
        .and_then(|state| state.stored.as_ref());
    assert!(stored.is_some_and(|stored| stored.entry.is_same(&found)));
}

#[test]
fn a_job_that_finds_the_same_keeps_the_stored_entry() {
    let mut slow = Slow::new();
    slow.open();
    let first = slow.find();
    slow.take_messages(1);
    let again = slow.find();
    let key = (slow.tree.id, Arc::from("/a.txt"));
    slow.thread.finish_load(&key, LoadOutcome::New(again));
    let stored = slow.thread.entries[&key].stored.as_ref();
    assert!(stored.is_some_and(|stored| Arc::ptr_eq(&stored.entry, &first)) && !first.is_retired());
}

#[test]
fn a_late_insert_does_not_replace_a_newer_entry() {
    let mut slow = Slow::new();
    slow.open();
    let first = slow.find();
    slow.take_messages(1);
    let key = (slow.tree.id, Arc::from("/a.txt"));
    first.mark_checked(uptime_ms() + 1000);
    let late = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), uptime_ms()));
    let used = slow.thread.insert(&key, Arc::clone(&late));
    assert!(Arc::ptr_eq(&used, &first) && late.is_retired() && !first.is_retired());
}

/// Inserts an entry as a worker does.
fn insert(slow: &mut Slow, path: &str, found: Found) -> Arc<Entry> {
    let entry = Arc::new(Entry::new(found, Vec::new(), uptime_ms()));
    slow.thread.insert(&(slow.tree.id, path.into()), entry)
}

/// Returns the number of entries, and the bytes of those that are stored.
fn stored(slow: &Slow) -> (usize, u64) {
    let bytes = slow.thread.entries.iter().filter_map(|((_, path), state)| {
        let stored = state.stored.as_ref()?;
        Some(weight(path, &stored.entry))
    });
    (slow.thread.entries.len(), bytes.sum())
}

const NOT_FOUND: Found = Found::Failed(Status::NOT_FOUND);

#[test]
fn missing_paths_are_stored_while_short_and_few_and_evict_no_files() {
    let mut slow = Slow::new();
    slow.thread.handle(Message::SetMemory { bytes: 256 << 20 });
    let file = insert(&mut slow, "/there", Found::WithoutSlash);
    let most = EntryKind::Missing.limit(256 << 20);
    let mut evicted = 0;
    for number in 0..20_000 {
        let path = format!("/{number}/{}", "x".repeat(200));
        let before = slow.thread.entries.len();
        insert(&mut slow, &path, NOT_FOUND);
        evicted += usize::from(slow.thread.entries.len() <= before);
        assert!(slow.thread.queues.of(Bound::Missing).used() <= most);
    }
    assert!(evicted > 0 && !file.is_retired());
    let (entries, bytes) = stored(&slow);
    assert_eq!(slow.thread.queues.of(Bound::Total).used(), bytes, "paths are counted");
    assert!(bytes <= most + weight("/there", &file));
    for (length, is_kept) in [(256, true), (257, false)] {
        let path = "y".repeat(length);
        let entry = insert(&mut slow, &path, NOT_FOUND);
        assert_eq!(entry.is_retired(), !is_kept, "a missing path of {length} bytes");
    }
    assert!(slow.thread.entries.len() <= entries + 1);
    assert_eq!(stored(&slow).1, slow.thread.queues.of(Bound::Total).used());
}

#[test]
fn paths_and_tables_count_against_the_memory() {
    let mut slow = Slow::new();
    let (short, long) = ("/a", "/".repeat(8000));
    let both = {
        let entry = Entry::new(Found::WithoutSlash, Vec::new(), 0);
        weight(short, &entry) + weight(&long, &entry)
    };
    assert!(both > 8000 + 2 * size_of::<(Key, EntryState)>() as u64);
    for (memory, evicted) in [(both, false), (both - 1, true)] {
        slow.thread.handle(Message::SetMemory { bytes: memory });
        let first = insert(&mut slow, short, Found::WithoutSlash);
        insert(&mut slow, &long, Found::WithoutSlash);
        assert_eq!(first.is_retired(), evicted, "{memory} bytes for two entries of {both}");
    }
}

#[test]
fn the_number_of_entries_is_bounded_and_tables_shrink() {
    let mut slow = Slow::new();
    slow.thread.handle(Message::SetMemory { bytes: 1 << 40 });
    let oldest = insert(&mut slow, "/0", Found::WithoutSlash);
    for number in 1..MAX_ENTRIES {
        insert(&mut slow, &format!("/{number}"), Found::WithoutSlash);
    }
    assert!(!oldest.is_retired(), "{MAX_ENTRIES} entries fit");
    insert(&mut slow, &format!("/{MAX_ENTRIES}"), Found::WithoutSlash);
    assert!(oldest.is_retired(), "one more evicts the oldest");
    assert_eq!(slow.thread.entries.len(), MAX_ENTRIES);
    slow.thread.handle(Message::SetMemory { bytes: 1 });
    assert_eq!(slow.thread.entries.len(), 0);
    assert_eq!(slow.thread.queues.of(Bound::Total).len(), 0);
    assert!(
        slow.thread.entries.capacity() <= 8 * MIN_TABLE,
        "{}",
        slow.thread.entries.capacity()
    );
}

#[test]
fn queued_queries_are_bounded_in_bytes() {
    let slow = Slow::new();
    let path: Arc<str> = format!("/{}", "x".repeat(8000)).into();
    let is_accepted = || {
        let query = slow.cache.look_up_shared(&slow.tree, &path);
        pin!(query).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    };
    let most = MAX_QUERY_BYTES as usize / path.len();
    let taken = (0..most).take_while(|_| is_accepted()).count();
    assert!((most * 3 / 4..most).contains(&taken), "{taken} of {most}");
    let mut slow = slow;
    slow.take_messages(1);
    let query = slow.cache.look_up_shared(&slow.tree, &path);
    assert!(
        pin!(query).poll(&mut Context::from_waker(Waker::noop())).is_pending(),
        "there is room for one"
    );
}
