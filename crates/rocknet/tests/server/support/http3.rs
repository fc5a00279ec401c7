//! HTTP/3 client of another implementation (`quinn` and `h3`).

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use quinn::crypto::rustls::QuicClientConfig;
use tokio::task::JoinHandle;

use super::DEADLINE;
use super::background::Background;
use super::tls_client::TlsClient;

/// Connection of a client.
pub struct Http3Client {
    runtime: Background,
    pub endpoint: quinn::Endpoint,
    pub connection: quinn::Connection,
    requests: SendRequest<OpenStreams, Bytes>,
}

/// Complete response.
pub struct Http3Response {
    pub status: u16,
    pub fields: http::HeaderMap,
    pub body: Vec<u8>,
}

impl Http3Client {
    /// Opens a connection.
    pub fn open(client: &TlsClient<'_>, address: SocketAddr) -> Result<Http3Client, quinn::ConnectionError> {
        Http3Client::open_with(client, address, quinn::TransportConfig::default())
    }

    /// Opens a connection with these windows and limits.
    pub fn open_with(
        client: &TlsClient<'_>,
        address: SocketAddr,
        transport: quinn::TransportConfig,
    ) -> Result<Http3Client, quinn::ConnectionError> {
        let (runtime, endpoint, connection) = connect_with(client, address, transport)?;
        let quic = h3_quinn::Connection::new(connection.clone());
        let requests = runtime.block_on(async {
            let (mut driver, requests) = h3::client::new(quic).await.expect("a connection");
            tokio::spawn(async move {
                // The end of the connection is not an error here; requests report it.
                let _ = poll_fn(|context| driver.poll_close(context)).await;
            });
            requests
        });
        Ok(Http3Client {
            runtime,
            endpoint,
            connection,
            requests,
        })
    }

    /// Sends a request and receives the response.
    pub fn request(&self, request: http::Request<()>, body: &[u8]) -> Result<Http3Response, String> {
        self.runtime.block_on(exchange(self.requests.clone(), request, body))
    }

    /// Sends all requests at the same time.
    pub fn requests(&self, requests: Vec<http::Request<()>>) -> Vec<Result<Http3Response, String>> {
        self.runtime.block_on(async {
            let tasks: Vec<_> = requests
                .into_iter()
                .map(|request| {
                    let sender = self.requests.clone();
                    tokio::spawn(async move { exchange(sender, request, b"").await })
                })
                .collect();
            let mut responses = Vec::new();
            for task in tasks {
                responses.push(task.await.expect("no panic"));
            }
            responses
        })
    }

    /// Sends a GET request and receives the response.
    pub fn get(&self, url: &str) -> Http3Response {
        self.request(get(url), b"").expect("a response")
    }

    /// Sends all requests before it receives anything, and stops when the first response is complete. Returns the
    /// number of bytes received of each response.
    pub fn received_with_first(&self, requests: Vec<http::Request<()>>) -> Vec<usize> {
        let received: Vec<Arc<AtomicUsize>> = requests.iter().map(|_| Arc::default()).collect();
        self.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            // Otherwise a client that is slow between two requests could get most of the first response.
            let all_sent = Arc::new(tokio::sync::Barrier::new(requests.len()));
            for (request, received) in requests.into_iter().zip(&received) {
                let (mut sender, received) = (self.requests.clone(), Arc::clone(received));
                let all_sent = Arc::clone(&all_sent);
                tasks.spawn(async move {
                    let mut stream = sender.send_request(request).await.expect("a stream");
                    stream.finish().await.expect("an open stream");
                    all_sent.wait().await;
                    stream.recv_response().await.expect("a response");
                    while let Some(piece) = stream.recv_data().await.expect("a whole response") {
                        received.fetch_add(piece.remaining(), Ordering::Relaxed);
                    }
                });
            }
            tasks.join_next().await.expect("a task").expect("no panic");
        });
        received
            .iter()
            .map(|received| received.load(Ordering::Relaxed))
            .collect()
    }

    /// Waits until the server closes the connection.
    pub fn closed(&self) -> quinn::ConnectionError {
        self.block_on(self.connection.closed())
    }

    /// Returns a sender of requests.
    pub fn sender(&self) -> SendRequest<OpenStreams, Bytes> {
        self.requests.clone()
    }

    /// Runs a future on the runtime of the client.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Works like `block_on`, but returns `None` after `limit`.
    pub fn try_block_on<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        self.runtime.try_block_on(limit, future)
    }

    /// Runs a future on the thread of the client.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(future)
    }
}

