//! Tests interoperability with the `h2` crate as client, over a pipe in memory. Both sides must agree on every sequence
//! of requests, with any window, frame and table sizes of the client.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Method, Request};
use proptest::prelude::*;
use rocknet_proto::h2::{
    BodyDelivery, Config, ConnectionEvent, DecodedHead, PreparedHead, PushRequest, ServerConnection, StreamId,
};
use rocknet_proto::{Limits, Status};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

/// One request and the expected response.
#[derive(Clone, Debug)]
struct Exchange {
    /// Size of the request body in bytes; `None` for GET.
    upload: Option<usize>,
    /// True if the request has Content-Length.
    announced: bool,
    /// Size of the response body in bytes.
    download: usize,
    /// True if the server sends a prepared head.
    prepared: bool,
    request_trailers: bool,
    response_trailers: bool,
    /// True if the server sends a response of status 103 first.
    hints: bool,
    /// True if the server pushes a second response, provided that the client still permits it.
    push: bool,
    /// True if the client resets the stream immediately after the request head.
    cancelled: bool,
    /// Value of the priority field (RFC 9218). Body data must be complete whatever the order of sending.
    priority: Option<String>,
}

/// Settings of the client, and the capacity of the pipe, all in bytes.
#[derive(Clone, Debug)]
struct Client {
    /// Initial window of each stream.
    window: u32,
    connection_window: u32,
    /// Maximum size of received frames.
    frame: u32,
    /// Size of the dynamic table.
    table: u32,
    pipe: usize,
}

/// Returns the content of every body of this length.
fn body_bytes(length: usize) -> Bytes {
    body_range(0, length).collect()
}

/// Returns the bytes of a body from `start` to `end`. The pattern repeats after a prime number of bytes, so that bytes
/// at a wrong position are noticed.
fn body_range(start: usize, end: usize) -> impl Iterator<Item = u8> {
    (start..end).map(|position| (position % 251) as u8)
}

fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    let size = || prop_oneof![Just(0), 1usize..50, 1000usize..20_000, Just(70_000)];
    let exchange = (
        prop::option::of(size()),
        size(),
        any::<[bool; 6]>(),
        prop::bool::weighted(0.15),
        prop::option::of("u=[0-9]|u=[0-7], i|i|i=\\?0, u=3|u=-1|[a-z=;,]{0,6}"),
    )
        .prop_map(
            |(
                upload,
                download,
                [announced, prepared, request_trailers, response_trailers, hints, push],
                cancelled,
                priority,
            )| {
                Exchange {
                    priority,
                    upload,
                    announced,
                    download,
                    prepared,
                    request_trailers: request_trailers && upload.is_some(),
                    response_trailers: response_trailers && !prepared,
                    hints,
                    // A push promise for a reset stream triggers a debug assertion in the `h2` client.
                    push: push && !cancelled,
                    cancelled,
                }
            },
        );
    prop::collection::vec(exchange, 1..12)
}

fn clients() -> impl Strategy<Value = Client> {
    let window = || prop_oneof![100u32..1000, 1000u32..100_000, Just(1 << 20)];
    (
        window(),
        65_535u32..1 << 20,
        16_384u32..100_000,
        0u32..10_000,
        1usize..100_000,
    )
        .prop_map(|(window, connection_window, frame, table, pipe)| Client {
            window,
            connection_window,
            frame,
            table,
            pipe,
        })
}

/// Server that takes the form of each response from the request path `/<bytes of the body>/<flags>`. The flags are `r`
/// for a prepared head, `t` for trailers, `h` for a response of status 103 before the final one, and `p` for a push.
struct Server {
    connection: ServerConnection,
    head: DecodedHead,
    out: Vec<u8>,
    /// Path and received body of each stream whose request is incomplete.
    open: HashMap<StreamId, (String, Vec<u8>)>,
    /// Number of bytes sent of each response body, and true if trailers follow.
    sending: HashMap<StreamId, (usize, bool)>,
    /// Number of streams that the client has reset.
    cancelled: usize,
}

const TRAILER: [(&[u8], &[u8]); 1] = [(b"x-checked", b"yes")];

impl Server {
    fn handle(&mut self, event: ConnectionEvent, unread: &[u8]) {
        match event {
            ConnectionEvent::Request { stream, end, .. } => {
                let path = String::from_utf8_lossy(self.head.request().path).into_owned();
                self.open.insert(stream, (path, Vec::new()));
                if end {
                    self.respond(stream);
                }
            }
            ConnectionEvent::Data {
                stream,
                start,
                end,
                last,
            } => {
                if let Some((_, body)) = self.open.get_mut(&stream) {
                    body.extend_from_slice(&unread[start..end]);
                }
                self.connection.release(stream, (end - start) as u32, &mut self.out);
                if last {
                    self.respond(stream);
                }
            }
            ConnectionEvent::Trailers { stream } => {
                let trailers = self.head.index().trailers.view(self.head.bytes());
                assert_eq!(trailers.iter().collect::<Vec<_>>(), TRAILER);
                self.respond(stream);
            }
            ConnectionEvent::Reset { stream, error, .. } => {
                assert_eq!(error, None, "the client caused no stream error");
                self.open.remove(&stream);
                self.sending.remove(&stream);
                self.cancelled += 1;
            }
            ConnectionEvent::GoAway { .. } | ConnectionEvent::More => {}
            other => panic!("{other:?}"),
        }
    }

