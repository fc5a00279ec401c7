//! Requests proxied to HTTP/2 upstreams: concurrent streams, bodies in both directions, trailers, gRPC, and upstreams
//! that shut down, refuse streams, or speak another protocol.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::Reason;
use h2::server::Builder;
use http::Response;

use super::proxy_streams::proxied;
use super::support::client::request;
use super::support::http2::{Http2, send_and_receive_in_turn};
use super::support::http2_upstream::{Http2Upstream, send, send_ok, trailers, whole};
use super::support::refusing_port::RefusingPort;
use super::support::upstream::{Upstream, ok};
use super::support::{Folder, Running};

/// Starts an upstream that responds with the request, line by line.
fn start_reflecting() -> Http2Upstream {
    Http2Upstream::start(&Builder::new(), |request, respond| {
        Box::pin(async move {
            let (head, mut body) = request.into_parts();
            let (content, trailers) = whole(&mut body).await;
            let mut message = format!("{} {}\n", head.method, head.uri);
            for (name, value) in &head.headers {
                message += &format!("{name}: {}\n", value.to_str().expect("text"));
            }
            message += &format!("{} bytes\n", content.len());
            for (name, value) in &trailers.unwrap_or_default() {
                message += &format!("{name}: {}\n", value.to_str().expect("text"));
            }
            send_ok(respond, message);
        })
    })
}

/// Starts an upstream that sends its head immediately, echoes the request body, and ends with gRPC trailers.
fn echo() -> Http2Upstream {
    Http2Upstream::start(&Builder::new(), |request, mut respond| {
        Box::pin(async move {
            let head = Response::builder().header("content-type", "application/grpc").body(());
            let mut stream = respond.send_response(head.expect("a head"), false).expect("a stream");
            let mut body = request.into_body();
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                if !send(&mut stream, data).await {
                    return;
                }
            }
            let _ = stream.send_trailers(trailers(&[("grpc-status", "0"), ("host", "x")]));
        })
    })
}

#[test]
fn only_grpc_clients_are_allowed_to_pause_in_a_request_body() {
    let upstream = start_reflecting();
    let text = format!(
        "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[log]\nerrors = \"off\"\n[limits]\nbody_idle = \"500ms\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = \"{}\"\n",
        upstream.url()
    );
    let server = Running::start(Folder::with(&[]), &text);
    let half_upload = |media_type: &str| {
        let mut client = server.connect();
        let media_type = format!("Content-Type: {media_type}");
        client.send(request("POST /x", &["Content-Length: 10", &media_type]) + "hello");
        client
    };
    let mut grpc = half_upload("application/grpc");
    let mut plain = half_upload("text/plain");
    plain.response().expect("an upload", 408, &["Connection: close"]);
    // The gRPC client has now paused for longer than the other client, whose upload was refused.
    grpc.send("world");
    let response = grpc.response();
    assert_eq!(response.status, 200);
    assert!(response.text().contains("10 bytes"), "{}", response.text());
}

#[test]
fn requests_are_rewritten_for_the_upstream() {
    let upstream = start_reflecting();
    let server = proxied(&upstream.url(), ", headers = { \"X-Key\" = \"1\" }");
    let mut client = server.connect();
    client
        .send("GET /a/../b?x=1 HTTP/1.1\r\nHost: a.test:81\r\nConnection: X-Mine\r\nX-Mine: 1\r\nX-Kept: yes\r\n\r\n");
    let text = client.response().text();
    assert!(text.starts_with("GET http://a.test:81/b?x=1\n"), "{text}");
    for line in [
        "x-kept: yes\n",
        "x-key: 1\n",
        "x-forwarded-for: 127.0.0.1\n",
        "via: 1.1 RockNet\n",
        "0 bytes\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for name in ["\nx-mine:", "\nconnection:", "\nte:", "\nhost:", "\ncontent-length:"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTE: trailers\r\nConnection: TE\r\n\r\nabcde");
    let text = client.response().text();
    assert!(
        text.contains("content-length: 5\n") && text.contains("5 bytes\n"),
        "{text}"
    );
    assert!(text.contains("te: trailers\n"), "{text}");
    client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 5\r\n\r\n");
    let text = client.response().text();
    assert!(text.ends_with("3 bytes\nx-sum: 5\n"), "{text}");
    let response = client.fetch("HEAD /", &[]);
    assert!(response.body.is_empty());
    client
        .get("/")
        .expect("the next one", 200, &["Server: RockNet", "Date"]);
    assert_eq!(upstream.connections(), 1);
}

