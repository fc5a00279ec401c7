//! Tests of ClientHellos of every size and split, and of the alert at the end of every failed handshake.

use std::sync::Arc;
use std::task::Poll;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConfig, ClientConnection, Error};

use super::{NAME, TestClient, TlsConfigs, configs, configs_with, context, handshake};
use crate::sim::SimLink;
use crate::tls::{ClientHelloAcceptor, Tls};

/// Maximum payload of a record in bytes (RFC 8446 §5.1).
const RECORD: usize = 16 * 1024;
// Descriptions of alerts (RFC 8446 §6).
const DECODE_ERROR: u8 = 50;
const UNEXPECTED_MESSAGE: u8 = 10;
/// Two alert records: user_canceled (90) and close_notify (0), both as warnings (1).
const CANCELED: &[u8] = &[21, 3, 3, 0, 2, 1, 90, 21, 3, 3, 0, 2, 1, 0];

/// A client whose first flight has exactly `size` bytes, including the header of one record.
fn client_of(config: &ClientConfig, size: usize) -> ClientConnection {
    // Returns a client whose first flight is longer by `filler` bytes.
    let with = |filler: usize| {
        let mut config = config.clone();
        let mut remaining = filler;
        while remaining > 0 {
            // An ALPN name takes up its length plus one byte, and must not be empty. So a rest of one byte must not
            // remain.
            let name = remaining.min(256) - usize::from(remaining == 257);
            config.alpn_protocols.push(vec![b'-'; name - 1]);
            remaining -= name;
        }
        let name = ServerName::try_from(NAME).unwrap();
        ClientConnection::new(Arc::new(config), name).unwrap()
    };
    let bare = repack(&first_flight(&mut with(0)), usize::MAX).len();
    with(size - bare)
}

/// Returns the bytes that the client sends before it has received anything: the ClientHello.
fn first_flight(client: &mut ClientConnection) -> Vec<u8> {
    let mut sent = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut sent).unwrap();
    }
    sent
}

/// Repacks the handshake bytes into records of at most `payload` bytes. The header has 16 bits for the length of the
/// payload. A greater length is truncated there, so such a record serves only to count its bytes.
fn repack(mut records: &[u8], payload: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while let [22, _, _, high, low, rest @ ..] = records {
        let length = usize::from(*high) << 8 | usize::from(*low);
        all.extend_from_slice(&rest[..length]);
        records = &rest[length..];
    }
    in_records(&all, payload)
}

/// Packs a message into handshake records of at most `payload` bytes.
fn in_records(message: &[u8], payload: usize) -> Vec<u8> {
    message
        .chunks(payload)
        .flat_map(|part| [&[22, 3, 1, (part.len() >> 8) as u8, part.len() as u8], part].concat())
        .collect()
}

/// A handshake message of this type and length.
fn message(kind: u8, length: usize) -> Vec<u8> {
    let mut message = vec![kind, (length >> 16) as u8, (length >> 8) as u8, length as u8];
    message.resize(4 + length, 7);
    message
}

#[test]
fn a_client_hello_of_any_size_and_split_is_accepted() {
    let configs = configs(&TLS13);
    // Size of the ClientHello, maximum payload of its records, and maximum bytes that arrive at once. rustls reads at
    // most 4,096 bytes at once. A full record has 16,389 bytes with its header.
    for size in [3_800, 4_095, 4_096, 4_097, 8_192, 16_389, 20_000, 40_000, 60_000] {
        for payload in [RECORD, 1_000, 100] {
            for split in [1, 1_400, usize::MAX] {
                let (mut client, acceptor) = TestClient::new(&configs, split);
                client.tls = client_of(&configs.client, size);
                let hello = repack(&first_flight(&mut client.tls), payload);
                for part in hello.chunks(split) {
                    client.peer.send(part);
                }
                handshake(&mut client, acceptor, &configs.server);
                assert!(!client.tls.is_handshaking(), "{size} in {payload} by {split}");
            }
        }
    }
}

#[test]
fn a_large_second_client_hello_is_accepted() {
    for size in [4_097, 60_000] {
        for split in [1, 1_400, usize::MAX] {
            // The server supports only a group for which the client sends no key share in its first ClientHello.
            let mut provider = aws_lc_rs::default_provider();
            provider.kx_groups = vec![aws_lc_rs::kx_group::SECP384R1];
            let configs = configs_with(&TLS13, provider);
            let (mut client, acceptor) = TestClient::new(&configs, split);
            client.tls = client_of(&configs.client, size);
            let hello = first_flight(&mut client.tls);
            client.peer.send(&hello);
            handshake(&mut client, acceptor, &configs.server);
            assert_eq!(
                client.tls.handshake_kind(),
                Some(rustls::HandshakeKind::FullWithHelloRetryRequest),
                "{size} by {split}"
            );
        }
    }
}

/// Makes a client send `bytes` and then end its stream. Returns the bytes that the server sends in response.
fn bytes_sent_for(bytes: &[u8]) -> Vec<u8> {
    let (client, mut acceptor) = TestClient::new(&configs(&TLS13), usize::MAX);
    client.peer.send(bytes);
    client.peer.end();
    loop {
        match acceptor.poll(&mut context()) {
            Poll::Ready(Err(_)) => break,
            Poll::Ready(Ok(first_bytes)) => panic!("{first_bytes:?}"),
            Poll::Pending => {}
        }
    }
    assert!(client.peer.is_shut_down());
    client.peer.take_received()
}

