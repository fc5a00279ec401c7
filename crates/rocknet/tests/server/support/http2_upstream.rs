//! Scripted HTTP/2 upstream without TLS: the `h2` crate on a runtime in a separate thread.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};

/// Task that serves a request or a connection.
pub type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

pub struct Http2Upstream {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Http2Upstream {
    /// Starts an upstream that runs `serve` for each request in a new task.
    pub fn start(
        builder: &Builder,
        serve: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> Served + Send + Sync + Clone + 'static,
    ) -> Http2Upstream {
        Http2Upstream::raw(builder, move |mut connection, _| {
            let serve = serve.clone();
            Box::pin(async move {
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(serve(request, respond));
                }
            })
        })
    }

    /// Starts an upstream that runs `serve` for each connection and its number. The first connection has number 1.
    pub fn raw(
        builder: &Builder,
        serve: impl Fn(Connection<TcpStream, Bytes>, usize) -> Served + Send + Sync + Clone + 'static,
    ) -> Http2Upstream {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, builder) = (Arc::clone(&connections), builder.clone());
        // The thread is not joined. It runs until the process of the test exits.
        std::thread::spawn(move || {
            runtime.block_on(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                    let _ = stream.set_nodelay(true);
                    let (serve, builder) = (serve.clone(), builder.clone());
                    tokio::spawn(async move {
                        if let Ok(connection) = builder.handshake(stream).await {
                            serve(connection, number).await;
                        }
                    });
                }
            });
        });
        Http2Upstream { address, connections }
    }

    /// URL of the upstream, as in a configuration.
    pub fn url(&self) -> String {
        format!("h2c://{}", self.address)
    }

    /// Number of connections that have been accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads the whole body of a request, and its trailers.
pub async fn whole(body: &mut RecvStream) -> (Vec<u8>, Option<HeaderMap>) {
    let mut all = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        all.extend_from_slice(&data);
    }
    (all, body.trailers().await.unwrap_or_default())
}

/// Sends a response with status 200 and this body.
pub fn send_ok(mut respond: SendResponse<Bytes>, content: impl Into<Bytes>) {
    if let Ok(mut stream) = respond.send_response(Response::new(()), false) {
        let _ = stream.send_data(content.into(), true);
    }
}

/// Sends data within the flow-control windows of the peer. Returns false if the peer has reset the stream.
pub async fn send(stream: &mut SendStream<Bytes>, mut content: Bytes) -> bool {
    while !content.is_empty() {
        stream.reserve_capacity(content.len());
        if stream.capacity() == 0 {
            match std::future::poll_fn(|context| stream.poll_capacity(context)).await {
                Some(Ok(_)) => continue,
                _ => return false,
            }
        }
        let piece = content.split_to(stream.capacity().min(content.len()));
        if stream.send_data(piece, false).is_err() {
            return false;
        }
    }
    true
}

pub fn trailers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.insert(*name, value.parse().expect("a value"));
    }
    map
}
