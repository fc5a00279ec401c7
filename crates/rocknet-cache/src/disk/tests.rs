//! Tests of the responses on disk: restarts, crashes, damage and eviction.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rocknet_handler::response::Response;
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::{OwnedRequest, Version};
use rocknet_proto::status::Status;

use super::*;
use crate::policy::{self, RequestFacts, Times};
use crate::stored::Storable;
use crate::vary::Variation;

const MIB: usize = 1 << 20;

/// Maximum time for anything.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) fn moment() -> Moment {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    Moment {
        uptime_ms: 100_000,
        unix_ms: unix.as_millis() as u64,
    }
}

/// Returns a response with this `Cache-Control`.
pub(super) fn stored(control: &str, body: &str) -> StoredResponse {
    let mut response = Response::new(Status::OK);
    response.fields.add("Cache-Control", control);
    let now = moment();
    let times = Times {
        requested_ms: now.uptime_ms,
        received_ms: now.uptime_ms,
        received_unix: now.unix_ms / 1000,
    };
    let terms = policy::terms(
        &RequestFacts::default(),
        response.status,
        &response.fields,
        times,
        &Default::default(),
    );
    let storable = Storable {
        terms: terms.expect("a response that may be stored"),
        variation: Variation::default(),
        tags: Arc::from([Box::from(body.get(..20).unwrap_or(body))]),
        server_fields: Default::default(),
        url: None,
        changes: 0,
    };
    StoredResponse::new(&response, Bytes::from(body.to_owned()), storable)
}

fn key(path: &str) -> Vec<u8> {
    format!("s\0sh\0/{path}\0").into_bytes()
}

fn request(language: &str) -> OwnedRequest {
    let fields = [(KnownField::AcceptLanguage, language.as_bytes())];
    OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &fields)
}

fn until(what: &str, is_done: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_done() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

/// A store in a folder.
struct Opened(DiskStore);

impl Opened {
    fn with(folder: &Path, capacity: usize, is_in_memory: impl Fn(&[u8]) -> bool + Send + 'static) -> Opened {
        let store = DiskStore::start(folder.to_owned(), capacity as u64, is_in_memory).expect("a thread");
        until("the store opens", || store.is_ready());
        Opened(store)
    }

    fn new(folder: &Path) -> Opened {
        Opened::with(folder, 16 * MIB, |_| false)
    }

    fn put(&self, path: &str, body: &str) {
        self.0.put(&key(path), &stored("max-age=600", body), moment(), || true);
    }

    fn body_for(&self, path: &str, request: &OwnedRequest) -> Option<String> {
        let (key, now) = (key(path), moment());
        let entry = self.0.find(&key, &request.view().fields, now.unix_ms / 1000)?;
        let read = self.0.shared.read(&entry, &key, now)?;
        assert!(read.variation.matches(&request.view().fields));
        Some(String::from_utf8(read.body.to_vec()).expect("a text"))
    }

    fn body(&self, path: &str) -> Option<String> {
        self.body_for(path, &request("de"))
    }

    fn flush(&self) {
        assert!(self.0.flush(DEADLINE));
    }

    fn stop(self) {
        assert!(self.0.stop(Instant::now() + DEADLINE));
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).expect("a folder");
    let private = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    fs::set_permissions(to, private).expect("permissions");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
    }
}

#[test]
fn responses_survive_a_restart_and_changes_do_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    for name in ["a", "b", "c", "c/d", "e", "f"] {
        store.put(name, &format!("body of {name}"));
    }
    // Not yet written responses are not found, and written ones are.
    store.flush();
    assert_eq!(store.body("a").as_deref(), Some("body of a"));
    assert_eq!(store.body("x"), None);
    store.0.remove(&key("b"));
    store.0.purge(&[
        Purge::url("https://h/c", true).expect("a purge"),
        Purge::tag("body of e"),
    ]);
    store.put("f", "new");
    store.flush();
    let expect = |store: &Opened| {
        for (name, expected) in [
            ("a", Some("body of a")),
            ("b", None),
            ("c", None),
            ("c/d", None),
            ("e", None),
            ("f", Some("new")),
        ] {
            assert_eq!(store.body(name).as_deref(), expected, "{name}");
        }
    };
    expect(&store);
    // A process that is killed leaves the log as it is now.
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    store.stop();
    for path in [&path, &killed] {
        for _ in 0..2 {
            let store = Opened::new(path);
            expect(&store);
            store.stop();
        }
    }
    // After the purge, the same resources are stored again.
    let store = Opened::new(&path);
    store.put("c", "again");
    store.put("e", "body of e");
    store.flush();
    assert_eq!(store.body("c").as_deref(), Some("again"));
    store.stop();
    let store = Opened::new(&path);
    assert_eq!(store.body("c").as_deref(), Some("again"));
    assert_eq!(store.body("e").as_deref(), Some("body of e"));
    store.0.purge(&[Purge::everything()]);
    assert_eq!(store.body("c"), None);
    store.stop();
    let store = Opened::new(&path);
    assert_eq!((store.body("c"), store.0.usage().objects), (None, 0));
}

