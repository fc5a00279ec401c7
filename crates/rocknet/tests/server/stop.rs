//! Shutdown: responses in progress are completed, idle connections are closed immediately, and a deadline applies.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::support::client::request;
use super::support::handlers::Deferred;
use super::support::running::{mount, site};
use super::support::{Client, DEADLINE, Folder, Running};

/// Size of a file that exceeds the kernel buffers of both sides.
const LARGE: usize = 24 << 20;

/// Starts a server whose handler below `/waits/` responds when the test sends the response. Returns the server and the
/// waiting requests.
fn server(limits: &str) -> (Running, super::support::handlers::PendingRequests) {
    let folder = Folder::with(&[("www/index.html", "root")]);
    folder.sparse("www/large.bin", LARGE as u64);
    let (handler, waiting) = Deferred::new();
    let text = format!("[limits]\n{limits}\n{}", site(""));
    (
        Running::start_with(folder, &text, vec![mount("/waits/", handler)]),
        waiting,
    )
}

#[test]
fn idle_connections_are_closed_immediately() {
    // The shutdown timeout is long, so the stop must not wait for it.
    let (server, _) = server("shutdown = \"1m\"");
    let mut idle: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/").text(), "root");
    }
    idle.push(server.connect());
    let started = Instant::now();
    assert!(server.stop(), "something was cut");
    for client in &mut idle {
        client.assert_closed("idle");
    }
    assert!(started.elapsed() < DEADLINE, "after {:?}", started.elapsed());
}

#[test]
fn responses_in_progress_are_completed() {
    let (server, mut waiting) = server("shutdown = \"1m\"");
    let address = server.address();
    let mut handled = server.connect();
    handled.send(request("GET /waits/x", &[]));
    let incoming = waiting.next();
    let mut large = server.connect();
    large.send(request("GET /large.bin", &[]));
    large.head();
    let stopping = thread::spawn(move || server.stop());
    // The listener is closed, so no new connection is accepted.
    let started = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(started.elapsed() < DEADLINE, "still listening");
    }
    assert!(incoming.respond("finished"), "the exchange was dropped");
    let response = handled.response();
    assert_eq!(
        response.expect("a handler", 200, &["Connection: close"]).text(),
        "finished"
    );
    handled.assert_closed("a handler");
    assert!(!stopping.is_finished(), "the stop did not wait for the large response");
    assert_eq!(large.bytes(LARGE).len(), LARGE);
    large.assert_closed("a large response");
    drop((handled, large));
    assert!(stopping.join().expect("a stop"), "something was cut");
}

#[test]
fn the_shutdown_deadline_applies() {
    let (server, mut waiting) = server("shutdown = \"300ms\"");
    let mut handled = server.connect();
    handled.send(request("GET /waits/x", &[]));
    let incoming = waiting.next();
    let mut stalled = server.connect();
    stalled.send(request("GET /large.bin", &[]));
    stalled.head();
    let mut half = server.connect();
    half.send("GET / HTTP/1.1\r\nHost: x\r\n");
    let started = Instant::now();
    assert!(!server.stop(), "the stop must report that responses were cut");
    let taken = started.elapsed();
    // Timers are only as precise as the interval at which the event loop polls them.
    assert!(
        taken >= Duration::from_millis(250) && taken < DEADLINE / 2,
        "after {taken:?}"
    );
    handled.assert_closed("a handler that does not respond");
    assert!(!incoming.respond("too late"), "the exchange was not dropped");
    assert!(
        stalled.rest().len() < LARGE,
        "a client that does not read got everything"
    );
    half.assert_closed("half a request");
}

#[test]
fn a_shutdown_timeout_of_zero_is_allowed() {
    let (server, _) = server("shutdown = \"0s\"");
    let mut idle = server.connect();
    assert_eq!(idle.get("/").text(), "root");
    let started = Instant::now();
    server.stop();
    idle.assert_closed("idle");
    assert!(started.elapsed() < DEADLINE / 2);
}

#[test]
fn requests_sent_before_the_stop_get_responses() {
    // At the stop the requests are unread in the socket, or their responses are partly sent. Each client must get a
    // whole response.
    for _ in 0..10 {
        let (server, _) = server("shutdown = \"20s\"");
        let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.get("/").text(), "root");
        }
        for client in &mut clients {
            client.send(request("GET /", &[]));
        }
        let stopping = thread::spawn(move || server.stop());
        for mut client in clients {
            client.response().expect("sent before the stop", 200, &[]);
        }
        assert!(stopping.join().expect("a stop"), "something was cut");
    }
}

over_http3! {
    idle_connections_are_closed_immediately,
    the_shutdown_deadline_applies,
    a_shutdown_timeout_of_zero_is_allowed,
    requests_sent_before_the_stop_get_responses,
}
