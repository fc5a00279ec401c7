//! Configuration reloads: a configuration is applied completely or not at all, and no connection is cut.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use super::support::client::request;
use super::support::handlers::{Deferred, Echo};
use super::support::running::mount;
use super::support::{Client, DEADLINE, Folder, Running};

fn folder() -> Folder {
    Folder::with(&[("a/index.html", "a"), ("b/index.html", "b"), ("a/only-a.txt", "only a")])
}

/// Returns a site that serves one of the folders, on these listeners.
fn text(root: &str, listen: &[&str]) -> String {
    let listen: Vec<String> = listen.iter().map(|place| format!("\"{place}\"")).collect();
    format!("[site.default]\nroot = \"{root}\"\nlisten = [{}]\n", listen.join(", "))
}

/// Listening address on loopback, with a port that the kernel chooses.
const HERE: &str = "127.0.0.1:0";
/// Another listening address on loopback, with a port that the kernel chooses.
const THERE: &str = "127.0.0.2:0";

/// Repeats a request until it returns `expected`, because workers apply a new configuration with a short delay.
#[track_caller]
fn check(what: &str, expected: &str, mut fetch: impl FnMut() -> String) {
    let started = Instant::now();
    loop {
        let found = fetch();
        if found == expected {
            return;
        }
        assert!(
            started.elapsed() < DEADLINE,
            "{what}: still {found:?}, not {expected:?}"
        );
    }
}

