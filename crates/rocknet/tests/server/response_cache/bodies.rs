//! Bodies on their way into the store: limits on their size, and clients that leave before the end.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::super::support::client::request;
use super::super::support::upstream::{self, Next, Upstream, write_to};
use super::super::support::{DEADLINE, Folder, Running};
use super::{cached, status, upstream};

#[test]
fn bodies_of_unknown_length_are_stored_up_to_the_limit() {
    let upstream = upstream(|request| {
        let size: usize = request
            .line
            .split(['/', ' '])
            .find_map(|part| part.parse().ok())
            .expect("a size");
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{size:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size))
    });
    let server = cached(&upstream, "{ max_object = \"300KiB\" }");
    for (size, second) in [
        (300 * 1024, "hit"),
        (300 * 1024 + 1, "fwd=uri-miss; stored"),
        (2_000_000, "fwd=uri-miss; stored"),
    ] {
        let path = format!("/{size}");
        let first = server.get(&path);
        assert_eq!((first.body.len(), &*status(&first)), (size, "fwd=uri-miss; stored"));
        // The body is stored soon after its end was sent.
        let response = server.get(&path);
        assert_eq!(response.body.len(), size);
        if second != "hit" {
            assert_eq!(status(&response), second, "{size}");
        } else {
            assert!(
                ["hit", "fwd=uri-miss; collapsed"].contains(&&*status(&response)),
                "{response:?}"
            );
        }
    }
}

#[test]
fn bodies_in_progress_share_a_limit() {
    const SIZE: usize = 300 * 1024;
    let upstream = upstream(|_| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{SIZE:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(SIZE))
    });
    // A quarter of this size is less than the body.
    let text = format!(
        "[cache]\nresponses = \"1MiB\"\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n",
        upstream.key()
    );
    let server = Running::start(Folder::with(&[]), &text);
    for number in 1..=3 {
        assert_eq!(server.get("/").body.len(), SIZE);
        assert_eq!(upstream.all().len(), number);
    }
}

#[test]
fn a_body_is_received_after_its_client_has_left() {
    let (leave, left) = mpsc::channel();
    let left = Arc::new(Mutex::new(left));
    let upstream = Upstream::start(move |_, stream| {
        write_to(
            stream,
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nfour",
        );
        left.lock().expect("not poisoned").recv().expect("the client leaves");
        write_to(stream, "more");
        Next::Keep
    });
    let server = cached(&upstream, "true");
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    assert!(client.head().contains("fwd=uri-miss; stored"));
    drop(client);
    leave.send(()).expect("the upstream waits");
    assert_eq!(server.get("/").text(), "fourmore");
    assert_eq!(upstream.all().len(), 1);
}

/// Without a limit, a stream without an end would occupy the server and the upstream.
#[test]
fn an_endless_body_is_given_up_after_its_client_has_left() {
    let (end, ended) = mpsc::channel();
    let end = Arc::new(Mutex::new(end));
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let _ = upstream::request(&mut reader);
        write_to(
            &mut stream,
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        // A piece arrives before each deadline for the next piece.
        while stream.write_all(b"1\r\nx\r\n").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = end.lock().expect("not poisoned").send(());
    });
    let settings = format!(
        "proxy = {{ to = \"{}\", idle = \"300ms\" }}\ncache = true",
        upstream.url()
    );
    let server = Running::site(Folder::with(&[("www/x", "")]), &settings);
    // Time passes only for a worker with a connection.
    let mut other = server.connect();
    other.send("GET ");
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    assert!(client.head().contains("fwd=uri-miss; stored"));
    drop(client);
    assert_eq!(ended.recv_timeout(DEADLINE), Ok(()));
}
