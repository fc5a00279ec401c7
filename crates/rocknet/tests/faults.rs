//! Injects failures of system calls with strace: every response is complete or cut, never wrong, and the server
//! continues to run.

mod child;

use std::process::Command;
use std::thread;
use std::time::Instant;

use child::{Server, Setup};

/// Number of requests with each fault.
const REQUESTS: usize = 200;
/// Size in bytes of a file that is sent with sendfile(2).
const LARGE: usize = 300_000;

/// Permitted effect of a failing system call on the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Every request succeeds.
    None,
    /// Connections are cut, as if the client had disconnected; other requests succeed.
    Cuts,
    /// Requests for files get 500 or 503, or their responses are cut.
    Failures,
}

#[test]
fn responses_are_complete_or_cut_when_system_calls_fail() {
    let version = Command::new("strace").arg("-V").output();
    assert!(
        version.is_ok_and(|output| output.status.success()),
        "strace is missing: apt-get install strace"
    );
    // EAGAIN of socket calls is not tested. With edge-triggered events, the server waits for a further event after
    // EAGAIN. That event would not arrive, because strace injects the error without making the call.
    // `when=2+3`: the second call fails, and then every third one.
    let rows = [
        ("recvfrom:error=EINTR:when=2+3", Effect::None),
        ("recvfrom:error=ECONNRESET:when=5+10", Effect::Cuts),
        ("sendto:error=EINTR:when=2+3", Effect::None),
        ("sendto:error=EPIPE:when=5+10", Effect::Cuts),
        ("sendto:error=ENOBUFS:when=5+10", Effect::Cuts),
        ("sendfile:error=EINTR:when=1+2", Effect::None),
        ("sendfile:error=EIO:when=2+3", Effect::Cuts),
        ("accept4:error=ECONNABORTED:when=2+3", Effect::None),
        ("accept4:error=EMFILE:when=2+20", Effect::None),
        ("accept4:error=ENOBUFS:when=2+20", Effect::None),
        ("openat2:error=EMFILE:when=3+4", Effect::Failures),
        ("openat2:error=EAGAIN:when=3+4", Effect::Failures),
        ("openat2:error=EIO:when=3+4", Effect::Failures),
        ("pread64:error=EIO:when=3+4", Effect::Failures),
        ("epoll_wait:error=EINTR:when=3+5", Effect::None),
    ];
    // The faults are injected into parallel servers, because each server spends most of its time waiting for strace.
    thread::scope(|scope| {
        for (fault, effect) in rows {
            scope.spawn(move || check_fault(fault, effect));
        }
    });
}

/// Every `connect` fails as it does when all local ports are in use. Requests are then refused for a while without
/// further calls, and files are still served.
#[test]
fn upstreams_are_paused_when_no_local_port_is_free() {
    /// Keys of the site. The calls to an upstream are counted by its port.
    const KEYS: &str = r#"
[site.default.route."/proxy/*"]
proxy = { to = "http://127.0.0.1:1", mirror = { to = "http://127.0.0.1:4" } }
[site.default.route."/named/*"]
proxy = "http://localhost:1"
[site.default.route."/checked/*"]
proxy = { to = "http://127.0.0.1:2", health = { path = "/", interval = "100ms", fall = 1 } }
[site.default.route."/fastcgi/*"]
fastcgi = "127.0.0.1:3"
[site.default.route."/scgi/*"]
scgi = "127.0.0.1:5"
"#;
    /// Number of requests for each route.
    const ROUNDS: u32 = 100;
    let setup = Setup::new().keys(KEYS);
    let calls = setup.folder.path().join("calls.txt");
    let shown = calls.display().to_string();
    let inject = "inject=connect:error=EADDRNOTAVAIL";
    let server = setup
        .under(&["strace", "-f", "-qq", "-o", &shown, "-e", "trace=connect", "-e", inject])
        .start();
    let began = Instant::now();
    let mut client = server.connect();
    // Requests get another status until the name has been resolved.
    while client.get("/named/").status != 503 {
        assert!(began.elapsed() < child::DEADLINE, "{}", server.errors());
    }
    for _ in 0..ROUNDS {
        for path in ["/proxy/", "/named/", "/checked/", "/fastcgi/", "/scgi/"] {
            assert_eq!(client.get(path).status, 503, "{path}: {}", server.errors());
        }
        assert_eq!(client.get("/small.txt").body, b"Hello, world!");
    }
    // A health check that fails for a local reason does not take the upstream out of rotation.
    let errors = server.error_with("cannot be checked");
    let elapsed = began.elapsed();
    assert!(!errors.contains("out of rotation"), "{errors}");
    assert!(errors.contains("net.ipv4.ip_local_port_range"), "{errors}");
    let calls = std::fs::read_to_string(&calls).expect("the calls");
    for port in 1..=5 {
        let count = calls.matches(&format!("htons({port})")).count() as u32;
        // Each upstream is expected to make at most one call per address in half a second, plus one at either end.
        // A port has up to three addresses of upstreams: 127.0.0.1, and the two addresses of `localhost`.
        let most = (elapsed.as_millis() / 500 + 2) as u32 * 3;
        assert!(count > 0 && count <= most, "port {port}: {count} calls in {elapsed:?}");
        assert!(count < ROUNDS, "port {port}: {count} calls for {ROUNDS} requests");
    }
}

