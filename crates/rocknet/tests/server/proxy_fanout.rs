//! Clients with more concurrent requests than the limit of an upstream: connections and queued requests are bounded,
//! and other clients are not delayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client;
use http::Request;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};

use super::support::{DEADLINE, Folder, Running};

/// Default limit on the concurrent requests of an upstream.
const LIMIT: usize = 1024;
/// Default limit on the requests that are queued for an upstream.
const QUEUE: usize = 4096;

/// Backlog of the slow upstream's listening socket, because all connections can arrive before the upstream accepts one.
/// With the default of 128 in Tokio, the kernel answers further connections with SYN cookies. It does not recognize
/// every cookie later and resets such a connection, so that its request would get a 502.
const BACKLOG: u32 = 2 * LIMIT as u32;

/// Number of client connections.
const CONNECTIONS: usize = 150;
/// Requests on each connection.
const STREAMS: usize = 100;

/// An upstream that sends no response before `go` is true.
struct SlowUpstream {
    port: u16,
    /// Number of open connections.
    open: Arc<AtomicUsize>,
    requests: Arc<Requests>,
    go: watch::Sender<bool>,
}

/// Requests that were received completely and have no response yet.
#[derive(Default)]
struct Requests {
    now: AtomicUsize,
    /// Maximum of `now` so far.
    peak: AtomicUsize,
}

/// A response of the server under test.
struct ReceivedResponse {
    status: u16,
    page: String,
}