#[test]
fn variants_are_selected_by_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    let vary = {
        let mut fields = rocknet_proto::fields::FieldList::default();
        fields.add("Vary", "Accept-Language");
        fields
    };
    for language in ["de", "en"] {
        let mut response = stored("max-age=600", language);
        let of_request = request(language);
        response.variation = Variation::of(&vary, &of_request.view().fields, &[], &[]).expect("a variation");
        store.0.put(&key("a"), &response, moment(), || true);
    }
    store.flush();
    let expect = |store: &Opened| {
        for (language, expected) in [("de", Some("de")), ("en", Some("en")), ("fr", None)] {
            assert_eq!(
                store.body_for("a", &request(language)).as_deref(),
                expected,
                "{language}"
            );
        }
    };
    expect(&store);
    store.stop();
    let store = Opened::new(&path);
    expect(&store);
    // A change concerns all variants.
    store.0.remove(&key("a"));
    assert_eq!(store.body_for("a", &request("de")), None);
    assert_eq!(store.body_for("a", &request("en")), None);
}

#[test]
fn only_current_responses_that_are_fresh_for_long_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Opened::new(&folder.path().join("responses"));
    store.put("a", "old");
    store.put("b", "old");
    store
        .0
        .put(&key("a"), &stored("max-age=600", "outdated"), moment(), || false);
    store.flush();
    assert_eq!(store.body("a").as_deref(), Some("old"));
    // The newer response is only in memory.
    store.0.put(&key("b"), &stored("max-age=5", "new"), moment(), || true);
    assert_eq!(store.body("b"), None);
    store.0.put(
        &key("a"),
        &stored("max-age=600", &"x".repeat(2 * MIB)),
        moment(),
        || true,
    );
    assert_eq!(store.body("a"), None);
    assert_eq!(store.0.usage().skipped, 2);
    // A response that has expired is not read.
    store.put("c", "fresh");
    store.flush();
    let later = moment().unix_ms / 1000 + 601;
    let request = request("de");
    assert!(store.0.find(&key("c"), &request.view().fields, later - 2).is_some());
    assert!(store.0.find(&key("c"), &request.view().fields, later).is_none());
}

/// Checks that for any part of the last segment that was written when the process was killed, earlier responses are
/// read, and no part passes for the whole.
#[test]
fn torn_records_are_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "first");
    store.flush();
    let first = fs::metadata(path.join("00000000.log")).expect("a segment").len();
    store.put("b", "second");
    store.flush();
    let torn = folder.path().join("torn");
    let second = fs::metadata(path.join("00000000.log")).expect("a segment").len();
    for length in (first..second).step_by(11).chain([second - 1]) {
        copy(&path, &torn);
        let segment = fs::OpenOptions::new()
            .write(true)
            .open(torn.join("00000000.log"))
            .expect("a segment");
        segment.set_len(length).expect("a shorter segment");
        // The second start finds a whole segment.
        for number in 0..2 {
            let store = Opened::new(&torn);
            assert_eq!(store.body("a").as_deref(), Some("first"), "{length} {number}");
            assert_eq!(store.body("b"), None, "{length} {number}");
            store.put("c", "third");
            store.stop();
        }
        let store = Opened::new(&torn);
        assert_eq!(store.body("c").as_deref(), Some("third"));
        store.stop();
    }
}

/// A flipped bit anywhere in an older segment costs responses at most. It neither changes one, nor brings one back that
/// was dropped.
#[test]
fn flipped_bits_are_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    for name in ["a", "b", "c", "d"] {
        store.put(name, &format!("old {name}"));
    }
    store.flush();
    store.0.remove(&key("a"));
    store.0.purge(&[Purge::tag("old b")]);
    store.put("c", "new c");
    store.stop();
    let store = Opened::new(&path);
    store.put("e", "last");
    store.stop();
    let whole = fs::read(path.join("00000000.log")).expect("a segment");
    let damaged = folder.path().join("damaged");
    for at in (0..whole.len()).step_by(13) {
        copy(&path, &damaged);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(damaged.join("00000000.log"), &bytes).expect("a segment");
        let store = Opened::new(&damaged);
        assert_eq!((store.body("a"), store.body("b")), (None, None), "byte {at}");
        assert!([None, Some("new c")].contains(&store.body("c").as_deref()), "byte {at}");
        assert!([None, Some("old d")].contains(&store.body("d").as_deref()), "byte {at}");
        assert_eq!(store.body("e").as_deref(), Some("last"), "byte {at}");
        store.stop();
    }
}