impl Drop for Http3Client {
    fn drop(&mut self) {
        // H3_NO_ERROR
        self.connection.close(0x100_u32.into(), b"");
        let endpoint = self.endpoint.clone();
        self.runtime.end_after(async move { endpoint.wait_idle().await });
    }
}

/// Opens a QUIC connection.
pub fn connect(
    client: &TlsClient<'_>,
    address: SocketAddr,
) -> Result<(Background, quinn::Endpoint, quinn::Connection), quinn::ConnectionError> {
    connect_with(client, address, quinn::TransportConfig::default())
}

/// Initial congestion window of clients, in bytes. `quinn` sends no CONNECTION_CLOSE while the congestion window holds
/// back data, so the server would notice the end of such a client only after a timeout.
const CONGESTION_WINDOW: u64 = 16 << 20;

/// Opens a QUIC connection with these windows and limits.
pub fn connect_with(
    client: &TlsClient<'_>,
    address: SocketAddr,
    transport: quinn::TransportConfig,
) -> Result<(Background, quinn::Endpoint, quinn::Connection), quinn::ConnectionError> {
    connect_as(client, address, transport, b"h3")
}

/// Opens a QUIC connection for the ALPN protocol `protocol`, with these windows and limits.
pub fn connect_as(
    client: &TlsClient<'_>,
    address: SocketAddr,
    mut transport: quinn::TransportConfig,
    protocol: &[u8],
) -> Result<(Background, quinn::Endpoint, quinn::Connection), quinn::ConnectionError> {
    let mut congestion = quinn::congestion::CubicConfig::default();
    congestion.initial_window(CONGESTION_WINDOW);
    transport.congestion_controller_factory(Arc::new(congestion));
    let mut tls = client.config();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let tls = QuicClientConfig::try_from(tls).expect("TLS 1.3");
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let runtime = Background::start();
    let (endpoint, connection) = runtime.block_on(async {
        let mut endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
        endpoint.set_default_client_config(config);
        let connecting = endpoint.connect(address, client.name).expect("a valid name");
        connecting.await.map(|connection| (endpoint, connection))
    })?;
    Ok((runtime, endpoint, connection))
}

/// Returns the HEADERS frame of a GET request, for clients that read and write streams themselves. Its fields are in
/// the static table of QPACK, or literals with a name from it. Name and path must be shorter than 127 bytes, so that
/// their lengths have one byte.
pub fn get_frame(name: &str, path: &str) -> Vec<u8> {
    // Prefix of the field section, :method GET, :scheme https.
    let mut section = vec![0, 0, 0xd1, 0xd7];
    // :authority and :path
    for (index, value) in [(0, name), (1, path)] {
        section.extend_from_slice(&[0x50 | index, value.len() as u8]);
        section.extend_from_slice(value.as_bytes());
    }
    // The type of the frame, and its length in two bytes.
    let length = 0x4000 | section.len() as u16;
    [&[1][..], &length.to_be_bytes(), &section].concat()
}

/// Makes a GET request.
pub fn get(url: &str) -> http::Request<()> {
    http::Request::get(url).body(()).expect("a request")
}

async fn exchange(
    mut sender: SendRequest<OpenStreams, Bytes>,
    request: http::Request<()>,
    body: &[u8],
) -> Result<Http3Response, String> {
    let whole = async {
        let mut stream = sender.send_request(request).await.map_err(|error| error.to_string())?;
        // A server that responds early may stop the stream. Sending then fails, and the stream is not finished.
        if body.is_empty() || stream.send_data(Bytes::copy_from_slice(body)).await.is_ok() {
            let _ = stream.finish().await;
        }
        let response = stream.recv_response().await.map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        while let Some(mut piece) = stream.recv_data().await.map_err(|error| error.to_string())? {
            while piece.has_remaining() {
                let length = piece.chunk().len();
                body.extend_from_slice(piece.chunk());
                piece.advance(length);
            }
        }
        Ok(Http3Response {
            status: response.status().as_u16(),
            fields: response.headers().clone(),
            body,
        })
    };
    tokio::time::timeout(DEADLINE, whole)
        .await
        .map_err(|_| "no response in time".to_owned())?
}
