//! Counts a worker's allocations: none for a file or a stored response that is served from memory, and few bytes for an
//! idle connection under TLS.

#![allow(unsafe_code)] // `GlobalAlloc` is an unsafe trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet::server::Server;
use rocknet::snapshot::Mount;
use rocknet_config::model::Pattern;
use rocknet_io::socket::Address;
use rocknet_proto::status::Status;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

#[allow(dead_code)] // shared with tests that use more of it
mod wire;

thread_local! {
    /// Set on threads whose allocations are counted.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// Set on threads whose allocated bytes are summed.
    static WEIGHED: Cell<bool> = const { Cell::new(false) };
}
/// Bytes allocated minus bytes freed by the threads with `WEIGHED` set.
static HELD: AtomicIsize = AtomicIsize::new(0);
/// Number of allocations by the threads with `WATCHED` set.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Sizes of the latest allocations, which often identify their source.
static SIZES: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];

struct Counting;

impl Counting {
    fn count_allocation(size: usize) {
        // `try_with`, because threads also allocate while they exit.
        if WATCHED.try_with(Cell::get).unwrap_or(false) {
            let number = COUNT.fetch_add(1, Relaxed);
            SIZES[number % SIZES.len()].store(size, Relaxed);
        }
    }

    fn sum_bytes(allocated: usize, freed: usize) {
        if WEIGHED.try_with(Cell::get).unwrap_or(false) {
            HELD.fetch_add(allocated.cast_signed() - freed.cast_signed(), Relaxed);
        }
    }
}

// SAFETY: every call is forwarded unchanged to the system's allocator. Counting allocates nothing and uses only statics
// and thread-locals without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count_allocation(layout.size());
        Counting::sum_bytes(layout.size(), 0);
        // SAFETY: the caller upholds the contract of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::count_allocation(layout.size());
        Counting::sum_bytes(layout.size(), 0);
        // SAFETY: the caller upholds the contract of this method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::count_allocation(size);
        Counting::sum_bytes(size, layout.size());
        // SAFETY: the caller upholds the contract of this method, and the memory came from the same allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Counting::sum_bytes(0, layout.size());
        // SAFETY: the caller upholds the contract of this method, and the memory came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Handler that sets a thread-local of the worker: handlers run on the worker's thread.
struct Mark(&'static std::thread::LocalKey<Cell<bool>>);

impl Handler for Mark {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        self.0.set(true);
        respond_with(async { Response::new(Status::OK) })
    }
}

/// Requests whose allocations are counted.
const REQUESTS: usize = 1000;
/// Requests in one round. Rounds are short, so that most contain no tick of the timer wheel.
const ROUND: usize = 100;
/// Longest time between two ticks of the timer wheel.
const TICK: Duration = Duration::from_millis(250);
/// Maximum number of allocations in one tick. A tick allocates a timer and the deadlines that it moves. Every 400 ms
/// the worker also requests that the cache thread check the file for changes. On a busy machine one request may have to
/// wait for the result of the check. The handler of a stored response is called four times a second, and its head is
/// encoded once.
const ALLOCATIONS_A_TICK: usize = 60;
/// Timeout of a read, far longer than the test takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

struct Client<S = TcpStream>(S);

impl Client {
    fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        stream.set_nodelay(true).expect("an option");
        Client(stream)
    }
}

impl<S: Read + Write> Client<S> {
    /// Sends a request and returns the length of its response.
    fn length_of_response(&mut self, request: &str, status: &str) -> usize {
        self.0.write_all(request.as_bytes()).expect("sent");
        let mut response = Vec::new();
        let mut byte = [0];
        while !response.ends_with(b"\r\n\r\n") {
            self.0.read_exact(&mut byte).expect("a response");
            response.push(byte[0]);
        }
        let head = String::from_utf8(response).expect("text");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.filter(|_| !request.starts_with("HEAD"));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
        self.0.read_exact(&mut body).expect("a body");
        head.len() + body.len()
    }

