//! Request coalescing: one request to the upstream for the simultaneous requests of many clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex, mpsc};

use super::super::proxy_fanout::raise_descriptor_limit;
use super::super::support::client::request;
use super::super::support::upstream::{Next, Upstream, write_to};
use super::{cached, expect, response, status};

#[test]
fn simultaneous_requests_cause_one() {
    const CLIENTS: usize = 50;
    let all_have_sent = Arc::new(Barrier::new(CLIENTS + 1));
    let wait = Arc::clone(&all_have_sent);
    let upstream = Upstream::start(move |_, stream| {
        wait.wait();
        write_to(stream, response("200 OK", "Cache-Control: max-age=60", "body"));
        Next::Keep
    });
    let server = cached(&upstream, "true");
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                client.send(request("GET /", &[]));
                all_have_sent.wait();
                let response = client.response();
                assert_eq!(response.text(), "body");
                let status = status(&response);
                let expected = ["fwd=uri-miss; stored", "fwd=uri-miss; collapsed", "hit"];
                assert!(expected.contains(&&*status), "{status}");
            });
        }
    });
    assert_eq!(upstream.all().len(), 1);
}

/// The response to one request is sent to a herd of clients that request an expired response.
#[test]
fn a_herd_on_an_expired_response_causes_one_request() {
    const CLIENTS: usize = 1_000;
    raise_descriptor_limit();
    let (release, released) = mpsc::channel();
    let released = Arc::new(Mutex::new(released));
    let upstream = Upstream::start(move |request, stream| {
        let (control, content) = match request.field("If-None-Match") {
            None => ("max-age=0", "old"),
            Some(_) => {
                released.lock().expect("not poisoned").recv().expect("the herd is here");
                ("max-age=60", "new")
            }
        };
        write_to(
            stream,
            response("200 OK", &format!("Cache-Control: {control}|ETag: \"1\""), content),
        );
        Next::Keep
    });
    let server = cached(&upstream, "true");
    expect(&server.get("/"), "fwd=uri-miss; stored", "old");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("GET /", &[]));
    }
    release.send(()).expect("the upstream waits");
    let mut counts = BTreeMap::new();
    for client in &mut clients {
        let response = client.response();
        assert_eq!(response.text(), "new");
        *counts.entry(status(&response)).or_insert(0) += 1;
    }
    assert_eq!(upstream.all().len(), 2, "{counts:?}");
    assert_eq!(counts.remove("fwd=stale; stored"), Some(1), "{counts:?}");
    // A request that the server has read only after the response gets it from the store.
    assert!(
        counts
            .keys()
            .all(|key| ["hit", "fwd=stale; collapsed"].contains(&&**key)),
        "{counts:?}"
    );
}