    /// Responds to a complete request in the form that its path describes.
    fn respond(&mut self, stream: StreamId) {
        let (path, received) = self.open.remove(&stream).expect("the stream is open");
        assert_eq!(received, body_bytes(received.len()));
        let mut parts = path.split('/').skip(1);
        let length: usize = parts.next().and_then(|part| part.parse().ok()).expect("a length");
        let flags = parts.next().unwrap_or_default();
        let Self { connection, out, .. } = self;
        if flags.contains('h') {
            let hint = [(b"link".as_slice(), b"</a.css>; rel=preload".as_slice())];
            assert_eq!(connection.send_interim(stream, Status::EARLY_HINTS, hint, out), Ok(()));
        }
        let pushed = if flags.contains('p') && connection.may_push(stream) {
            let request = PushRequest {
                scheme: b"http",
                authority: b"example.com",
                // A response body of 7 bytes without flags.
                path: b"/7/-",
            };
            Some(
                connection
                    .push_promise(stream, &request, [], out)
                    .expect("push is allowed"),
            )
        } else {
            None
        };
        let size = received.len().to_string();
        let fields = [(b"x-received".as_slice(), size.as_bytes()), (b"vary", b"Origin")];
        if flags.contains('r') {
            let head = PreparedHead::new(Status::OK, Some(length as u64), fields).expect("valid fields");
            let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
            match connection.respond_prepared(stream, &head, date, length as u64, out) {
                Ok(BodyDelivery::Now) => out.extend_from_slice(&body_bytes(length)),
                Ok(BodyDelivery::Later) => {
                    self.sending.insert(stream, (0, false));
                }
                Ok(BodyDelivery::Done) => {}
                Err(error) => panic!("{error}"),
            }
        } else {
            let trailers = flags.contains('t');
            // The head has no Content-Length and does not end the response.
            assert_eq!(connection.respond(stream, Status::OK, None, fields, false, out), Ok(()));
            self.sending.insert(stream, (0, trailers));
            assert_eq!(connection.queue_body(stream, length as u64, !trailers, out), Ok(()));
            if trailers && length == 0 {
                assert_eq!(connection.finish_with_trailers(stream, TRAILER, out), Ok(()));
            }
        }
        if let Some(pushed) = pushed {
            self.open.insert(pushed, ("/7/-".to_owned(), Vec::new()));
            self.respond(pushed);
        }
    }

    /// Writes response bodies as far as the windows permit, until the output reaches about 200 KB.
    fn fill_output(&mut self) {
        while self.out.len() < 200_000
            && let Some(grant) = self.connection.next_data(30_000, &mut self.out)
        {
            let (sent, trailers) = self.sending.get_mut(&grant.stream).expect("the body was queued");
            let end = *sent + grant.length as usize;
            self.out.extend(body_range(*sent, end));
            *sent = end;
            if *trailers && self.connection.queued(grant.stream) == 0 {
                let finished = self
                    .connection
                    .finish_with_trailers(grant.stream, TRAILER, &mut self.out);
                assert_eq!(finished, Ok(()));
            }
        }
    }
}

