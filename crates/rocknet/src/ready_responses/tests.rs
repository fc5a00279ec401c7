//! Tests of the table of ready responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use rocknet_handler::exchange::Exchange;
use rocknet_handler::services::Services;
use rocknet_handler::stored::CodedForms;
use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, respond_with};
use rocknet_proto::fields::FieldList;
use rocknet_proto::status::Status;

use super::*;
use crate::files::entry::Found;
use crate::response::Response;
use crate::route::Route;

struct Until {
    ms: u64,
    is_current: Arc<AtomicBool>,
    stored: Arc<dyn Stored>,
}

impl Reuse for Until {
    fn is_current(&self) -> bool {
        self.is_current.load(Ordering::Relaxed)
    }

    fn valid_until_ms(&self) -> u64 {
        self.ms
    }

    fn applies_to(&self, _: &ExchangeRef<'_>) -> bool {
        true
    }

    fn is_of(&self, stored: &Arc<dyn Stored>) -> bool {
        Arc::ptr_eq(stored, &self.stored)
    }

    fn memory_size(&self) -> usize {
        0
    }

    fn count(&self, _: &Services) {}
}

/// A stored response without a body.
#[derive(Debug, Default)]
struct Empty(CodedForms, Bytes);

impl Stored for Empty {
    fn coded_forms(&self) -> &CodedForms {
        &self.0
    }

    fn body(&self) -> &Bytes {
        &self.1
    }
}

struct Unused;

impl Handler for Unused {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        respond_with(async { Response::new(Status::OK) })
    }
}

fn key(target: &str) -> RequestKey<'_> {
    RequestKey {
        site: 1,
        is_secure: false,
        authority: b"h.test",
        target: target.as_bytes(),
        accept_encoding: None,
    }
}

/// A table, and the stored response of all its requests.
struct Fixture {
    table: ReadyResponses,
    is_current: Arc<AtomicBool>,
    stored: Arc<dyn Stored>,
    endpoint: Rc<CachedEndpoint>,
}

impl Fixture {
    fn new() -> Fixture {
        let settings = rocknet_config::model::Settings::default();
        let route = Route::new(&settings, Default::default(), Default::default(), Arc::default());
        let endpoint = CachedEndpoint {
            route: Arc::new(route.unwrap_or_else(|error| panic!("{error}"))),
            handler: Arc::new(Unused),
            pages: None,
            path: "/".into(),
            is_file_path: true,
        };
        Fixture {
            table: ReadyResponses::default(),
            is_current: Arc::new(AtomicBool::new(true)),
            stored: Arc::new(Empty::default()),
            endpoint: Rc::new(endpoint),
        }
    }

    fn note(&self, target: &str, now_ms: u64) -> bool {
        self.table.note(key(target), &self.stored, now_ms)
    }

    fn is_sent(&self, target: &str, now_ms: u64) -> bool {
        self.table.get(key(target), now_ms).is_some()
    }

    /// Keeps a response until `ms`, with a field of `field` bytes and a body of its own.
    fn keep_large(&self, target: &str, ms: u64, now_ms: u64, field: usize, own_body: usize) {
        self.keep_with(target, ms, now_ms, (field, own_body), None);
    }

    /// Keeps a response in place of a script.
    fn keep_script(&self, target: &str, script: &Arc<Entry>, now_ms: u64) {
        self.keep_with(target, u64::MAX, now_ms, (0, 0), Some(Arc::clone(script)));
    }

    fn keep_with(
        &self,
        target: &str,
        ms: u64,
        now_ms: u64,
        (field, own_body): (usize, usize),
        script: Option<Arc<Entry>>,
    ) {
        let reuse = Box::new(Until {
            ms,
            is_current: Arc::clone(&self.is_current),
            stored: Arc::clone(&self.stored),
        });
        let mut fields = FieldList::default();
        if field > 0 {
            fields.add("X-Large", "x".repeat(field));
        }
        let ready = ReadyResponse::new(
            reuse,
            PreparedHeads::new(Status::OK, &fields, 4),
            Rc::new(*b"body"),
            "HIT",
            Rc::clone(&self.endpoint),
            GuardList::default(),
            script,
            own_body,
            now_ms,
        );
        self.table.keep(key(target), ready, now_ms);
    }

    fn keep(&self, target: &str, ms: u64, now_ms: u64) {
        self.keep_large(target, ms, now_ms, 0, 0);
    }

    /// Asserts the limits of the table, and returns the number of its requests.
    #[track_caller]
    fn slots(&self) -> usize {
        let table = self.table.0.borrow();
        assert!(table.slots.len() <= MAX_SLOTS && table.bytes <= MAX_BYTES);
        table.slots.len()
    }
}

#[test]
fn a_repeated_request_is_kept_while_its_handler_permits() {
    let fixture = Fixture::new();
    assert!(!fixture.note("/a", 1_000));
    // The next request is too late to be frequent.
    assert!(!fixture.note("/a", 2_001));
    assert!(fixture.note("/a", 2_500));
    fixture.keep("/a", 2_900, 2_500);
    assert!(fixture.is_sent("/a", 2_500) && fixture.is_sent("/a", 2_749) && !fixture.is_sent("/a", 2_750));
    assert!(!fixture.is_sent("/b", 2_500));
    let coded = RequestKey {
        accept_encoding: Some(b""),
        ..key("/a")
    };
    assert!(fixture.table.get(coded, 2_500).is_none());
    // The handler was called again, and has the same response until its end.
    assert!(!fixture.note("/a", 2_760));
    assert!(fixture.is_sent("/a", 2_899) && !fixture.is_sent("/a", 2_900));
    assert!(fixture.note("/a", 2_900));
    fixture.keep("/a", 9_000, 2_900);
    assert!(fixture.is_sent("/a", 3_000));
    fixture.is_current.store(false, Ordering::Relaxed);
    assert!(!fixture.is_sent("/a", 3_000));
    // A sweep drops the body, and later the request.
    fixture.table.tick(4_000);
    assert!(!fixture.table.is_empty());
    fixture.table.tick(9_000);
    assert!(fixture.table.is_empty());
}

