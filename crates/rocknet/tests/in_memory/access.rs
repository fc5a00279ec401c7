//! Access control: failed passwords over virtual time, and a reload while a password is verified.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use rocknet::blocking::Job;
use rocknet::clock::TimeSource;
use rocknet::registries::Registries;
use rocknet::snapshot::Snapshot;
use rocknet_config::ProcessEnvironment;
use rocknet_config::model::Priority;

use crate::proxied::Dials;
use crate::test_server::{TestClient, TestServer};
use crate::wire;

/// Hash of the password `secret`, with the lowest cost of bcrypt.
const HASH: &str = "$2y$04$RwBnJOpDEQZiy2VKUT52Q.YEkrK.DMrhbaOu12VTXkM2GvfW0CUZW";
/// Hash of another password.
const OTHER: &str = "$apr1$abcd$vOB3WbpdYWRuiO5Ne74Jb1";

/// Base64 form of `bob:secret`.
const RIGHT: &str = "Ym9iOnNlY3JldA==";
/// Credentials of the same user with wrong passwords.
const WRONG: [&str; 10] = [
    "Ym9iOjA=", "Ym9iOjE=", "Ym9iOjI=", "Ym9iOjM=", "Ym9iOjQ=", "Ym9iOjU=", "Ym9iOjY=", "Ym9iOjc=", "Ym9iOjg=",
    "Ym9iOjk=",
];

fn request(credentials: &str) -> String {
    format!("GET /small.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Basic {credentials}\r\n\r\n")
}

fn fetch(server: &TestServer, credentials: &str) -> String {
    let mut client = server.connect();
    client.peer.send(request(credentials).as_bytes()).end();
    client.run_to_end();
    client.received()
}

#[test]
fn a_client_that_guesses_passwords_is_blocked_for_a_minute() {
    let now_ms = Arc::new(AtomicU64::new(1_000));
    let registries = Registries::simulated(TimeSource::Virtual(Arc::clone(&now_ms)), Arc::new(Dials));
    let site = format!("[site.\":0\"]\nauth = {{ bob = \"{HASH}\" }}\n");
    let server = TestServer::with(registries, "", &site, &[]);
    let at = |ms: u64| {
        now_ms.store(ms, Ordering::SeqCst);
        server.worker.clock.update();
    };
    assert!(fetch(&server, RIGHT).starts_with("HTTP/1.1 200 "));
    for wrong in WRONG {
        assert!(fetch(&server, wrong).starts_with("HTTP/1.1 401 "), "{wrong}");
    }
    for (ms, expected) in [(1_000, "60"), (2_000, "59"), (60_999, "1")] {
        at(ms);
        let response = fetch(&server, RIGHT);
        assert!(response.starts_with("HTTP/1.1 429 "), "at {ms}: {response}");
        assert!(
            response.contains(&format!("\r\nRetry-After: {expected}\r\n")),
            "at {ms}: {response}"
        );
    }
    at(61_000);
    assert!(fetch(&server, RIGHT).starts_with("HTTP/1.1 200 "));
    assert!(fetch(&server, WRONG[0]).starts_with("HTTP/1.1 401 "));
}

/// Occupies every thread of the pool until the value is dropped.
struct OccupiedPool {
    // Dropping the senders ends the jobs that run. Dropping the jobs afterwards cancels those that have not begun.
    _senders: Vec<mpsc::Sender<()>>,
    _jobs: Vec<Job<()>>,
}

impl OccupiedPool {
    fn new(server: &TestServer) -> OccupiedPool {
        let start = |_| {
            let (send, received) = mpsc::channel::<()>();
            let job = server.worker.shared.pool.spawn(Priority::Low, move || {
                let _ = received.recv();
            });
            (send, job)
        };
        // The number of jobs exceeds the number of threads in the pool.
        let (ends, jobs) = (0..8).map(start).unzip();
        OccupiedPool {
            _senders: ends,
            _jobs: jobs,
        }
    }
}

#[test]
fn a_reload_while_a_password_is_verified_takes_effect() {
    let auth = |hash: &str| format!("auth = {{ bob = \"{hash}\" }}\n");
    let old = format!("[site.\":0\"]\n{}", auth(HASH));
    // The change, the configuration after the reload, and the status of the response.
    for (what, new, status) in [
        ("the same configuration", old.clone(), 200),
        ("another password", format!("[site.\":0\"]\n{}", auth(OTHER)), 401),
        (
            "all addresses denied",
            format!("[site.\":0\"]\n{}deny = \"all\"\n", auth(HASH)),
            403,
        ),
        ("no password", "[site.\":0\"]\n".to_owned(), 200),
        (
            "a rule",
            format!(
                "[site.\":0\"]\n{}rule = [{{ path = \"/small.txt\", respond = 410 }}]\n",
                auth(HASH)
            ),
            410,
        ),
    ] {
        for is_http2 in [false, true] {
            let server = TestServer::of("", &old, &[]);
            let busy = OccupiedPool::new(&server);
            let mut client = match is_http2 {
                false => server.connect(),
                true => server.connect_http2(),
            };
            match is_http2 {
                false => client.peer.send(request(RIGHT).as_bytes()),
                true => client.peer.send(&wire::open_beginning()).send(&get_with_password()),
            };
            client.settle();
            assert_eq!(response_status(&client, is_http2), None, "{what}");
            reload(&server, &new);
            drop(busy);
            client.run_until(|client| response_status(client, is_http2).is_some());
            assert_eq!(
                response_status(&client, is_http2),
                Some(status),
                "{what}, HTTP/2: {is_http2}"
            );
        }
    }
}

/// Returns an HTTP/2 request with the right password.
fn get_with_password() -> Vec<u8> {
    let password = format!("Basic {RIGHT}");
    wire::request(1, "GET", "/small.txt", &[("authorization", &password)], true)
}

/// Replaces the configuration of the worker.
fn reload(server: &TestServer, site: &str) {
    let folder = server.folder();
    let text = format!("[server]\nworkers = 1\n{site}root = \"{}\"\n", folder.display());
    let config = rocknet_config::parse(&text, &folder.join("rocknet.toml"), &ProcessEnvironment)
        .unwrap_or_else(|report| panic!("{report:?}"))
        .config;
    let shared = &server.worker.shared;
    let snapshot = Snapshot::new(
        config,
        &[],
        &shared.logger,
        &shared.certificates,
        &shared.registries,
        &BTreeSet::new(),
        &[],
    )
    .expect("a snapshot");
    server.worker.swap(&Arc::new(snapshot));
}

/// Returns the status of the response, or `None` if no response has arrived.
fn response_status(client: &TestClient, is_http2: bool) -> Option<u16> {
    if !is_http2 {
        return client.received().strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok();
    }
    // HPACK encodes the status of HTTP/2, so it is taken from the error page.
    let (frames, _) = wire::frames(&client.peer.received());
    let content = wire::body_of(&frames, 1);
    let text = String::from_utf8_lossy(&content);
    match text.split_once("<main><b>") {
        Some((_, page)) => page.get(..3)?.parse().ok(),
        None => (text == "Hello, world!").then_some(200),
    }
}
