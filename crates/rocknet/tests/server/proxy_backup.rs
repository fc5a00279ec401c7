//! Backup upstreams: they get requests only while no other upstream is available.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::proxy_balance::{balanced, held, until};
use super::support::client::request;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{Client, DEADLINE};

/// Starts an upstream that responds with its name while the returned flag is true, and otherwise closes each connection
/// without a response.
fn switchable(name: &'static str) -> (Upstream, Arc<AtomicBool>) {
    let is_healthy = Arc::new(AtomicBool::new(true));
    let healthy = Arc::clone(&is_healthy);
    let upstream = Upstream::start(move |_, stream: &mut TcpStream| {
        if !healthy.load(Ordering::SeqCst) {
            return Next::Close;
        }
        write_to(stream, ok(name));
        Next::Keep
    });
    (upstream, is_healthy)
}

/// Returns the value of the key `to` with the upstreams that share the load, and a backup.
fn with_backup(share: &[&Upstream], backup: &Upstream) -> String {
    let share: String = share
        .iter()
        .map(|upstream| format!("\"{}\", ", upstream.url()))
        .collect();
    format!("[{share}{{ url = \"{}\", backup = true }}]", backup.url())
}

fn expect_all(client: &mut Client, count: usize, expected: &str) {
    for _ in 0..count {
        assert_eq!(client.get("/").text(), expected);
    }
}

#[test]
fn a_backup_is_used_only_while_no_other_upstream_is_available() {
    for balance in ["random_two", "round_robin", "least_conn", "ip_hash", "uri"] {
        let ((one, one_is_healthy), (two, two_is_healthy)) = (switchable("share"), switchable("share"));
        let backup = Upstream::responding_with(ok("backup"));
        let to = with_backup(&[&one, &two], &backup);
        let server = balanced(
            &to,
            &format!("balance = \"{balance}\", fails = 1, fail_time = \"500ms\""),
        );
        let mut client = server.connect();
        expect_all(&mut client, 30, "share");
        // The backup gets no request while another upstream is available, not even a retry.
        one_is_healthy.store(false, Ordering::SeqCst);
        expect_all(&mut client, 30, "share");
        two_is_healthy.store(false, Ordering::SeqCst);
        // Both upstreams are tried and taken out of rotation, which can cost a client a 502. Then the backup is used.
        until(&mut client, |status, text| {
            assert!(status == 200 || status == 502, "{status}");
            text == "backup"
        });
        let found = (0..20).filter(|_| client.get("/").text() == "backup").count();
        assert!(found >= 18, "{balance}: {found} of 20");
        one_is_healthy.store(true, Ordering::SeqCst);
        until(&mut client, |_, text| text == "share");
        expect_all(&mut client, 10, "share");
    }
}

#[test]
fn a_request_refused_by_the_only_upstream_goes_to_the_backup() {
    let backup = Upstream::responding_with(ok("backup"));
    let to = format!(
        "[\"http://127.0.0.1:1\", {{ url = \"{}\", backup = true }}]",
        backup.url()
    );
    // With `fails = 0` no upstream is ever taken out of rotation, so each request first tries port 1, where nothing
    // listens.
    let server = balanced(&to, "fails = 0");
    let mut client = server.connect();
    expect_all(&mut client, 5, "backup");
    assert_eq!(
        client.fetch("POST /", &[]).text(),
        "backup",
        "no upstream has received the request, so it can be sent to the backup"
    );
}

#[test]
fn health_checks_switch_to_the_backup_and_back() {
    let is_healthy = Arc::new(AtomicBool::new(true));
    let healthy = Arc::clone(&is_healthy);
    let share = Upstream::start(move |incoming, stream: &mut TcpStream| {
        let is_unhealthy = incoming.line.starts_with("GET /up ") && !healthy.load(Ordering::SeqCst);
        write_to(
            stream,
            match is_unhealthy {
                true => "HTTP/1.1 503 Ill\r\nContent-Length: 0\r\n\r\n".to_owned(),
                false => ok("share"),
            },
        );
        Next::Keep
    });
    let backup = Upstream::responding_with(ok("backup"));
    let health = "health = { path = \"/up\", interval = \"100ms\", rise = 1, fall = 1 }";
    let server = balanced(&with_backup(&[&share], &backup), &format!("{health}, sticky = \"at\""));
    let mut client = server.connect();
    until(&mut client, |_, text| text == "share");
    is_healthy.store(false, Ordering::SeqCst);
    until(&mut client, |status, text| {
        assert_eq!(status, 200);
        text == "backup"
    });
    let cookie = client.get("/").field("Set-Cookie").expect("a cookie").to_owned();
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a pair"));
    is_healthy.store(true, Ordering::SeqCst);
    until(&mut client, |_, text| text == "share");
    expect_all(&mut client, 10, "share");
    // A client with a sticky cookie for the backup is still sent to the backup.
    for _ in 0..10 {
        assert_eq!(client.fetch("GET /", &[&cookie]).text(), "backup");
    }
}

#[test]
fn requests_wait_for_full_upstreams_instead_of_using_the_backup() {
    let (share, arrivals, go) = held();
    let backup = Upstream::responding_with(ok("backup"));
    let server = balanced(&with_backup(&[&share], &backup), "connections = 1, queue = \"20s\"");
    let (mut one, mut two) = (server.connect(), server.connect());
    one.send(request("GET /", &[]));
    arrivals.recv_timeout(DEADLINE).expect("the first request");
    two.send(request("GET /", &[]));
    assert!(!two.has_something_within(Duration::from_millis(100)));
    go.send(()).expect("a server that waits");
    assert_eq!(one.response().text(), "held");
    arrivals.recv_timeout(DEADLINE).expect("the second request");
    go.send(()).expect("a server that waits");
    assert_eq!(two.response().text(), "held");
}

over_http3! {
    a_request_refused_by_the_only_upstream_goes_to_the_backup,
    health_checks_switch_to_the_backup_and_back,
    requests_wait_for_full_upstreams_instead_of_using_the_backup,
}
