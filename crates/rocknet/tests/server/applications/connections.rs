//! Connections to applications: kept connections, and balancing over several applications.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::support::fastcgi::{self, Peer, ReceivedRequest, write_to};
use super::super::support::running::site;
use super::super::support::{Client, Running};
use super::{KEYS, folder, mirror, peer, peer_at};

over_http3! {
    connections_are_kept_if_configured,
    a_connection_kept_by_one_worker_serves_another,
    requests_are_balanced_and_a_failed_application_is_skipped,
}

#[test]
fn connections_are_kept_if_configured() {
    for (keep, expected) in [("", 6), (", keep = 2", 2)] {
        let folder = folder();
        let peer = peer("fastcgi", &folder, mirror);
        let server = Running::site(folder, &format!("fastcgi = {{ to = \"unix:app.sock\"{keep} }}"));
        // Idle connections are kept for one second. If a busy machine pauses for longer, the attempt is repeated.
        let found = (0..50).find_map(|_| {
            let (begun, before) = (std::time::Instant::now(), peer.connections());
            let mut client = server.connect();
            // A POST request must not be sent twice, so it gets a new connection even if one is kept.
            for line in ["GET /", "GET /a", "GET /b", "POST /", "GET /", "GET /c"] {
                assert_eq!(client.fetch(line, &[]).status, 200);
            }
            (begun.elapsed() < Duration::from_millis(900)).then(|| peer.connections() - before)
        });
        assert_eq!(found, Some(expected), "{keep}");
    }
}

#[test]
fn requests_are_balanced_and_a_failed_application_is_skipped() {
    for key in KEYS {
        let folder = folder();
        let name = |name: &'static str| move |_: &ReceivedRequest| format!("A: b\r\n\r\n{name}").into_bytes();
        let _one = peer_at(key, &folder, "one.sock", name("one"));
        let _two = peer_at(key, &folder, "two.sock", name("two"));
        let all = "[\"unix:one.sock\", \"unix:gone.sock\", \"unix:two.sock\"]";
        let keys = format!("{key} = {{ to = {all}, balance = \"round_robin\", fails = 2, fail_time = \"1m\" }}");
        let server = Running::site(folder, &keys);
        let mut client = server.connect();
        let mut counts = [0, 0];
        for _ in 0..40 {
            match client.get("/").text().as_str() {
                "one" => counts[0] += 1,
                "two" => counts[1] += 1,
                other => panic!("{key}: {other}"),
            }
        }
        // Two requests failed over from the missing application to another one. Then the missing application was out
        // of rotation.
        assert!(counts[0] >= 18 && counts[1] >= 18, "{key}: {counts:?}");
    }
}

/// Starts an application that serves one connection until that connection is closed, and only then the next one, as a
/// single process does.
fn one_at_a_time(socket: &std::path::Path) {
    let alone = Arc::new(Mutex::new(()));
    Peer::raw(socket, move |mut stream| {
        let _turn = alone.lock().expect("a turn");
        let mut is_complete = false;
        while let Ok(Some((kind, content))) = fastcgi::record(&mut stream) {
            // An empty record of type 5 (`FCGI_STDIN`) ends a request.
            is_complete |= kind == 5 && content.is_empty();
            if std::mem::take(&mut is_complete) {
                write_to(&mut stream, fastcgi::response(b"A: b\r\n\r\nhello"));
            }
        }
    });
}

#[test]
fn kept_connections_do_not_starve_clients() {
    let folder = folder();
    one_at_a_time(&folder.path("app.sock"));
    let server = Running::site(
        folder,
        "fastcgi = { to = \"unix:app.sock\", keep = 8 }\nlimits = { answer_timeout = \"10s\" }",
    );
    let address = server.address();
    // More clients than application processes send requests continuously.
    let clients: Vec<_> = (0..6)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::to(address);
                (0..40).all(|_| client.get("/").status == 200)
            })
        })
        .collect();
    for client in clients {
        assert!(client.join().expect("a client"), "a client got no response");
    }
}

#[test]
fn a_connection_kept_by_one_worker_serves_another() {
    let folder = folder();
    let peer = peer("fastcgi", &folder, mirror);
    let keys = site("fastcgi = { to = \"unix:app.sock\", keep = 8 }");
    let server = Running::start(
        folder,
        &format!("[server]\nworkers = 3\nevents = {{ wait = \"20ms\" }}\n{keys}"),
    );
    // The kernel distributes the clients over the workers. They stay connected, because a worker whose last client
    // disconnects closes the idle connections to applications.
    let mut clients: Vec<_> = (0..12).map(|_| server.connect()).collect();
    // The clients send requests one after the other, so one connection to the application suffices. A further one is
    // opened only if the first was closed after an idle second.
    let has_sufficed = (0..20).fold(false, |has_sufficed, _| {
        let before = peer.connections();
        for client in &mut clients {
            assert_eq!(client.get("/x").status, 200);
        }
        has_sufficed | (peer.connections() <= before + 1)
    });
    assert!(has_sufficed, "{} connections", peer.connections());
}