#[test]
fn an_invalid_client_hello_gets_an_alert() {
    // An alert record with the level fatal (2).
    let fatal = |alert: u8| vec![21, 3, 3, 0, 2, 2, alert];
    let hello = {
        let (mut client, _) = TestClient::new(&configs(&TLS13), usize::MAX);
        first_flight(&mut client.tls)
    };
    let nested = [&hello[..50], &[23, 3, 3, 0, 1, b'x']].concat();
    let interleaved = [&in_records(&message(1, 100)[..50], RECORD)[..], &[23, 3, 3, 0, 1, b'x']].concat();
    // Description, bytes of the client, and bytes of the response.
    let rows: &[(&str, Vec<u8>, Vec<u8>)] = &[
        // The header of a ClientHello (1) of 65,536 bytes.
        (
            "a length above the bound",
            in_records(&[1, 1, 0, 0], RECORD),
            fatal(DECODE_ERROR),
        ),
        (
            "70,000 bytes",
            in_records(&message(1, 70_000), RECORD),
            fatal(DECODE_ERROR),
        ),
        (
            "many small records",
            in_records(&message(1, 60_000), 8),
            fatal(DECODE_ERROR),
        ),
        // The bytes of the application record are read as payload of the first record, so the ClientHello is still
        // incomplete when the client ends.
        (
            "an application record within a ClientHello record",
            nested,
            CANCELED.to_vec(),
        ),
        (
            "an application record within a ClientHello",
            interleaved,
            fatal(UNEXPECTED_MESSAGE),
        ),
        (
            "a record above the maximum length",
            [&[22, 3, 1, 0xff, 0xff][..], &[0; 20_000]].concat(),
            fatal(DECODE_ERROR),
        ),
        ("an empty record", vec![22, 3, 1, 0, 0], fatal(DECODE_ERROR)),
        ("half a ClientHello", hello[..100].to_vec(), CANCELED.to_vec()),
    ];
    for (what, bytes, expected) in rows {
        assert_eq!(&bytes_sent_for(bytes), expected, "{what}");
    }
}

/// A handshake that waits for the next flight of the client, which has not been sent.
fn half_done_handshake(configs: &TlsConfigs) -> (TestClient, Tls<SimLink>) {
    let (mut client, mut acceptor): (TestClient, ClientHelloAcceptor<SimLink>) = TestClient::new(configs, usize::MAX);
    let hello = first_flight(&mut client.tls);
    client.peer.send(&hello);
    assert!(acceptor.poll(&mut context()).is_ready());
    let mut tls = acceptor.accept(Arc::clone(&configs.server)).unwrap();
    assert!(tls.poll_handshake(&mut context()).is_pending());
    (client, tls)
}

#[test]
fn an_aborted_handshake_ends_with_an_alert_the_client_can_read() {
    for version in [&TLS13, &TLS12] {
        // Without and with an incomplete record from the client.
        for rest in [&[][..], &[22, 3, 3, 0, 90, 16]] {
            let (mut client, mut tls) = half_done_handshake(&configs(version));
            if !rest.is_empty() {
                client.peer.send(rest);
            }
            assert!(tls.poll_handshake(&mut context()).is_pending());
            tls.abort_handshake();
            let error = client.transfer().expect_err("an alert");
            assert_eq!(
                error,
                Error::AlertReceived(AlertDescription::DecodeError),
                "{version:?}"
            );
            // A second call sends nothing.
            tls.abort_handshake();
            assert!(client.peer.received().is_empty());
        }
        // The client closes its side.
        let (mut client, mut tls) = half_done_handshake(&configs(version));
        client.peer.end();
        assert!(matches!(tls.poll_handshake(&mut context()), Poll::Ready(Err(_))));
        assert!(client.transfer().is_err(), "{version:?}");
    }
}

#[test]
fn errors_without_an_alert_of_rustls_get_one() {
    // The server waits for a ClientKeyExchange, which has the message type 16.
    let interleaved = [&in_records(&message(16, 70)[..30], RECORD)[..], &[23, 3, 3, 0, 1, b'x']].concat();
    for (what, bytes) in [
        ("an application record within a handshake message", interleaved),
        // The header of a ClientKeyExchange of 65,536 bytes.
        ("a length above the bound", in_records(&[16, 1, 0, 0], RECORD)),
        ("many small records", in_records(&message(16, 60_000), 1)),
    ] {
        let (client, mut tls) = half_done_handshake(&configs(&TLS12));
        client.peer.take_received();
        client.peer.send(&bytes);
        assert!(
            matches!(tls.poll_handshake(&mut context()), Poll::Ready(Err(_))),
            "{what}"
        );
        assert_eq!(client.peer.take_received(), [21, 3, 3, 0, 2, 2, DECODE_ERROR], "{what}");
    }
}

#[test]
fn an_alert_gets_no_response() {
    let (client, mut tls) = half_done_handshake(&configs(&TLS12));
    client.peer.take_received();
    // bad_certificate, fatal.
    client.peer.send(&[21, 3, 3, 0, 2, 2, 42]);
    assert!(matches!(tls.poll_handshake(&mut context()), Poll::Ready(Err(_))));
    assert!(client.peer.take_received().is_empty());
}