fn check_fault(fault: &str, effect: Effect) {
    let setup = Setup::new();
    for number in 0..REQUESTS / 4 {
        setup.file(&format!("{number}.txt"), format!("file {number}"));
    }
    setup.file("large.bin", vec![b'x'; LARGE]);
    let inject = format!("inject={fault}");
    // strace writes the list of calls to this file, which is not read.
    let nowhere = setup.folder.path().join("calls.txt").display().to_string();
    let mut server = setup
        .under(&["strace", "-f", "-qq", "-o", &nowhere, "-e", &inject])
        .start();
    let mut outcomes = Outcomes::default();
    for number in 0..REQUESTS {
        let (path, expected) = match number % 4 {
            0 => (
                format!("/{}.txt", number / 4),
                format!("file {}", number / 4).into_bytes(),
            ),
            1 => ("/large.bin".to_owned(), vec![b'x'; LARGE]),
            _ => ("/small.txt".to_owned(), b"Hello, world!".to_vec()),
        };
        fetch(&server, &path, &expected, fault, &mut outcomes);
    }
    println!("{fault}: {outcomes:?}");
    assert!(outcomes.whole > REQUESTS / 3, "{fault}: {outcomes:?}");
    assert!(
        outcomes.cut == 0 || effect != Effect::None,
        "{fault}: {outcomes:?}; {}",
        server.errors()
    );
    assert!(
        outcomes.failed == 0 || effect == Effect::Failures,
        "{fault}: {outcomes:?}; {}",
        server.errors()
    );
    server.wait_for("connections close", |status| status.open == 0);
    assert!(!server.errors().contains("panic"), "{fault}: {}", server.errors());
}

/// Number of requests with a complete response of status 200, with a cut connection, and with status 500 or 503.
#[derive(Debug, Default)]
struct Outcomes {
    whole: usize,
    cut: usize,
    failed: usize,
}

fn fetch(server: &Server, path: &str, expected: &[u8], fault: &str, outcomes: &mut Outcomes) {
    match server.connect().try_get(path) {
        Ok(response) if response.status == 200 => {
            assert!(
                response.body == expected,
                "{fault}: {path} has a wrong body: {}",
                response.head
            );
            outcomes.whole += 1;
        }
        Ok(response) => {
            // A file that cannot be opened for lack of resources must not be reported as missing or forbidden.
            assert!(
                matches!(response.status, 500 | 503),
                "{fault}: {path}: {}",
                response.head
            );
            outcomes.failed += 1;
        }
        Err(error) => {
            assert_ne!(
                error.kind(),
                std::io::ErrorKind::WouldBlock,
                "{fault}: {path}: no response, and the connection is still open"
            );
            outcomes.cut += 1;
        }
    }
}
