//! Clients that close their sending side or break the link before they have acknowledged all sent bytes.

use std::io::ErrorKind;

use crate::GET;
use crate::test_server::{TestClient, TestServer};
use crate::wire;

const LIMITS: &str = "send_stall = \"20s\"";
/// Unacknowledged bytes, more than the server ever leaves to the kernel when it closes a socket.
const MANY_BYTES: u64 = 100_000;
/// Unacknowledged bytes that the server leaves to the kernel when it closes a socket after [`End::Orderly`]. After
/// [`End::Fault`], it waits for these bytes too.
const FEW_BYTES: u64 = 60_000;
/// Maximum number of ticks of 250 ms in a test, together longer than `send_stall`.
const MAX_TICKS: u32 = 120;

#[derive(Debug, Clone, Copy)]
enum End {
    /// The client closes its sending side.
    Orderly,
    /// The link fails, as TLS does when a record cannot be decrypted.
    Fault,
}

/// Connects a client that sends one request, acknowledges all but `bytes` of the response, and ends the connection.
fn end_with(server: &TestServer, http2: bool, end: End, bytes: u64) -> TestClient {
    let mut client;
    if http2 {
        client = server.connect_http2();
        client
            .peer
            .send(&wire::open_beginning())
            .send(&wire::get(1, "/small.txt"));
    } else {
        client = server.connect();
        client.peer.send(GET.as_bytes());
    }
    client.settle();
    assert!(!client.peer.received().is_empty());
    client.peer.set_unacknowledged(bytes);
    match end {
        End::Orderly => client.peer.end(),
        End::Fault => client.peer.fail_recv(ErrorKind::InvalidData),
    };
    client.settle();
    client
}

/// Returns the number of ticks until the connection is over.
fn ticks_until_over(server: &TestServer, client: &mut TestClient) -> u32 {
    (0..MAX_TICKS)
        .find(|_| {
            let is_over = client.is_over();
            if !is_over {
                server.pass(1);
                client.settle();
            }
            is_over
        })
        .expect("an end")
}

#[test]
fn a_connection_closes_after_its_client_has_acknowledged_all_bytes() {
    let server = TestServer::new(LIMITS).warm();
    for http2 in [false, true] {
        for (end, bytes, is_over) in [
            (End::Orderly, 0, true),
            (End::Orderly, FEW_BYTES, true),
            (End::Orderly, MANY_BYTES, false),
            (End::Fault, 0, true),
            (End::Fault, FEW_BYTES, false),
            (End::Fault, MANY_BYTES, false),
        ] {
            let what = format!("HTTP/2 {http2}, {end:?}, {bytes}");
            let mut client = end_with(&server, http2, end, bytes);
            assert_eq!(client.is_over(), is_over, "{what}");
            client.peer.set_unacknowledged(0);
            let ticks = ticks_until_over(&server, &mut client);
            assert!(ticks <= 1, "{what}: {ticks} ticks");
            assert!(!client.peer.is_reset(), "{what}");
        }
    }
}

#[test]
fn a_client_that_acknowledges_nothing_is_reset() {
    let server = TestServer::new(LIMITS).warm();
    for http2 in [false, true] {
        for end in [End::Orderly, End::Fault] {
            let mut client = end_with(&server, http2, end, MANY_BYTES);
            let ticks = ticks_until_over(&server, &mut client);
            assert!(client.peer.is_reset(), "HTTP/2 {http2}, {end:?}: after {ticks} ticks");
        }
    }
}
