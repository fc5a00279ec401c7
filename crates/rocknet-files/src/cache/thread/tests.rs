//! The questions before the owner: how many may wait, that nobody waits for room, and that somebody looks in any case.

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
fn a_full_queue_refuses_at_once_and_takes_more_when_there_is_room() {
    let slow = Slow::new();
    // Nobody can see by himself what is in a folder that is not open.
    let path = Arc::from("/a.txt");
    let is_taken = || {
        let asked = slow.cache.look_up(&slow.tree, &path);
        match pin!(asked).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                assert!(answer.is_none(), "an answer though nobody owns the cache");
                false
            }
        }
    };
    for number in 0..MAX_QUERIES {
        assert!(is_taken(), "number {number}");
    }
    assert!(!is_taken(), "one more than may wait");
    drop(slow.messages.recv());
    assert!(is_taken() && !is_taken(), "there was budget for one");
}

/// A cache whose owner takes one message at a time.
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
            // Or names would be asked for that nobody has asked for before.
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

    /// Asks for the file, whose folder is not open, so the question waits for the owner.
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

fn is_found(answer: &Poll<LookupResult>) -> bool {
    matches!(answer, Poll::Ready(Some(entry)) if matches!(entry.found, Found::Asset(_)))
}

impl Slow {
    /// From here on the folder is open, and what is in it is in memory.
    fn open(&self) {
        self.tree.root().expect("it is opened");
    }

    /// What a worker finds by itself. The kernel may say that it cannot tell when names change near by.
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
fn what_a_worker_finds_by_itself_is_offered_and_the_first_is_kept() {
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
    // Nobody has told the owner of this one, but it was made before the next message.
    slow.thread.handle(Message::SetMemory { bytes: 1 << 20 });
    let third = slow.find();
    slow.take_messages(1);
    assert!(third.replacement().is_some_and(|instead| Arc::ptr_eq(&instead, &first)));
}

#[test]
fn what_has_changed_takes_the_place_of_what_was_kept() {
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
fn one_job_looks_for_all_who_ask() {
    let mut slow = Slow::new();
    let (mut first, mut second, third) = (slow.query(), slow.query(), slow.query());
    slow.take_messages(3);
    drop(third);
    // What the job has found.
    slow.take_messages(1);
    assert!(is_found(&poll(&mut first)) && is_found(&poll(&mut second)));
    assert_eq!(slow.thread.jobs, 1);
}

#[test]
fn an_offer_ends_the_waiting_for_a_job() {
    let mut slow = Slow::new();
    let mut query = slow.query();
    slow.take_messages(1);
    slow.open();
    let found = slow.find();
    // The offer, and what the job has found.
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
fn what_a_job_finds_to_be_the_same_leaves_all_workers_what_they_have() {
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
fn an_offer_that_comes_late_replaces_nothing_that_was_found_after_it() {
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

/// Gives the owner an entry as a worker does.
fn insert(slow: &mut Slow, path: &str, found: Found) -> Arc<Entry> {
    let entry = Arc::new(Entry::new(found, Vec::new(), uptime_ms()));
    slow.thread.insert(&(slow.tree.id, path.into()), entry)
}

/// As many as there are, of what is kept.
fn stored(slow: &Slow) -> (usize, u64) {
    let bytes = slow.thread.entries.iter().filter_map(|((_, path), state)| {
        let stored = state.stored.as_ref()?;
        Some(weight(path, &stored.entry))
    });
    (slow.thread.entries.len(), bytes.sum())
}

const NOT_FOUND: Found = Found::Failed(Status::NOT_FOUND);

#[test]
fn missing_paths_are_kept_while_short_and_few_and_displace_no_files() {
    let mut slow = Slow::new();
    slow.thread.handle(Message::SetMemory { bytes: 256 << 20 });
    let file = insert(&mut slow, "/there", Found::WithoutSlash);
    let most = EntryKind::Missing.limit(256 << 20);
    let mut gone = 0;
    for number in 0..20_000 {
        let path = format!("/{number}/{}", "x".repeat(200));
        let before = slow.thread.entries.len();
        insert(&mut slow, &path, NOT_FOUND);
        gone += usize::from(slow.thread.entries.len() <= before);
        assert!(slow.thread.queues.of(Bound::Missing).used() <= most);
    }
    assert!(gone > 0 && !file.is_retired());
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
    for (memory, gone) in [(both, false), (both - 1, true)] {
        slow.thread.handle(Message::SetMemory { bytes: memory });
        let first = insert(&mut slow, short, Found::WithoutSlash);
        insert(&mut slow, &long, Found::WithoutSlash);
        assert_eq!(first.is_retired(), gone, "{memory} bytes for two entries of {both}");
    }
}

#[test]
fn entries_have_a_number_as_well_and_tables_shrink() {
    let mut slow = Slow::new();
    slow.thread.handle(Message::SetMemory { bytes: 1 << 40 });
    let oldest = insert(&mut slow, "/0", Found::WithoutSlash);
    for number in 1..MAX_ENTRIES {
        insert(&mut slow, &format!("/{number}"), Found::WithoutSlash);
    }
    assert!(!oldest.is_retired(), "{MAX_ENTRIES} entries have budget");
    insert(&mut slow, &format!("/{MAX_ENTRIES}"), Found::WithoutSlash);
    assert!(oldest.is_retired(), "one more takes the place of the oldest");
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
fn questions_that_wait_are_bounded_in_bytes() {
    let slow = Slow::new();
    let path: Arc<str> = format!("/{}", "x".repeat(8000)).into();
    let is_taken = || {
        let asked = slow.cache.look_up_shared(&slow.tree, &path);
        pin!(asked).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    };
    let most = MAX_QUERY_BYTES as usize / path.len();
    let taken = (0..most).take_while(|_| is_taken()).count();
    assert!((most * 3 / 4..most).contains(&taken), "{taken} of {most}");
    let mut slow = slow;
    slow.take_messages(1);
    let asked = slow.cache.look_up_shared(&slow.tree, &path);
    assert!(
        pin!(asked).poll(&mut Context::from_waker(Waker::noop())).is_pending(),
        "there is budget for one"
    );
}
