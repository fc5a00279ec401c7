//! Tests the memory use of an idle connection.

use super::check::*;
use rocknet_proto::Limits;
use rocknet_proto::h2::{Config, ConnectionEvent, DecodedHead, PreparedHead, ServerConnection};

/// An idle connection without TLS uses at most 4 KiB, even after a browser has filled the connection's HPACK table.
#[test]
fn an_idle_connection_is_small() {
    let (mut connection, mut head, mut out) = (
        ServerConnection::new(&Config::default()),
        DecodedHead::default(),
        Vec::new(),
    );
    let mut bytes = beginning();
    for stream in 0..100u32 {
        let mut block = block(GET_FIELDS);
        // Fields of typical sizes. The first stream adds them to the table as literals with indexing (0x40). Later
        // streams send their indexes (0x80), which begin at 62.
        for field in 0..12u8 {
            if stream == 0 {
                block.extend_from_slice(&[0x40, 14]);
                block.extend_from_slice(&[b'a' + field; 14]);
                block.push(60);
                block.extend_from_slice(&[b'v'; 60]);
            } else {
                block.push(0x80 | (62 + field));
            }
        }
        // The flags 5 are END_STREAM and END_HEADERS.
        bytes.extend_from_slice(&frame(HEADERS, 5, 2 * stream + 1, block));
    }
    let prepared = PreparedHead::new(rocknet_proto::Status::OK, Some(0), []).expect("valid fields");
    let (mut at, mut requests, mut open) = (0, 0, Vec::new());
    loop {
        // The time is always 0.
        let received = connection.receive(&Limits::default(), 0, &bytes[at..], &mut head, &mut out);
        at += received.consumed;
        match received.event {
            ConnectionEvent::More => break,
            ConnectionEvent::Request { stream, .. } => {
                requests += 1;
                assert_eq!(head.request().fields.len(), 12);
                open.push(stream);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(requests, 100);
    for stream in open {
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        assert!(
            connection
                .respond_prepared(stream, &prepared, date, 0, &mut out)
                .is_ok()
        );
    }
    assert!(connection.is_idle());
    connection.trim();
    assert!(connection.memory() <= 4096, "{} bytes", connection.memory());
}

#[test]
fn a_new_connection_allocates_nothing() {
    let (mut connection, mut head, mut out) = (
        ServerConnection::new(&Config::default()),
        DecodedHead::default(),
        Vec::new(),
    );
    let received = connection.receive(&Limits::default(), 0, &beginning(), &mut head, &mut out);
    assert_eq!(received.event, ConnectionEvent::More);
    assert_eq!(connection.memory(), size_of::<ServerConnection>());
}