    /// Reads frames until this many streams have ended.
    fn end_of_streams(&mut self, count: usize) {
        let mut ended = 0;
        let mut header = [0; 9];
        let mut payload = Vec::new();
        while ended < count {
            self.0.read_exact(&mut header).expect("a frame");
            let [a, b, c, kind, flags, ..] = header;
            payload.resize(usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c), 0);
            self.0.read_exact(&mut payload).expect("its payload");
            assert!(!matches!(kind, wire::RST_STREAM | wire::GOAWAY), "{kind} {payload:?}");
            let ends = matches!(kind, wire::DATA | wire::HEADERS) && flags & wire::END_STREAM != 0;
            ended += usize::from(ends);
        }
    }
}

/// Serialises the tests, because the handshakes of the other test would delay the requests and add ticks to the count.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn cached_responses_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.txt"), "Hello, world!").expect("a file");
    std::fs::write(folder.path().join("page.html"), vec![b'x'; 10_000]).expect("a file");
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\n[log]\naccess = \"{0}/access.log\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"{0}\"\n",
        folder.path().display()
    );
    let (server, address) = start(&text, folder.path(), Mark(&WATCHED));
    let mut client = Client::to(address);
    client.length_of_response("GET /mark HTTP/1.1\r\nHost: h\r\n\r\n", "200");
    assert_ne!(COUNT.load(Relaxed), 0, "the worker's thread is not watched");

    // Name, request, expected status, and number of requests that are sent at once.
    let rows = [
        ("keep-alive", "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n", "200", 1),
        ("HEAD", "HEAD /small.txt HTTP/1.1\r\nHost: h\r\n\r\n", "200", 1),
        (
            "not modified",
            "GET /small.txt HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n",
            "304",
            1,
        ),
        ("missing", "GET /missing HTTP/1.1\r\nHost: h\r\n\r\n", "404", 1),
        ("pipelined", "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n", "200", 10),
        ("a page", "GET /page.html HTTP/1.1\r\nHost: h\r\n\r\n", "200", 1),
        (
            "with the fields of a browser",
            "GET /page.html?a=b HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
             Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en\r\n\
             Accept-Encoding: gzip, deflate, br, zstd\r\nConnection: keep-alive\r\nCookie: a=b; c=d\r\n\r\n",
            "200",
            1,
        ),
    ];
    let mut failures = String::new();
    for (name, request, status, at_once) in rows {
        let message = allocations(&mut client, request, status, at_once);
        if let Some(message) = message {
            let _ = writeln!(failures, "{name}: {message}");
        }
    }
    // The same requests over HTTP/2.
    let mut client = Client::to(address);
    client.0.write_all(&wire::open_beginning()).expect("sent");
    let if_any: &[(&str, &str)] = &[("if-none-match", "*")];
    let browser: &[(&str, &str)] = &[
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("cookie", "a=b"),
        ("cookie", "c=d"),
        ("priority", "u=0, i"),
    ];
    let mut stream = 1;
    for (name, method, path, fields, at_once) in [
        ("a stream", "GET", "/small.txt", &[][..], 1),
        ("HEAD on a stream", "HEAD", "/small.txt", &[], 1),
        ("not modified on a stream", "GET", "/small.txt", if_any, 1),
        ("missing on a stream", "GET", "/missing", &[], 1),
        ("ten streams", "GET", "/small.txt", &[], 10),
        ("a page on a stream", "GET", "/page.html", &[], 1),
        ("ten pages", "GET", "/page.html", &[], 10),
        (
            "a stream with the fields of a browser",
            "GET",
            "/page.html?a=b",
            browser,
            1,
        ),
    ] {
        let mut fetch = |times: usize| {
            for _ in 0..times / at_once {
                let numbers = (0..at_once as u32).map(|number| stream + 2 * number);
                let requests: Vec<u8> = numbers
                    .flat_map(|stream| wire::request(stream, method, path, fields, true))
                    .collect();
                stream += 2 * at_once as u32;
                client.0.write_all(&requests).expect("sent");
                client.end_of_streams(at_once);
            }
        };
        if let Some(message) = count_in_rounds(&mut fetch) {
            let _ = writeln!(failures, "{name}: {message}");
        }
    }
    server.stop();
    assert!(failures.is_empty(), "\n{failures}");
}

