//! Workers: each listener has its own threads, which are restarted after a panic. Also covers Unix sockets and IPv6.

use std::time::{Duration, Instant};

use super::support::client::request;
use super::support::handlers::Echo;
use super::support::running::{mount, site};
use super::support::{Client, DEADLINE, Folder, Running};

fn folder() -> Folder {
    Folder::with(&[("www/index.html", "root"), ("other/index.html", "other")])
}

fn workers(count: usize) -> String {
    format!("[server]\nworkers = {count}\nblocking_threads = 2\nevents = {{ wait = \"20ms\" }}\n")
}

/// Opens many connections, so that the kernel passes some to each worker, and asserts all responses.
#[track_caller]
fn check(what: &str, connect: impl Fn() -> Client, expected: &str) {
    for _ in 0..20 {
        assert_eq!(connect().get("/").text(), expected, "{what}");
    }
}

#[test]
fn a_worker_that_dies_is_restarted() {
    for count in [1, 2] {
        let server = Running::start(folder(), &(workers(count) + &site("")));
        for round in 0..3 {
            let mut client = server.connect();
            assert_eq!(client.get("/").text(), "root");
            // If there is only one worker, it serves this connection, which is closed when the worker dies.
            server.server().kill_worker();
            if count == 1 {
                client.assert_closed("a connection of the dead worker");
            }
            check(&format!("{count} workers, round {round}"), || server.connect(), "root");
        }
        // The new worker executes commands: it applies a configuration and stops.
        server
            .reload(&(workers(count) + &site("root = \"other\"").replace("root = \"www\"\n", "")))
            .expect("a reload");
        let started = Instant::now();
        while server.get("/").text() != "other" {
            assert!(
                started.elapsed() < DEADLINE,
                "the new worker did not apply the configuration"
            );
        }
        server.server().kill_worker();
        check("restarted with the newest configuration", || server.connect(), "other");
        assert!(server.stop(), "the new worker does not stop");
    }
}

#[test]
fn a_worker_that_dies_again_and_again_is_restarted_later_each_time() {
    let server = Running::start(folder(), &(workers(1) + &site("")));
    let started = Instant::now();
    for _ in 0..5 {
        let mut client = server.connect();
        assert_eq!(client.get("/").text(), "root");
        server.server().kill_worker();
        client.assert_closed("a connection of the dead worker");
    }
    // Each request after the first waits for a restart, whose delay is 100, 200, 400 and 800 ms.
    assert!(
        started.elapsed() >= Duration::from_millis(1500),
        "restarted after {:?}",
        started.elapsed()
    );
    // The last failure is counted after the connection was closed.
    while server.server().status().worker_restarts < 5 {
        assert!(started.elapsed() < DEADLINE, "restarts were not counted");
    }
    assert_eq!(server.server().status().worker_restarts, 5);
    // The worker is not running now. It takes a new configuration all the same, and the server stops at once.
    server
        .reload(&(workers(1) + &site("root = \"other\"").replace("root = \"www\"\n", "")))
        .expect("a reload");
    assert_eq!(server.get("/").text(), "other");
    server.server().kill_worker();
    assert!(server.stop(), "a worker that waits for its restart must stop");
}

#[test]
fn a_worker_that_dies_under_load_releases_its_resources() {
    /// Size of a file that exceeds the kernel buffers of both sides.
    const LARGE: u64 = 24 << 20;
    let server = Running::start(folder(), &(workers(1) + &site("")));
    server.folder.sparse("www/large.bin", LARGE);
    for round in 0..3 {
        let (mut idle, mut half): (Client, Client) = (server.connect(), server.connect());
        assert_eq!(idle.get("/").text(), "root");
        half.send("GET / HTTP/1.1\r\nHo");
        // The sockets of these downloads are full, and the worker has pieces of the file in memory.
        let mut downloads: Vec<Client> = (0..8).map(|_| server.connect()).collect();
        for download in &mut downloads {
            download.send(request("GET /large.bin", &[]));
            download.head();
        }
        server.server().kill_worker();
        idle.assert_closed("idle");
        half.assert_closed("half a request");
        for mut download in downloads {
            let rest = download.rest().len();
            assert!(
                (rest as u64) < LARGE,
                "round {round}: all of {rest} bytes from a dead worker"
            );
        }
        check(&format!("round {round}"), || server.connect(), "root");
    }
    assert!(server.stop(), "the new worker does not stop");
}

