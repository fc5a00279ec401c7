//! Trailers, and request and response bodies that are sent at the same time through the proxy, over HTTP/1.1 and
//! HTTP/2.

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use bytes::Bytes;
use http::HeaderMap;

use super::support::http2::{Http2, send_and_receive_in_turn};
use super::support::upstream::{Upstream, write_to};
use super::support::{Folder, Running};

/// Starts a proxy that accepts HTTP/1.1 and HTTP/2.
pub fn proxied(url: &str, keys: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\nevents = {{ wait = \"20ms\" }}\n[log]\nerrors = \"off\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"{url}\"{keys} }}\n"
    );
    Running::start(Folder::with(&[]), &text)
}

/// Reads a head up to and including the empty line.
fn head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|count| count > 0) {}
    head
}

/// Reads the next chunk. The last chunk is empty, and its trailers are not read.
fn chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let size = usize::from_str_radix(line.trim_end(), 16).expect("a size");
    let mut data = vec![0; size];
    reader.read_exact(&mut data).ok()?;
    if size > 0 {
        reader.read_exact(&mut [0; 2]).ok()?;
    }
    Some(data)
}

/// Starts an upstream that responds with the trailers of the request as the body, and with `trailers`.
fn with_trailers(trailers: &'static str) -> Upstream {
    Upstream::raw(move |mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        loop {
            let incoming = head(&mut reader);
            if incoming.is_empty() {
                return;
            }
            let mut received = String::new();
            if incoming.to_ascii_lowercase().contains("transfer-encoding: chunked") {
                while chunk(&mut reader).is_some_and(|data| !data.is_empty()) {}
                received = trailers_and_end(&mut reader);
            }
            let content = match received.len() {
                0 => String::new(),
                length => format!("{length:x}\r\n{received}\r\n"),
            };
            write_to(
                &mut stream,
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{content}0\r\n{trailers}\r\n"),
            );
        }
    })
}

/// Reads trailers up to the empty line, and returns them followed by `end`.
fn trailers_and_end(reader: &mut impl BufRead) -> String {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim_end().is_empty() {
            return all + "end";
        }
        all += &line;
    }
}

#[test]
fn request_trailers_are_forwarded() {
    let upstream = with_trailers("");
    let server = proxied(&upstream.url(), ", headers = { \"X-Key\" = \"1\" }");
    let mut client = server.connect();
    for (trailers, expected) in [
        ("", "end"),
        ("X-Sum: 5\r\nX-Two: a b\r\n", "X-Sum: 5\r\nX-Two: a b\r\nend"),
        // Fields that the proxy sets in the head are dropped from the trailers.
        ("X-Key: 2\r\nX-Real-IP: 10.0.0.1\r\nX-Sum: 5\r\n", "X-Sum: 5\r\nend"),
    ] {
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n{trailers}\r\n"
        ));
        assert_eq!(client.response().text(), expected, "{trailers}");
    }
    let mut client = Http2::to(server.address());
    let (response, mut stream) = client.start_request(client.request("POST", "/"), false);
    stream.send_data(Bytes::from_static(b"abc"), false).expect("room");
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "5".parse().expect("a value"));
    stream.send_trailers(trailers).expect("an open stream");
    let response = client.response(response).expect("a response");
    assert_eq!(String::from_utf8_lossy(&response.content), "x-sum: 5\r\nend");
}

/// The other route of the site identifies its clients by these fields.
#[test]
fn trailers_forge_no_identity_on_open_routes() {
    let upstream = with_trailers("");
    let rest = "route.\"/private/*\" = { auth = { forward = \"http://127.0.0.1:9/\" } }\n";
    let text = format!(
        "[server]\nworkers = 1\n[log]\nerrors = \"off\"\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\n{rest}",
        upstream.key()
    );
    let server = Running::start(Folder::with(&[]), &text);
    let mut client = server.connect();
    for name in ["Remote-User", "remote_groups"] {
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n{name}: root\r\n\r\n"
        ));
        assert_eq!(client.response().text(), "end", "{name}");
    }
}

#[test]
fn response_trailers_are_forwarded() {
    let upstream = with_trailers("X-Sum: 5\r\nGrpc-Status: 0\r\n");
    let server = proxied(&upstream.url(), "");
    let mut client = server.connect();
    for round in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = client.head();
        assert!(head.contains("Transfer-Encoding: chunked\r\n"), "{round}: {head}");
        // The body is empty, because the request has no trailers.
        let expected = b"0\r\nX-Sum: 5\r\nGrpc-Status: 0\r\n\r\n";
        assert_eq!(client.bytes(expected.len()), expected, "{round}");
    }
    assert_eq!(upstream.connections(), 1, "the connection must be reused");
    let mut client = Http2::to(server.address());
    for _ in 0..2 {
        let (response, _) = client.start_request(client.request("GET", "/"), true);
        let trailers = client.wait(async {
            let mut body = response.await.expect("a response").into_body();
            while let Some(data) = body.data().await {
                data.expect("data");
            }
            body.trailers().await.expect("an end").expect("trailers")
        });
        assert_eq!(trailers["x-sum"], "5");
        assert_eq!(trailers["grpc-status"], "0");
    }
    // HTTP/1.0 has no trailers.
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let all = client.rest();
    assert!(all.ends_with(b"\r\n\r\n"), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn forbidden_response_trailers_are_dropped_from_the_response() {
    let upstream = with_trailers(
        "Content-Length: 9\r\nX-Sum: 5\r\nContent-Type: a/b\r\nSet-Cookie: a=b\r\nVary: *\r\nCache-Control: no-store\r\n\
         Location: /\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nHost: h\r\nDate: now\r\nExpires: 0\r\nAge: 1\r\n\
         Retry-After: 1\r\nWarning: x\r\nServer: x\r\nTrailer: x\r\nGrpc-Status: 0\r\n",
    );
    for buffering in ["", ", buffering = true"] {
        let server = proxied(&upstream.url(), buffering);
        let mut client = server.connect();
        for round in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            let head = client.head();
            assert!(head.starts_with("HTTP/1.1 200 "), "{round}: {head}");
            let expected = b"0\r\nX-Sum: 5\r\nGrpc-Status: 0\r\n\r\n";
            let found = client.bytes(expected.len());
            assert_eq!(
                String::from_utf8_lossy(&found),
                String::from_utf8_lossy(expected),
                "{round}"
            );
        }
        let mut client = Http2::to(server.address());
        let (response, _) = client.start_request(client.request("GET", "/"), true);
        let trailers = client.wait(async {
            let mut body = response.await.expect("a response").into_body();
            while let Some(data) = body.data().await {
                data.expect("data");
            }
            body.trailers().await.expect("an end").expect("trailers")
        });
        let mut names: Vec<&str> = trailers.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["grpc-status", "x-sum"]);
    }
    assert_eq!(upstream.connections(), 2, "connections must be reused");
}

