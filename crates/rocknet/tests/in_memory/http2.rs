//! HTTP/2 clients that write and do not read: their frames are processed, their responses wait, and the memory for them
//! is bounded.

use crate::test_server::{TestClient, TestServer};
use crate::wire::{self, DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PING, RST_STREAM};

/// Bytes that a client may send on a stream without a WINDOW_UPDATE from the server.
const STREAM_WINDOW: usize = 256 * 1024;
/// Size of `/large.bin` in bytes.
const LARGE: usize = 70_000;

fn frames_received(client: &TestClient) -> Vec<Frame> {
    wire::frames(&client.peer.received()).0
}

/// Returns true if the server has ended this stream.
fn has_end(client: &TestClient, stream: u32) -> bool {
    frames_received(client)
        .iter()
        .any(|frame| frame.stream == stream && frame.ends_stream())
}

/// Returns a client whose link is full, so that its further requests wait until it reads more.
fn blocked(server: &TestServer) -> TestClient {
    let mut client = server.connect_http2();
    client.peer.send(&wire::open_beginning());
    client.settle();
    client.peer.accept(0);
    client.peer.send(&wire::get(1, "/large.bin"));
    client.settle();
    client
}

#[test]
fn frames_of_a_client_that_does_not_read_are_processed() {
    let server = TestServer::new("").warm();
    let mut client = blocked(&server);
    let before = client.peer.received().len();
    let content: Vec<u8> = (0..STREAM_WINDOW).map(|at| at as u8).collect();
    client.peer.send(&wire::post(3, "/echo"));
    for piece in wire::body_frames(3, &content).chunks(10_000) {
        client.peer.send(piece);
        client.settle();
    }
    let streams: Vec<u32> = (0..100).map(|number| 5 + 2 * number).collect();
    for &stream in &streams {
        client.peer.send(&wire::get(stream, "/small.txt"));
    }
    client.peer.send(&wire::frame(PING, 0, 0, "whatever"));
    // A request that is reset while it waits gets no response.
    client.peer.send(&wire::rst(streams[50]));
    client.settle();
    assert_eq!(client.peer.unread(), 0, "all input must be read");
    assert_eq!(client.peer.received().len(), before, "no response can be sent");
    client.peer.accept_all();
    client.run_until(|client| {
        [1, 3]
            .iter()
            .chain(&streams)
            .all(|&stream| stream == streams[50] || has_end(client, stream))
    });
    let frames = frames_received(&client);
    assert_eq!(wire::body_of(&frames, 1).len(), LARGE);
    assert!(wire::body_of(&frames, 3) == content);
    for stream in streams.iter().filter(|&&stream| stream != streams[50]) {
        assert_eq!(wire::body_of(&frames, *stream), b"Hello, world!", "{stream}");
    }
    assert!(frames.iter().all(|frame| frame.stream != streams[50]));
    assert!(
        frames
            .iter()
            .any(|frame| frame.kind == PING && frame.payload == b"whatever")
    );
}

#[test]
fn refusals_wait_until_the_client_reads() {
    let server = TestServer::new("body_size = \"10KB\"").warm();
    let mut client = blocked(&server);
    let field = "x".repeat(20_000);
    for (first, method) in [(3, "POST"), (9, "HEAD")] {
        let announced = wire::request(first, method, "/echo", &[("content-length", "10241")], false);
        client
            .peer
            .send(&announced)
            .send(&wire::request(first + 2, method, "/echo", &[], false))
            .send(&wire::body_frames(first + 2, &[b'x'; 10_241]));
        let pieces = wire::block(&[
            (":method", method),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "h"),
            ("a", &field),
        ]);
        let (start, rest) = pieces.split_at(16_384);
        client
            .peer
            .send(&wire::frame(HEADERS, END_STREAM, first + 4, start))
            .send(&wire::frame(wire::CONTINUATION, END_HEADERS, first + 4, rest));
    }
    client.settle();
    assert_eq!(client.peer.unread(), 0);
    client.peer.accept_all();
    client.run_until(|client| [1, 3, 5, 7, 9, 11, 13].iter().all(|&stream| has_end(client, stream)));
    let frames = frames_received(&client);
    // The statuses are readable in the frames, because 413 and 431 are not in the static table of HPACK.
    for (stream, status, has_body) in [
        (3, "413", true),
        (5, "413", true),
        (7, "431", true),
        // Responses to HEAD.
        (9, "413", false),
        (11, "413", false),
        (13, "431", false),
    ] {
        let head = frames
            .iter()
            .find(|frame| frame.kind == HEADERS && frame.stream == stream);
        let head = head.map(|frame| frame.payload.clone()).unwrap_or_default();
        assert!(
            head.windows(3).any(|part| part == status.as_bytes()),
            "{stream}: {head:?}"
        );
        assert_eq!(!wire::body_of(&frames, stream).is_empty(), has_body, "{stream}");
    }
}

