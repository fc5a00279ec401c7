//! Limits of requests and connections, each tested with a value just within the limit and one beyond it.

use std::time::{Duration, Instant};

use super::support::client::request;
use super::support::handlers::Echo;
use super::support::running::{mount, site};
use super::support::{Client, DEADLINE, Folder, Running};

fn server(limits: &str) -> Running {
    let folder = Folder::with(&[("www/index.html", "root")]);
    let text = format!("[limits]\n{limits}\n{}", site(""));
    Running::start_with(folder, &text, vec![mount("/echo/", Echo)])
}

/// Sends bytes and asserts the status. For a status below 400 the connection must be kept; otherwise it must be closed.
#[track_caller]
fn check(server: &Running, what: &str, bytes: impl AsRef<[u8]>, status: u16) {
    let mut client = server.connect();
    client.send(bytes);
    let response = client.response();
    if status < 400 {
        response.expect(what, status, &["!Connection"]);
        assert_eq!(client.get("/").text(), "root", "{what}: the next request");
    } else {
        response.expect(what, status, &["Connection: close"]);
        client.assert_closed(what);
    }
}

/// Returns a request for `/` whose head has exactly `size` bytes.
fn head_of(size: usize) -> String {
    let empty = request("GET /", &["X: "]).len();
    request("GET /", &[&format!("X: {}", "x".repeat(size - empty))])
}

#[test]
fn head_sizes_are_limited() {
    let defaults = server("");
    let small = server("header_size = \"2KiB\"\nheader_fields = 8\ntarget_size = 100");
    for (server, size, fields, target) in [(&defaults, 16 * 1024, 100, 8 * 1024), (&small, 2048, 8, 100)] {
        check(server, "a head of the maximum size", head_of(size), 200);
        check(server, "a head with a byte more", head_of(size + 1), 431);
        check(server, "a head far beyond the maximum", head_of(size * 8), 431);
        let endless = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(size * 2));
        check(server, "a head that does not end", endless, 431);
        // `request` adds the field `Host`.
        let lines = |count: usize| request("GET /", &vec!["X: y"; count - 1]);
        check(server, "the maximum number of fields", lines(fields), 200);
        check(server, "one field more", lines(fields + 1), 431);
        let line = |size: usize| request(&format!("GET /?{}", "x".repeat(size - 2)), &[]);
        check(server, "a target of the maximum length", line(target), 200);
        check(server, "a target with a byte more", line(target + 1), 414);
    }
    // A target that is too long has another status than fields that are too long.
    check(
        &small,
        "a target that does not end",
        format!("GET /{}", "x".repeat(3000)),
        414,
    );
}

#[test]
fn body_sizes_are_limited() {
    let server = server("body_size = 1000");
    let by_length = |size: usize| request("POST /echo/x", &[&format!("Content-Length: {size}")]) + &"x".repeat(size);
    let chunked = |size: usize| {
        let head = request("POST /echo/x", &["Transfer-Encoding: chunked"]);
        format!(
            "{head}1\r\nx\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            size - 1,
            "x".repeat(size - 1)
        )
    };
    check(&server, "a body of the maximum size", by_length(1000), 200);
    check(&server, "a body with a byte more", by_length(1001), 413);
    check(&server, "a chunked body of the maximum size", chunked(1000), 200);
    check(&server, "a chunked body with a byte more", chunked(1001), 413);
    let expecting = request("POST /echo/x", &["Content-Length: 1001", "Expect: 100-continue"]);
    check(&server, "refused before it is sent", expecting, 413);
    let huge = request("POST /echo/x", &["Content-Length: 18446744073709551615"]);
    check(&server, "the largest 64-bit number", huge, 413);
    let defaults = self::server("");
    let expecting = |size: u64| {
        let length = format!("Content-Length: {size}");
        request("POST /echo/x", &[&length, "Expect: 100-continue"])
    };
    let mut client = defaults.connect();
    client.send(expecting(100 << 20));
    client.response().expect("the default maximum", 100, &[]);
    check(
        &defaults,
        "a byte more than the default maximum",
        expecting((100 << 20) + 1),
        413,
    );
    let own = Running::start_with(
        Folder::with(&[("www/index.html", "root")]),
        &format!("[limits]\nbody_size = 10\n{}", site("limits = { body_size = 2000 }")),
        vec![mount("/echo/", Echo)],
    );
    check(&own, "the maximum of the site", by_length(2000), 200);
    check(&own, "a byte more than the maximum of the site", by_length(2001), 413);
}