/// Starts an upstream whose responses may be stored, and returns its port.
fn start_upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || respond_to_all(stream));
        }
    });
    port
}

fn respond_to_all(mut stream: TcpStream) {
    let (mut received, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).is_ok() {
        received.push(byte[0]);
        if received.ends_with(b"\r\n\r\n") {
            received.clear();
            let body = "many words of a page, ".repeat(400);
            let head =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Type: text/html\r\nVary: Accept-Language";
            let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    }
}

/// Requests the page until its response is stored. A response that is not stored yet has no `Content-Length` if the
/// upstream sends it in pieces.
fn store(address: SocketAddr, fields: &str) {
    let deadline = Instant::now() + DEADLINE;
    // The first one may have come from the upstream at once.
    let mut whole = 0;
    while whole < 2 {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        let request = format!("GET /page?a=b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("a response");
        let end = response.windows(4).position(|window| window == b"\r\n\r\n");
        let head = &response[..end.expect("a head")];
        let is_whole = head.windows(16).any(|window| window == b"Content-Length: ");
        whole = if is_whole { whole + 1 } else { 0 };
        assert!(Instant::now() < deadline, "the response is not stored");
    }
}

#[test]
fn stored_responses_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\n[log]\naccess = \"{}/access.log\"\n[site.default]\nlisten = \"127.0.0.1:0\"\n\
         proxy = \"http://127.0.0.1:{}\"\ncache = true\nharden = true\n\
         headers = {{ Age = \"\", Cache-Status = \"\" }}\nlimit = {{ rate = \"1000000/s\", burst = 1000000 }}\n",
        folder.path().display(),
        start_upstream()
    );
    let (server, address) = start(&text, folder.path(), Mark(&WATCHED));
    let mut client = Client::to(address);
    client.length_of_response("GET /mark HTTP/1.1\r\nHost: h\r\n\r\n", "200");
    let mut failures = String::new();
    let browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept-Language: en\r\n\
                   Accept-Encoding: gzip, deflate, br, zstd\r\nCookie: a=b; c=d\r\n";
    for (name, method, fields, at_once) in [
        ("a hit", "GET", "", 1),
        ("HEAD", "HEAD", "", 1),
        ("pipelined hits", "GET", "", 10),
        ("a hit with the fields of a browser", "GET", browser, 1),
    ] {
        store(address, fields);
        let request = format!("{method} /page?a=b HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        if let Some(message) = allocations(&mut client, &request, "200", at_once) {
            let _ = writeln!(failures, "{name}: {message}");
        }
    }
    let mut client = Client::to(address);
    client.0.write_all(&wire::open_beginning()).expect("sent");
    let mut stream = 1;
    let mut fetch = |times: usize| {
        for _ in 0..times {
            let request = wire::request(stream, "GET", "/page?a=b", &[("accept-encoding", "br")], true);
            stream += 2;
            client.0.write_all(&request).expect("sent");
            client.end_of_streams(1);
        }
    };
    if let Some(message) = count_in_rounds(&mut fetch) {
        let _ = writeln!(failures, "a hit on a stream: {message}");
    }
    server.stop();
    assert!(failures.is_empty(), "\n{failures}");
}

/// Starts a server with `mark` as the handler of `/mark`.
fn start(text: &str, folder: &Path, mark: Mark) -> (Server, SocketAddr) {
    let config = rocknet_config::parse(text, &folder.join("rocknet.toml"), &rocknet_config::ProcessEnvironment)
        .unwrap_or_else(|report| panic!("{report:?}"))
        .config;
    let mark = Mount {
        site: "default".into(),
        pattern: Pattern::Exact("/mark".into()),
        handler: Arc::new(mark),
    };
    let server = Server::start(config, vec![mark], &mut ()).expect("a server");
    let port = match server.listeners().first() {
        Some((_, Address::Tcp { port, .. }, _)) => *port,
        other => panic!("{other:?}"),
    };
    (server, SocketAddr::from(([127, 0, 0, 1], port)))
}

/// Number of idle connections that are open at the same time when memory is measured.
const IDLE: usize = 64;
/// Maximum number of allocated bytes per idle connection. The sum covers all allocations of Rust code, but not those of
/// the cryptography in C; the benchmarks measure both together.
const IDLE_BYTES: isize = 12 * 1024;

