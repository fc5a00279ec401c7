//! Applications that close the connection at any byte of their response, and clients that disconnect during a response.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;

use super::support::client::request;
use super::support::fastcgi::{Next, Peer, SOCKET, record, response, stderr, stdout, write_to};
use super::support::http2::Http2;
use super::support::running::site;
use super::support::{DEADLINE, Folder, Running};
use crate::wire;

fn start(folder: Folder) -> Running {
    let text = site("php = \"unix:php.sock\"");
    Running::start(folder, &format!("[server]\nh2c = true\nworkers = 1\n{text}"))
}

fn folder() -> Folder {
    Folder::with(&[("www/a.php", "<?php secret")])
}

#[test]
fn a_response_that_ends_early_is_an_error_or_detectably_cut() {
    let whole = response(b"Content-Type: text/x\r\nX-A: b\r\n\r\nhello");
    let with_more = [stderr(b"a complaint"), whole.clone()].concat();
    for sent in [whole, with_more] {
        let (folder, length) = (folder(), sent.len());
        let _peer = Peer::start(&folder.path(SOCKET), move |incoming, stream| {
            let limit = incoming.variable("QUERY_STRING").parse::<usize>();
            write_to(stream, &sent[..limit.expect("a number")]);
            Next::Close
        });
        let server = start(folder);
        let mut http2 = Http2::to(server.address());
        for limit in (0..=length).rev() {
            let mut client = server.connect();
            client.send(request(&format!("GET /a.php?{limit}"), &["Connection: close"]));
            let got = String::from_utf8_lossy(&client.rest()).into_owned();
            let (head, content) = got.split_once("\r\n\r\n").unwrap_or((&got, ""));
            let has_length = head.contains("Content-Length: 5");
            let is_whole = head.starts_with("HTTP/1.1 200 ")
                && (has_length && content == "hello" || !has_length && content.ends_with("0\r\n\r\n"));
            assert_eq!(is_whole, limit == length, "{limit} of {length}: {got:?}");
            let has_begun = head.starts_with("HTTP/1.1 200 ");
            assert!(has_begun || head.starts_with("HTTP/1.1 502 "), "{limit}: {got:?}");
            let (pending, _) = http2.start_request(http2.request("GET", &format!("/a.php?{limit}")), true);
            match http2.response(pending) {
                Ok(response) if response.status == 200 => {
                    assert_eq!((limit, &response.content[..]), (length, &b"hello"[..]));
                }
                Ok(response) => assert!(response.status == 502 && limit < length, "{limit}: {}", response.status),
                Err(error) => assert!(error.is_reset() && limit < length, "{limit}: {error}"),
            }
        }
    }
}

#[test]
fn a_reset_stream_aborts_its_script() {
    let folder = folder();
    let (report, reports) = mpsc::channel();
    let _peer = Peer::raw(&folder.path(SOCKET), move |mut stream| {
        while let Ok(Some((kind, content))) = record(&mut stream) {
            // An empty record of type 5 (`FCGI_STDIN`) ends the request.
            if kind == 5 && content.is_empty() {
                break;
            }
        }
        let _ = report.send("requested");
        write_to(&mut stream, stdout(b"X-A: b\r\n\r\n"));
        // The application sends until the connection is closed, because no buffer is large enough for an endless
        // response.
        while stream.write_all(&stdout(&[b'x'; 60_000])).is_ok() {}
        let _ = report.send("disconnected");
    });
    let server = start(folder);
    let mut client = TcpStream::connect(server.address()).expect("a connection");
    // A thread reads the responses, because the server reads no further request while its output is blocked.
    let mut reader = client.try_clone().expect("a socket");
    let reading = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    for stream in [1, 3, 5] {
        let beginning = if stream == 1 {
            wire::open_beginning()
        } else {
            Vec::new()
        };
        let bytes = [beginning, wire::get(stream, "/a.php")].concat();
        client.write_all(&bytes).expect("to be sent");
        assert_eq!(reports.recv_timeout(DEADLINE), Ok("requested"));
        client.write_all(&wire::rst(stream)).expect("to be sent");
        assert_eq!(reports.recv_timeout(DEADLINE), Ok("disconnected"), "{stream}");
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
    let _ = reading.join();
}