#[test]
fn queued_heads_are_bounded() {
    let server = TestServer::new("").warm();
    let mut client = blocked(&server);
    let field = "x".repeat(4000);
    let streams: Vec<u32> = (0..120).map(|number| 3 + 2 * number).collect();
    for &stream in &streams {
        client
            .peer
            .send(&wire::request(stream, "GET", "/small.txt", &[("a", &field)], true));
    }
    client.settle();
    let unread = client.peer.unread();
    assert!(
        (120_000..=360_000).contains(&unread),
        "about 256 KiB of 480 KB must be read: {unread} bytes are unread"
    );
    client.peer.accept_all();
    client.run_until(|client| streams.iter().all(|&stream| has_end(client, stream)));
}

#[test]
fn a_client_that_never_reads_is_disconnected() {
    let server = TestServer::new("send_stall = \"1s\"").warm();
    let mut client = blocked(&server);
    client.peer.send(&wire::get(3, "/small.txt"));
    client.settle();
    assert!(!client.is_over());
    // Five ticks of 250 ms are longer than `send_stall`.
    server.pass(5);
    assert!(client.settle().is_over());
}

#[test]
fn a_window_that_grows_byte_by_byte_is_not_used_and_times_out() {
    let server = TestServer::new("send_stall = \"1s\"").warm();
    let mut client = server.connect_http2();
    client
        .peer
        .send(&wire::beginning(&[(wire::INITIAL_WINDOW_SIZE, 1)]))
        .send(&wire::get(1, "/large.bin"));
    client.run_until(|client| !wire::body_of(&frames_received(client), 1).is_empty());
    let pieces = |client: &TestClient| {
        frames_received(client)
            .iter()
            .filter(|frame| frame.kind == DATA)
            .count()
    };
    assert_eq!(pieces(&client), 1);
    // The first 64 frames use small windows. After them, the window stays at 15 bytes, one below the minimum useful
    // size.
    for _ in 0..63 + 15 {
        client.peer.send(&wire::window(1, 1));
        client.settle();
    }
    assert_eq!(pieces(&client), 64);
    // `send_stall` applies to such a client in the same way as to a client that reads nothing. It has not passed after
    // three ticks of 250 ms, and has passed after six.
    server.pass(3);
    assert!(
        frames_received(client.settle())
            .iter()
            .all(|frame| frame.kind != RST_STREAM)
    );
    server.pass(3);
    client.settle();
    let frames = frames_received(&client);
    let reset = frames.iter().find(|frame| frame.kind == RST_STREAM);
    assert!(reset.is_some_and(|frame| frame.stream == 1), "{}", frames.len());
    assert!(!client.is_over(), "other streams must continue");
}

#[test]
fn a_client_that_closes_its_sending_side_gets_the_queued_responses() {
    let server = TestServer::new("").warm();
    let mut client = server.connect_http2();
    client.peer.send(&wire::open_beginning());
    client.settle();
    client.peer.accept(0);
    client.peer.send(&wire::get(1, "/small.txt"));
    client.settle();
    client.peer.end();
    client.settle();
    assert!(!client.is_over());
    client.peer.accept_all();
    client.run_to_end();
    assert_eq!(wire::body_of(&frames_received(&client), 1), b"Hello, world!");
}

#[test]
fn a_body_in_small_pieces_arrives_whole() {
    let server = TestServer::new("").warm();
    let mut client = server.connect_http2();
    client.peer.send(&wire::open_beginning()).send(&wire::post(1, "/echo"));
    client.settle();
    let pieces: Vec<u8> = (0..50_000).flat_map(|at| wire::frame(DATA, 0, 1, [at as u8])).collect();
    for piece in pieces.chunks(60_000) {
        client.peer.send(piece);
    }
    client.peer.send(&wire::frame(DATA, END_STREAM, 1, ""));
    client.run_until(|client| has_end(client, 1));
    let frames = frames_received(&client);
    assert!(wire::body_of(&frames, 1) == (0..50_000).map(|at| at as u8).collect::<Vec<_>>());
    assert!(frames.iter().all(|frame| frame.kind != RST_STREAM));
}

