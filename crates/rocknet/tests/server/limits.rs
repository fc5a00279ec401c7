//! Limits, each tested from both sides: what is just allowed goes on, and more is refused with a status of its own.

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

/// Sends bytes and reads the response. The connection goes on below 400 and is closed above.
#[track_caller]
fn check(server: &Running, what: &str, bytes: impl AsRef<[u8]>, status: u16) {
    let mut client = server.connect();
    client.send(bytes);
    let response = client.response();
    if status < 400 {
        response.expect(what, status, &["!Connection"]);
        assert_eq!(client.get("/").text(), "root", "{what}: the bytes after it");
    } else {
        response.expect(what, status, &["Connection: close"]);
        client.assert_closed(what);
    }
}

/// A request for `/` whose head has exactly this many bytes.
fn head_of(size: usize) -> String {
    let empty = request("GET /", &["X: "]).len();
    request("GET /", &[&format!("X: {}", "x".repeat(size - empty))])
}

#[test]
fn head_sizes() {
    let defaults = server("");
    let small = server("header_size = \"2KiB\"\nheader_fields = 8\ntarget_size = 100");
    for (server, size, fields, target) in [(&defaults, 16 * 1024, 100, 8 * 1024), (&small, 2048, 8, 100)] {
        check(server, "a head as large as may be", head_of(size), 200);
        check(server, "a byte more", head_of(size + 1), 431);
        check(server, "far more", head_of(size * 8), 431);
        let endless = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(size * 2));
        check(server, "a head that does not end", endless, 431);
        let lines = |count: usize| request("GET /", &vec!["X: y"; count - 1]);
        check(server, "as many fields as may be", lines(fields), 200);
        check(server, "one more", lines(fields + 1), 431);
        let line = |size: usize| request(&format!("GET /?{}", "x".repeat(size - 2)), &[]);
        check(server, "a target as long as may be", line(target), 200);
        check(server, "a byte more", line(target + 1), 414);
    }
    // An endless target is distinguished from endless fields.
    check(
        &small,
        "a target that does not end",
        format!("GET /{}", "x".repeat(3000)),
        414,
    );
}

#[test]
fn body_sizes() {
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
    check(&server, "as much as may be", by_length(1000), 200);
    check(&server, "a byte more", by_length(1001), 413);
    check(&server, "as much as may be, chunked", chunked(1000), 200);
    check(&server, "a byte more, chunked", chunked(1001), 413);
    let expecting = request("POST /echo/x", &["Content-Length: 1001", "Expect: 100-continue"]);
    check(&server, "refused before it is sent", expecting, 413);
    let huge = request("POST /echo/x", &["Content-Length: 18446744073709551615"]);
    check(&server, "the largest number there is", huge, 413);
    let defaults = self::server("");
    let expecting = |size: u64| {
        let length = format!("Content-Length: {size}");
        request("POST /echo/x", &[&length, "Expect: 100-continue"])
    };
    let mut client = defaults.connect();
    client.send(expecting(100 << 20));
    client.response().expect("as much as may be by default", 100, &[]);
    check(&defaults, "a byte more by default", expecting((100 << 20) + 1), 413);
    let own = Running::start_with(
        Folder::with(&[("www/index.html", "root")]),
        &format!("[limits]\nbody_size = 10\n{}", site("limits = { body_size = 2000 }")),
        vec![mount("/echo/", Echo)],
    );
    check(&own, "as much as this site allows", by_length(2000), 200);
    check(&own, "a byte more than it allows", by_length(2001), 413);
}

#[test]
fn header_timeout() {
    let server = server("header_timeout = \"300ms\"\nkeep_alive = \"20s\"");
    // No byte at all: there is no request to respond to.
    let started = Instant::now();
    server.connect().assert_closed("nothing is sent");
    assert!(started.elapsed() >= Duration::from_millis(300), "closed too early");
    // Half a head, also after a whole request, also in trickles: the timeout covers all of it.
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
        assert!(taken >= Duration::from_millis(200), "after {taken:?}");
    }
    // In time, in however many pieces: far more time than that takes on a busy machine.
    let server = self::server("header_timeout = \"10s\"");
    let mut client = server.connect();
    for byte in request("GET /", &[]).bytes() {
        client.send([byte]);
    }
    client.response().expect("a head in pieces", 200, &[]);
}

