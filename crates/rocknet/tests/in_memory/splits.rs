//! The output of a connection does not depend on how its input is split or where its output is blocked.

use crate::test_server::{TestClient, TestServer};

/// Returns pipelined requests of every kind, with one for the large file if `large` is true. The last request closes
/// the connection.
pub fn requests(large: bool) -> Vec<u8> {
    let mut all = Vec::new();
    let mut add = |text: &str| all.extend_from_slice(text.as_bytes());
    add("GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    add("HEAD /small.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    add("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz");
    add("GET /missing HTTP/1.1\r\nHost: h\r\n\r\n");
    add("GET /small.txt HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n");
    add(
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n8;a=b\r\n, chunks\r\n0\r\nX: y\r\n\r\n",
    );
    add("POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nunwanted!");
    add("PUT /small.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    add("\r\nGET /small.txt HTTP/1.1\r\nHost: h\r\nRange: bytes=7-\r\n\r\n");
    add("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    if large {
        add("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    add("GET /small.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    all
}

/// Form in which the link delivers a piece of the input.
#[derive(Debug, Clone, Copy)]
enum Arrival {
    /// In the buffer of the receiver.
    Lent,
    /// In a buffer of the link.
    Held,
    /// In the buffer of the receiver, with a pending poll before the next piece.
    Paused,
}

/// Connects a client, queues the requests in pieces of `chunk` bytes, and closes the client's sending side.
fn fetch(server: &TestServer, requests: &[u8], chunk: usize, arrival: Arrival) -> TestClient {
    let client = server.connect();
    for piece in requests.chunks(chunk) {
        match arrival {
            Arrival::Lent => client.peer.send(piece),
            Arrival::Held => client.peer.send_owned(piece),
            Arrival::Paused => client.peer.send(piece).pause(),
        };
    }
    client.peer.end();
    client
}

/// Returns the output of a connection whose input is not split.
fn reference(server: &TestServer, requests: &[u8]) -> Vec<u8> {
    let mut client = fetch(server, requests, usize::MAX, Arrival::Lent);
    client.settle();
    assert!(client.is_over(), "{}", client.received());
    client.peer.take_received()
}

#[test]
fn responses_to_unsplit_input_are_as_expected() {
    let server = TestServer::new("").warm();
    let received = reference(&server, &requests(true));
    let text = String::from_utf8_lossy(&received);
    let statuses: Vec<&str> = text
        .match_indices("HTTP/1.1 ")
        .map(|(at, found)| text[at + found.len()..].split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(
        statuses,
        [
            "200", "200", "200", "404", "304", "200", "405", "405", "206", "204", "200", "200"
        ]
    );
    for expected in [
        "abcdefghijklmnopqrstuvwxyz",
        "Hello, chunks",
        "\r\n\r\nworld!",
        "Connection: close",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing");
    }
    assert!(text.ends_with("Hello, world!"));
    assert_eq!(
        text.matches("Hello, world!").count(),
        2,
        "responses to HEAD and with status 304 have no body"
    );
}

#[test]
fn any_split_of_the_input_gives_the_same_output() {
    let server = TestServer::new("").warm();
    let requests = requests(true);
    let expected = reference(&server, &requests);
    for arrival in [Arrival::Lent, Arrival::Held, Arrival::Paused] {
        for chunk in (1..64).chain([97, 256, 300, 511, requests.len() - 1, usize::MAX]) {
            let mut client = fetch(&server, &requests, chunk, arrival);
            client.settle();
            assert!(
                client.is_over(),
                "{arrival:?} in pieces of {chunk}: {}",
                client.received()
            );
            assert!(
                *client.peer.received() == expected[..],
                "{arrival:?} in pieces of {chunk}: {}",
                client.received()
            );
        }
    }
    for cut in 1..requests.len() {
        let mut client = server.connect();
        client
            .peer
            .send(&requests[..cut])
            .pause()
            .send_owned(&requests[cut..])
            .end();
        client.settle();
        assert!(
            client.is_over() && *client.peer.received() == expected[..],
            "cut at {cut}: {}",
            client.received()
        );
    }
}

#[test]
fn a_stop_at_any_byte_of_the_output_gives_the_same_output() {
    let server = TestServer::new("").warm();
    let requests = requests(false);
    let expected = reference(&server, &requests);
    for chunk in [1, 40, usize::MAX] {
        for stop in 0..expected.len() {
            let mut client = fetch(&server, &requests, chunk, Arrival::Lent);
            client.peer.accept(stop);
            client.settle();
            assert!(
                !client.is_over(),
                "stop at {stop}: the connection is over before its responses were read"
            );
            assert_eq!(client.peer.received().len(), stop);
            client.peer.accept_all();
            client.settle();
            assert!(
                client.is_over() && *client.peer.received() == expected[..],
                "stop at {stop}: {}",
                client.received()
            );
        }
    }
}

#[test]
fn short_writes_and_small_windows_give_the_same_output() {
    let server = TestServer::new("").warm();
    let requests = requests(true);
    let expected = reference(&server, &requests);
    // Maximum bytes that one write accepts, and bytes that the client accepts in each round.
    for (step, window) in [
        (1, usize::MAX),
        (3, 1000),
        (4096, 4095),
        (usize::MAX, 10_000),
        (1000, 777),
    ] {
        let mut client = fetch(&server, &requests, usize::MAX, Arrival::Lent);
        client.peer.limit_writes(step);
        let mut rounds = 0;
        while !client.is_over() {
            client.peer.accept(window);
            client.settle();
            rounds += 1;
            assert!(
                rounds < 1000,
                "step {step}, window {window}: the connection does not end"
            );
        }
        assert!(*client.peer.received() == expected[..], "step {step}, window {window}");
    }
}