/// Returns a client that has requested 20 files of 70 KB with low priority, on a link that accepts only 20 KB.
fn blocked_by_background(server: &TestServer) -> TestClient {
    let mut client = server.connect_http2();
    client.peer.send(&wire::open_beginning());
    client.settle();
    client.peer.accept(20_000);
    let requests = (0..BACKGROUND).map(|number| {
        let fields = [("priority", "u=5, i")];
        wire::request(1 + 2 * number, "GET", "/large.bin", &fields, true)
    });
    client.peer.send(&requests.collect::<Vec<_>>().concat());
    client.run_until(|client| client.peer.received().len() > 20_000);
    client
}

/// Number of background requests.
const BACKGROUND: u32 = 20;

/// Reads in small steps until the response of a stream has ended, and returns the number of bytes read.
fn bytes_until_end(client: &mut TestClient, stream: u32) -> usize {
    let before = client.peer.received().len();
    while !has_end(client, stream) {
        client.peer.accept(2000);
        client.settle();
        let read_bytes = client.peer.received().len() - before;
        assert!(
            read_bytes < LARGE * BACKGROUND as usize,
            "the response came after all others"
        );
    }
    client.peer.received().len() - before
}

#[test]
fn an_urgent_response_precedes_most_of_the_background_responses() {
    let server = TestServer::new("").warm();
    let mut client = blocked_by_background(&server);
    // The second request comes after a part of the background responses was sent.
    for stream in [1001, 1003] {
        let urgent = wire::request(stream, "GET", "/small.txt", &[("priority", "u=0")], true);
        client.peer.send(&urgent);
        client.settle();
        let read_bytes = bytes_until_end(&mut client, stream);
        assert!(
            read_bytes < 80_000,
            "{read_bytes} bytes were sent before the urgent response, more than 64 KiB"
        );
    }
    client.peer.accept_all();
    client.run_until(|client| (0..BACKGROUND).all(|number| has_end(client, 1 + 2 * number)));
    let frames = frames_received(&client);
    for number in 0..BACKGROUND {
        assert_eq!(wire::body_of(&frames, 1 + 2 * number).len(), LARGE);
    }
}

#[test]
fn a_late_urgent_response_precedes_most_of_the_background_responses() {
    let server = TestServer::new("").warm();
    let mut client = blocked_by_background(&server);
    let urgent = wire::request(1001, "POST", "/echo", &[("priority", "u=0")], false);
    client.peer.send(&urgent);
    client.settle();
    // While the handler waits for the request body, the server reduces the portions of the background responses that it
    // writes at a time.
    for _ in 0..50 {
        client.peer.accept(2000);
        client.settle();
    }
    client.peer.send(&wire::body_frames(1001, b"late"));
    client.settle();
    let read_bytes = bytes_until_end(&mut client, 1001);
    assert!(
        read_bytes < 36_000,
        "{read_bytes} bytes were sent before the urgent response, more than 16 KiB and a portion in progress"
    );
}

#[test]
fn the_send_limit_is_set_only_on_connections_that_send_large_bodies() {
    let server = TestServer::new("").warm();
    let mut client = server.connect_http2();
    client.peer.send(&wire::open_beginning());
    for number in 0..100 {
        client.peer.send(&wire::get(1 + 2 * number, "/small.txt"));
        client.settle();
    }
    assert!(has_end(&client, 199));
    // The limit, and the number of times that it was set.
    assert_eq!(client.peer.unsent_limit(), (None, 0));
    client.peer.send(&wire::get(201, "/large.bin"));
    client.run_until(|client| has_end(client, 201));
    assert_eq!(client.peer.unsent_limit(), (Some(64 * 1024), 1));
    // After a connection error the limit is removed, because the end of a TLS session must not wait for it.
    client.peer.send(&wire::frame(wire::DATA, 0, 0, b"x"));
    client.run_until(|client| client.peer.is_shut_down());
    assert_eq!(client.peer.unsent_limit(), (None, 2));
}