#[test]
fn the_oldest_responses_are_dropped_unless_they_were_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let in_memory = key("memory");
    let store = Opened::with(&path, 16 * MIB, move |key| key == in_memory);
    store.put("used", "used");
    store.put("memory", "memory");
    store.put("unused", "unused");
    store.put("purged", "purged");
    store.flush();
    assert!(store.body("used").is_some() && store.body("purged").is_some());
    store.0.purge(&[Purge::tag("purged")]);
    let body = "x".repeat(200_000);
    for number in 0..200 {
        store.put(&number.to_string(), &body);
        store.flush();
        assert!(store.0.usage().size <= 16 * MIB as u64);
        if number % 40 == 0 {
            // It is not found in the moment in which it is written again.
            until("the used response", || store.body("used").as_deref() == Some("used"));
        }
    }
    // The responses of the last dropped segment are written again.
    until("the last records", || {
        store.body("used").is_some() && store.body("memory").is_some()
    });
    let expect = |store: &Opened| {
        assert_eq!(store.body("used").as_deref(), Some("used"));
        assert_eq!(store.body("memory").as_deref(), Some("memory"));
        for gone in ["unused", "purged", "0"] {
            assert_eq!(store.body(gone), None, "{gone}");
        }
        assert_eq!(store.body("199").as_deref(), Some(&*body));
        assert!((40..90).contains(&store.0.usage().objects), "{:?}", store.0.usage());
    };
    expect(&store);
    store.stop();
    let store = Opened::new(&path);
    expect(&store);
    // A smaller size takes effect.
    store.0.set_capacity(4 * MIB as u64);
    until("segments are dropped", || store.0.usage().size <= 4 * MIB as u64);
    store.stop();
}

/// During an upgrade, the new process waits for the old one, and applies the changes since its own start.
#[test]
fn a_second_process_waits_and_loses_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let old = Opened::new(&path);
    for name in ["a", "b", "c", "posted"] {
        old.put(name, name);
    }
    old.flush();
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    new.remove(&key("a"));
    new.purge(&[Purge::tag("b")]);
    // It is stored in memory there.
    new.put(&key("c"), &stored("max-age=600", "newer"), moment(), || true);
    assert!(!new.is_ready());
    // The old process has responses that it requested before.
    old.put("a", "late");
    old.0.close_after(Duration::from_millis(100));
    // A request in progress changes a resource.
    old.0.remove(&key("posted"));
    until("the new process continues", || new.is_ready());
    let new = Opened(new);
    for name in ["a", "b", "c", "posted"] {
        assert_eq!(new.body(name), None, "{name}");
        new.put(name, "new");
    }
    // The old process changes nothing any longer.
    old.put("a", "too late");
    old.0.remove(&key("b"));
    new.flush();
    assert_eq!(old.body("a"), None);
    new.stop();
    let store = Opened::new(&path);
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|name| store.body(name).as_deref() == Some("new"))
    );
}

#[test]
fn changes_that_a_short_process_cannot_record_empty_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.stop();
    let shared = Shared::new(path.clone(), 16 * MIB as u64);
    shared.remove(&key("a"));
    shared.close();
    let held = folder::Folder::open(&path).expect("a folder");
    drop(held);
    // The thread finds the log closed before it has opened it.
    super::thread::run(&shared, &|_| false);
    let store = Opened::new(&path);
    assert_eq!(store.body("a"), None);
}

#[test]
fn a_crash_of_the_system_empties_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    let crashed = folder.path().join("crashed");
    copy(&path, &crashed);
    store.stop();
    for (path, expected) in [(&crashed, None), (&path, Some("a"))] {
        let state = fs::read_to_string(path.join("state")).expect("a state");
        let boot = folder::boot_id();
        assert!(boot.is_empty() || state.contains(&boot));
        let other = state.replace(&boot, "00000000-0000-0000-0000-000000000000");
        fs::write(path.join("state"), other).expect("a state");
        let store = Opened::new(path);
        assert_eq!(store.body("a").as_deref(), expected, "{}", path.display());
    }
}

#[test]
fn an_error_of_the_disk_empties_the_log_and_costs_no_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    // The next segment cannot be created.
    fs::create_dir(path.join("00000001.log")).expect("a folder");
    let body = "x".repeat(600_000);
    for number in 0..3 {
        store.put(&number.to_string(), &body);
    }
    until("the error is noticed", || !store.0.is_ready());
    store.put("b", "b");
    store.0.remove(&key("a"));
    assert_eq!((store.body("a"), store.body("b")), (None, None));
    until("the segments are removed", || !path.join("00000000.log").exists());
    assert_eq!(store.0.usage().objects, 0);
    assert!(store.0.usage().errors > 0);
    store.stop();
}