/// Sends a byte now and then until something comes back. Returns the duration.
fn trickle(client: &mut Client) -> Duration {
    let started = Instant::now();
    while !client.has_something_within(Duration::from_millis(40)) {
        client.send_anyway("x");
        assert!(started.elapsed() < DEADLINE, "a trickle keeps it waiting");
    }
    started.elapsed()
}

/// Acts at regular intervals. Returns the duration.
fn pace(every: Duration, times: u32, mut act: impl FnMut()) -> Duration {
    let started = Instant::now();
    for turn in 1..=times {
        act();
        // The slow pace is what the test is about; it waits for nothing.
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
fn body_timeout() {
    // Each second must bring a thousand bytes. A busy machine may stand still for much of one.
    let server = server("body_idle = \"1s\"\nbody_rate = \"1000B/s\"");
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
    // Fast enough, and longer than the timeout for a silent client.
    let mut client = server.connect();
    client.send(request("POST /echo/x", &["Content-Length: 5000"]));
    let taken = pace(Duration::from_millis(120), 10, || client.send([b'x'; 500]));
    assert!(taken >= Duration::from_millis(1200));
    let response = client.response();
    assert_eq!((response.status, response.body.len()), (200, 5000), "steady content");
}

#[test]
fn timeout_of_an_unread_body() {
    let server = server("body_idle = \"200ms\"");
    let mut client = server.connect();
    client.send(request("POST /", &["Content-Length: 5000"]) + "hello");
    client.response().expect("unwanted", 405, &[]);
    client.assert_closed("the rest does not come");
}

#[test]
fn keep_alive_timeout() {
    let quick = server("keep_alive = \"1s\"\nheader_timeout = \"20s\"");
    let mut client = quick.connect();
    // Each pause is short beside the timeout, and all together are longer.
    for _ in 0..6 {
        assert_eq!(client.get("/").text(), "root");
        pace(Duration::from_millis(200), 1, || {});
    }
    let started = Instant::now();
    client.assert_closed("idle");
    let taken = started.elapsed();
    assert!(taken < DEADLINE / 2, "after {taken:?}");
    // No keep-alive at all: each response closes the connection.
    let none = server("keep_alive = \"0s\"");
    let mut client = none.connect();
    client
        .fetch("GET /", &[])
        .expect("no keep-alive", 200, &["Connection: close"]);
    client.assert_closed("no keep-alive");
}

#[test]
fn send_timeout() {
    let server = server("send_stall = \"300ms\"\nconnections = 1");
    server.folder.sparse("www/large.bin", 64 << 20);
    let mut stalled = server.connect();
    stalled.send(request("GET /large.bin", &[]));
    stalled.head();
    // The limit is one connection: the next is served once the stalled one was cut.
    assert_eq!(server.get("/").text(), "root");
    let rest = stalled.rest().len();
    assert!(rest < 64 << 20, "{rest} bytes came though they were not read");
}

#[test]
fn a_slow_but_steady_reader_gets_everything() {
    const SIZE: usize = 24 << 20;
    const TURNS: usize = 16;
    let server = server("send_stall = \"1s\"");
    server.folder.sparse("www/large.bin", SIZE as u64);
    let mut client = server.connect();
    client.send(request("GET /large.bin", &[]));
    client.head();
    let taken = pace(Duration::from_millis(80), TURNS as u32, || {
        client.bytes(SIZE / TURNS);
    });
    assert!(taken > Duration::from_secs(1), "not slow at all");
    assert_eq!(client.get("/").text(), "root");
}

#[test]
fn maximum_age_of_a_connection() {
    let server = server("connection_age = \"1s\"");
    let mut client = server.connect();
    let started = Instant::now();
    client
        .fetch("GET /", &[])
        .expect("a young connection", 200, &["!Connection"]);
    loop {
        let response = client.get("/");
        if response.field("Connection") == Some("close") {
            assert!(started.elapsed() >= Duration::from_millis(900), "too early");
            break;
        }
        assert!(started.elapsed() < DEADLINE, "never closed");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    client.assert_closed("an old connection");
}

#[test]
fn number_of_connections() {
    let server = server("connections = 3");
    let mut open: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut open {
        assert_eq!(client.get("/").text(), "root");
    }
    // The kernel accepts a fourth; the server lets it wait.
    let mut waiting = server.connect();
    waiting.send(request("GET /", &[]));
    for client in &mut open {
        assert_eq!(client.get("/").text(), "root", "open connections survive");
    }
    assert!(
        !waiting.has_something_within(Duration::from_millis(100)),
        "served beyond the limit"
    );
    drop(open.pop());
    assert_eq!(waiting.response().text(), "root");
}