#[test]
fn an_idle_tls_connection_uses_at_most_12_kib() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.txt"), "Hello, world!").expect("a file");
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let pair = made.cert.pem() + &made.signing_key.serialize_pem();
    std::fs::write(folder.path().join("a.pem"), pair).expect("a file");
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.path().join("a.pem"), owner_only).expect("rights");
    let text = format!(
        "[server]\nworkers = 1\n[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"{}\"\ntls = {{ cert = \"a.pem\" }}\n",
        folder.path().display()
    );
    let (server, address) = start(&text, folder.path(), Mark(&WEIGHED));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");

    for protocol in ["http/1.1", "h2"] {
        let mut settings = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        settings.alpn_protocols = vec![protocol.into()];
        let settings = Arc::new(settings);
        let open = |path: &str| {
            let name = ServerName::try_from("a.test").expect("a name");
            let tls = ClientConnection::new(Arc::clone(&settings), name).expect("a client");
            let mut client = Client(StreamOwned::new(tls, Client::to(address).0));
            if protocol == "h2" {
                client.0.write_all(&wire::open_beginning()).expect("sent");
                client.0.write_all(&wire::get(1, path)).expect("sent");
                client.end_of_streams(1);
            } else {
                let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
                client.length_of_response(&request, "200");
            }
            client
        };
        // These requests grow the worker's buffers and mark its thread.
        drop(open("/small.txt"));
        let _marked = open("/mark");
        let before = HELD.load(Relaxed);
        let idle: Vec<_> = (0..IDLE).map(|_| open("/small.txt")).collect();
        let held = (HELD.load(Relaxed) - before) / IDLE.cast_signed();
        println!("{protocol}: {held} bytes");
        assert!(held > 0, "{protocol}: the worker's thread is not weighed");
        assert!(held <= IDLE_BYTES, "{protocol}: {held} bytes per connection");
        drop(idle);
    }
    server.stop();
}

/// Sends `at_once` copies of a request at a time and counts the allocations of the worker. Returns `None` on success,
/// otherwise a message with the counts.
fn allocations(client: &mut Client, request: &str, status: &str, at_once: usize) -> Option<String> {
    let requests = request.repeat(at_once);
    let length = client.length_of_response(request, status);
    let mut responses = vec![0; length * at_once];
    let mut fetch = |times: usize| {
        for _ in 0..times / at_once {
            client.0.write_all(requests.as_bytes()).expect("sent");
            client.0.read_exact(&mut responses).expect("responses");
        }
    };
    let message = count_in_rounds(&mut fetch);
    assert!(responses.starts_with(format!("HTTP/1.1 {status} ").as_bytes()));
    message
}

/// Counts the worker's allocations while `fetch` sends requests in rounds. Returns a message with the counts if every
/// round allocated without a tick, or if all rounds together allocated more than their ticks explain.
fn count_in_rounds(fetch: &mut dyn FnMut(usize)) -> Option<String> {
    // The first requests fill the worker cache and grow the worker's buffers.
    fetch(ROUND);
    let began = Instant::now();
    let (mut all, mut least) = (0, usize::MAX);
    for _ in 0..REQUESTS / ROUND {
        let before = COUNT.load(Relaxed);
        fetch(ROUND);
        let round = COUNT.load(Relaxed) - before;
        all += round;
        least = least.min(round);
    }
    // Two more ticks, one at either end, because on a busy machine a late tick can be followed by a punctual one.
    let ticks = (began.elapsed().as_millis() / TICK.as_millis()) as usize + 2;
    let sizes: Vec<_> = SIZES.iter().map(|size| size.load(Relaxed)).collect();
    let message = format!(
        "{all} allocations for {REQUESTS} requests within {ticks} ticks, at least {least} in every {ROUND}; latest sizes in bytes: {sizes:?}"
    );
    println!("{message}");
    // On a busy machine, every round can contain a tick.
    let has_ticks = ticks >= REQUESTS / ROUND;
    (least > 0 && !has_ticks || all > ticks * ALLOCATIONS_A_TICK).then_some(message)
}