/// In a gRPC call both sides send alternately, and the trailers contain the status.
#[test]
fn grpc_calls_flow_both_ways_and_end_with_a_status() {
    let upstream = echo();
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    for _ in 0..2 {
        let request = client
            .request("POST", "/echo.Echo/Both")
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let (response, mut stream) = client.start_request(request, false);
        let trailers = client.wait(async {
            let mut body = response
                .await
                .expect("a response before any part of the body")
                .into_body();
            send_and_receive_in_turn(&mut stream, &mut body).await;
            body.trailers().await.expect("an end").expect("trailers")
        });
        assert_eq!(trailers["grpc-status"], "0");
        assert!(!trailers.contains_key("host"), "{trailers:?}");
    }
    assert_eq!(upstream.connections(), 1);
}

/// The bodies exceed all flow-control windows between client and upstream.
#[test]
fn large_bodies_flow_both_ways() {
    const SIZE: usize = 4 << 20;
    let upstream = echo();
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    let (response, mut stream) = client.start_request(client.request("POST", "/"), false);
    let received = client.wait(async {
        let mut body = response.await.expect("a response").into_body();
        let sent = async {
            assert!(send(&mut stream, Bytes::from(vec![b'x'; SIZE])).await);
            stream.send_data(Bytes::new(), true).expect("an open stream");
        };
        let received = async {
            let (content, trailers) = whole(&mut body).await;
            assert_eq!(trailers.expect("trailers")["grpc-status"], "0");
            content.len()
        };
        tokio::join!(sent, received).1
    });
    assert_eq!(received, SIZE);
}

/// The upstream sends the head of its response immediately, but the body only after it has received the whole request
/// body.
#[test]
fn a_request_body_is_sent_after_the_response_head() {
    let upstream = Http2Upstream::start(&Builder::new(), |request, mut respond| {
        Box::pin(async move {
            let mut stream = respond.send_response(Response::new(()), false).expect("a stream");
            let (content, _) = whole(&mut request.into_body()).await;
            let _ = stream.send_data(format!("{} bytes", content.len()).into(), true);
        })
    });
    let server = proxied(&upstream.url(), "");
    let content = vec![b'x'; 2_000_000];
    let mut client = Http2::to(server.address());
    let response = client.send(client.request("POST", "/"), &content).expect("a response");
    assert_eq!(response.content, b"2000000 bytes");
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
    assert!(client.head().contains("200 OK"));
    client.send(&content);
    assert_eq!(client.bytes(18), b"d\r\n2000000 bytes\r\n");
}

/// gRPC reports errors by a response that consists only of a head.
#[test]
fn a_response_without_a_body_ends_with_its_head() {
    let upstream = Http2Upstream::start(&Builder::new(), |_, mut respond| {
        Box::pin(async move {
            let head = Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", "5");
            let _ = respond.send_response(head.body(()).expect("a head"), true);
        })
    });
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    let (response, _) = client.start_request(client.request("GET", "/"), true);
    let response = client.wait(response).expect("a response");
    assert_eq!(response.headers()["grpc-status"], "5");
    assert!(response.body().is_end_stream());
}

