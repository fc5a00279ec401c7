//! Runs a worker on the thread of the test, with files, handlers, and simulated connections instead of sockets.

use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocknet::backend::Backend;
use rocknet::blocking::Pool;
use rocknet::certificates::CertificateManager;
use rocknet::exchange::{Client, Exchange};
use rocknet::files::cache::FileCache;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::lifecycle::connection::ConnectionCore;
use rocknet::log::Logger;
use rocknet::metrics::Metrics;
use rocknet::protocol::{h1, h2};
use rocknet::registries::Registries;
use rocknet::response::{Body, Response, Stream};
use rocknet::snapshot::{Mount, Snapshot, quic_addresses};
use rocknet::spool;
use rocknet::tunnel::{Scratch, Splice, Tunnel};
use rocknet::worker::{OpenConnection, Shared, Worker};
use rocknet_config::ProcessEnvironment;
use rocknet_config::model::Pattern;
use rocknet_io::link::Link;
use rocknet_io::sim::{self, SimLink, SimPeer};
use rocknet_proto::status::Status;

/// Size of a file that is not cached in memory but sent in pieces.
const LARGE: usize = 70_000;
/// Time limit of a disk lookup, in real time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends the request body back.
struct Echo;

impl Handler for Echo {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        respond_with(async move {
            let mut content = Vec::new();
            loop {
                match exchange.body.chunk().await {
                    Ok(Some(chunk)) => content.extend_from_slice(&chunk),
                    Ok(None) => return Response::new(Status::OK).body(content),
                    Err(_) => return Response::new(Status::BAD_REQUEST),
                }
            }
        })
    }
}

/// Never responds.
struct Silent;

impl Handler for Silent {
    fn handle(&self, _exchange: Exchange) -> HandlerFuture {
        Box::pin(std::future::pending())
    }
}

/// Responds with the length of the request body, and yields for a moment after each chunk.
struct ReadsSlowly;

impl Handler for ReadsSlowly {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        respond_with(async move {
            let mut length = 0;
            while let Ok(Some(chunk)) = exchange.body.chunk().await {
                length += chunk.len();
                tokio::task::yield_now().await;
            }
            Response::new(Status::OK).body(length.to_string().into_bytes())
        })
    }
}

/// Reads a request body without the limits on pauses of the client, and responds after the end of the body.
struct LetsPause;

impl Handler for LetsPause {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        respond_with(async move {
            exchange.body.allow_pauses();
            while let Ok(Some(_)) = exchange.body.chunk().await {}
            Response::new(Status::OK)
        })
    }
}

/// Starts a response and sends this number of pieces. If `ends` is false, the body then stalls forever.
#[derive(Clone, Copy)]
struct StopsEarly {
    pieces: usize,
    ends: bool,
}

impl Handler for StopsEarly {
    fn handle(&self, _exchange: Exchange) -> HandlerFuture {
        let stream = Body::Stream(Box::new(*self));
        respond_with(async move { Response::new(Status::OK).body(stream) })
    }
}

impl Stream for StopsEarly {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<std::io::Result<Bytes>>> + '_>> {
        let (next, ends) = (self.pieces.checked_sub(1), self.ends);
        self.pieces = next.unwrap_or_default();
        Box::pin(async move {
            match next {
                Some(_) => Some(Ok(Bytes::from_static(b"piece"))),
                None if ends => None,
                None => std::future::pending().await,
            }
        })
    }
}

/// Starts a response and fails before the first piece of its body.
struct Fails;

impl Handler for Fails {
    fn handle(&self, _exchange: Exchange) -> HandlerFuture {
        respond_with(async { Response::new(Status::OK).body(Body::Stream(Box::new(Fails))) })
    }
}

impl Stream for Fails {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<std::io::Result<Bytes>>> + '_>> {
        Box::pin(async { Some(Err(std::io::ErrorKind::UnexpectedEof.into())) })
    }
}

