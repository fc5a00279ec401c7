//! Timeouts over virtual time: every wait ends at its deadline and not earlier.

use std::fmt::Write;

use crate::GET;
use crate::test_server::{TestClient, TestServer};

const LIMITS: &str = "header_timeout = \"10s\"\nbody_idle = \"5s\"\nbody_rate = 100\nsend_stall = \"20s\"\nanswer_timeout = \"40s\"\n\
                      keep_alive = \"30s\"\nconnection_age = \"1h\"";
const TICKS_A_SECOND: u32 = 4;

/// Action of a client.
#[derive(Clone, Copy)]
enum Act {
    Say(&'static str),
    /// Lets this many seconds pass.
    Seconds(u32),
    /// Sends one byte per second.
    Trickle(&'static str),
    /// Sends this number of bytes in each of these seconds.
    SayEachSecond(usize, u32),
    /// Accepts this number of bytes and then no more.
    Take(usize),
    /// Accepts this number of further bytes in each of these seconds.
    TakeEachSecond(usize, u32),
    End,
}

/// Runs the actions on a new connection. Returns the statuses of all responses, and true if the connection is over at
/// the end.
fn outcome(acts: &[Act]) -> (String, bool) {
    let server = TestServer::new(LIMITS).warm();
    let mut client = server.connect();
    let second = |client: &mut TestClient| {
        for _ in 0..TICKS_A_SECOND {
            server.pass(1);
            client.settle();
        }
    };
    client.settle();
    for act in acts {
        match *act {
            Act::Say(text) => {
                client.peer.send(text.as_bytes());
                client.settle();
            }
            Act::Seconds(seconds) => (0..seconds).for_each(|_| second(&mut client)),
            Act::Trickle(text) => {
                for byte in text.bytes() {
                    client.peer.send(&[byte]);
                    client.settle();
                    second(&mut client);
                }
            }
            Act::SayEachSecond(bytes, seconds) => {
                for _ in 0..seconds {
                    client.peer.send(&vec![b'x'; bytes]);
                    client.settle();
                    second(&mut client);
                }
            }
            Act::Take(bytes) => {
                client.peer.accept(bytes);
                client.settle();
            }
            Act::TakeEachSecond(bytes, seconds) => {
                for _ in 0..seconds {
                    client.peer.accept(bytes);
                    client.settle();
                    second(&mut client);
                }
            }
            Act::End => {
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
    use Act::{End, Say, SayEachSecond, Seconds, Take, TakeEachSecond, Trickle};
    const POST: &str = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const UNWANTED: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const UNWANTED_CHUNKS: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    const UNWANTED_WHOLE: &str = "POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    const PONDERS: &str = "POST /ponders HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const CONVERSES: &str = "POST /converses HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    const SILENT: &str = "GET /silent HTTP/1.1\r\nHost: h\r\n\r\n";
    const JOINS: &str = "GET /joins HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: any\r\n\r\n";
    const LARGE: &str = "GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n";
    // The rows leave a second to either side: a tick of 250 ms can be lost to rounding, and a deadline can be a tick
    // late.
    let rows: &[(&str, &[Act], &str, bool)] = &[
        ("silence", &[Seconds(9)], "", false),
        ("silence", &[Seconds(11)], "", true),
        ("half a head", &[Say("GET / HT"), Seconds(9)], "", false),
        ("half a head", &[Say("GET / HT"), Seconds(11), End], "408", true),
        ("a head byte by byte", &[Trickle("GET / HTT")], "", false),
        ("a head byte by byte", &[Trickle("GET / HTTP/")], "408", false),
        (
            "a head byte by byte, later",
            &[Say(GET), Trickle("GET / HTTP/")],
            "200 408",
            false,
        ),
        (
            "a client that stays after 408",
            &[Say("GET / HT"), Seconds(14)],
            "408",
            true,
        ),
        (
            "a client that is allowed to pause in its request body",
            &[Say(CONVERSES), Seconds(39), Say("x"), Seconds(39)],
            "",
            false,
        ),
        (
            "a client that pauses longer than the response timeout",
            &[Say(CONVERSES), Seconds(41)],
            "503",
            false,
        ),
        ("keep-alive", &[Say(GET), Seconds(29), Say(GET)], "200 200", false),
        ("keep-alive", &[Say(GET), Seconds(31)], "200", true),
        (
            "keep-alive restarts",
            &[Say(GET), Seconds(25), Say(GET), Seconds(25), Say(GET)],
            "200 200 200",
            false,
        ),
        ("content stops", &[Say(POST), Seconds(4)], "", false),
        ("content stops", &[Say(POST), Seconds(6), End], "408", true),
        ("a body byte by byte", &[Say(POST), Trickle("01234")], "", false),
        ("a body byte by byte", &[Say(POST), Trickle("012345")], "408", false),
        // A client must send at least 500 bytes in five seconds.
        ("content is slow", &[Say(POST), SayEachSecond(130, 7)], "", false),
        ("content is slow", &[Say(POST), SayEachSecond(200, 5)], "200", false),
        ("content is too slow", &[Say(POST), SayEachSecond(70, 6)], "408", false),
        ("unwanted content stops", &[Say(UNWANTED), Seconds(4)], "405", false),
        ("unwanted content stops", &[Say(UNWANTED), Seconds(6)], "405", true),
        (
            "an unread body trickles",
            &[Say(UNWANTED), Trickle("0123456789")],
            "405",
            true,
        ),
        (
            "unread chunks trickle",
            &[Say(UNWANTED_CHUNKS), Trickle("1\r\nx\r\n1\r\ny\r\n1")],
            "405",
            true,
        ),
        (
            "keep-alive after an unread body",
            &[Say(UNWANTED_WHOLE), Seconds(25), Say(GET)],
            "405 200",
            false,
        ),
        ("nothing is read", &[Take(100), Say(LARGE), Seconds(19)], "200", false),
        ("nothing is read", &[Take(100), Say(LARGE), Seconds(21)], "200", true),
        (
            "little is read",
            &[Take(100), Say(LARGE), TakeEachSecond(2, 45)],
            "200",
            true,
        ),
        (
            "enough is read",
            &[Take(100), Say(LARGE), TakeEachSecond(150, 90)],
            "200",
            false,
        ),
        ("a tunnel", &[Say(JOINS), Seconds(100_000), Say("abc")], "101", false),
        ("half a tunnel", &[Say(JOINS), End, Seconds(19)], "101", false),
        ("half a tunnel", &[Say(JOINS), End, Seconds(21)], "101", true),
        (
            "a tunnel that is not read",
            &[Say(JOINS), Take(9), Say("x"), Seconds(19)],
            "101",
            false,
        ),
        (
            "a tunnel that is not read",
            &[Say(JOINS), Take(9), Say("x"), Seconds(21)],
            "101",
            true,
        ),
        (
            "a tunnel that is read slowly",
            &[Say(JOINS), Take(9), Say("x"), TakeEachSecond(150, 90)],
            "101",
            false,
        ),
        ("a slow handler", &[Say(SILENT), Seconds(39)], "", false),
        ("a slow handler", &[Say(SILENT), Seconds(41)], "503", false),
        ("a slow handler", &[Say(SILENT), Seconds(41), Seconds(3)], "503", true),
        (
            "a handler's response stops",
            &[Say("GET /stops HTTP/1.1\r\nHost: h\r\n\r\n"), Seconds(39)],
            "200",
            false,
        ),
        (
            "a handler's response stops",
            &[Say("GET /stops HTTP/1.1\r\nHost: h\r\n\r\n"), Seconds(41)],
            "200",
            true,
        ),
        (
            "a client that has ended its side",
            &[Say(SILENT), End, Seconds(4)],
            "",
            false,
        ),
        (
            "a client that has ended its side",
            &[Say(SILENT), End, Seconds(6)],
            "503",
            true,
        ),
        (
            "a body trickles to a handler that reads slowly",
            &[Say(PONDERS), Trickle("01234")],
            "",
            false,
        ),
        (
            "a body trickles to a handler that reads slowly",
            &[Say(PONDERS), Trickle("012345")],
            "408",
            false,
        ),
        (
            "a refused client that stays",
            &[Say("BAD\r\n\r\n"), Seconds(1)],
            "400",
            false,
        ),
        (
            "a refused client that stays",
            &[Say("BAD\r\n\r\n"), Seconds(3)],
            "400",
            true,
        ),
    ];
    let mut wrong = String::new();
    for (number, (name, acts, statuses, over)) in rows.iter().enumerate() {
        let (found, ended) = outcome(acts);
        if (&*found, ended) != (*statuses, *over) {
            let _ = writeln!(
                wrong,
                "row {number}, {name}: {found:?}, over: {ended}; expected {statuses:?}, over: {over}"
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_connection_past_its_maximum_age_closes_with_its_next_response() {
    let server = TestServer::new("keep_alive = \"2h\"\nconnection_age = \"1m\"").warm();
    let mut client = server.connect();
    client.peer.send(GET.as_bytes());
    client.settle();
    assert!(
        !client.received().contains("Connection: close"),
        "{}",
        client.received()
    );
    server.pass(62 * TICKS_A_SECOND);
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