#[test]
fn a_dead_worker_affects_no_other_listener() {
    let text = "[site.\"127.0.0.1:0\"]\nroot = \"www\"\n[site.\"127.0.0.2:0\"]\nroot = \"other\"\n";
    let server = Running::start(folder(), text);
    let addresses = server.addresses();
    let mut first = Client::to(addresses[0]);
    let mut second = Client::to(addresses[1]);
    assert_eq!(first.get("/").text(), "root");
    assert_eq!(second.get("/").text(), "other");
    server.server().kill_worker();
    first.assert_closed("the listener whose worker died");
    assert_eq!(second.get("/").text(), "other", "the other listener's connection");
    check("the listener whose worker died", || Client::to(addresses[0]), "root");
}

#[test]
fn each_listener_has_workers_of_its_own() {
    let text = workers(2)
        + "[site.default]\nroot = \"www\"\nlisten = [\"127.0.0.1:0\", \"127.0.0.2:0\", \"unix:site.sock\"]\n";
    let server = Running::start(folder(), &text);
    let counts: Vec<usize> = server
        .server()
        .listeners()
        .into_iter()
        .map(|(_, _, workers)| workers)
        .collect();
    assert_eq!(counts, [2, 2, 2]);
    for address in server.addresses() {
        let mut open: Vec<Client> = (0..40).map(|_| Client::to(address)).collect();
        for client in &mut open {
            assert_eq!(client.get("/").text(), "root");
        }
        for client in &mut open {
            assert_eq!(client.get("/none").status, 404);
        }
    }
}

#[test]
fn unix_sockets_are_served() {
    for count in [1, 2] {
        let text = workers(count) + "[site.default]\nroot = \"www\"\nlisten = \"unix:site.sock\"\n";
        let server = Running::start_with(folder(), &text, vec![mount("/echo/", Echo)]);
        server.folder.sparse("www/large.bin", 5 << 20);
        check("a socket file", || server.connect_unix("site.sock"), "root");
        let mut client = server.connect_unix("site.sock");
        assert_eq!(client.get("/large.bin").body.len(), 5 << 20);
        client
            .fetch("POST /echo/x", &["Content-Length: 0"])
            .expect("content", 200, &[]);
        client.get("/none").expect("the connection goes on", 404, &[]);
        server.server().kill_worker();
        check("after a worker died", || server.connect_unix("site.sock"), "root");
        server.reload(&text.replace("\"www\"", "\"other\"")).expect("a reload");
        let started = Instant::now();
        while server.connect_unix("site.sock").get("/").text() != "other" {
            assert!(
                started.elapsed() < DEADLINE,
                "the worker did not apply the configuration"
            );
        }
    }
}

#[test]
fn a_socket_file_is_removed_at_the_stop_and_a_stale_one_is_replaced() {
    let text = "[site.default]\nroot = \"www\"\nlisten = \"unix:site.sock\"\n";
    let folder = folder();
    drop(std::os::unix::net::UnixListener::bind(folder.path("site.sock")).expect("a socket file left behind"));
    let server = Running::start(folder, text);
    check("in place of a stale one", || server.connect_unix("site.sock"), "root");
    let path = server.folder.path("site.sock");
    let (server, folder) = server.take();
    assert!(server.stop());
    assert!(!path.exists(), "the socket file must be removed");
    let again = Running::start(folder, text);
    check("again", || again.connect_unix("site.sock"), "root");
}

#[test]
fn ipv6_is_served() {
    let text =
        "[site.\"[::1]:0\"]\nroot = \"www\"\n[site.\"six.example\"]\nroot = \"other\"\nlisten = \"http://[::1]:0\"\n";
    let server = Running::start(folder(), text);
    let address = server.address();
    assert!(address.is_ipv6());
    check("by address", || Client::to(address), "root");
    let host = format!("Host: {address}");
    for (host, expected) in [
        (&*host, "root"),
        ("Host: [::1]", "root"),
        ("Host: six.example", "other"),
    ] {
        assert_eq!(Client::to(address).fetch("GET /", &[host]).text(), expected, "{host}");
    }
}

#[test]
fn files_are_served_without_blocking_threads() {
    let server = Running::start(
        folder(),
        &format!("[server]\nworkers = 1\nblocking_threads = 0\n{}", site("browse = true")),
    );
    server.folder.write(
        "www/list/x.txt",
        "a text that is long enough to be encoded ".repeat(100),
    );
    server.folder.sparse("www/large.bin", 3 << 20);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "root");
    assert_eq!(client.get("/large.bin").body.len(), 3 << 20);
    client
        .fetch("GET /list/x.txt", &["Accept-Encoding: br"])
        .expect("encoded", 200, &["Content-Encoding: br"]);
    client.get("/list/").expect("a listing", 200, &[]);
    client.get("/none").expect("missing", 404, &[]);
}

over_http3! {
    files_are_served_without_blocking_threads,
}
