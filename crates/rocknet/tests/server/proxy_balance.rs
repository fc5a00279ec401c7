//! Load balancing over several upstreams: selection, pauses after failures, concurrency limits and queues.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use super::support::client::request;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{Client, DEADLINE, Folder, Running};

/// Starts upstreams that respond with their number.
pub fn numbered(count: usize) -> Vec<Upstream> {
    (0..count)
        .map(|number| Upstream::responding_with(ok(&number.to_string())))
        .collect()
}

/// Returns a TOML list of the URLs of upstreams.
pub fn list(all: &[Upstream]) -> String {
    let urls: Vec<String> = all.iter().map(|upstream| format!("\"{}\"", upstream.url())).collect();
    format!("[{}]", urls.join(", "))
}

/// Starts a server that proxies to `to`, a TOML list of upstreams, with further keys of the proxy.
pub fn balanced(to: &str, keys: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = {to}, {keys} }}\n"
    );
    Running::start(Folder::with(&[]), &text)
}

/// Sends requests one after the other, and returns the joined texts of the responses.
fn responses(client: &mut Client, count: usize, fields: &[&str]) -> String {
    (0..count).map(|_| client.fetch("GET /", fields).text()).collect()
}

/// Sends requests until the status and text of a response satisfy `wanted`.
pub fn until(client: &mut Client, wanted: impl Fn(u16, &str) -> bool) {
    let began = Instant::now();
    loop {
        let response = client.get("/");
        if wanted(response.status, &response.text()) {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "still {response:?}");
        std::thread::yield_now();
    }
}

#[test]
fn requests_are_distributed_by_weight() {
    let all = numbered(3);
    let server = balanced(&list(&all), "balance = \"round_robin\"");
    assert_eq!(responses(&mut server.connect(), 7, &[]), "0120120");
    let weighted = format!("[\"{}\", {{ url = \"{}\", weight = 3 }}]", all[0].url(), all[1].url());
    let server = balanced(&weighted, "balance = \"round_robin\"");
    let found = responses(&mut server.connect(), 100, &[]);
    // The second upstream has three quarters of the weight.
    let second = found.matches('1').count();
    assert!((71..=79).contains(&second), "{found}");
    // Without concurrent load, these methods also distribute requests by weight. Sequential requests cause no
    // concurrent load.
    for balance in ["least_conn", "random_two"] {
        let server = balanced(&weighted, &format!("balance = \"{balance}\""));
        let found = responses(&mut server.connect(), 200, &[]);
        let first = found.matches('0').count();
        assert!((20..=80).contains(&first), "{balance}: {found}");
    }
    // By default upstreams are chosen at random, and each gets its share.
    let server = balanced(&list(&all), "fails = 3");
    let found = responses(&mut server.connect(), 200, &[]);
    for number in ["0", "1", "2"] {
        assert!(found.matches(number).count() > 20, "{found}");
    }
}

#[test]
fn a_silent_close_is_retried_if_that_is_safe() {
    let closes = Upstream::start(|_, _| Next::Close);
    let resets = Upstream::start(|_, stream| {
        set_socket_linger(stream, Some(Duration::ZERO)).expect("an option of the socket");
        Next::Close
    });
    for lost in [closes, resets] {
        let all = [lost, Upstream::responding_with(ok("well"))];
        let server = balanced(&list(&all), "balance = \"round_robin\", fails = 100");
        let mut client = server.connect();
        for method in ["GET", "PUT", "DELETE"] {
            for _ in 0..4 {
                assert_eq!(client.fetch(&format!("{method} /"), &[]).text(), "well", "{method}");
            }
        }
        // A request that may have had an effect is not sent again.
        let found: Vec<u16> = (0..4).map(|_| client.fetch("POST /", &[]).status).collect();
        assert!(found.contains(&502) && found.contains(&200), "{found:?}");
    }
}

