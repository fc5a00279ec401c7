//! Life cycle of connections: clients that wait or disconnect, handlers that panic, and workers that stop.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rocknet_io::runtime::Runtime;

use crate::GET;
use crate::splits::requests;
use crate::test_server::TestServer;

#[test]
fn continue_100_is_sent_once_and_only_where_the_body_is_read() {
    let server = TestServer::new("").warm();
    let mut client = server.connect();
    client
        .peer
        .send(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    client.settle();
    assert_eq!(client.received(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.peer.send(b"hel").pause().send(b"lo");
    client.settle();
    assert!(
        client
            .received()
            .starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"),
        "{}",
        client.received()
    );
    assert!(client.received().ends_with("\r\n\r\nhello"), "{}", client.received());

    let mut client = server.connect();
    client
        .peer
        .send(b"POST /small.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    client.settle();
    assert!(client.received().starts_with("HTTP/1.1 405 "), "{}", client.received());
}

#[test]
fn a_refusal_follows_a_100_continue_that_was_sent_in_part() {
    const REQUEST: &[u8] =
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\nno size\r\n";
    let server = TestServer::new("").warm();
    // The interim response has 25 bytes.
    for room in [0, 5, 24, 25, 26] {
        let mut client = server.connect();
        client.peer.accept(room).send(REQUEST);
        client.settle();
        client.peer.accept_all();
        client.settle();
        let received = client.received();
        assert!(
            received.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 "),
            "with room for {room}: {received}"
        );
    }
}

#[test]
fn a_client_that_disconnects_closes_only_its_connection() {
    let server = TestServer::new("").warm();
    let requests = requests(true);
    for cut in (0..requests.len()).step_by(3) {
        for error in [None, Some(ErrorKind::ConnectionReset)] {
            let mut client = server.connect();
            client.peer.send(&requests[..cut]);
            match error {
                Some(error) => client.peer.fail_recv(error),
                None => client.peer.end(),
            };
            client.settle();
            assert!(client.is_over() && client.peer.is_dropped(), "{error:?} at {cut}");
        }
        let mut client = server.connect();
        client.peer.send(&requests).accept(cut);
        client.settle();
        client.peer.fail_send(ErrorKind::BrokenPipe);
        client.settle();
        assert!(
            client.is_over() && client.peer.is_dropped(),
            "cut while sending at {cut}"
        );
    }
    assert_eq!(server.worker.connections(), 0);
    assert_eq!(server.worker.counters.panics.get(), 0);
    assert!(
        server.worker.wheel.is_empty(),
        "a deadline remains after its connection has closed"
    );
}

#[test]
fn a_panicking_handler_ends_only_its_exchange_with_500() {
    let server = TestServer::new("").warm();
    for path in ["/panic", "/panic-at-once"] {
        let mut client = server.connect();
        client
            .peer
            .send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes())
            .end();
        client.settle();
        assert!(
            client.received().starts_with("HTTP/1.1 500 "),
            "{path}: {}",
            client.received()
        );
        assert!(client.is_over(), "{path}");
    }
    let mut client = server.connect();
    client.peer.send(b"GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n").end();
    client.settle();
    assert!(client.received().starts_with("HTTP/1.1 200 "), "{}", client.received());
    assert_eq!(server.worker.counters.panics.get(), 2);
}

#[test]
fn a_stopping_worker_serves_received_requests_and_closes_idle_connections() {
    let server = TestServer::new("").warm();
    let (mut idle, mut waiting, mut half) = (server.connect(), server.connect(), server.connect());
    idle.peer.send(GET.as_bytes());
    half.peer.send(b"GET /small.txt HT");
    for client in [&mut idle, &mut waiting, &mut half] {
        client.settle();
    }
    waiting.peer.send(GET.as_bytes());
    // At a stop the event loop polls the sockets once more before it wakes idle connections.
    let runtime = Runtime::new(64).expect("a loop");
    runtime.block_on(async {
        server.worker.stop(Duration::from_secs(10));
        for _ in 0..1000 {
            if idle.woken.flag.load(Ordering::Acquire) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("the stop did not wake the idle connection");
    });
    for client in [&mut idle, &mut waiting, &mut half] {
        client.settle();
    }
    assert!(
        idle.is_over() && idle.received().matches("200 OK").count() == 1,
        "{}",
        idle.received()
    );
    assert!(waiting.peer.is_shut_down(), "{}", waiting.received());
    assert!(
        waiting.received().contains("200 OK") && waiting.received().contains("Connection: close"),
        "{}",
        waiting.received()
    );
    assert!(!half.is_over());
    half.peer.send(b"TP/1.1\r\nHost: h\r\n\r\n");
    half.settle();
    assert!(
        half.peer.is_shut_down() && half.received().contains("Connection: close"),
        "{}",
        half.received()
    );
}

#[test]
fn a_head_is_sent_together_with_the_first_bytes_of_its_body() {
    let server = TestServer::new("").warm();
    let mut client = server.connect();
    client.peer.send(b"GET /stops HTTP/1.1\r\nHost: h\r\n\r\n");
    client.settle();
    let received = client.received();
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    assert_eq!(received.matches("5\r\npiece\r\n").count(), 3, "{received}");
    // Three writes for three pieces: the head was sent with the first piece.
    assert_eq!(client.peer.write_count(), 3, "{received}");
}

#[test]
fn a_response_that_fails_immediately_is_cut() {
    let server = TestServer::new("").warm();
    for room in [None, Some(0), Some(10)] {
        let mut client = server.connect();
        if let Some(room) = room {
            client.peer.accept(room);
        }
        // The handler fails before the first piece of its body.
        client.peer.send(b"GET /fails HTTP/1.1\r\nHost: h\r\n\r\n");
        client.settle();
        let received = client.received();
        assert!(client.is_over() && client.peer.is_dropped(), "{received}");
        match room {
            None => assert!(
                received.starts_with("HTTP/1.1 200 OK\r\n") && received.ends_with("\r\n\r\n"),
                "{received}"
            ),
            Some(room) => assert_eq!(received, "HTTP/1.1 200 OK\r\n"[..room]),
        }
    }
    // The failure must not affect other connections.
    let mut client = server.connect();
    client.peer.send(GET.as_bytes());
    client.settle();
    assert!(
        client.received().starts_with("HTTP/1.1 200 OK\r\n"),
        "{}",
        client.received()
    );
}

#[test]
fn a_client_that_resets_while_it_waits_ends_the_wait() {
    let server = TestServer::new("").warm();
    // One handler never responds, and the other stalls in its response.
    for path in ["/silent", "/stops"] {
        let mut client = server.connect();
        client
            .peer
            .send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        client.settle();
        assert!(!client.is_over(), "{path}");
        client.peer.fail_recv(ErrorKind::ConnectionReset);
        client.settle();
        assert!(client.is_over() && client.peer.is_dropped(), "{path}");
    }
    assert_eq!(server.worker.connections(), 0);
}

#[test]
fn pipelined_bytes_before_a_response_are_bounded() {
    const MANY_BYTES: usize = 100_000;
    let server = TestServer::new("").warm();
    let head = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut client = server.connect();
    client.peer.send(head("/silent").as_bytes());
    client.settle();
    client.peer.send(&[b'x'; MANY_BYTES]);
    client.settle();
    let read_bytes = MANY_BYTES - client.peer.unread();
    assert!((1..=16 * 1024).contains(&read_bytes), "{read_bytes} bytes");

    // Pipelined requests wait for the first response, which needs a lookup on disk, and are then served.
    let mut client = server.connect();
    client.peer.send(head("/never-requested").as_bytes());
    client.settle();
    client.peer.send(head("/small.txt").repeat(500).as_bytes()).end();
    client.run_to_end();
    let received = client.received();
    assert!(received.starts_with("HTTP/1.1 404 "), "{received}");
    assert_eq!(received.matches("HTTP/1.1 200 OK").count(), 500);
}

#[test]
fn an_incomplete_response_without_framing_ends_with_a_reset() {
    let server = TestServer::new("answer_timeout = \"10s\"\nsend_stall = \"10s\"").warm();
    // `/stops` stalls in its response, and `/counts` sends a whole one.
    for (path, version, room, reset) in [
        ("/stops", "1.0", usize::MAX, true),
        ("/counts", "1.0", usize::MAX, false),
        // The response is complete, but a part of it cannot be sent.
        ("/counts", "1.0", 100, true),
        // Chunked coding shows the client that the body was cut, so no reset is needed.
        ("/stops", "1.1", usize::MAX, false),
        // `Content-Length` shows the cut as well. Without a reset, though, the client could keep the unread bytes in
        // the kernel forever.
        ("/small.txt", "1.0", 100, true),
    ] {
        let mut client = server.connect();
        let request = format!("GET {path} HTTP/{version}\r\nHost: h\r\nConnection: close\r\n\r\n");
        client.peer.accept(room).send(request.as_bytes());
        client.settle();
        for _ in 0..15 * 4 {
            server.pass(1);
            client.settle();
        }
        assert!(client.is_over(), "{path}: {}", client.received());
        assert_eq!(client.peer.is_reset(), reset, "{path} over {version}, room for {room}");
    }
    // A worker that exits drops its connections. This also resets an incomplete response without framing.
    let mut client = server.connect();
    client.peer.send(b"GET /stops HTTP/1.0\r\n\r\n");
    client.settle();
    let peer = client.peer.clone();
    drop(client);
    assert!(peer.is_reset());
}