/// Starts an upstream that sends its head immediately and echoes the request body piece by piece.
fn echo() -> Upstream {
    Upstream::raw(|mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        while !head(&mut reader).is_empty() {
            write_to(&mut stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while let Some(data) = chunk(&mut reader) {
                if data.is_empty() {
                    trailers_and_end(&mut reader);
                    break;
                }
                write_to(&mut stream, format!("{:x}\r\n", data.len()));
                write_to(&mut stream, &data);
                write_to(&mut stream, "\r\n");
            }
            write_to(&mut stream, "0\r\n\r\n");
        }
    })
}

#[test]
fn both_sides_send_at_the_same_time_over_http1() {
    let upstream = echo();
    let server = proxied(&upstream.url(), "");
    let mut client = server.connect();
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(client.head().contains("200 OK"));
        for word in ["one", "two", "three"] {
            client.send(format!("{:x}\r\n{word}\r\n", word.len()));
            let expected = format!("{:x}\r\n{word}\r\n", word.len());
            assert_eq!(client.bytes(expected.len()), expected.as_bytes());
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.bytes(5), b"0\r\n\r\n");
    }
    assert_eq!(upstream.connections(), 1, "the connection must be reused");
}

#[test]
fn both_sides_send_at_the_same_time_over_http2() {
    let upstream = echo();
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    let (response, mut stream) = client.start_request(client.request("POST", "/"), false);
    client.wait(async {
        let mut body = response
            .await
            .expect("a response before any part of the body")
            .into_body();
        send_and_receive_in_turn(&mut stream, &mut body).await;
    });
}

/// The bodies exceed all buffers, and the client sends and receives at the same time.
#[test]
fn large_bodies_flow_both_ways() {
    const SIZE: usize = 8 << 20;
    let upstream = echo();
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    let (response, mut stream) = client.start_request(client.request("POST", "/"), false);
    let received = client.wait(async {
        let mut body = response.await.expect("a response").into_body();
        let send = async move {
            let mut left = SIZE;
            while left > 0 {
                stream.reserve_capacity(left.min(60_000));
                while stream.capacity() == 0 {
                    poll_fn(|context| stream.poll_capacity(context))
                        .await
                        .expect("a stream")
                        .expect("room");
                }
                let size = left.min(stream.capacity());
                stream
                    .send_data(Bytes::from(vec![b'x'; size]), false)
                    .expect("an open stream");
                left -= size;
            }
            stream.send_data(Bytes::new(), true).expect("an open stream");
        };
        let receive = async {
            let mut received = 0;
            while let Some(data) = body.data().await {
                let data = data.expect("data");
                body.flow_control().release_capacity(data.len()).expect("capacity");
                received += data.len();
            }
            received
        };
        tokio::join!(send, receive).1
    });
    assert_eq!(received, SIZE);
}

/// An invalid chunk, a disconnect, or a body beyond the limit ends the exchange while both sides send.
#[test]
fn a_disconnect_or_an_oversized_body_ends_the_exchange() {
    let upstream = echo();
    let server = proxied(&upstream.url(), "");
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(client.head().contains("200 OK"));
    client.send("3\r\nabc\r\n2\r\nno size\r\n");
    let rest = client.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(client.head().contains("200 OK"));
    drop(client);
    // The keys end the table of the proxy, so that `limits` is a key of the site.
    let limited = proxied(&upstream.url(), " }\nlimits = { body_size = \"1KiB\"");
    let mut client = limited.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(client.head().contains("200 OK"));
    client.send(format!("800\r\n{}\r\n0\r\n\r\n", "x".repeat(2048)));
    let rest = client.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
}

/// If a response is complete before its request, the rest of the request is discarded and the connection of the client
/// is kept.
#[test]
fn a_response_completed_first_ends_the_request() {
    let upstream = Upstream::raw(|mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        head(&mut reader);
        write_to(
            &mut stream,
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch",
        );
        // The upstream continues to read, so that the connection is not reset.
        let _ = reader.read_to_end(&mut Vec::new());
    });
    let server = proxied(&upstream.url(), "");
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
    let response = client.response();
    response.expect("the refusal", 413, &[]);
    assert_eq!(response.text(), "much");
    client.send("0123456789");
    client.get("/").expect("the next request", 413, &[]);
}

over_http3! {
    a_response_completed_first_ends_the_request,
}