/// A request for the same target can get another stored response, for instance because of `Vary`.
#[test]
fn another_stored_response_does_not_renew_one() {
    let fixture = Fixture::new();
    fixture.note("/a", 1_000);
    fixture.keep("/a", u64::MAX, 1_000);
    let other: Arc<dyn Stored> = Arc::new(Empty::default());
    assert!(fixture.table.note(key("/a"), &other, 1_300));
    assert!(!fixture.is_sent("/a", 1_300));
    assert!(!fixture.note("/a", 1_300));
    assert!(fixture.is_sent("/a", 1_300));
}

/// The path of a request may lead to another file by then, whose guards are others.
#[test]
fn a_response_in_place_of_a_script_is_not_sent_longer_than_its_entry() {
    let fixture = Fixture::new();
    let entry = |checked_ms| Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), checked_ms));
    let script = entry(1_000);
    let end = 1_000 + STALE_AFTER_MS;
    fixture.note("/a", 1_600);
    fixture.keep_script("/a", &script, 1_600);
    assert!(fixture.is_sent("/a", end - 1) && !fixture.is_sent("/a", end));
    // An entry that is checked again is used further.
    assert!(fixture.note("/a", end));
    script.mark_checked(end);
    assert!(!fixture.note("/a", end) && fixture.is_sent("/a", end + MAX_AGE_MS - 1));
    // A retired one is not, and neither does its handler renew the response.
    script.retire();
    assert!(!fixture.is_sent("/a", end) && fixture.note("/a", end));
    fixture.keep_script("/a", &entry(end), end);
    assert!(fixture.is_sent("/a", end));
    fixture.table.tick(end + FREQUENT_MS);
    assert!(!fixture.table.is_empty());
}

#[test]
fn memory_is_bounded_and_requests_in_use_stay() {
    let fixture = Fixture::new();
    fixture.note("/used", 0);
    fixture.note("/used", 0);
    fixture.keep("/used", u64::MAX, 0);
    for number in 0..3 * MAX_SLOTS {
        let long = format!("/{number}{}", "x".repeat(MAX_REQUEST / 2));
        fixture.note(&long, 10);
        fixture.slots();
    }
    assert!(fixture.is_sent("/used", 10));
    // More responses in use than there is room for.
    for number in 0..2 * MAX_SLOTS {
        let target = format!("/{number}");
        fixture.note(&target, 20);
        fixture.note(&target, 20);
        fixture.keep(&target, u64::MAX, 20);
        assert!(fixture.is_sent(&target, 20), "{target}");
        fixture.slots();
    }
    assert!(fixture.slots() >= MAX_SLOTS / 8);
    let longest = "x".repeat(MAX_REQUEST);
    assert!(!fixture.note(&longest, 10) && !fixture.note(&longest, 10));
    fixture.table.release();
    assert!(fixture.table.is_empty());
}

/// Heads and bodies are large compared with requests, and are known only after them.
#[test]
fn memory_is_bounded_although_responses_are_larger_than_their_requests() {
    for (field, own_body) in [(32 << 10, 0), (0, 100_000)] {
        let fixture = Fixture::new();
        let targets: Vec<String> = (0..1_000).map(|number| format!("/{number}")).collect();
        for target in &targets {
            fixture.note(target, 10);
        }
        for target in &targets {
            fixture.keep_large(target, u64::MAX, 20, field, own_body);
            fixture.slots();
        }
        // Further requests are kept instead of earlier ones.
        fixture.note("/last", 20);
        fixture.keep_large("/last", u64::MAX, 20, field, own_body);
        assert!(fixture.is_sent("/last", 20));
        // One response cannot take the room of all.
        fixture.note("/huge", 20);
        fixture.keep_large("/huge", u64::MAX, 20, 0, MAX_BYTES / FREED_PART);
        assert!(!fixture.is_sent("/huge", 20) && fixture.is_sent("/last", 20));
        let table = fixture.table.0.borrow();
        assert_eq!(table.slots.iter().map(|slot| slot.bytes).sum::<usize>(), table.bytes);
    }
}

/// The whole table is examined only if this frees much of it.
#[test]
fn few_requests_make_room_for_others() {
    let fixture = Fixture::new();
    for number in 0..MAX_SLOTS {
        let target = format!("/{number}");
        fixture.note(&target, 20);
        if number > 0 {
            fixture.keep(&target, u64::MAX, 20);
        }
        let _ = fixture.is_sent(&target, 20);
    }
    let mut shrunk = 0;
    let mut before = fixture.slots();
    for number in 0..MAX_SLOTS / FREED_PART {
        fixture.note(&format!("/new{number}"), 20);
        let slots = fixture.slots();
        shrunk += usize::from(slots <= before);
        before = slots;
    }
    assert!(shrunk <= 2, "{shrunk}");
}