/// Panics when it is called, or in the future that it returns.
struct Panics {
    at_once: bool,
}

impl Handler for Panics {
    fn handle(&self, _exchange: Exchange) -> HandlerFuture {
        assert!(!self.at_once, "as configured");
        respond_with(async { panic!("as configured") })
    }
}

/// Accepts any upgrade and opens a tunnel to the peer of [`SendsMuch`].
struct OpensTunnels;

impl Handler for OpensTunnels {
    fn handle(&self, _exchange: Exchange) -> HandlerFuture {
        respond_with(async {
            let (link, peer) = sim::pair();
            Response::tunnel(
                "any",
                SendsMuch {
                    splice: Splice::new(link, Vec::new()),
                    peer,
                    sent: 0,
                },
            )
        })
    }
}

/// Tunnel to a peer that sends 100 KB for each `x` it receives.
struct SendsMuch {
    splice: Splice<SimLink>,
    peer: SimPeer,
    /// Number of `x` for which the peer has sent data.
    sent: usize,
}

impl Tunnel for SendsMuch {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        client: &mut dyn Link,
        scratch: Scratch<'_>,
    ) -> Poll<std::io::Result<()>> {
        let polled = self.splice.poll(context, client, scratch);
        let requested = self.peer.received().iter().filter(|&&byte| byte == b'x').count();
        for _ in self.sent..requested {
            self.peer.send(&[b'y'; 100_000]);
            context.waker().wake_by_ref();
        }
        self.sent = requested;
        polled
    }
}

/// Waker of a connection: records that the connection has to be polled, and unparks the thread of the test.
pub struct Woken {
    pub flag: AtomicBool,
    thread: Thread,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A worker on this thread, with the folder that it serves.
pub struct TestServer {
    pub worker: Rc<Worker>,
    folder: tempfile::TempDir,
}

impl TestServer {
    /// Creates a worker with one site. `limits`: keys of `[limits]`.
    pub fn new(limits: &str) -> TestServer {
        TestServer::of(&format!("[limits]\n{limits}\n"), "[site.\":0\"]\n", &[])
    }

    /// Creates a worker for one site, given by its header and keys. `before`: keys of `[server]`, and tables before the
    /// site. `files`: names and contents of further files in the folder of the configuration.
    pub fn of(before: &str, site: &str, files: &[(&str, &str)]) -> TestServer {
        TestServer::with(Registries::default(), before, site, files)
    }

