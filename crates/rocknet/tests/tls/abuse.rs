//! Those who mean no good, or know no better: plain text, rubbish, handshakes that never end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::certs::{Authority, Kind};
use super::client::Wish;
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
fn plain_text_is_told_to_come_by_https() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    for request in [
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "G",
        "OPTIONS * HTTP/1.1\r\n\r\n",
    ] {
        let mut client = Client::to(server.address());
        client.send(request);
        let answer = client.answer();
        answer.expect(request, 400, &["Connection: close", "Server: RockNet", "Date"]);
        assert!(answer.text().contains("https://"), "{}", answer.text());
        client.assert_closed(request);
    }
}

/// What is sent instead of a handshake, and the alert that comes back (`None`: just the end).
#[test]
fn rubbish_gets_an_alert_and_the_end() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let long = [&[22, 3, 1, 0xff, 0xff][..], &[0; 70_000]].concat();
    // A hello without any extension: TLS 1.0 and 1.1 know none, of TLS 1.2 it is too little.
    let bare = |minor| {
        let head = [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, minor];
        let rest = [0, 0, 2, 0, 0x2f, 1, 0];
        [&head[..], &[7; 32], &rest].concat()
    };
    let rows: &[(&[u8], Option<u8>)] = &[
        (b"\x00\x01\x02", Some(10)),
        (b"get / http/1.1\r\n\r\n", Some(10)),
        (b"SSH-2.0-x\r\n", Some(10)),
        // A record of another kind; of no version; a hello that is none; one longer than any record may be.
        (b"\x17\x03\x03\x00\x01x", Some(10)),
        (b"\x16\x09\x09\x00\x04abcd", Some(50)),
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", Some(50)),
        (&long, None),
        (&bare(1), Some(70)),
        (&bare(2), Some(70)),
        (&bare(3), Some(40)),
    ];
    for (bytes, alert) in rows {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        Stream::set_deadline(&socket, DEADLINE).unwrap();
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        let found = (answer.len() >= 7 && answer[0] == 21).then(|| answer[6]);
        assert!(
            alert.is_none() || found == *alert,
            "{:?}: {answer:?}",
            &bytes[..bytes.len().min(12)]
        );
        assert!(!answer.windows(4).any(|part| part == b"HTTP"), "{answer:?}");
    }
    Wish::new(authority.roots(), "a.test")
        .client(server.address())
        .get("/")
        .expect("after", 200, &[]);
}

#[test]
fn a_handshake_that_never_ends_has_an_end_and_keeps_nobody_waiting() {
    let authority = Authority::new("root");
    let server = start(&authority, "[limits]\nheader_timeout = \"700ms\"\n");
    let started = Instant::now();
    // One says nothing, one a byte now and then, one stops in the middle.
    let mut silent = TcpStream::connect(server.address()).unwrap();
    let mut slow = TcpStream::connect(server.address()).unwrap();
    let mut half = TcpStream::connect(server.address()).unwrap();
    half.write_all(&[22, 3, 1, 1, 0, 1, 0]).unwrap();
    for socket in [&silent, &slow, &half] {
        Stream::set_deadline(socket, DEADLINE).unwrap();
    }
    // The beginning of a hello of 12 KiB, which does not come whole in that time.
    let hello = [22, 3, 1, 0x30, 4, 1, 0, 0x30, 0];
    let mut sent = 0;
    while slow.write_all(&hello[sent.min(8)..][..1]).is_ok() && started.elapsed() < DEADLINE {
        sent += 1;
        let mut client = Wish::new(authority.roots(), "a.test").client(server.address());
        client.get("/").expect("beside", 200, &[]);
    }
    assert!(started.elapsed() >= Duration::from_millis(600), "cut too early");
    assert!(started.elapsed() < DEADLINE, "never cut");
    for socket in [&mut silent, &mut half] {
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
    }
}

#[test]
fn many_handshakes_at_once_all_come_to_an_end() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let address = server.address();
    let roots = authority.roots();
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let mut client = Wish::new(roots.clone(), "a.test").client(address);
                    client.get("/").expect("one of many", 200, &[]);
                }
            });
        }
    });
}

#[test]
fn one_who_leaves_without_a_word_harms_nobody() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    for _ in 0..20 {
        let mut tls = Wish::new(authority.roots(), "a.test").open(server.address()).unwrap();
        tls.write_all(b"GET / HT").unwrap();
        tls.0.sock.shutdown(std::net::Shutdown::Both).unwrap();
    }
    Wish::new(authority.roots(), "a.test")
        .client(server.address())
        .get("/")
        .expect("after", 200, &[]);
}
