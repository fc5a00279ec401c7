//! Tests of the table of ready responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rocknet_handler::exchange::Exchange;
use rocknet_handler::services::Services;
use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, respond_with};
use rocknet_proto::fields::FieldList;
use rocknet_proto::status::Status;

use super::*;
use crate::response::Response;
use crate::route::Route;

struct Until {
    ms: u64,
    is_current: Arc<AtomicBool>,
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

    fn count(&self, _: &Services) {}
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

fn ready(ms: u64, is_current: &Arc<AtomicBool>, now_ms: u64) -> ReadyResponse {
    let settings = rocknet_config::model::Settings::default();
    let route = Route::new(&settings, Default::default(), Default::default(), Arc::default());
    let endpoint = CachedEndpoint {
        route: Arc::new(route.unwrap_or_else(|error| panic!("{error}"))),
        handler: Arc::new(Unused),
        pages: None,
        path: "/".into(),
        is_file_path: true,
    };
    let reuse = Box::new(Until {
        ms,
        is_current: Arc::clone(is_current),
    });
    let heads = PreparedHeads::new(Status::OK, &FieldList::default(), 4);
    ReadyResponse::new(
        reuse,
        heads,
        Rc::new(*b"body"),
        "HIT",
        Rc::new(endpoint),
        GuardList::default(),
        now_ms,
    )
}

#[test]
fn a_repeated_request_is_kept_while_its_handler_permits() {
    let (table, is_current) = (ReadyResponses::default(), Arc::new(AtomicBool::new(true)));
    let is_sent = |target: &str, now_ms| table.get(key(target), now_ms).is_some();
    assert!(!table.note(key("/a"), 1_000));
    // The next request is too late to be frequent.
    assert!(!table.note(key("/a"), 2_001));
    assert!(table.note(key("/a"), 2_500));
    table.keep(key("/a"), ready(2_900, &is_current, 2_500));
    assert!(is_sent("/a", 2_500) && is_sent("/a", 2_749) && !is_sent("/a", 2_750));
    assert!(!is_sent("/b", 2_500));
    let coded = RequestKey {
        accept_encoding: Some(b""),
        ..key("/a")
    };
    assert!(table.get(coded, 2_500).is_none());
    // The handler was called again, and has the same response until its end.
    assert!(!table.note(key("/a"), 2_760));
    assert!(is_sent("/a", 2_899) && !is_sent("/a", 2_900));
    assert!(table.note(key("/a"), 2_900));
    table.keep(key("/a"), ready(9_000, &is_current, 2_900));
    assert!(is_sent("/a", 3_000));
    is_current.store(false, Ordering::Relaxed);
    assert!(!is_sent("/a", 3_000));
    // A sweep drops the body, and later the request.
    table.tick(4_000);
    assert!(!table.is_empty());
    table.tick(9_000);
    assert!(table.is_empty());
}

#[test]
fn memory_is_bounded_and_requests_in_use_stay() {
    let (table, is_current) = (ReadyResponses::default(), Arc::new(AtomicBool::new(true)));
    table.note(key("/used"), 0);
    table.note(key("/used"), 0);
    table.keep(key("/used"), ready(u64::MAX, &is_current, 0));
    for number in 0..3 * MAX_SLOTS {
        let long = format!("/{number}{}", "x".repeat(MAX_REQUEST / 2));
        table.note(key(&long), 10);
        let all = table.0.borrow();
        assert!(all.slots.len() <= MAX_SLOTS && all.bytes <= MAX_BYTES);
    }
    assert!(table.get(key("/used"), 10).is_some());
    // More responses in use than there is room for.
    for number in 0..2 * MAX_SLOTS {
        let target = format!("/{number}");
        table.note(key(&target), 20);
        table.note(key(&target), 20);
        table.keep(key(&target), ready(u64::MAX, &is_current, 20));
        assert!(table.get(key(&target), 20).is_some(), "{target}");
        let all = table.0.borrow();
        assert!(all.slots.len() <= MAX_SLOTS);
        assert!(all.bytes <= MAX_BYTES + 2 * MAX_REQUEST, "{}", all.bytes);
    }
    assert!(table.0.borrow().slots.len() >= MAX_SLOTS / 4);
    let longest = "x".repeat(MAX_REQUEST);
    assert!(!table.note(key(&longest), 10) && !table.note(key(&longest), 10));
    table.release();
    assert!(table.is_empty());
}