/// Starts the slow upstream on a port that the kernel chooses.
async fn slow() -> SlowUpstream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let listener = socket.listen(BACKLOG).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    let (go, released) = watch::channel(false);
    let (open, requests) = (Arc::<AtomicUsize>::default(), Arc::<Requests>::default());
    let counts = (Arc::clone(&open), Arc::clone(&requests));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let (open, requests) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
            open.fetch_add(1, Ordering::SeqCst);
            let released = released.clone();
            tokio::spawn(async move {
                serve(stream, &requests, released).await;
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    SlowUpstream {
        port,
        open,
        requests,
        go,
    }
}

/// Serves a connection. Each request has a body of one byte, so that the end of a request can be recognized.
async fn serve(mut stream: TcpStream, requests: &Requests, mut released: watch::Receiver<bool>) {
    let mut unread = Vec::new();
    loop {
        while !unread.ends_with(b"\r\n\r\nx") {
            if !matches!(stream.read_buf(&mut unread).await, Ok(1..)) {
                return;
            }
        }
        unread.clear();
        let now = requests.now.fetch_add(1, Ordering::SeqCst) + 1;
        requests.peak.fetch_max(now, Ordering::SeqCst);
        if released.wait_for(|go| *go).await.is_err() {
            return;
        }
        // The count is reduced before the response is sent, because the next request can arrive on any connection right
        // after the response.
        requests.now.fetch_sub(1, Ordering::SeqCst);
        let sent = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        if sent.is_err() {
            return;
        }
    }
}

/// Sends all requests of one client concurrently and forwards each response to the test.
async fn client(port: u16, responses: mpsc::UnboundedSender<ReceivedResponse>) {
    let stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("a server that listens");
    let (mut send, connection) = client::handshake(stream).await.expect("a preface");
    tokio::spawn(connection);
    for _ in 0..STREAMS {
        std::future::poll_fn(|context| send.poll_ready(context))
            .await
            .expect("room for a stream");
        let request = Request::post(format!("http://127.0.0.1:{port}/api/")).header("content-length", "1");
        let (response, mut content) = send
            .send_request(request.body(()).expect("a request"), false)
            .expect("a stream");
        content
            .send_data(Bytes::from_static(b"x"), true)
            .expect("room for a byte");
        let responses = responses.clone();
        tokio::spawn(async move {
            let (head, mut content) = response.await.expect("a response").into_parts();
            let mut page = Vec::new();
            while let Some(data) = content.data().await {
                let data = data.expect("a whole page");
                content.flow_control().release_capacity(data.len()).expect("a window");
                page.extend_from_slice(&data);
            }
            let received = ReceivedResponse {
                status: head.status.as_u16(),
                page: String::from_utf8_lossy(&page).into_owned(),
            };
            // Sending fails if the test has already ended.
            let _ = responses.send(received);
        });
    }
}

/// Requests a file repeatedly until `stopped` is true. Returns the duration of each response.
async fn reader(port: u16, stopped: watch::Receiver<bool>) -> Vec<Duration> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("a server that listens");
    let (mut times, mut buffer) = (Vec::new(), [0; 4096]);
    while !*stopped.borrow() {
        let began = Instant::now();
        let request = b"GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n";
        stream.write_all(request).await.expect("a server that reads");
        let got = stream.read(&mut buffer).await.expect("a response");
        assert!(buffer[..got].ends_with(b"\r\n\r\nsmall"), "{:?}", &buffer[..got]);
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times
}

#[test]
fn connections_and_queued_requests_of_a_slow_upstream_are_bounded() {
    raise_descriptor_limit();
    let driver = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let runtime = driver.handle().clone();
    // The thread runs until the process of the test exits.
    std::thread::spawn(move || driver.block_on(std::future::pending::<()>()));
    let slow = runtime.block_on(slow());
    let folder = Folder::with(&[("www/small.txt", "small")]);
    // The timeouts are longer than the test, and error pages show the cause (`dev` mode).
    let text = format!(
        "[server]\nmode = \"dev\"\nworkers = 1\nh2c = true\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
         [site.default.route.\"/api/*\"]\n\
         proxy = {{ to = \"http://127.0.0.1:{}\", queue = \"10m\", first_byte = \"10m\", connect = \"1m\" }}\n",
        slow.port
    );
    let server = Running::start(folder, &text);
    let port = server.address().port();
    let (stop, stopped) = watch::channel(false);
    let reading = runtime.spawn(reader(port, stopped));
    let (sender, mut responses) = mpsc::unbounded_channel();
    for _ in 0..CONNECTIONS {
        runtime.spawn(client(port, sender.clone()));
    }
    let mut expect = |count: usize, status: u16| {
        for number in 0..count {
            let response = async { tokio::time::timeout(DEADLINE, responses.recv()).await };
            let response: ReceivedResponse = runtime
                .block_on(response)
                .expect("a response in time")
                .expect("a client");
            assert_eq!(
                response.status, status,
                "response {number} of {count} that should be {status}: {}",
                response.page
            );
        }
    };
    // Requests beyond the queue are refused immediately.
    expect(CONNECTIONS * STREAMS - LIMIT - QUEUE, 503);
    let began = Instant::now();
    while slow.open.load(Ordering::SeqCst) < LIMIT {
        assert!(
            began.elapsed() < DEADLINE,
            "{} connections",
            slow.open.load(Ordering::SeqCst)
        );
        std::thread::yield_now();
    }
    // The requests without a response are in progress or queued, so no further connection is opened.
    let open = || slow.open.load(Ordering::SeqCst);
    let held = Instant::now();
    while held.elapsed() < Duration::from_millis(100) {
        assert_eq!(open(), LIMIT, "concurrent connections");
        std::thread::yield_now();
    }
    slow.go.send(true).expect("connections that wait");
    expect(LIMIT + QUEUE, 200);
    assert_eq!(
        slow.requests.peak.load(Ordering::SeqCst),
        LIMIT,
        "concurrent requests at the upstream"
    );
    stop.send(true).expect("a reader");
    let mut times = runtime.block_on(reading).expect("durations");
    times.sort_unstable();
    println!(
        "files during the flood: {} responses, p50 {:?}, p99 {:?}, longest {:?}",
        times.len(),
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
}

/// Raises the limit of descriptors, because both ends of all connections are in this process.
pub fn raise_descriptor_limit() {
    /// Number of descriptors, more than the two ends of all connections need.
    const REQUIRED: u64 = 8192;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < REQUIRED) {
        let raised = Rlimit {
            current: Some(limit.maximum.map_or(REQUIRED, |maximum| maximum.min(REQUIRED))),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).expect("a limit below the hard one");
    }
}
