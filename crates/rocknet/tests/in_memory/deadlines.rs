//! Timeouts over virtual time: every wait ends at its deadline and not earlier.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocknet::clock::TimeSource;
use rocknet::registries::Registries;

use crate::GET;
use crate::proxied::Dials;
use crate::test_server::{TestClient, TestServer};
use crate::wire;

const LIMITS: &str = "header_timeout = \"10s\"\nbody_idle = \"5s\"\nbody_rate = 100\nsend_stall = \"20s\"\nanswer_timeout = \"40s\"\n\
                      keep_alive = \"30s\"\nconnection_age = \"1h\"";
/// A tick of the timer wheel has 250 ms.
const TICKS_PER_SECOND: u32 = 4;

/// Action of a client.
#[derive(Clone, Copy)]
enum Action {
    /// Sends the text at once.
    Send(&'static str),
    /// Waits for this number of seconds.
    Wait(u32),
    /// Sends one byte per second.
    Trickle(&'static str),
    /// Sends this number of bytes in each of these seconds.
    SendEachSecond(usize, u32),
    /// Reads this number of further bytes of the output, and then no more.
    Accept(usize),
    /// Reads this number of further bytes in each of these seconds.
    AcceptEachSecond(usize, u32),
    /// Closes the sending side.
    End,
}

/// Runs the actions on a new connection. Returns the statuses of all responses, and true if the connection is over at
/// the end.
fn outcome(actions: &[Action]) -> (String, bool) {
    let server = TestServer::new(LIMITS).warm();
    let mut client = server.connect();
    let second = |client: &mut TestClient| {
        for _ in 0..TICKS_PER_SECOND {
            server.pass(1);
            client.settle();
        }
    };
    client.settle();
    for action in actions {
        match *action {
            Action::Send(text) => {
                client.peer.send(text.as_bytes());
                client.settle();
            }
            Action::Wait(seconds) => (0..seconds).for_each(|_| second(&mut client)),
            Action::Trickle(text) => {
                for byte in text.bytes() {
                    client.peer.send(&[byte]);
                    client.settle();
                    second(&mut client);
                }
            }
            Action::SendEachSecond(bytes, seconds) => {
                for _ in 0..seconds {
                    client.peer.send(&vec![b'x'; bytes]);
                    client.settle();
                    second(&mut client);
                }
            }
            Action::Accept(bytes) => {
                client.peer.accept(bytes);
                client.settle();
            }
            Action::AcceptEachSecond(bytes, seconds) => {
                for _ in 0..seconds {
                    client.peer.accept(bytes);
                    client.settle();
                    second(&mut client);
                }
            }
            Action::End => {
                client.peer.end();
                client.settle();
            }
        }
    }
    let received = client.received();
    let statuses: Vec<_> = received
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| received[at + 9..].get(..3).unwrap_or(""))
        .collect();
    (statuses.join(" "), client.is_over())
}

#[test]
fn every_wait_ends_at_its_deadline_and_not_before() {
    use Action::{Accept, AcceptEachSecond, End, Send, SendEachSecond, Trickle, Wait};
    // Handlers of the test server: `/reads-slowly` reads the request body slowly, `/lets-pause` lets the client pause
    // in it, `/silent` never responds, `/stops` stalls in its response, and `/opens-tunnel` opens a tunnel to a peer
    // that sends 100 KB for each `x`.
    const POST: &str = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const UNREAD: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const UNREAD_CHUNKS: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    const UNREAD_COMPLETE: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    const READS_SLOWLY: &str = "POST /reads-slowly HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const MAY_PAUSE: &str = "POST /lets-pause HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const SILENT: &str = "GET /silent HTTP/1.1\r\nHost: h\r\n\r\n";
    const UPGRADE: &str = "GET /opens-tunnel HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: any\r\n\r\n";
    const LARGE: &str = "GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n";
    // The rows leave a second to either side: a tick of 250 ms can be lost to rounding, and a deadline can be a tick
    // late.
    // Each row has a name, the actions, the statuses of all responses, and true if the connection is over at the end.
    let rows: &[(&str, &[Action], &str, bool)] = &[
        ("silence", &[Wait(9)], "", false),
        ("silence", &[Wait(11)], "", true),
        ("half a head", &[Send("GET / HT"), Wait(9)], "", false),
        ("half a head", &[Send("GET / HT"), Wait(11), End], "408", true),
        ("a head byte by byte", &[Trickle("GET / HTT")], "", false),
        ("a head byte by byte", &[Trickle("GET / HTTP/")], "408", false),
        (
            "a head byte by byte, later",
            &[Send(GET), Trickle("GET / HTTP/")],
            "200 408",
            false,
        ),
        (
            "a client that stays after 408",
            &[Send("GET / HT"), Wait(14)],
            "408",
            true,
        ),
        (
            "a client that is allowed to pause in its request body",
            &[Send(MAY_PAUSE), Wait(39), Send("x"), Wait(39)],
            "",
            false,
        ),
        (
            "a client that pauses longer than the response timeout",
            &[Send(MAY_PAUSE), Wait(41)],
            "503",
            false,
        ),
        ("keep-alive", &[Send(GET), Wait(29), Send(GET)], "200 200", false),
        ("keep-alive", &[Send(GET), Wait(31)], "200", true),
        (
            "keep-alive restarts",
            &[Send(GET), Wait(25), Send(GET), Wait(25), Send(GET)],
            "200 200 200",
            false,
        ),
        ("a body stops", &[Send(POST), Wait(4)], "", false),
        ("a body stops", &[Send(POST), Wait(6), End], "408", true),
        ("a body byte by byte", &[Send(POST), Trickle("01234")], "", false),
        ("a body byte by byte", &[Send(POST), Trickle("012345")], "408", false),
        // A client must send at least 500 bytes in five seconds.
        ("a slow body", &[Send(POST), SendEachSecond(130, 7)], "", false),
        ("a slow body", &[Send(POST), SendEachSecond(200, 5)], "200", false),
        (
            "a body that is too slow",
            &[Send(POST), SendEachSecond(70, 6)],
            "408",
            false,
        ),
        ("an unread body stops", &[Send(UNREAD), Wait(4)], "405", false),
        ("an unread body stops", &[Send(UNREAD), Wait(6)], "405", true),
        (
            "an unread body trickles",
            &[Send(UNREAD), Trickle("0123456789")],
            "405",
            true,
        ),
        (
            "unread chunks trickle",
            &[Send(UNREAD_CHUNKS), Trickle("1\r\nx\r\n1\r\ny\r\n1")],
            "405",
            true,
        ),
        (
            "keep-alive after an unread body",
            &[Send(UNREAD_COMPLETE), Wait(25), Send(GET)],
            "405 200",
            false,
        ),
        ("nothing is read", &[Accept(100), Send(LARGE), Wait(19)], "200", false),
        ("nothing is read", &[Accept(100), Send(LARGE), Wait(21)], "200", true),
        (
            "little is read",
            &[Accept(100), Send(LARGE), AcceptEachSecond(2, 45)],
            "200",
            true,
        ),
        (
            "enough is read",
            &[Accept(100), Send(LARGE), AcceptEachSecond(150, 90)],
            "200",
            false,
        ),
        ("a tunnel", &[Send(UPGRADE), Wait(100_000), Send("abc")], "101", false),
        ("half a tunnel", &[Send(UPGRADE), End, Wait(19)], "101", false),
        ("half a tunnel", &[Send(UPGRADE), End, Wait(21)], "101", true),
        (
            "a tunnel that is not read",
            &[Send(UPGRADE), Accept(9), Send("x"), Wait(19)],
            "101",
            false,
        ),
        (
            "a tunnel that is not read",
            &[Send(UPGRADE), Accept(9), Send("x"), Wait(21)],
            "101",
            true,
        ),
        (
            "a tunnel that is read slowly",
            &[Send(UPGRADE), Accept(9), Send("x"), AcceptEachSecond(150, 90)],
            "101",
            false,
        ),
        ("a slow handler", &[Send(SILENT), Wait(39)], "", false),
        ("a slow handler", &[Send(SILENT), Wait(41)], "503", false),
        ("a slow handler", &[Send(SILENT), Wait(41), Wait(3)], "503", true),
        (
            "a handler's response stops",
            &[Send("GET /stops HTTP/1.1\r\nHost: h\r\n\r\n"), Wait(39)],
            "200",
            false,
        ),
        (
            "a handler's response stops",
            &[Send("GET /stops HTTP/1.1\r\nHost: h\r\n\r\n"), Wait(41)],
            "200",
            true,
        ),
        (
            "a client that has ended its side",
            &[Send(SILENT), End, Wait(4)],
            "",
            false,
        ),
        (
            "a client that has ended its side",
            &[Send(SILENT), End, Wait(6)],
            "503",
            true,
        ),
        (
            "a body trickles to a handler that reads slowly",
            &[Send(READS_SLOWLY), Trickle("01234")],
            "",
            false,
        ),
        (
            "a body trickles to a handler that reads slowly",
            &[Send(READS_SLOWLY), Trickle("012345")],
            "408",
            false,
        ),
        (
            "a refused client that stays",
            &[Send("BAD\r\n\r\n"), Wait(1)],
            "400",
            false,
        ),
        (
            "a refused client that stays",
            &[Send("BAD\r\n\r\n"), Wait(3)],
            "400",
            true,
        ),
    ];
    let mut failures = String::new();
    for (number, (name, actions, statuses, over)) in rows.iter().enumerate() {
        let (found, ended) = outcome(actions);
        if (&*found, ended) != (*statuses, *over) {
            let _ = writeln!(
                failures,
                "row {number}, {name}: {found:?}, over: {ended}; expected {statuses:?}, over: {over}"
            );
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn an_idle_connection_lingers_until_its_client_has_acknowledged_the_whole_response() {
    // Unacknowledged bytes when `keep_alive` has passed, and true if the connection is then over.
    for (bytes, is_over) in [(0, true), (1, false)] {
        let server = TestServer::new("keep_alive = \"30s\"").warm();
        let mut client = server.connect();
        client.peer.send(GET.as_bytes());
        client.settle();
        client.peer.set_unacknowledged(bytes);
        for _ in 0..31 * TICKS_PER_SECOND {
            server.pass(1);
            client.settle();
        }
        assert!(client.peer.is_shut_down(), "{bytes}");
        assert_eq!(client.is_over(), is_over, "{bytes}");
    }
}

#[test]
fn a_connection_past_its_maximum_age_is_closed_after_its_next_response() {
    let server = TestServer::new("keep_alive = \"2h\"\nconnection_age = \"1m\"").warm();
    let mut client = server.connect();
    client.peer.send(GET.as_bytes());
    client.settle();
    assert!(
        !client.received().contains("Connection: close"),
        "{}",
        client.received()
    );
    server.pass(62 * TICKS_PER_SECOND);
    client.settle();
    assert!(
        !client.is_over(),
        "an idle connection must not be closed because of its age"
    );
    client.peer.take_received();
    client.peer.send(GET.as_bytes());
    client.settle();
    assert!(
        client.received().contains("Connection: close") && client.peer.is_shut_down(),
        "{}",
        client.received()
    );
}

#[test]
fn a_request_that_has_waited_gets_the_timeout_of_the_route_of_its_handler() {
    // The timeouts of the route of the request and of the route that the rule leads to, in seconds.
    for (first, last) in [(5, 20), (40, 5)] {
        for is_http2 in [false, true] {
            let now_ms = Arc::new(AtomicU64::new(1_000));
            let registries = Registries::simulated(TimeSource::Virtual(Arc::clone(&now_ms)), Arc::new(Dials));
            let site = format!(
                "[site.\":0\"]\nlimit = {{ rate = \"1/s\", burst = 2, delay = true }}\n\
                 rule = [{{ path = \"/go\", rewrite = \"/silent\" }}]\n\
                 limits = {{ answer_timeout = \"{last}s\" }}\n\
                 route.\"/go\".limits = {{ answer_timeout = \"{first}s\" }}\n"
            );
            let server = TestServer::with(registries, "", &site, &[]);
            let mut clients: Vec<TestClient> = (0..2)
                .map(|_| match is_http2 {
                    false => {
                        let client = server.connect();
                        client.peer.send(b"GET /go HTTP/1.1\r\nHost: h\r\n\r\n");
                        client
                    }
                    true => {
                        let client = server.connect_http2();
                        let request = wire::request(1, "GET", "/go", &[], true);
                        client.peer.send(&wire::open_beginning()).send(&request);
                        client
                    }
                })
                .collect();
            for client in &mut clients {
                client.settle();
            }
            // The bytes that arrive before the timeout are those of HTTP/2 itself.
            let before = clients
                .iter()
                .map(|client| client.peer.received().len())
                .max()
                .unwrap_or(0);
            let mut ended_after = [None; 2];
            for tick in 1..=50 * TICKS_PER_SECOND {
                now_ms.fetch_add(u64::from(1_000 / TICKS_PER_SECOND), Ordering::SeqCst);
                server.worker.tick();
                for (client, ended) in clients.iter_mut().zip(&mut ended_after) {
                    client.settle();
                    if ended.is_none() && client.peer.received().len() > before + 100 {
                        *ended = Some(tick.div_ceil(TICKS_PER_SECOND));
                    }
                }
            }
            // The second request waits for its turn for a second, at most two ticks longer, before its handler is
            // called.
            let [now, later] = ended_after.map(|seconds| seconds.unwrap_or(0));
            assert_eq!(now, last + 1, "the first request, {first}, HTTP/2: {is_http2}");
            assert!(
                (last + 1..=last + 3).contains(&later) && later > now - 1,
                "{later}: {first}, HTTP/2: {is_http2}"
            );
        }
    }
}