/// The data buffered for a client that does not read is bounded, and other requests on the connection are not delayed.
#[test]
fn a_client_that_does_not_read_delays_no_other_request() {
    const SIZE: usize = 32 << 20;
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let upstream = Http2Upstream::start(&Builder::new(), move |request, mut respond| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            if request.uri().path() != "/much" {
                return send_ok(respond, "hello");
            }
            let mut stream = respond.send_response(Response::new(()), false).expect("a stream");
            let piece = Bytes::from(vec![b'x'; 16 * 1024]);
            for _ in 0..SIZE / piece.len() {
                if !send(&mut stream, piece.clone()).await {
                    return;
                }
                count.fetch_add(piece.len(), Ordering::SeqCst);
            }
        })
    });
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    let (waiting, _) = client.start_request(client.request("GET", "/much"), true);
    let mut body = client.wait(waiting).expect("a head").into_body();
    // Other requests succeed while the first response is stalled.
    for _ in 0..200 {
        assert_eq!(server.get("/").text(), "hello");
    }
    let held = sent.load(Ordering::SeqCst);
    assert!(
        held < 4 << 20,
        "{held} bytes were buffered for a client that does not read"
    );
    assert_eq!(upstream.connections(), 1);
    let (all, _) = client.wait(whole(&mut body));
    assert!(all.len() <= SIZE);
}

#[test]
fn requests_share_a_connection_up_to_the_limit_of_the_upstream() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(4);
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, active) = (Arc::clone(&most), Arc::clone(&now));
    let upstream = Http2Upstream::start(&builder, move |_, respond| {
        let (seen, active) = (Arc::clone(&seen), Arc::clone(&active));
        Box::pin(async move {
            let count = active.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(count, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            active.fetch_sub(1, Ordering::SeqCst);
            send_ok(respond, "hello");
        })
    });
    let server = proxied(&upstream.url(), "");
    server.get("/").expect("the first", 200, &[]);
    let address = server.address();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut client = Http2::to(address);
                for _ in 0..20 {
                    assert_eq!(client.get("/").content, b"hello");
                }
            });
        }
    });
    // Eight concurrent requests need two connections with four streams each. A connection for each request would be far
    // more than the bound.
    assert!(upstream.connections() <= 16, "{}", upstream.connections());
    assert!(
        most.load(Ordering::SeqCst) > 1,
        "the requests were sent one after the other"
    );
}

/// Requests on streams above the last one in a GOAWAY are sent again, regardless of their method, because the upstream
/// did not process them.
#[test]
fn an_upstream_that_shuts_down_loses_no_request() {
    let upstream = Http2Upstream::raw(&Builder::new(), |mut connection, number| {
        Box::pin(async move {
            let mut served = 0;
            while let Some(Ok((_, respond))) = connection.accept().await {
                served += 1;
                if served == 2 {
                    connection.graceful_shutdown();
                }
                send_ok(respond, format!("{number}"));
            }
        })
    });
    let server = proxied(&upstream.url(), "");
    let mut client = server.connect();
    for round in 0..10 {
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
        client.response().expect(&format!("round {round}"), 200, &[]);
    }
    assert!(upstream.connections() > 1);
    // This upstream refuses all streams of its first connection.
    let upstream = Http2Upstream::raw(&Builder::new(), |mut connection, number| {
        Box::pin(async move {
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                if number < 2 {
                    respond.send_reset(Reason::REFUSED_STREAM);
                    connection.graceful_shutdown();
                } else {
                    send_ok(respond, "taken");
                }
            }
        })
    });
    let server = proxied(&upstream.url(), "");
    assert_eq!(server.get("/").text(), "taken");
}