#[test]
fn an_incomplete_head_times_out() {
    let server = server("header_timeout = \"300ms\"\nkeep_alive = \"20s\"");
    // A client that sends no byte gets no response, because there is no request.
    let started = Instant::now();
    server.connect().assert_closed("nothing is sent");
    assert!(started.elapsed() >= Duration::from_millis(300), "closed too early");
    // The timeout covers the whole head, even if bytes of the head keep arriving. It also applies to a second request.
    for first in ["", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut client = server.connect();
        client.send(first);
        if !first.is_empty() {
            client.response().expect("the first", 200, &[]);
        }
        client.send("GET / HTTP/1.1\r\nHost: x\r\nX: ");
        let taken = trickle(&mut client);
        client.response().expect("half a head", 408, &["Connection: close"]);
        client.assert_closed("half a head");
        // The timeout of 300 ms has begun before the first byte of `trickle`.
        assert!(taken >= Duration::from_millis(200), "after {taken:?}");
    }
    // A head in many pieces is accepted within the timeout, which is ample for a busy machine.
    let server = self::server("header_timeout = \"10s\"");
    let mut client = server.connect();
    for byte in request("GET /", &[]).bytes() {
        client.send([byte]);
    }
    client.response().expect("a head in pieces", 200, &[]);
}

/// Sends a byte every 40 ms until the server responds or closes. Returns the duration.
fn trickle(client: &mut Client) -> Duration {
    let started = Instant::now();
    while !client.has_something_within(Duration::from_millis(40)) {
        client.send_anyway("x");
        assert!(started.elapsed() < DEADLINE, "single bytes extend the timeout");
    }
    started.elapsed()
}

/// Calls `act` the given number of times, once per interval `every`. Returns the duration of all calls.
fn pace(every: Duration, times: u32, mut act: impl FnMut()) -> Duration {
    let started = Instant::now();
    for turn in 1..=times {
        act();
        // The sleep sets the pace of the client. It does not wait for an event.
        while let Some(rest) = (every * turn)
            .checked_sub(started.elapsed())
            .filter(|rest| !rest.is_zero())
        {
            std::thread::park_timeout(rest);
        }
    }
    started.elapsed()
}

#[test]
fn a_slow_body_times_out() {
    // A client must send 1000 bytes per second. The rates leave room for pauses of a busy machine.
    let server = server("body_idle = \"1s\"\nbody_rate = \"1000B/s\"");
    // The chunk size 1388 is hexadecimal for 5000.
    for (fields, start) in [
        (["Content-Length: 5000"], "hello"),
        (["Transfer-Encoding: chunked"], "1388\r\nhello"),
    ] {
        let mut client = server.connect();
        client.send(request("POST /echo/x", &fields) + start);
        client.response().expect("silence", 408, &["Connection: close"]);
        client.assert_closed("silence");
    }
    let mut client = server.connect();
    client.send(request("POST /echo/x", &["Content-Length: 5000"]));
    trickle(&mut client);
    client.response().expect("a trickle", 408, &["Connection: close"]);
    // The client is fast enough, and the transfer takes longer than `body_idle`.
    let mut client = server.connect();
    client.send(request("POST /echo/x", &["Content-Length: 5000"]));
    let taken = pace(Duration::from_millis(120), 10, || client.send([b'x'; 500]));
    assert!(taken >= Duration::from_millis(1200));
    let response = client.response();
    assert_eq!((response.status, response.body.len()), (200, 5000), "a steady body");
}

