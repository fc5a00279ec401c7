//! HTTP/2 client: the `h2` crate on a runtime in a separate thread.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{Builder, PushedResponseFuture, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use tokio::net::TcpStream;

use super::background::Background;

/// A response with its interim responses and pushed resources.
pub struct Page {
    pub response: Response,
    /// Status and Link of interim responses.
    pub hints: Vec<(u16, String)>,
    pub pushed: Vec<Pushed>,
}

/// A promised request, and the response that the server has pushed for it.
pub struct Pushed {
    pub request: Request<()>,
    pub response: Result<Response, h2::Error>,
}

impl Page {
    /// Paths of the promised requests, in order.
    pub fn promised(&self) -> Vec<&str> {
        let paths = self.pushed.iter().map(|pushed| pushed.request.uri().path_and_query());
        paths.map(|path| path.map_or("", |path| path.as_str())).collect()
    }
}

/// A client with one connection.
pub struct Http2 {
    runtime: Background,
    send: SendRequest<Bytes>,
    /// Completes when the connection is closed.
    ended: Option<tokio::task::JoinHandle<Result<(), h2::Error>>>,
    authority: String,
}

/// A complete response.
pub struct Response {
    pub status: StatusCode,
    pub fields: HeaderMap,
    pub content: Vec<u8>,
}

impl Http2 {
    pub fn to(address: SocketAddr) -> Http2 {
        Http2::with(address, &Builder::new())
    }

    pub fn with(address: SocketAddr, builder: &Builder) -> Http2 {
        let stream = std::net::TcpStream::connect(address).expect("a server that listens");
        Http2::over(stream, address, builder)
    }

    /// Starts a client on an open connection to a server.
    pub fn over(stream: std::net::TcpStream, address: SocketAddr, builder: &Builder) -> Http2 {
        let runtime = Background::start();
        stream.set_nonblocking(true).expect("an option of the socket");
        let (send, ended) = runtime.block_on(async {
            let stream = TcpStream::from_std(stream).expect("a socket");
            // With Nagle's algorithm each small WINDOW_UPDATE frame would wait for the acknowledgement of the previous
            // one, up to 40 ms.
            stream.set_nodelay(true).expect("an option of the socket");
            let (send, connection) = builder.handshake(stream).await.expect("a preface");
            (send, tokio::spawn(connection))
        });
        Http2 {
            runtime,
            send,
            ended: Some(ended),
            authority: address.to_string(),
        }
    }

    /// Waits for a future, which must complete in time.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Works like `wait`, but returns `None` after `limit`.
    pub fn try_wait<F: Future>(&self, limit: std::time::Duration, future: F) -> Option<F::Output> {
        self.runtime.try_block_on(limit, future)
    }

    /// Returns true if the server accepts extended CONNECT. Valid only after the first response.
    pub fn is_extended_connect_enabled(&self) -> bool {
        self.send.is_extended_connect_protocol_enabled()
    }

    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.authority))
    }

    /// Sends the head of a request. With `end` the request has no body.
    pub fn start_request(&mut self, request: http::request::Builder, end: bool) -> (ResponseFuture, SendStream<Bytes>) {
        let request = request.body(()).expect("a request");
        let mut send = self.send.clone();
        self.wait(async { std::future::poll_fn(|context| send.poll_ready(context)).await })
            .expect("room for a stream");
        send.send_request(request, end).expect("a stream")
    }

    pub fn response(&self, response: ResponseFuture) -> Result<Response, h2::Error> {
        self.wait(whole(response))
    }

    pub fn get(&mut self, path: &str) -> Response {
        let (response, _) = self.start_request(self.request("GET", path), true);
        self.response(response).expect("a response")
    }

    /// Requests a page and collects its interim responses and pushed resources.
    pub fn page(&mut self, request: http::request::Builder) -> Page {
        let (mut response, _) = self.start_request(request, true);
        let mut promises = response.push_promises();
        self.wait(async move {
            let mut hints = Vec::new();
            while let Some(interim) = poll_fn(|context| response.poll_informational(context)).await {
                let interim = interim.expect("an interim response");
                let links = interim.headers().get_all("link").iter();
                let links = links.map(|link| link.to_str().expect("text").to_owned());
                hints.push((interim.status().as_u16(), links.collect::<Vec<_>>().join(", ")));
            }
            let response = whole(response).await.expect("a response");
            let mut pushed = Vec::new();
            while let Some(promise) = promises.push_promise().await {
                let (request, response) = promise.expect("a promise").into_parts();
                pushed.push(Pushed {
                    request,
                    response: pushed_whole(response).await,
                });
            }
            Page {
                response,
                hints,
                pushed,
            }
        })
    }

    /// Sends a request with a body, and waits for its response.
    pub fn send(&mut self, request: http::request::Builder, content: &[u8]) -> Result<Response, h2::Error> {
        let (response, stream) = self.start_request(request, false);
        let content = Bytes::copy_from_slice(content);
        self.wait(async move {
            let sending = tokio::spawn(upload(stream, content));
            let response = whole(response).await;
            sending.abort();
            response
        })
    }

    /// Waits until the connection is closed. Returns the error code of the server; `None` if there was no error.
    pub fn end(&mut self) -> Option<Reason> {
        let ended = self.ended.take().expect("an end not yet awaited");
        match self.wait(ended).expect("a connection that does not panic") {
            Ok(()) => None,
            Err(error) => error.reason(),
        }
    }
}

async fn pushed_whole(response: PushedResponseFuture) -> Result<Response, h2::Error> {
    let (head, content) = response.await?.into_parts();
    Ok(Response {
        status: head.status,
        fields: head.headers,
        content: read(content).await?,
    })
}

/// Waits for a response and reads its whole body.
pub async fn whole(response: ResponseFuture) -> Result<Response, h2::Error> {
    let (head, content) = response.await?.into_parts();
    Ok(Response {
        status: head.status,
        fields: head.headers,
        content: read(content).await?,
    })
}

async fn read(mut stream: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut content = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

/// Sends a body within the flow-control windows of the server.
async fn upload(mut stream: SendStream<Bytes>, mut content: Bytes) -> Result<(), h2::Error> {
    while !content.is_empty() {
        stream.reserve_capacity(content.len());
        let Some(room) = std::future::poll_fn(|context| stream.poll_capacity(context)).await else {
            return Ok(());
        };
        let piece = content.split_to(room?.min(content.len()));
        stream.send_data(piece, false)?;
    }
    stream.send_data(Bytes::new(), true)
}

/// Sends and receives pieces alternately on a stream whose data the server echoes, and then ends both directions.
pub async fn send_and_receive_in_turn(stream: &mut SendStream<Bytes>, body: &mut RecvStream) {
    for word in [&b"one"[..], b"two", &[b'x'; 50_000]] {
        stream
            .send_data(Bytes::from_static(word), false)
            .expect("an open stream");
        let mut received = Vec::new();
        while received.len() < word.len() {
            let data = body.data().await.expect("more").expect("data");
            body.flow_control().release_capacity(data.len()).expect("capacity");
            received.extend_from_slice(&data);
        }
        assert_eq!(received, word);
    }
    stream.send_data(Bytes::new(), true).expect("an open stream");
    while let Some(data) = body.data().await {
        assert!(data.expect("an end").is_empty());
    }
}
