//! Tests of the responses on disk: restarts, crashes, damage, eviction, quotas, and changes of URLs.

mod damage;
mod eviction;
mod ownership;
mod quotas;
mod urls;

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

/// Maximum time of each wait.
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
        made_unix: now.unix_ms / 1000,
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
    key_of("s", path)
}

fn key_of(site: &str, path: &str) -> Vec<u8> {
    format!("{site}\0sh\0/{path}\0").into_bytes()
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
        self.body_of(&key(path), request)
    }

    fn body_of(&self, key: &[u8], request: &OwnedRequest) -> Option<String> {
        let now = moment();
        let entry = self.0.find(key, &request.view().fields, now.unix_ms / 1000)?;
        let read = self.0.shared.read(&entry, key, now)?;
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
fn records_are_written_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Opened::new(&folder.path().join("responses"));
    let (begin, written) = (Instant::now(), || store.0.shared.stats.writes.load(Ordering::Relaxed));
    let mut number = 0;
    // Each record comes alone, so writing each at once would need about as many writes as records.
    while written() < 3 {
        store.put(&number.to_string(), "body");
        number += 1;
        assert!(begin.elapsed() < DEADLINE, "{number} records were not written");
        thread::yield_now();
    }
    let most = begin.elapsed().as_millis() / super::thread::GATHER.as_millis() + 1;
    assert!(
        u128::from(written()) <= most,
        "{} writes of {number} records",
        written()
    );
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

#[test]
fn a_thread_that_is_about_to_wait_gets_the_signal_to_close() {
    let long = Duration::from_secs(20);
    let shared = shared::Shared::new("unused".into(), 0);
    thread::scope(|scope| {
        let log = shared.log();
        let closing = scope.spawn(|| shared.close_at(Instant::now()));
        // Without the lock in `close_at`, its signal would come here, where nothing waits for it.
        let until = Instant::now() + Duration::from_millis(100);
        while shared.closes_in().is_none() && Instant::now() < until {
            thread::yield_now();
        }
        assert!(
            shared.closes_in().is_none(),
            "the time is set without the lock of the log"
        );
        let begun = Instant::now();
        let mut log = log;
        while shared.closes_in().is_none() {
            log = shared.wait(log, long);
        }
        drop(log);
        assert!(begun.elapsed() < long);
        closing.join().expect("an end");
    });
}
