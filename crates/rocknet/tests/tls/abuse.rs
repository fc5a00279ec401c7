//! Clients that send plain text or garbage to a TLS port, or stall in their handshake.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConnection};

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::support::client::Stream;
use super::support::{Client, DEADLINE, Folder, Running};

fn start(authority: &Authority, keys: &str) -> Running {
    let folder = Folder::with(&[("www/index.html", "hello")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    Running::start(
        folder,
        &format!(
            "{keys}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\" }}"
        ),
    )
}

#[test]
fn plain_text_gets_a_hint_to_use_https() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    for request in [
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "G",
        "OPTIONS * HTTP/1.1\r\n\r\n",
    ] {
        let mut client = Client::to(server.address());
        client.send(request);
        let response = client.response();
        response.expect(request, 400, &["Connection: close", "Server: RockNet", "Date"]);
        assert!(response.text().contains("https://"), "{}", response.text());
        client.assert_closed(request);
    }
}

/// Each row has the bytes sent instead of a handshake, and the expected alert: unexpected_message (10),
/// handshake_failure (40), decode_error (50) or protocol_version (70).
#[test]
fn garbage_gets_an_alert_and_a_close() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let long = [&[22, 3, 1, 0xff, 0xff][..], &[0; 70_000]].concat();
    // A ClientHello without extensions is valid in TLS 1.0 and 1.1, but lacks required extensions for TLS 1.2.
    let bare = |minor| {
        let head = [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, minor];
        let rest = [0, 0, 2, 0, 0x2f, 1, 0];
        [&head[..], &[7; 32], &rest].concat()
    };
    // The message exceeds the limit on a ClientHello, and its records have the largest size.
    let message = [&[1, 1, 0x11, 0x70, 3, 3][..], &[0; 69_998]].concat();
    let records: Vec<u8> = message
        .chunks(16_384)
        .flat_map(|part| [&[22, 3, 1, (part.len() >> 8) as u8, part.len() as u8], part].concat())
        .collect();
    let rows: &[(&[u8], u8)] = &[
        (b"\x00\x01\x02", 10),
        // Bytes count as HTTP only if they begin with capital letters up to a space.
        (b"get / http/1.1\r\n\r\n", 10),
        (b"SSH-2.0-x\r\n", 10),
        // A wrong record type, an invalid version, an invalid ClientHello, and a record that is too long.
        (b"\x17\x03\x03\x00\x01x", 10),
        (b"\x16\x09\x09\x00\x04abcd", 50),
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", 50),
        (&long, 50),
        (&records, 50),
        (&bare(1), 70),
        (&bare(2), 70),
        (&bare(3), 40),
    ];
    for (bytes, alert) in rows {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        Stream::set_deadline(&socket, DEADLINE).unwrap();
        let _ = socket.write_all(bytes);
        let mut response = Vec::new();
        let _ = socket.read_to_end(&mut response);
        // A record with one fatal alert.
        assert_eq!(
            response,
            [21, 3, 3, 0, 2, 2, *alert],
            "{:?}",
            &bytes[..bytes.len().min(12)]
        );
        assert!(!response.windows(4).any(|part| part == b"HTTP"), "{response:?}");
    }
    TlsClient::new(authority.roots(), "a.test")
        .client(server.address())
        .get("/")
        .expect("after", 200, &[]);
}