#[test]
fn hashed_keys_stay_with_their_upstream() {
    let all = numbered(4);
    for (balance, line, fields) in [
        ("ip_hash", "GET /", &[][..]),
        ("uri", "GET /a?x", &[]),
        ("header:X-User", "GET /", &["X-User: bob"]),
    ] {
        let server = balanced(&list(&all), &format!("balance = \"{balance}\""));
        let mut client = server.connect();
        let first = client.fetch(line, fields).text();
        for _ in 0..10 {
            assert_eq!(client.fetch(line, fields).text(), first, "{balance}");
        }
        // Another server with the same configuration chooses the same upstream.
        let server = balanced(&list(&all), &format!("balance = \"{balance}\""));
        assert_eq!(server.connect().fetch(line, fields).text(), first, "{balance}");
    }
    let server = balanced(&list(&all), "balance = \"uri\"");
    let mut client = server.connect();
    let found: String = (0..150)
        .map(|number| client.get(&format!("/{number}")).text())
        .collect();
    for number in ["0", "1", "2", "3"] {
        assert!(found.contains(number), "{found}");
    }
}

/// Starts an upstream that reports each request, and responds when the test sends a signal. Returns the upstream, the
/// receiver of the reports, and the sender of the signals.
pub fn held() -> (Upstream, Receiver<()>, Sender<()>) {
    let (arrived, arrivals) = mpsc::channel();
    let (go, signal) = mpsc::channel::<()>();
    let signal = Arc::new(Mutex::new(signal));
    let upstream = Upstream::start(move |_, stream| {
        let _ = arrived.send(());
        let _ = signal.lock().unwrap_or_else(PoisonError::into_inner).recv();
        write_to(stream, ok("held"));
        Next::Keep
    });
    (upstream, arrivals, go)
}

#[test]
fn the_least_loaded_upstream_is_chosen() {
    let (busy, arrivals, go) = held();
    let idle = Upstream::responding_with(ok("idle"));
    for balance in ["least_conn", "random_two"] {
        let to = format!("[\"{}\", \"{}\"]", busy.url(), idle.url());
        let server = balanced(&to, &format!("balance = \"{balance}\""));
        let mut waiting = server.connect();
        // Requests are sent until one is in progress at the busy upstream. Others can go to the idle one.
        let mut is_held = false;
        while !is_held {
            waiting.send(request("GET /", &[]));
            let sent = Instant::now();
            let has_response = loop {
                is_held = arrivals.try_recv().is_ok();
                let has_response = !is_held && waiting.has_something_within(Duration::from_millis(10));
                if is_held || has_response {
                    break has_response;
                }
                assert!(sent.elapsed() < DEADLINE, "{balance}: the request reached no upstream");
            };
            if has_response {
                assert_eq!(waiting.response().text(), "idle");
            }
        }
        let mut client = server.connect();
        for _ in 0..10 {
            assert_eq!(client.get("/").text(), "idle", "{balance}");
        }
        go.send(()).expect("a server that waits");
        assert_eq!(waiting.response().text(), "held");
    }
}

#[test]
fn a_failed_upstream_is_paused_and_probed() {
    let (is_broken, connections) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (broken, count) = (Arc::clone(&is_broken), Arc::clone(&connections));
    let moody = Upstream::start(move |_, stream: &mut TcpStream| {
        count.fetch_add(1, Ordering::SeqCst);
        if !broken.load(Ordering::SeqCst) {
            write_to(stream, ok("moody"));
        }
        Next::Close
    });
    let steady = Upstream::responding_with(ok("steady"));
    let to = format!("[\"{}\", \"{}\"]", moody.url(), steady.url());
    let server = balanced(&to, "balance = \"round_robin\", fails = 2, fail_time = \"1s\"");
    let mut client = server.connect();
    // The requests are POST, because a GET would be retried at the other upstream.
    let failed = (0..12).filter(|_| client.fetch("POST /", &[]).status == 502).count();
    assert_eq!((failed, connections.load(Ordering::SeqCst)), (2, 2));
    is_broken.store(false, Ordering::SeqCst);
    until(&mut client, |status, text| {
        assert_eq!(status, 200);
        text == "moody"
    });
    let found = responses(&mut client, 10, &[]);
    assert_eq!(found.matches("moody").count(), 5, "{found}");
}

