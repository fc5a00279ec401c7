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
use crate::kind::Kind;

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
    for number in 0..MAX_QUESTIONS {
        assert!(is_taken(), "number {number}");
    }
    assert!(!is_taken(), "one more than may wait");
    drop(slow.messages.recv());
    assert!(is_taken() && !is_taken(), "there was room for one");
}

/// A cache whose owner takes one message at a time.
struct Slow {
    cache: Cache,
    owner: Owner,
    messages: Receiver<Message>,
    tree: Arc<Tree>,
    folder: tempfile::TempDir,
}

type Asking = Pin<Box<dyn Future<Output = Lookup>>>;

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
        let (cache, owner, messages) = Cache::with_owner(1 << 20, 16, Pool::new(1));
        Slow {
            cache,
            owner,
            messages,
            tree: Arc::new(Tree::standalone(&settings, 1 << 20).expect("a tree")),
            folder,
        }
    }

    /// Asks for the file, whose folder is not open, so the question waits for the owner.
    fn ask(&self) -> Asking {
        let (cache, tree) = (self.cache.clone(), Arc::clone(&self.tree));
        let mut asking: Asking = Box::pin(async move { cache.look_up(&tree, &"/a.txt".into()).await });
        assert!(poll(&mut asking).is_pending());
        asking
    }

    fn take_messages(&mut self, count: usize) {
        for _ in 0..count {
            let message = self.messages.recv_timeout(Duration::from_secs(30));
            self.owner.handle(message.expect("a message"));
        }
    }
}

fn poll(asking: &mut Asking) -> Poll<Lookup> {
    asking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn is_found(answer: &Poll<Lookup>) -> bool {
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
            let mut asking: Asking = Box::pin(async move { cache.look_up(&tree, &"/a.txt".into()).await });
            if let Poll::Ready(found) = poll(&mut asking) {
                return found.expect("an entry");
            }
            drop(asking);
            while let Ok(message) = self.messages.try_recv() {
                self.owner.handle(message);
            }
        }
    }
}

#[test]
fn what_a_worker_finds_by_itself_is_offered_and_the_first_is_kept() {
    let mut slow = Slow::new();
    slow.open();
    let (first, second) = (slow.find(), slow.find());
    assert!(!Arc::ptr_eq(&first, &second) && second.instead().is_none());
    slow.take_messages(1);
    assert!(!first.is_gone());
    assert!(second.is_gone() && second.instead().is_some_and(|instead| Arc::ptr_eq(&instead, &first)));
    assert_eq!(slow.owner.entries.len(), 1);
    // Nobody has told the owner of this one, but it was made before the next message.
    slow.owner.handle(Message::Limit { bytes: 1 << 20 });
    let third = slow.find();
    slow.take_messages(1);
    assert!(third.instead().is_some_and(|instead| Arc::ptr_eq(&instead, &first)));
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
    assert!(first.is_gone() && first.instead().is_none());
    assert!(!second.is_gone());
}

#[test]
fn one_job_looks_for_all_who_ask() {
    let mut slow = Slow::new();
    let (mut first, mut second, third) = (slow.ask(), slow.ask(), slow.ask());
    slow.take_messages(3);
    drop(third);
    // What the job has found.
    slow.take_messages(1);
    assert!(is_found(&poll(&mut first)) && is_found(&poll(&mut second)));
    assert_eq!(slow.owner.jobs, 1);
}

#[test]
fn an_offer_ends_the_waiting_for_a_job() {
    let mut slow = Slow::new();
    let mut asking = slow.ask();
    slow.take_messages(1);
    slow.open();
    let found = slow.find();
    // The offer, and what the job has found.
    slow.take_messages(2);
    assert!(is_found(&poll(&mut asking)));
    let kept = &slow.owner.entries.values().next().and_then(|state| state.kept.as_ref());
    assert!(kept.is_some_and(|kept| kept.entry.is_same(&found)));
}

#[test]
fn what_a_job_finds_to_be_the_same_leaves_all_workers_what_they_have() {
    let mut slow = Slow::new();
    slow.open();
    let first = slow.find();
    slow.take_messages(1);
    let again = slow.find();
    let key = (slow.tree.id, Arc::from("/a.txt"));
    slow.owner.loaded(&key, Outcome::New(again));
    let kept = slow.owner.entries[&key].kept.as_ref();
    assert!(kept.is_some_and(|kept| Arc::ptr_eq(&kept.entry, &first)) && !first.is_gone());
}

#[test]
fn an_offer_that_comes_late_replaces_nothing_that_was_found_after_it() {
    let mut slow = Slow::new();
    slow.open();
    let first = slow.find();
    slow.take_messages(1);
    let key = (slow.tree.id, Arc::from("/a.txt"));
    first.looked_at(uptime_ms() + 1000);
    let late = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), uptime_ms()));
    let used = slow.owner.offer(&key, Arc::clone(&late));
    assert!(Arc::ptr_eq(&used, &first) && late.is_gone() && !first.is_gone());
}