#[test]
fn other_protocols_and_closed_connections_are_errors() {
    let silent = Upstream::raw(|stream: TcpStream| {
        std::thread::park_timeout(std::time::Duration::from_secs(60));
        drop(stream);
    });
    let plain = Upstream::responding_with(ok("hello"));
    let gone = Upstream::raw(drop);
    let garbage = Upstream::raw(|mut stream: TcpStream| {
        let _ = stream.write_all(&[0xff; 100]);
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    let resets = Http2Upstream::start(&Builder::new(), |_, mut respond| {
        Box::pin(async move { respond.send_reset(Reason::INTERNAL_ERROR) })
    });
    let closed = RefusingPort::new();
    let h2c_url = |upstream: &Upstream| upstream.url().replace("http://", "h2c://");
    for (url, status) in [
        (h2c_url(&silent), 504),
        (h2c_url(&plain), 502),
        (h2c_url(&gone), 502),
        (h2c_url(&garbage), 502),
        (resets.url(), 502),
        (format!("h2c://{}", closed.address()), 502),
    ] {
        let server = proxied(&url, ", first_byte = \"300ms\"");
        assert_eq!(server.get("/").status, status, "{url}");
        // A gRPC client gets the gRPC status 14 (UNAVAILABLE) instead of an error page.
        let mut client = Http2::to(server.address());
        let request = client
            .request("POST", "/a.B/C")
            .header("content-type", "application/grpc+proto");
        let (response, mut stream) = client.start_request(request, false);
        let _ = stream.send_data(Bytes::from_static(b"\0\0\0\0\0"), true);
        let response = client.wait(response).expect("a response");
        assert_eq!(response.status(), 200, "{url}");
        assert_eq!(response.headers()["grpc-status"], "14", "{url}");
        assert_eq!(response.headers()["content-type"], "application/grpc", "{url}");
        assert!(response.body().is_end_stream(), "{url}");
    }
}

/// A response that the upstream aborts is reset for the client.
#[test]
fn a_cut_response_is_detectable_by_the_client() {
    let upstream = Http2Upstream::start(&Builder::new(), |_, mut respond| {
        Box::pin(async move {
            let mut stream = respond.send_response(Response::new(()), false).expect("a stream");
            let _ = send(&mut stream, Bytes::from_static(b"begun")).await;
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            stream.send_reset(Reason::INTERNAL_ERROR);
        })
    });
    let server = proxied(&upstream.url(), "");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let rest = client.rest();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    let mut client = Http2::to(server.address());
    let (response, _) = client.start_request(client.request("GET", "/"), true);
    let is_cut = client.wait(async {
        let Ok(response) = response.await else { return true };
        let mut body = response.into_body();
        loop {
            match body.data().await {
                Some(Ok(_)) => {}
                end => return end.is_some(),
            }
        }
    });
    assert!(is_cut);
}

/// When a client disconnects, its call at the upstream is reset.
#[test]
fn a_disconnect_of_the_client_resets_the_call() {
    let (report, receiver) = std::sync::mpsc::channel::<bool>();
    let upstream = Http2Upstream::start(&Builder::new(), move |request, mut respond| {
        let report = report.clone();
        Box::pin(async move {
            let _stream = respond.send_response(Response::new(()), false).expect("a stream");
            let mut body = request.into_body();
            let mut end = body.data().await;
            while matches!(end, Some(Ok(_))) {
                end = body.data().await;
            }
            let _ = report.send(matches!(end, Some(Err(_))));
        })
    });
    let server = proxied(&upstream.url(), "");
    let mut client = Http2::to(server.address());
    let (response, mut stream) = client.start_request(client.request("POST", "/"), false);
    let response = client.wait(response).expect("a head");
    stream.send_reset(Reason::CANCEL);
    drop(response);
    let is_error = receiver.recv_timeout(super::support::DEADLINE).expect("an end");
    assert!(is_error, "the disconnect was forwarded as a regular end of the request");
}

#[test]
fn health_checks_use_http2() {
    let upstream = Http2Upstream::start(&Builder::new(), |request, mut respond| {
        Box::pin(async move {
            let status = if request.uri().path() == "/down" { 500 } else { 204 };
            let head = Response::builder().status(status).body(()).expect("a head");
            let _ = respond.send_response(head, true);
        })
    });
    for (path, expected) in [("/up", 204), ("/down", 503)] {
        let server = proxied(
            &upstream.url(),
            &format!(", health = {{ path = \"{path}\", interval = \"100ms\" }}"),
        );
        let began = std::time::Instant::now();
        while server.get("/").status != expected {
            assert!(began.elapsed() < super::support::DEADLINE, "{path}");
            std::thread::yield_now();
        }
    }
}

over_http3! {
    requests_share_a_connection_up_to_the_limit_of_the_upstream,
    other_protocols_and_closed_connections_are_errors,
    a_cut_response_is_detectable_by_the_client,
    health_checks_use_http2,
}
