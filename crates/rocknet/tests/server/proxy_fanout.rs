//! Clients that have more requests under way than any server behind could take: what is opened for them is bounded, what
//! waits is bounded, and others do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client;
use http::Request;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::support::{DEADLINE, Folder, Running};

/// Requests that one server has at once, and that wait for it, where the configuration says nothing.
const LIMIT: usize = 1024;
const QUEUE: usize = 4096;

const CONNECTIONS: usize = 150;
const STREAMS: usize = 100;

/// A server that answers nothing before it is told to.
struct Slow {
    port: u16,
    /// Connections now, and the most that there were.
    open: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
    go: watch::Sender<bool>,
}

async fn slow() -> Slow {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (go, told) = watch::channel(false);
    let (open, peak) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counts = (Arc::clone(&open), Arc::clone(&peak));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (open, peak) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
            peak.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let told = told.clone();
            tokio::spawn(async move {
                serve(stream, told).await;
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    Slow { port, open, peak, go }
}

/// Requests have one byte of content, so that the end of each is seen.
async fn serve(mut stream: TcpStream, mut told: watch::Receiver<bool>) {
    let mut unread = Vec::new();
    loop {
        while !unread.ends_with(b"\r\n\r\nx") {
            if !matches!(stream.read_buf(&mut unread).await, Ok(1..)) {
                return;
            }
        }
        unread.clear();
        if told.wait_for(|go| *go).await.is_err() {
            return;
        }
        let sent = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        if sent.is_err() {
            return;
        }
    }
}

/// Sends all requests of one client at once, and tells the status of each answer.
async fn client(port: u16, statuses: mpsc::UnboundedSender<u16>) {
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
        let (answer, mut content) = send
            .send_request(request.body(()).expect("a request"), false)
            .expect("a stream");
        content
            .send_data(Bytes::from_static(b"x"), true)
            .expect("room for a byte");
        let statuses = statuses.clone();
        tokio::spawn(async move {
            let _ = statuses.send(answer.await.expect("an answer").status().as_u16());
        });
    }
}

/// Asks for a file again and again, and tells how long each answer took, until it is stopped.
async fn reader(port: u16, stopped: watch::Receiver<bool>) -> Vec<Duration> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("a server that listens");
    let (mut times, mut buffer) = (Vec::new(), [0; 4096]);
    while !*stopped.borrow() {
        let began = Instant::now();
        let request = b"GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n";
        stream.write_all(request).await.expect("a server that reads");
        let got = stream.read(&mut buffer).await.expect("an answer");
        assert!(buffer[..got].ends_with(b"\r\n\r\nsmall"), "{:?}", &buffer[..got]);
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times
}

#[test]
fn what_is_opened_and_what_waits_for_a_slow_server_is_bounded() {
    descriptors();
    let driver = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let runtime = driver.handle().clone();
    // It ends with the test's process.
    std::thread::spawn(move || driver.block_on(std::future::pending::<()>()));
    let slow = runtime.block_on(slow());
    let folder = Folder::with(&[("www/small.txt", "small")]);
    // Times that no test meets.
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
         [site.default.route.\"/api/*\"]\n\
         proxy = {{ to = \"http://127.0.0.1:{}\", queue = \"10m\", first_byte = \"10m\", connect = \"1m\" }}\n",
        slow.port
    );
    let server = Running::start(folder, &text);
    let port = server.address().port();
    let (stop, stopped) = watch::channel(false);
    let reading = runtime.spawn(reader(port, stopped));
    let (statuses, mut answers) = mpsc::unbounded_channel();
    for _ in 0..CONNECTIONS {
        runtime.spawn(client(port, statuses.clone()));
    }
    let mut next = || {
        let answer = async { tokio::time::timeout(DEADLINE, answers.recv()).await };
        runtime.block_on(answer).expect("an answer in time").expect("a client")
    };
    // Those that find no room in the queue are told at once.
    for _ in 0..CONNECTIONS * STREAMS - LIMIT - QUEUE {
        assert_eq!(next(), 503);
    }
    let began = Instant::now();
    while slow.open.load(Ordering::SeqCst) < LIMIT {
        assert!(
            began.elapsed() < DEADLINE,
            "{} connections",
            slow.open.load(Ordering::SeqCst)
        );
        std::thread::yield_now();
    }
    slow.go.send(true).expect("connections that wait");
    for _ in 0..LIMIT + QUEUE {
        assert_eq!(next(), 200);
    }
    assert_eq!(slow.peak.load(Ordering::SeqCst), LIMIT, "connections at once");
    stop.send(true).expect("a reader");
    let mut times = runtime.block_on(reading).expect("files beside");
    times.sort_unstable();
    println!(
        "files beside: {} answers, p50 {:?}, p99 {:?}, longest {:?}",
        times.len(),
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
}

/// Both ends of all connections are in this process.
fn descriptors() {
    const WANTED: u64 = 8192;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < WANTED) {
        let raised = Rlimit {
            current: Some(limit.maximum.map_or(WANTED, |maximum| maximum.min(WANTED))),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).expect("a limit below the hard one");
    }
}