/// Requests the home page on a new connection. Returns the text of the page, or of the error: the request can fail,
/// because the kernel resets connections that wait at a listening socket when the socket is closed.
fn received(server: &Running) -> String {
    let fetch = || -> io::Result<String> {
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(request("GET /", &["Connection: close"]).as_bytes())?;
        io::read_to_string(stream)
    };
    match fetch() {
        Ok(response) => response.rsplit("\r\n").next().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_open_connection_gets_the_new_configuration_at_its_next_request() {
    let server = Running::start(folder(), &text("a", &[HERE]));
    let mut client = server.connect();
    let address = server.address();
    for root in ["b", "a", "b"] {
        // The worker caches this response for the old configuration. The new one must not use it.
        client.get("/only-a.txt");
        server.reload(&text(root, &[HERE])).expect("a good configuration");
        check("an open connection", root, || client.get("/").text());
        check("a new connection", root, || server.get("/").text());
        let status = if root == "a" { 200 } else { 404 };
        client.get("/only-a.txt").expect(root, status, &[]);
        assert_eq!(server.address(), address, "the listener must be kept");
    }
    server
        .reload(&format!("{}headers = {{ \"X-New\" = \"yes\" }}\n", text("b", &[HERE])))
        .expect("a good configuration");
    check("a field", "yes", || {
        client.get("/").field("X-New").unwrap_or_default().to_owned()
    });
    let named = "[site.\"named.example\"]\nroot = \"a\"\nlisten = \"http://127.0.0.1:0\"\n";
    server
        .reload(&format!("{named}{}", text("b", &[HERE])))
        .expect("a good configuration");
    check("another site", "a", || {
        client.fetch("GET /", &["Host: named.example"]).text()
    });
    assert_eq!(client.get("/").text(), "b");
}

#[test]
fn no_connection_is_cut_under_load() {
    const CLIENTS: usize = 4;
    const RELOADS: u32 = 40;
    let server = Running::start_with(folder(), &text("a", &[HERE]), vec![mount("/echo/", Echo)]);
    server.folder.write("a/large.bin", vec![1; 500_000]);
    server.folder.write("b/large.bin", vec![2; 500_000]);
    let (over, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (server, over, rounds) = (&server, &over, &rounds);
            scope.spawn(move || {
                let mut kept = server.connect();
                while !over.load(Ordering::Relaxed) {
                    let response = kept.get("/");
                    response.expect("a kept connection", 200, &["!Connection"]);
                    assert!(matches!(&*response.text(), "a" | "b"), "{response:?}");
                    let large = kept.get("/large.bin").body;
                    assert!(
                        large == [1; 500_000] || large == [2; 500_000],
                        "a large response of two halves"
                    );
                    let content = format!("from {number}");
                    let length = format!("Content-Length: {}", content.len());
                    kept.send(request("POST /echo/x", &[&length]) + &content);
                    assert_eq!(kept.response().text(), content);
                    server.get("/").expect("a new connection", 200, &[]);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut reloads = 0;
        let started = Instant::now();
        // Each configuration serves a request before the next reload.
        while reloads < RELOADS && started.elapsed() < DEADLINE {
            if rounds.load(Ordering::Relaxed) > reloads {
                let root = if reloads.is_multiple_of(2) { "b" } else { "a" };
                server.reload(&text(root, &[HERE])).expect("a good configuration");
                reloads += 1;
            }
            std::thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(reloads, RELOADS, "not all reloads were made in time");
    });
}

#[test]
fn a_response_in_progress_is_completed() {
    let (handler, mut waiting) = Deferred::new();
    let server = Running::start_with(folder(), &text("a", &[HERE]), vec![mount("/waits/", handler)]);
    let mut client = server.connect();
    client.send(request("GET /waits/x", &[]));
    let incoming = waiting.next();
    server.reload(&text("b", &[HERE])).expect("a good configuration");
    check("the new configuration", "b", || server.get("/").text());
    assert!(incoming.respond("from before"), "the exchange was dropped");
    assert_eq!(client.response().text(), "from before");
    assert_eq!(client.get("/").text(), "b");
}

#[test]
fn an_invalid_configuration_changes_nothing() {
    let server = Running::start(folder(), &text("a", &[HERE]));
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "a");
    let address = server.address();
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held_at = held.local_addr().expect("its address").to_string();
    for (what, text) in [
        ("no TOML", "[site.default\n".to_owned()),
        ("an unknown key", text("b", &[HERE]) + "colour = \"red\"\n"),
        ("a wrong value", text("b", &[HERE]) + "browse = \"perhaps\"\n"),
        (
            "two sites of one name",
            text("b", &[HERE]) + "[site.\"127.0.0.1:0\"]\nroot = \"b\"\n",
        ),
        ("an address that is taken", text("b", &[HERE, &held_at])),
        ("an address of another machine", text("b", &[HERE, "192.0.2.1:0"])),
        (
            "a log that cannot be opened",
            text("b", &[HERE]) + "log = { access = \"/nowhere/at/all/access.log\" }\n",
        ),
        (
            "an error log that cannot be opened",
            "[log]\nerrors = \"/nowhere/at/all/error.log\"\n".to_owned() + &text("b", &[HERE]),
        ),
    ] {
        assert!(server.reload(&text).is_err(), "{what}: accepted");
        assert_eq!(client.get("/").text(), "a", "{what}");
        assert_eq!(server.get("/").text(), "a", "{what}");
        assert_eq!(server.address(), address, "{what}");
    }
    server
        .reload(&text("b", &[HERE]))
        .expect("a good configuration after bad ones");
    check("a good configuration after bad ones", "b", || client.get("/").text());
}

#[test]
fn listeners_are_added_and_removed() {
    let (handler, mut waiting) = Deferred::new();
    let server = Running::start_with(folder(), &text("a", &[HERE]), vec![mount("/waits/", handler)]);
    let here = server.address();
    server.reload(&text("a", &[HERE, THERE])).expect("another listener");
    let both = server.addresses();
    assert_eq!(
        (both.len(), both[0]),
        (2, here),
        "the first listener must keep its address"
    );
    let there = both[1];
    let mut idle = Client::to(there);
    assert_eq!(idle.get("/").text(), "a");
    let mut kept = Client::to(here);
    assert_eq!(kept.get("/").text(), "a");
    let mut busy = Client::to(there);
    busy.send(request("GET /waits/x", &[]));
    let incoming = waiting.next();

    server.reload(&text("b", &[HERE])).expect("a removed listener");
    assert_eq!(server.addresses(), [here]);
    idle.assert_closed("idle on a listener that is gone");
    check("the other listener", "b", || kept.get("/").text());
    assert!(incoming.respond("finished"), "the exchange was cut with its listener");
    let response = busy.response();
    assert_eq!(
        response.expect("in flight", 200, &["Connection: close"]).text(),
        "finished"
    );
    busy.assert_closed("in flight");
    check("nothing listens there", "refused", || match TcpStream::connect(there) {
        Ok(_) => "taken".to_owned(),
        Err(_) => "refused".to_owned(),
    });

    server.reload(&text("a", &[THERE])).expect("another listener instead");
    let there = server.address();
    assert_eq!(Client::to(there).get("/").text(), "a");
    kept.assert_closed("idle on a listener that is gone");
}

#[test]
fn new_limits_apply_to_open_connections() {
    let server = Running::start_with(folder(), &text("a", &[HERE]), vec![mount("/echo/", Echo)]);
    let mut client = server.connect();
    let post = request("POST /echo/x", &["Content-Length: 5"]) + "hello";
    client.send(&post);
    assert_eq!(client.response().text(), "hello");
    server
        .reload(&format!(
            "[limits]\nbody_size = 4\ntarget_size = 100\n{}",
            text("b", &[HERE])
        ))
        .expect("limits");
    check("the new configuration", "b", || client.get("/").text());
    client.send(&post);
    client.response().expect("a lower limit", 413, &["Connection: close"]);
}

#[test]
fn a_port_moves_from_one_address_to_all_and_back() {
    for workers in [1, 2] {
        let server = format!("[server]\nworkers = {workers}\n");
        let one = |port: u16| format!("{server}[site.default]\nroot = \"a\"\nlisten = \"127.0.0.1:{port}\"\n");
        // If another process uses the port on another address of this machine, another port is tried.
        let moved = (0..PORTS_TRIED).find_map(|_| {
            let running = Running::start(folder(), &one(0));
            let port = running.address().port();
            running.reload(&one(port)).expect("the same port, by its number");
            let all = format!("{server}[site.default]\nroot = \"b\"\nlisten = {port}\n");
            running.reload(&all).ok().map(|()| (running, port))
        });
        let (running, port) = moved.expect("from one address to all");
        check("all addresses", "b", || {
            Client::to(([127, 0, 0, 2], port).into()).get("/").text()
        });
        check("all addresses", "b", || received(&running));
        running.reload(&one(port)).expect("from all addresses to one");
        check("one address", "a", || received(&running));
        check("no other", "refused", || {
            match TcpStream::connect(("127.0.0.2", port)) {
                Ok(_) => "taken".to_owned(),
                Err(_) => "refused".to_owned(),
            }
        });
    }
}

#[test]
fn no_connection_is_reset_while_a_port_moves() {
    const MOVES: usize = 20;
    for workers in [1, 2] {
        let text = |listen: &str| {
            format!("[server]\nworkers = {workers}\n[site.default]\nroot = \"a\"\nlisten = \"http://{listen}\"\n")
        };
        let moved = (0..PORTS_TRIED).find_map(|_| {
            let running = Running::start(folder(), &text("127.0.0.1:0"));
            let port = running.address().port();
            running.reload(&text(&port.to_string())).ok().map(|()| (running, port))
        });
        let (running, port) = moved.expect("a port that is free at all addresses");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let (over, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        Client::to(address).get("/").expect("a new connection", 200, &[]);
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let started = Instant::now();
            for number in 0..MOVES {
                let before = rounds.load(Ordering::Relaxed);
                let listen = if number % 2 == 0 {
                    address.to_string()
                } else {
                    port.to_string()
                };
                running.reload(&text(&listen)).expect("a valid configuration");
                while rounds.load(Ordering::Relaxed) < before + 10 && started.elapsed() < DEADLINE {
                    std::thread::yield_now();
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn connections_of_a_removed_address_outlast_a_stop() {
    let (handler, mut waiting) = Deferred::new();
    // A stop would cut connections at once.
    let limits = "[limits]\nshutdown = \"1ms\"\n";
    let text = |listen: &[&str]| limits.to_owned() + &text("a", listen);
    let server = Running::start_with(folder(), &text(&[HERE, THERE]), vec![mount("/waits/", handler)]);
    let mut busy = Client::to(server.addresses()[1]);
    busy.send(request("GET /waits/x", &[]));
    let incoming = waiting.next();
    server.reload(&text(&[HERE])).expect("a removed listener");
    assert_eq!(server.server().status().snapshots, 2);
    // Later reloads free the old configuration once the removed listener needs it no longer.
    check("only the request in progress has the old configuration", "2", || {
        server.reload(&text(&[HERE])).expect("the same configuration");
        server.server().status().snapshots.to_string()
    });
    assert!(incoming.respond("finished"), "the exchange was cut with its listener");
    let response = busy.response();
    assert_eq!(
        response.expect("in flight", 200, &["Connection: close"]).text(),
        "finished"
    );
    busy.assert_closed("in flight");
    check("the old configuration is freed", "1", || {
        server.server().status().snapshots.to_string()
    });
}

/// Number of ports to try, more than other processes are likely to use.
const PORTS_TRIED: usize = 16;

#[test]
fn a_new_connection_limit_applies_immediately() {
    let limited = |most: usize| format!("[limits]\nconnections = {most}\n{}", text("a", &[HERE]));
    let server = Running::start(folder(), &limited(1));
    let mut first = server.connect();
    assert_eq!(first.get("/").text(), "a");
    let mut second = server.connect();
    second.send(request("GET /", &[]));
    // The second connection is served only after the reload, because the old limit was reached.
    server.reload(&limited(2)).expect("more connections");
    assert_eq!(second.response().text(), "a");
    server.reload(&limited(1)).expect("fewer connections");
    for client in [&mut first, &mut second] {
        assert_eq!(client.get("/").text(), "a", "open connections remain");
    }
    drop(first);
    let mut third = server.connect();
    third.send(request("GET /", &[]));
    let open = || server.server().status().connections_open.to_string();
    check("the first connection is closed", "1", open);
    // If the third connection were accepted, that would happen before the worker sends this response.
    assert_eq!(second.get("/").text(), "a");
    assert_eq!(open(), "1", "one connection too many was accepted");
    drop(second);
    assert_eq!(third.response().text(), "a");
}

#[test]
fn a_removed_address_can_be_added_again_immediately() {
    for workers in [1, 2] {
        let server = format!("[server]\nworkers = {workers}\n");
        let sites = |listen: &[&str]| server.clone() + &text("a", listen);
        let running = Running::start(folder(), &sites(&[HERE]));
        running
            .reload(&sites(&[HERE, UNUSED_ADDRESS]))
            .expect("another listener");
        let there = running
            .addresses()
            .into_iter()
            .find(|address| address.ip() != running.addresses()[0].ip());
        let there = there.expect("the other listener").to_string();
        for turn in 0..50 {
            running.reload(&sites(&[HERE])).expect("a removed listener");
            let back = running.reload(&sites(&[HERE, &there]));
            assert!(back.is_ok(), "{back:?} in round {turn}");
        }
    }
}

/// Address that no other test uses, so that its port remains free between two reloads.
const UNUSED_ADDRESS: &str = "127.0.0.77:0";