#[test]
fn an_unread_body_times_out() {
    let server = server("body_idle = \"200ms\"");
    let mut client = server.connect();
    client.send(request("POST /", &["Content-Length: 5000"]) + "hello");
    client.response().expect("unwanted", 405, &[]);
    client.assert_closed("the rest of the body is missing");
}

#[test]
fn an_idle_connection_times_out() {
    let quick = server("keep_alive = \"1s\"\nheader_timeout = \"20s\"");
    let mut client = quick.connect();
    // Each pause is shorter than the timeout, and all pauses together are longer.
    for _ in 0..6 {
        assert_eq!(client.get("/").text(), "root");
        pace(Duration::from_millis(200), 1, || {});
    }
    let started = Instant::now();
    client.assert_closed("idle");
    let taken = started.elapsed();
    assert!(taken < DEADLINE / 2, "after {taken:?}");
    // Without keep-alive each response closes the connection.
    let none = server("keep_alive = \"0s\"");
    let mut client = none.connect();
    client
        .fetch("GET /", &[])
        .expect("no keep-alive", 200, &["Connection: close"]);
    client.assert_closed("no keep-alive");
}

#[test]
fn a_client_that_does_not_read_times_out() {
    let server = server("send_stall = \"300ms\"\nconnections = 1");
    server.folder.sparse("www/large.bin", 64 << 20);
    let mut stalled = server.connect();
    stalled.send(request("GET /large.bin", &[]));
    stalled.head();
    // Only one connection is permitted, so the next one is served only after the stalled one has been closed.
    assert_eq!(server.get("/").text(), "root");
    let rest = stalled.rest().len();
    assert!(
        rest < 64 << 20,
        "{rest} bytes were received from a connection that should have been closed"
    );
}

#[test]
fn a_slow_but_steady_reader_gets_the_whole_response() {
    const SIZE: usize = 24 << 20;
    /// Number of parts in which the client reads the response.
    const TURNS: usize = 16;
    let server = server("send_stall = \"1s\"");
    server.folder.sparse("www/large.bin", SIZE as u64);
    let mut client = server.connect();
    client.send(request("GET /large.bin", &[]));
    client.head();
    let taken = pace(Duration::from_millis(80), TURNS as u32, || {
        client.bytes(SIZE / TURNS);
    });
    assert!(
        taken > Duration::from_secs(1),
        "the transfer was too fast for this test"
    );
    assert_eq!(client.get("/").text(), "root");
}

#[test]
fn a_connection_is_closed_at_its_maximum_age() {
    let server = server("connection_age = \"1s\"");
    let mut client = server.connect();
    let started = Instant::now();
    client
        .fetch("GET /", &[])
        .expect("a young connection", 200, &["!Connection"]);
    loop {
        let response = client.get("/");
        if response.field("Connection") == Some("close") {
            // The bound leaves 100 ms for the ticks of the server's timers.
            assert!(
                started.elapsed() >= Duration::from_millis(900),
                "the connection was closed too early"
            );
            break;
        }
        assert!(started.elapsed() < DEADLINE, "the connection was not closed");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    client.assert_closed("an old connection");
}

#[test]
fn connections_beyond_the_limit_wait() {
    let server = server("connections = 3");
    let mut open: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut open {
        assert_eq!(client.get("/").text(), "root");
    }
    // The kernel completes a fourth connection, but the server does not accept it.
    let mut waiting = server.connect();
    waiting.send(request("GET /", &[]));
    for client in &mut open {
        assert_eq!(client.get("/").text(), "root", "open connections must still be served");
    }
    assert!(
        !waiting.has_something_within(Duration::from_millis(100)),
        "a connection beyond the limit was served"
    );
    drop(open.pop());
    assert_eq!(waiting.response().text(), "root");
}

over_http3! {
    a_slow_but_steady_reader_gets_the_whole_response,
}