/// Gives the owner an entry as a worker does.
fn offer(slow: &mut Slow, path: &str, found: Found) -> Arc<Entry> {
    let entry = Arc::new(Entry::new(found, Vec::new(), uptime_ms()));
    slow.owner.offer(&(slow.tree.id, path.into()), entry)
}

/// As many as there are, of what is kept.
fn kept(slow: &Slow) -> (usize, u64) {
    let bytes = slow.owner.entries.iter().filter_map(|((_, path), state)| {
        let kept = state.kept.as_ref()?;
        Some(weight(path, &kept.entry))
    });
    (slow.owner.entries.len(), bytes.sum())
}

const NOT_FOUND: Found = Found::Failed(Status::NOT_FOUND);

#[test]
fn missing_paths_are_kept_while_short_and_few_and_displace_no_files() {
    let mut slow = Slow::new();
    slow.owner.handle(Message::Limit { bytes: 256 << 20 });
    let file = offer(&mut slow, "/there", Found::WithoutSlash);
    let most = Kind::Missing.limit(256 << 20);
    let mut gone = 0;
    for number in 0..20_000 {
        let path = format!("/{number}/{}", "x".repeat(200));
        let before = slow.owner.entries.len();
        offer(&mut slow, &path, NOT_FOUND);
        gone += usize::from(slow.owner.entries.len() <= before);
        assert!(slow.owner.orders.of(Which::Missing).used() <= most);
    }
    assert!(gone > 0 && !file.is_gone());
    let (entries, bytes) = kept(&slow);
    assert_eq!(slow.owner.orders.of(Which::All).used(), bytes, "paths are counted");
    assert!(bytes <= most + weight("/there", &file));
    for (length, is_kept) in [(256, true), (257, false)] {
        let path = "y".repeat(length);
        let entry = offer(&mut slow, &path, NOT_FOUND);
        assert_eq!(entry.is_gone(), !is_kept, "a missing path of {length} bytes");
    }
    assert!(slow.owner.entries.len() <= entries + 1);
    assert_eq!(kept(&slow).1, slow.owner.orders.of(Which::All).used());
}

#[test]
fn paths_and_tables_count_against_the_memory() {
    let mut slow = Slow::new();
    let (short, long) = ("/a", "/".repeat(8000));
    let both = {
        let entry = Entry::new(Found::WithoutSlash, Vec::new(), 0);
        weight(short, &entry) + weight(&long, &entry)
    };
    assert!(both > 8000 + 2 * size_of::<(Key, State)>() as u64);
    for (memory, gone) in [(both, false), (both - 1, true)] {
        slow.owner.handle(Message::Limit { bytes: memory });
        let first = offer(&mut slow, short, Found::WithoutSlash);
        offer(&mut slow, &long, Found::WithoutSlash);
        assert_eq!(first.is_gone(), gone, "{memory} bytes for two entries of {both}");
    }
}

#[test]
fn entries_have_a_number_as_well_and_tables_shrink() {
    let mut slow = Slow::new();
    slow.owner.handle(Message::Limit { bytes: 1 << 40 });
    let oldest = offer(&mut slow, "/0", Found::WithoutSlash);
    for number in 1..MAX_ENTRIES {
        offer(&mut slow, &format!("/{number}"), Found::WithoutSlash);
    }
    assert!(!oldest.is_gone(), "{MAX_ENTRIES} entries have room");
    offer(&mut slow, &format!("/{MAX_ENTRIES}"), Found::WithoutSlash);
    assert!(oldest.is_gone(), "one more takes the place of the oldest");
    assert_eq!(slow.owner.entries.len(), MAX_ENTRIES);
    slow.owner.handle(Message::Limit { bytes: 1 });
    assert_eq!(slow.owner.entries.len(), 0);
    assert_eq!(slow.owner.orders.of(Which::All).len(), 0);
    assert!(
        slow.owner.entries.capacity() <= 8 * MIN_TABLE,
        "{}",
        slow.owner.entries.capacity()
    );
}

#[test]
fn questions_that_wait_are_bounded_in_bytes() {
    let slow = Slow::new();
    let path: Arc<str> = format!("/{}", "x".repeat(8000)).into();
    let is_taken = || {
        let asked = slow.cache.ask(&slow.tree, &path);
        pin!(asked).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    };
    let most = MAX_QUESTION_BYTES as usize / path.len();
    let taken = (0..most).take_while(|_| is_taken()).count();
    assert!((most * 3 / 4..most).contains(&taken), "{taken} of {most}");
    let mut slow = slow;
    slow.take_messages(1);
    let asked = slow.cache.ask(&slow.tree, &path);
    assert!(
        pin!(asked).poll(&mut Context::from_waker(Waker::noop())).is_pending(),
        "there is room for one"
    );
}
