//! Servers without free file descriptors: open connections are served, new ones wait, and no file is reported missing.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};

use crate::SMALL;
use crate::child::{Server, Setup};

#[test]
fn connections_wait_until_a_descriptor_is_free() {
    // The result is the same if more connections are configured than descriptors allow.
    for tables in ["", "[limits]\nconnections = 1000"] {
        check_more_clients_than_descriptors(tables);
    }
}

fn check_more_clients_than_descriptors(tables: &str) {
    const CLIENTS: usize = 100;
    /// Maximum number of descriptors of the server, fewer than the clients need.
    const LIMIT: usize = 64;
    let script = format!("ulimit -n {LIMIT}; exec \"$@\"");
    let setup = Setup::new().tables(tables).under(&["sh", "-c", &script, "sh"]);
    for number in 0..CLIENTS {
        setup.file(&format!("{number}.txt"), format!("file {number}"));
    }
    let mut server = setup.start();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    let open = server
        .wait_for("some connections are accepted", |status| status.open >= 16)
        .open as usize;
    assert!(open < CLIENTS);
    for (number, client) in clients.iter_mut().enumerate() {
        client
            .send(format!(
                "GET /{number}.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            ))
            .expect("sent");
    }
    // Each accepted connection is closed after its response, which frees a descriptor for the next one.
    for (number, client) in clients.iter_mut().enumerate() {
        let response = client
            .response()
            .unwrap_or_else(|error| panic!("client {number}: {error}; {}", server.errors()));
        assert_eq!(
            response.body,
            format!("file {number}").as_bytes(),
            "client {number}: {}",
            response.head
        );
    }
    drop(clients);
    server.wait_for("connections close", |status| status.open == 0);
}

#[test]
fn without_descriptors_open_connections_are_served_and_files_get_503() {
    let setup = Setup::new();
    for name in ["first.txt", "second.txt"] {
        setup.file(name, name);
    }
    let mut server = setup.start();
    let mut client = server.connect();
    assert_eq!(client.get("/small.txt").body, SMALL);
    let before = prlimit(
        Some(server.pid()),
        Resource::Nofile,
        Rlimit {
            current: Some(0),
            maximum: hard_limit(&server),
        },
    )
    .expect("the right to limit a child");

    // No descriptor is free now, neither for a file nor for an accepted socket.
    let mut waiting = server.connect();
    waiting
        .send("GET /second.txt HTTP/1.1\r\nHost: h\r\n\r\n")
        .expect("the kernel accepts it");
    let began = Instant::now();
    let mut rounds = 0;
    // The loop lasts longer than the time for which a cached entry is served without checking the file on disk.
    while began.elapsed() < Duration::from_secs(2) {
        let kept = client.get("/small.txt");
        assert_eq!(kept.status, 200, "round {rounds}, after {:?}", began.elapsed());
        let unknown = client.get(if rounds % 2 == 0 { "/first.txt" } else { "/missing.txt" });
        assert_eq!(unknown.status, 503, "round {rounds}: {}", unknown.head);
        rounds += 1;
    }
    assert_eq!(
        server.status().open,
        1,
        "a connection was accepted without a descriptor"
    );

    prlimit(Some(server.pid()), Resource::Nofile, before).expect("the right to limit a child");
    assert_eq!(waiting.response().expect("a response").body, b"second.txt");
    assert_eq!(client.get("/first.txt").body, b"first.txt");
    assert_eq!(client.get("/missing.txt").status, 404);
    let lines = server.errors().lines().count();
    assert!(
        lines < 20,
        "{lines} lines were logged for {rounds} requests during one shortage"
    );
}

/// Returns the hard limit on the descriptors of the server; `None` if it is unlimited.
fn hard_limit(server: &Server) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/limits", server.pid().as_raw_nonzero())).expect("limits");
    let line = text
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("the limit of files");
    line.split_whitespace().nth(4).and_then(|hard| hard.parse().ok())
}