#[test]
fn a_store_that_is_turned_off_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    store.0.discard();
    store.stop();
    assert!(!path.join("00000000.log").exists());
}

/// Headers that are damaged in the last segment may be those of removals.
#[test]
fn damage_in_the_last_segment_brings_no_response_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let segment = "00000000.log";
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    let second = fs::metadata(path.join(segment)).expect("a segment").len() as usize;
    store.put("b", "b");
    store.0.remove(&key("a"));
    store.flush();
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    let mut bytes = fs::read(killed.join(segment)).expect("a segment");
    bytes[second] ^= 1;
    fs::write(killed.join(segment), &bytes).expect("a segment");
    // After the end in order, no record is torn.
    store.stop();
    let bytes = fs::read(path.join(segment)).expect("a segment");
    fs::write(path.join(segment), &bytes[..bytes.len() - 1]).expect("a segment");
    for path in [&path, &killed] {
        for _ in 0..2 {
            let store = Opened::new(path);
            assert_eq!((store.body("a"), store.body("b")), (None, None));
            store.stop();
        }
    }
}

/// A purge is not reported as recorded before it is.
#[test]
fn a_purge_waits_until_the_log_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let old = Opened::new(&path);
    old.put("a", "a");
    old.flush();
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    assert!(new.flush(Duration::ZERO));
    new.purge(&[Purge::everything()]);
    assert!(!new.flush(Duration::from_millis(10)));
    old.0.close();
    let new = Opened(new);
    new.flush();
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    assert_eq!(Opened::new(&killed).body("a"), None);
    // The old process cannot record changes any longer.
    assert!(old.0.flush(DEADLINE));
    old.0.remove(&key("b"));
    assert!(!old.0.flush(DEADLINE));
    new.stop();
}

#[test]
fn a_kept_response_does_not_take_the_place_of_a_newer_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    let body = "x".repeat(200_000);
    store.put("a", "old");
    store.flush();
    assert_eq!(store.body("a").as_deref(), Some("old"));
    let mut last = 0;
    let mut fill = |count| {
        for _ in 0..count {
            last += 1;
            store.put(&last.to_string(), &body);
            store.flush();
        }
    };
    fill(12);
    // From now on, the response depends on a field.
    let mut vary = rocknet_proto::fields::FieldList::default();
    vary.add("Vary", "Accept-Language");
    let mut newer = stored("max-age=600", "new");
    newer.variation = Variation::of(&vary, &request("de").view().fields, &[], &[]).expect("a variation");
    store.0.put(&key("a"), &newer, moment(), || true);
    store.flush();
    while path.join("00000000.log").exists() {
        fill(1);
    }
    fill(2);
    assert_eq!(store.body("a").as_deref(), Some("new"));
    store.stop();
    assert_eq!(Opened::new(&path).body("a").as_deref(), Some("new"));
}

/// A store that is turned off while another process still uses the folder is emptied afterwards.
#[test]
fn a_store_that_is_turned_off_before_it_is_open_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.stop();
    let held = folder::Folder::open(&path).expect("a folder");
    assert!(held.is_some());
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    new.discard();
    drop(held);
    assert!(new.stop(Instant::now() + DEADLINE));
    assert!(!path.join("00000000.log").exists());
}

#[test]
fn the_oldest_segments_make_room_for_the_state() {
    let parent = tempfile::tempdir().expect("a folder");
    let path = parent.path().join("responses");
    let folder = Arc::new(folder::Folder::open(&path).expect("a folder").expect("the lock"));
    for number in 0..3 {
        drop(folder.create_segment(number).expect("a segment"));
    }
    let shared = Shared::new(path, 16 * MIB as u64);
    let mut writer = writer::Writer {
        shared: &shared,
        folder: Arc::clone(&folder),
        is_in_memory: &|_| false,
        seed: 0,
        segment_size: 1 << 20,
        segments: folder.segments().expect("segments").into(),
        active: None,
        end: 0,
        buffer: Vec::new(),
    };
    let full = || std::io::Error::from(rustix::io::Errno::NOSPC);
    let write = |left: usize| {
        move |folder: &folder::Folder| match folder.segments()?.len() > left {
            true => Err(full()),
            false => Ok(()),
        }
    };
    writer.write_small(write(1)).expect("room");
    assert_eq!(folder.segments().expect("segments"), [(2, 0)]);
    writer.write_small(write(0)).expect("room");
    assert!(writer.write_small(|_| Err::<(), _>(full())).is_err());
}
