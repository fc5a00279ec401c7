//! Input that no handler reads, in a request body or after the last response: a connection discards it up to a fixed
//! number of bytes.

use crate::GET;
use crate::test_server::{TestClient, TestServer};

/// Maximum length of an unread request body that is discarded to keep the connection open.
const MAX_DISCARDED: usize = 256 * 1024;
/// Maximum number of bytes read after the last response, so that closing does not cause a reset.
const MAX_LINGER: usize = 1024 * 1024;

fn statuses(client: &TestClient) -> Vec<String> {
    let received = client.received();
    let heads = received.match_indices("HTTP/1.1 ");
    heads.map(|(at, _)| received[at + 9..at + 12].to_owned()).collect()
}

fn send_in_pieces(client: &mut TestClient, bytes: &[u8]) {
    for piece in bytes.chunks(10_000) {
        client.peer.send(piece);
        client.settle();
    }
}

#[test]
fn an_unread_body_is_discarded_up_to_a_bound() {
    let server = TestServer::new("").warm();
    for (size, expected) in [(MAX_DISCARDED, vec!["405", "200"]), (MAX_DISCARDED + 1, vec!["405"])] {
        let by_length = (format!("Content-Length: {size}"), vec![b'x'; size]);
        let chunk = [
            format!("{size:x}\r\n").into_bytes(),
            vec![b'x'; size],
            b"\r\n0\r\n\r\n".to_vec(),
        ]
        .concat();
        for (field, content) in [by_length, ("Transfer-Encoding: chunked".to_owned(), chunk)] {
            let mut client = server.connect();
            let head = format!("POST /small.txt HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n");
            client.peer.send(head.as_bytes());
            client.settle();
            send_in_pieces(&mut client, &content);
            client.peer.send(GET.as_bytes());
            client.settle();
            assert_eq!(statuses(&client), expected, "{size} bytes, {field}");
            assert_eq!(
                client.peer.is_shut_down(),
                size > MAX_DISCARDED,
                "{size} bytes, {field}"
            );
        }
    }
}

#[test]
fn bytes_after_the_last_response_are_read_up_to_a_bound() {
    let server = TestServer::new("").warm();
    let mut client = server.connect();
    client.peer.send(b"BAD\r\n\r\n");
    client.settle();
    assert_eq!(statuses(&client), ["400"]);
    assert!(client.peer.is_shut_down() && !client.is_over());
    send_in_pieces(&mut client, &vec![b'x'; MAX_LINGER]);
    assert!(
        !client.is_over(),
        "the connection must remain open so that the client gets its response"
    );
    client.peer.send(b"x");
    assert!(
        client.settle().is_over(),
        "a client that never stops must be disconnected"
    );
}