#[test]
fn a_recovered_upstream_gets_requests_gradually() {
    for balance in ["round_robin", "least_conn", "random_two"] {
        let is_broken = Arc::new(AtomicBool::new(true));
        let broken = Arc::clone(&is_broken);
        let back = Upstream::start(move |_, stream: &mut TcpStream| {
            if broken.load(Ordering::SeqCst) {
                return Next::Close;
            }
            write_to(stream, ok("b"));
            Next::Keep
        });
        let steady = Upstream::responding_with(ok("s"));
        let to = format!("[\"{}\", \"{}\"]", back.url(), steady.url());
        let keys = format!("balance = \"{balance}\", fails = 1, fail_time = \"100ms\", slow_start = \"1h\"");
        let server = balanced(&to, &keys);
        let mut client = server.connect();
        let began = Instant::now();
        while client.fetch("POST /", &[]).status != 502 {
            assert!(began.elapsed() < DEADLINE, "{balance}: no request failed");
        }
        is_broken.store(false, Ordering::SeqCst);
        until(&mut client, |_, text| text == "b");
        // At the start of `slow_start` the weight is a tenth, so the expected share is one eleventh.
        let found = responses(&mut client, 300, &[]).matches('b').count();
        assert!((5..=75).contains(&found), "{balance}: {found} of 300");
    }
}

#[test]
fn requests_wait_for_a_free_upstream() {
    let (upstream, arrivals, go) = held();
    let server = balanced(
        &list(std::slice::from_ref(&upstream)),
        "connections = 1, queue = \"20s\"",
    );
    let (mut one, mut two) = (server.connect(), server.connect());
    one.send(request("GET /", &[]));
    arrivals.recv_timeout(DEADLINE).expect("the first request");
    two.send(request("GET /", &[]));
    assert!(!two.has_something_within(Duration::from_millis(100)));
    assert!(
        arrivals.try_recv().is_err(),
        "a request was sent to an upstream that is at its limit"
    );
    go.send(()).expect("a server that waits");
    assert_eq!(one.response().text(), "held");
    arrivals.recv_timeout(DEADLINE).expect("the second request");
    go.send(()).expect("a server that waits");
    assert_eq!(two.response().text(), "held");
    // A client that disconnects also releases its permit.
    one.send(request("GET /", &[]));
    arrivals.recv_timeout(DEADLINE).expect("the third request");
    two.send(request("GET /", &[]));
    drop(one);
    go.send(()).expect("a server that waits");
    arrivals.recv_timeout(DEADLINE).expect("the fourth request");
    go.send(()).expect("a server that waits");
    assert_eq!(two.response().text(), "held");

    let server = balanced(
        &list(std::slice::from_ref(&upstream)),
        "connections = 1, queue = \"100ms\"",
    );
    let (mut one, mut two) = (server.connect(), server.connect());
    one.send(request("GET /", &[]));
    arrivals.recv_timeout(DEADLINE).expect("the first request");
    two.get("/").expect("no upstream has a free slot", 503, &[]);
    go.send(()).expect("a server that waits");
    assert_eq!(one.response().text(), "held");
}

#[test]
fn a_request_waits_for_the_only_available_upstream() {
    let (upstream, arrivals, go) = held();
    let to = format!("[\"{}\", \"http://127.0.0.1:1\"]", upstream.url());
    let server = balanced(&to, "connections = 1, queue = \"20s\", fails = 1, fail_time = \"1h\"");
    let (mut one, mut two) = (server.connect(), server.connect());
    // Sequential requests are sent until the missing upstream has been tried and is paused.
    for _ in 0..20 {
        one.send(request("GET /", &[]));
        arrivals.recv_timeout(DEADLINE).expect("a request");
        go.send(()).expect("a server that waits");
        assert_eq!(one.response().text(), "held");
    }
    one.send(request("GET /", &[]));
    arrivals.recv_timeout(DEADLINE).expect("a request");
    two.send(request("GET /", &[]));
    assert!(!two.has_something_within(Duration::from_millis(100)));
    go.send(()).expect("a server that waits");
    assert_eq!(one.response().text(), "held");
    arrivals.recv_timeout(DEADLINE).expect("the waiting request");
    go.send(()).expect("a server that waits");
    assert_eq!(two.response().text(), "held");
}