#[test]
fn a_stalled_handshake_times_out_and_delays_no_client() {
    let authority = Authority::new("root");
    let server = start(&authority, "[limits]\nheader_timeout = \"700ms\"\n");
    let started = Instant::now();
    // One client sends nothing, the second a byte at a time, and the third stops in the middle of its ClientHello.
    let mut silent = TcpStream::connect(server.address()).unwrap();
    let mut slow = TcpStream::connect(server.address()).unwrap();
    let mut half = TcpStream::connect(server.address()).unwrap();
    half.write_all(&[22, 3, 1, 1, 0, 1, 0]).unwrap();
    for socket in [&silent, &slow, &half] {
        Stream::set_deadline(socket, DEADLINE).unwrap();
    }
    // The client begins a ClientHello of 12 KiB, which is not complete within the timeout.
    let hello = [22, 3, 1, 0x30, 4, 1, 0, 0x30, 0];
    let mut sent = 0;
    while slow.write_all(&hello[sent.min(8)..][..1]).is_ok() && started.elapsed() < DEADLINE {
        sent += 1;
        let mut client = TlsClient::new(authority.roots(), "a.test").client(server.address());
        client.get("/").expect("beside", 200, &[]);
    }
    // The bound leaves 100 ms for the ticks of the server's timers.
    assert!(
        started.elapsed() >= Duration::from_millis(600),
        "the handshake was aborted too early"
    );
    assert!(started.elapsed() < DEADLINE, "the handshake was not aborted");
    for socket in [&mut silent, &mut half] {
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        // The alerts are user_canceled and close_notify.
        assert_eq!(rest, [21, 3, 3, 0, 2, 1, 90, 21, 3, 3, 0, 2, 1, 0]);
    }
}

/// The connection of a client that has sent nothing is closed without lingering, because lingering would take longer
/// than the time for the stop.
#[test]
fn a_silent_client_does_not_delay_a_stop() {
    let authority = Authority::new("root");
    let server = start(&authority, "[limits]\nshutdown = \"1s\"\n");
    let mut silent = TcpStream::connect(server.address()).unwrap();
    Stream::set_deadline(&silent, DEADLINE).unwrap();
    // Connections are accepted in order: when the next one has been served, the silent one has been accepted.
    TlsClient::new(authority.roots(), "a.test")
        .client(server.address())
        .get("/")
        .expect("the next connection", 200, &[]);
    assert!(server.stop(), "the stop waited for the silent client");
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).unwrap();
    // The alerts are user_canceled and close_notify.
    assert_eq!(rest, [21, 3, 3, 0, 2, 1, 90, 21, 3, 3, 0, 2, 1, 0]);
}

#[test]
fn a_client_that_stalls_in_its_handshake_gets_an_alert() {
    let authority = Authority::new("root");
    let server = start(&authority, "[limits]\nheader_timeout = \"700ms\"\n");
    for version in [&TLS13, &TLS12] {
        let client_config = TlsClient {
            only: Some(version),
            ..TlsClient::new(authority.roots(), "a.test")
        };
        let name = ServerName::try_from("a.test").unwrap();
        let mut tls = ClientConnection::new(Arc::new(client_config.config()), name).unwrap();
        let mut socket = TcpStream::connect(server.address()).unwrap();
        Stream::set_deadline(&socket, DEADLINE).unwrap();
        tls.write_tls(&mut socket).unwrap();
        let mut received = Vec::new();
        socket.read_to_end(&mut received).unwrap();
        let mut rest = &received[..];
        let error = loop {
            assert!(!rest.is_empty(), "no alert was received under {version:?}");
            tls.read_tls(&mut rest).unwrap();
            if let Err(error) = tls.process_new_packets() {
                break error;
            }
        };
        // No alert of TLS stands for a timeout. After a ClientHello the server sends decode_error.
        assert_eq!(
            error,
            rustls::Error::AlertReceived(AlertDescription::DecodeError),
            "{version:?}"
        );
    }
}

#[test]
fn many_concurrent_handshakes_all_complete() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let address = server.address();
    let roots = authority.roots();
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let mut client = TlsClient::new(roots.clone(), "a.test").client(address);
                    client.get("/").expect("one of many", 200, &[]);
                }
            });
        }
    });
}

#[test]
fn a_silent_disconnect_affects_no_client() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    for _ in 0..20 {
        let mut tls = TlsClient::new(authority.roots(), "a.test")
            .open(server.address())
            .unwrap();
        tls.write_all(b"GET / HT").unwrap();
        tls.0.sock.shutdown(std::net::Shutdown::Both).unwrap();
    }
    TlsClient::new(authority.roots(), "a.test")
        .client(server.address())
        .get("/")
        .expect("after", 200, &[]);
}