/// Serves until the client closes the connection, and returns the server.
async fn serve(mut pipe: DuplexStream) -> Server {
    let limits = Limits::default();
    let mut server = Server {
        connection: ServerConnection::new(&Config::default()),
        head: DecodedHead::default(),
        out: Vec::new(),
        open: HashMap::new(),
        sending: HashMap::new(),
        cancelled: 0,
    };
    server.connection.write_preface(&limits, &mut server.out);
    let (mut unread, mut buffer) = (Vec::new(), vec![0; 10_000]);
    loop {
        server.fill_output();
        // The server reads even while its output does not fit in the pipe. Otherwise both sides could wait for each
        // other, because a client whose output is blocked may not read either.
        let received = poll_fn(|context| {
            while !server.out.is_empty() {
                match Pin::new(&mut pipe).poll_write(context, &server.out) {
                    Poll::Ready(Ok(size)) => drop(server.out.drain(..size)),
                    Poll::Ready(Err(_)) => return Poll::Ready(None),
                    Poll::Pending => break,
                }
            }
            let mut room = ReadBuf::new(&mut buffer);
            match Pin::new(&mut pipe).poll_read(context, &mut room) {
                Poll::Ready(Ok(())) => Poll::Ready(Some(room.filled().to_vec())),
                Poll::Ready(Err(_)) => Poll::Ready(None),
                Poll::Pending if server.out.is_empty() && server.connection.may_send() => Poll::Ready(Some(Vec::new())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        // The bytes are empty if the client has ended, or if the server can send and nothing has arrived.
        match received {
            Some(bytes) if bytes.is_empty() && !server.connection.may_send() => return server,
            Some(bytes) => unread.extend_from_slice(&bytes),
            None => return server,
        }
        loop {
            let Server {
                connection, head, out, ..
            } = &mut server;
            // The time is always 0.
            let received = connection.receive(&limits, 0, &unread, head, out);
            server.handle(received.event, &unread);
            unread.drain(..received.consumed);
            if received.event == ConnectionEvent::More {
                break;
            }
        }
    }
}

/// Reads a response to its end. Returns the body, and true if trailers follow it.
async fn read(mut stream: h2::RecvStream) -> (Vec<u8>, bool) {
    let mut found = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data.expect("a body");
        stream
            .flow_control()
            .release_capacity(data.len())
            .expect("the data was received");
        found.extend_from_slice(&data);
    }
    let trailers = stream.trailers().await.expect("valid trailers, or no trailers");
    if let Some(trailers) = &trailers {
        assert_eq!(
            trailers.get("x-checked").map(http::HeaderValue::as_bytes),
            Some(b"yes".as_slice())
        );
    }
    (found, trailers.is_some())
}

/// Sends the request of an exchange and checks the response.
async fn send_request(mut sender: h2::client::SendRequest<Bytes>, exchange: Exchange) {
    // The dash keeps this part of the path from being empty.
    let mut flags = String::from("-");
    for (is_set, flag) in [
        (exchange.prepared, 'r'),
        (exchange.response_trailers, 't'),
        (exchange.hints, 'h'),
        (exchange.push, 'p'),
    ] {
        if is_set {
            flags.push(flag);
        }
    }
    let mut request = Request::builder()
        .method(if exchange.upload.is_some() {
            Method::POST
        } else {
            Method::GET
        })
        .uri(format!("http://example.com/{}/{flags}", exchange.download))
        .header("user-agent", "the other implementation")
        .header("x-flags", &flags);
    if let (Some(length), true) = (exchange.upload, exchange.announced) {
        request = request.header("content-length", length);
    }
    if let Some(priority) = &exchange.priority {
        request = request.header("priority", priority);
    }
    let request = request.body(()).expect("a valid request");
    let (response, mut upload) = sender
        .send_request(request, exchange.upload.is_none())
        .expect("a request");
    if exchange.cancelled {
        upload.send_reset(h2::Reason::CANCEL);
        return;
    }
    let mut response = response;
    let pushes = response.push_promises();
    if let Some(length) = exchange.upload {
        upload
            .send_data(body_bytes(length), !exchange.request_trailers)
            .expect("a body");
        if exchange.request_trailers {
            let mut trailers = http::HeaderMap::new();
            trailers.insert("x-checked", http::HeaderValue::from_static("yes"));
            upload.send_trailers(trailers).expect("trailers");
        }
    }
    let response = response.await.expect("a response");
    assert_eq!(response.status(), 200);
    let received = response
        .headers()
        .get("x-received")
        .map(|value| value.to_str().unwrap_or_default().to_owned());
    assert_eq!(received, Some(exchange.upload.unwrap_or(0).to_string()));
    let (found, trailers) = read(response.into_body()).await;
    assert_eq!(found, body_bytes(exchange.download));
    assert_eq!(trailers, exchange.response_trailers);
    let mut pushes = pushes;
    let mut pushed = 0;
    while let Some(promise) = pushes.push_promise().await {
        let (request, pushed_response) = promise.expect("a promise").into_parts();
        assert_eq!(request.uri().path(), "/7/-");
        let (found, _) = read(pushed_response.await.expect("a pushed response").into_body()).await;
        assert_eq!(found, body_bytes(7));
        pushed += 1;
    }
    assert!(pushed <= usize::from(exchange.push));
}

/// Runs all exchanges at the same time on one connection.
fn run(exchanges: Vec<Exchange>, client: &Client) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (near, far) = duplex(client.pipe);
        let server = tokio::spawn(serve(far));
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(client.window)
            .initial_connection_window_size(client.connection_window)
            .max_frame_size(client.frame)
            .header_table_size(client.table)
            .handshake::<_, Bytes>(near)
            .await
            .expect("a connection");
        let connection = tokio::spawn(connection);
        let count = exchanges.len();
        let tasks: Vec<_> = exchanges
            .into_iter()
            .map(|exchange| {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let sender = sender.ready().await.expect("room for a request");
                    send_request(sender, exchange).await;
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("both sides agree");
        }
        drop(sender);
        connection
            .await
            .expect("no panic")
            .expect("the connection ends without an error");
        let server = server.await.expect("no panic");
        assert!(server.connection.is_idle() && !server.connection.is_closed());
        assert!(server.cancelled <= count);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_sides_agree(exchanges in exchanges(), client in clients()) {
        run(exchanges, &client);
    }
}