#[test]
fn routes_that_share_an_upstream_share_its_limit() {
    let (shared, arrivals, go) = held();
    let (other, others, free) = held();
    let mut text = String::from(
        "[server]\nworkers = 1\nevents = { wait = \"20ms\" }\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n",
    );
    let both = format!("[\"{}\", \"{}\"]", shared.url(), other.url());
    for (priority, to) in [("low", &format!("\"{}\"", shared.url())), ("high", &both)] {
        text.push_str(&format!(
            "[site.default.route.\"/{priority}/*\"]\npriority = \"{priority}\"\n\
             proxy = {{ to = {to}, connections = 1, queue = \"20s\" }}\n"
        ));
    }
    let server = Running::start(Folder::with(&[("www/index.html", "a page")]), &text);
    let mut page = server.connect();
    let mut clients = Vec::new();
    for path in ["/low/0", "/high/1", "/low/2", "/high/3"] {
        let mut client = server.connect();
        client.send(request(&format!("GET {path}"), &[]));
        // When these requests for a page have got responses, the server has also read the proxied request.
        for _ in 0..2 {
            assert_eq!(page.get("/").text(), "a page");
        }
        clients.push(client);
    }
    // The first request fills the shared upstream, so the second goes to the other one. The rest wait by priority.
    others.recv_timeout(DEADLINE).expect("a request");
    assert_eq!(other.last().line, "GET /high/1 HTTP/1.1");
    for expected in ["/low/0", "/high/3", "/low/2"] {
        arrivals.recv_timeout(DEADLINE).expect("a request");
        assert_eq!(shared.last().line, format!("GET {expected} HTTP/1.1"));
        go.send(()).expect("a server that waits");
    }
    free.send(()).expect("a server that waits");
    for client in &mut clients {
        assert_eq!(client.response().text(), "held");
    }
}

#[test]
fn routes_that_share_an_upstream_share_its_queue_by_priority() {
    let (upstream, arrivals, go) = held();
    let mut text = String::from(
        "[server]\nworkers = 1\nevents = { wait = \"20ms\" }\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n",
    );
    for priority in ["low", "normal", "high"] {
        text.push_str(&format!(
            "[site.default.route.\"/{priority}/*\"]\npriority = \"{priority}\"\n\
             proxy = {{ to = \"{}\", connections = 1, queue = \"20s\" }}\n",
            upstream.url()
        ));
    }
    let server = Running::start(Folder::with(&[("www/index.html", "a page")]), &text);
    let mut other = server.connect();
    let mut clients = Vec::new();
    for path in ["/low/0", "/low/1", "/low/2", "/normal/3", "/high/4", "/high/5"] {
        let mut client = server.connect();
        client.send(request(&format!("GET {path}"), &[]));
        // When these requests for a page have got responses, the server has also read the proxied request.
        for _ in 0..2 {
            assert_eq!(other.get("/").text(), "a page");
        }
        clients.push(client);
    }
    for expected in ["/low/0", "/high/4", "/high/5", "/normal/3", "/low/1", "/low/2"] {
        arrivals.recv_timeout(DEADLINE).expect("a request");
        assert_eq!(upstream.last().line, format!("GET {expected} HTTP/1.1"));
        go.send(()).expect("a server that waits");
    }
    for client in &mut clients {
        assert_eq!(client.response().text(), "held");
    }
}

#[test]
fn a_reload_changes_upstreams_without_cutting_requests() {
    let (old, arrivals, go) = held();
    let new = Upstream::responding_with(ok("new"));
    let text = |url: &str| {
        format!(
            "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = \"{url}\"\n"
        )
    };
    let server = Running::start(Folder::with(&[]), &text(&old.url()));
    let mut one = server.connect();
    one.send(request("GET /", &[]));
    arrivals.recv_timeout(DEADLINE).expect("a request");
    server.reload(&text(&new.url())).expect("a reload");
    let mut two = server.connect();
    until(&mut two, |_, text| text == "new");
    go.send(()).expect("a server that waits");
    assert_eq!(one.response().text(), "held");
    assert_eq!(one.get("/").text(), "new");
}

over_http3! {
    a_silent_close_is_retried_if_that_is_safe,
    requests_are_distributed_by_weight,
    hashed_keys_stay_with_their_upstream,
    the_least_loaded_upstream_is_chosen,
    a_failed_upstream_is_paused_and_probed,
    a_recovered_upstream_gets_requests_gradually,
    requests_wait_for_a_free_upstream,
    a_request_waits_for_the_only_available_upstream,
    routes_that_share_an_upstream_share_its_limit,
    a_reload_changes_upstreams_without_cutting_requests,
}