    /// Like `of`, with these registries.
    pub fn with(registries: Registries, before: &str, site: &str, files: &[(&str, &str)]) -> TestServer {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).expect("written");
            let rights = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(folder.path().join(name), rights).expect("rights");
        }
        std::fs::write(folder.path().join("small.txt"), "Hello, world!").expect("written");
        let large: Vec<u8> = (0..LARGE).map(|at| b'a' + (at % 23) as u8).collect();
        std::fs::write(folder.path().join("large.bin"), large).expect("written");
        let text = format!(
            "[server]\nworkers = 1\n{before}{site}root = \"{}\"\n",
            folder.path().display()
        );
        let config = rocknet_config::parse(&text, &folder.path().join("rocknet.toml"), &ProcessEnvironment)
            .unwrap_or_else(|report| panic!("{report:?}"))
            .config;
        let mount = |path: &str, handler: Arc<dyn Handler>| Mount {
            site: config.sites[0].name.clone(),
            pattern: Pattern::Exact(path.into()),
            handler,
        };
        let mounts = [
            mount("/echo", Arc::new(Echo)),
            mount("/silent", Arc::new(Silent)),
            mount("/reads-slowly", Arc::new(ReadsSlowly)),
            mount("/lets-pause", Arc::new(LetsPause)),
            mount("/fails", Arc::new(Fails)),
            mount("/stops", Arc::new(StopsEarly { pieces: 3, ends: false })),
            mount(
                "/counts",
                Arc::new(StopsEarly {
                    pieces: 100,
                    ends: true,
                }),
            ),
            mount("/opens-tunnel", Arc::new(OpensTunnels)),
            mount("/panic-at-once", Arc::new(Panics { at_once: true })),
            mount("/panic", Arc::new(Panics { at_once: false })),
        ];
        let logger = Logger::start(&config.log).expect("a log");
        let certificates = CertificateManager::new(Vec::new()).expect("a certificate manager");
        let registries = Arc::new(registries);
        let quic = quic_addresses(&config);
        let snapshot = Snapshot::new(config, &mounts, &logger, &certificates, &registries, &quic, &[]);
        let snapshot = Arc::new(snapshot.expect("a snapshot"));
        let pool = Pool::new(2);
        let cache = FileCache::start(64 << 20, pool.clone()).expect("a cache");
        let address = snapshot.listeners.keys().next().expect("an address").clone();
        let shared = Shared {
            backend: Backend::Epoll,
            spool: spool::Store::new(pool.clone()),
            pool,
            cache,
            logger,
            certificates,
            registries,
        };
        let worker = Worker::new(address, shared, Metrics::default().register(), &snapshot);
        TestServer { worker, folder }
    }

    /// Folder of the files and the configuration.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn connect(&self) -> TestClient {
        self.connect_with(|link| Box::pin(h1::Connection::new(self.core(link))))
    }

    pub fn connect_http2(&self) -> TestClient {
        self.connect_with(|link| Box::pin(h2::Connection::new(self.core(link))))
    }

    fn core(&self, link: SimLink) -> ConnectionCore<SimLink> {
        ConnectionCore::new(OpenConnection::new(&self.worker), link, Client::Local, None)
    }

    fn connect_with(&self, connect: impl FnOnce(SimLink) -> Pin<Box<dyn Future<Output = ()>>>) -> TestClient {
        let (link, peer) = sim::pair();
        let woken = Arc::new(Woken {
            flag: AtomicBool::new(true),
            thread: thread::current(),
        });
        TestClient {
            connection: Some(connect(link)),
            peer,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
        }
    }

    /// Requests every resource once, so that no response has to wait for the disk.
    pub fn warm(self) -> TestServer {
        for path in ["small.txt", "large.bin", "missing"] {
            let mut client = self.connect();
            client
                .peer
                .send(format!("GET /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").as_bytes())
                .end();
            client.run_to_end();
            assert!(client.peer.received().starts_with(b"HTTP/1.1 "), "{path}");
        }
        self
    }

    /// Advances the timer wheel of the worker.
    pub fn pass(&self, ticks: u32) {
        for _ in 0..ticks {
            self.worker.wheel.advance();
        }
    }
}

/// A connection and its client.
pub struct TestClient {
    connection: Option<Pin<Box<dyn Future<Output = ()>>>>,
    pub peer: SimPeer,
    waker: Waker,
    pub woken: Arc<Woken>,
}

impl TestClient {
    /// Polls the connection until it waits for an event.
    pub fn settle(&mut self) -> &mut TestClient {
        while self.woken.flag.swap(false, Ordering::AcqRel) {
            let Some(connection) = &mut self.connection else { break };
            if let Poll::Ready(()) = connection.as_mut().poll(&mut Context::from_waker(&self.waker)) {
                self.connection = None;
            }
        }
        self
    }

    /// Polls the connection until it is over, and waits for lookups on disk.
    pub fn run_to_end(&mut self) {
        self.run_until(TestClient::is_over);
    }

    /// Polls the connection until the condition holds, and waits for lookups on disk.
    pub fn run_until(&mut self, condition: impl Fn(&TestClient) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !condition(self.settle()) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "the awaited condition did not hold in time: {:?}",
                String::from_utf8_lossy(&self.peer.received())
            );
            thread::park_timeout(left);
        }
    }

    pub fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.peer.received()).into_owned()
    }
}
