//! Limits of requests (`limit`): which requests count together, refused and delayed requests, and reloads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::access::{auth, basic, fetch, over_http1, over_http2};
use super::metrics::value;
use super::support::client::request;
use super::support::handlers::Deferred;
use super::support::http2::Http2;
use super::support::running::mount;
use super::support::{Client, DEADLINE, Folder, Running};

/// Section `[server]` of the configurations. Clients name their address, as behind a proxy.
const SERVER: &str = "[server]\nworkers = 2\nblocking_threads = 2\nh2c = true\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
                      events = { wait = \"20ms\", connections = 16 }\n";

fn folder() -> Folder {
    Folder::with(&[
        ("index.html", "home"),
        ("in/index.html", "inner home"),
        ("in/page.html", "page"),
        ("429.html", "slow down"),
    ])
}

/// Returns a configuration with a site that has these keys.
fn text(keys: &str) -> String {
    format!("{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \".\"\n{keys}\n")
}

/// Returns the field that names a client.
fn from(address: &str) -> String {
    format!("X-Forwarded-For: {address}")
}

/// Sends GET requests from a client, and returns the statuses of the responses.
fn statuses(client: &mut Client, path: &str, fields: &[&str], count: usize) -> Vec<u16> {
    let get = |_| client.fetch(&format!("GET {path}"), fields).status;
    (0..count).map(get).collect()
}

#[test]
fn requests_above_the_limit_get_429_with_the_time_to_wait() {
    let server = Running::start(
        folder(),
        &text("limit = { rate = \"3/h\", burst = 4 }\nerrors = { 429 = \"/429.html\" }"),
    );
    let client = from("192.0.2.1");
    let mut http2 = Http2::to(server.address());
    // The first response is loaded from the disk, and the others are in the worker cache or come over HTTP/2.
    for _ in 0..2 {
        assert_eq!(over_http1(&server, "GET /", &[&client], "").text, "home");
        assert_eq!(over_http2(&mut http2, "GET /", &[&client], "").status, 200);
    }
    for got in fetch(&server, "GET /in/page.html", &[&client], "") {
        assert_eq!((got.status, &*got.text), (429, "slow down"));
        let retry_after: u64 = got.field("Retry-After").unwrap().parse().unwrap();
        assert!((1_190..=1_200).contains(&retry_after), "{retry_after}");
        assert_eq!(got.field("RateLimit-Policy"), Some("\"3/h\";q=4;w=4800"));
        assert_eq!(got.field("RateLimit"), Some(&*format!("\"3/h\";r=0;t={retry_after}")));
    }
    // Each client has a limit of its own. Addresses of an IPv6 /64 are one client.
    for (address, status) in [
        ("192.0.2.2", 200),
        ("2001:db8::1", 200),
        ("2001:db8::2", 200),
        ("2001:db8::3", 200),
        ("2001:db8::4", 200),
        ("2001:db8::5", 429),
        ("2001:db8:0:1::1", 200),
    ] {
        let got = over_http1(&server, "GET /", &[&from(address)], "");
        assert_eq!(got.status, status, "{address}");
    }
    let labels = "site=\"default\",route=\"/*\",limit=\"3/h\",key=\"{client.ip}\",effect=\"refused\"";
    assert_eq!(
        value(&server, &format!("rocknet_limited_requests_total{{{labels}}}")),
        Some(3.0)
    );
}

/// A request passes several routes if the file that is served belongs to another route than its path.
#[test]
fn a_request_counts_once_however_many_routes_it_passes() {
    let keys = "limit = \"4/h\"\nroute.\"/in/*\" = { headers = { X-In = \"yes\" } }\n\
                route.\"*.html\" = { headers = { X-Page = \"yes\" } }\nrule = [{ path = \"/old\", rewrite = \"/in/page.html\" }]";
    let server = Running::start(folder(), &text(keys));
    for (number, path) in ["/", "/in/", "/in/page.html", "/old"].into_iter().enumerate() {
        let client = from(&format!("192.0.2.{number}"));
        // The last request is refused. Those before it include one that is loaded, and one from the worker cache.
        let got = statuses(&mut server.connect(), path, &[&client], 5);
        assert_eq!(got, [200, 200, 200, 200, 429], "{path}");
    }
}

#[test]
fn routes_have_limits_of_their_own_or_share_that_of_the_site() {
    let keys = "limit = \"3/h\"\nroute.\"/in/*\" = { limit = [\"2/h\", { rate = \"1/h\", key = \"{request.header.X-Key}\" }] }\n\
                route.\"/free/*\" = { limit = false }\nroute.\"/same/*\" = { fallback = \"/index.html\" }";
    let server = Running::start(folder(), &text(keys));
    let mut client = server.connect();
    let address = from("192.0.2.1");
    let keyed = |key: &'static str| format!("X-Key: {key}");
    for (path, field, expected) in [
        // The inherited limit counts requests to all routes that inherit it.
        ("/", None, 200),
        ("/same/a", None, 200),
        ("/same/b", None, 200),
        ("/", None, 429),
        ("/free/", None, 404),
        ("/in/", Some(keyed("a")), 200),
        // A request that one of several limits refuses counts in none of them.
        ("/in/", Some(keyed("a")), 429),
        ("/in/", Some(keyed("a")), 429),
        ("/in/", Some(keyed("b")), 200),
        ("/in/", Some(keyed("c")), 429),
        ("/in/page.html", Some(keyed("c")), 429),
    ] {
        let fields: Vec<&str> = [Some(&*address), field.as_deref()].into_iter().flatten().collect();
        let got = client.fetch(&format!("GET {path}"), &fields).status;
        assert_eq!(got, expected, "{path} {field:?}");
    }
    // Without the field, the client counts: its own limit of 2 has refused it, but another client is admitted once.
    let other = from("192.0.2.9");
    assert_eq!(statuses(&mut client, "/in/", &[&other], 2), [200, 429]);
}

#[test]
fn guesses_are_refused_before_passwords_are_verified_and_users_after_it() {
    let keys = format!(
        "{}\nroute.\"/in/*\" = {{ limit = \"2/h\" }}\nroute.\"/\" = {{ limit = {{ rate = \"2/h\", key = \"{{user}}\" }} }}",
        auth()
    );
    let server = Running::start(folder(), &text(&keys));
    let (address, other) = (from("192.0.2.1"), from("192.0.2.2"));
    let (wrong, right) = (basic("bob", "wrong"), basic("bob", "secret"));
    let mut client = server.connect();
    assert_eq!(statuses(&mut client, "/in/", &[&address, &wrong], 3), [401, 401, 429]);
    assert_eq!(statuses(&mut client, "/in/", &[&address, &right], 1), [429]);
    assert_eq!(statuses(&mut client, "/in/", &[&other, &right], 3), [200, 200, 429]);
    // The limit by user counts only requests of the user, from any address.
    assert_eq!(statuses(&mut client, "/", &[&address, &wrong], 3), [401; 3]);
    assert_eq!(statuses(&mut client, "/", &[&address, &right], 1), [200]);
    assert_eq!(statuses(&mut client, "/", &[&other, &right], 2), [200, 429]);
}

#[test]
fn a_request_that_the_limit_of_its_user_refuses_counts_once_in_the_others() {
    let keys = format!(
        "{}\nlimit = [\"5/h\", {{ rate = \"2/h\", key = \"{{user}}\" }}]",
        auth()
    );
    let server = Running::start(folder(), &text(&keys));
    let (address, right) = (from("192.0.2.1"), basic("bob", "secret"));
    let mut client = server.connect();
    // The first response is loaded from the disk, and the second one comes from the worker cache.
    assert_eq!(statuses(&mut client, "/", &[&address, &right], 2), [200; 2]);
    for limit in ["2/h", "2/h", "2/h", "5/h"] {
        let got = client.fetch("GET /", &[&address, &right]);
        let policy = got.field("RateLimit-Policy").unwrap_or_default().to_owned();
        assert_eq!(got.status, 429);
        assert!(policy.starts_with(&format!("\"{limit}\"")), "{policy}, not {limit}");
    }
}

#[test]
fn a_reload_keeps_the_limits() {
    let keys = "limit = \"3/h\"";
    let server = Running::start(folder(), &text(keys));
    let address = from("192.0.2.1");
    let get = || over_http1(&server, "GET /", &[&address], "").status;
    assert_eq!([get(), get()], [200; 2]);
    server.reload(&text(&format!("compress = false\n{keys}"))).unwrap();
    assert_eq!([get(), get()], [200, 429]);
    server
        .reload(&text("limit = { rate = \"3/h\", exempt = \"192.0.2.0/24\" }"))
        .unwrap();
    let until = Instant::now() + DEADLINE;
    while get() != 200 {
        assert!(Instant::now() < until, "the new configuration is not in use");
    }
    assert_eq!([get(), get(), get()], [200; 3]);
    server
        .reload(&text("limit = { rate = \"3/h\", dry_run = true }"))
        .unwrap();
    assert_eq!([get(), get()], [200; 2]);
}

#[test]
fn delayed_requests_wait_for_their_turn() {
    let server = Running::start(folder(), &text("limit = { rate = \"5/s\", burst = 3, delay = true }"));
    let mut client = server.connect();
    let address = from("192.0.2.1");
    let started = Instant::now();
    // Three requests follow each other at the rate; one at a time, all are admitted.
    assert_eq!(statuses(&mut client, "/", &[&address], 3), [200; 3]);
    assert!(
        started.elapsed() >= Duration::from_millis(400),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn waiting_requests_fill_the_burst_and_end_with_their_clients() {
    let server = Running::start(folder(), &text("limit = { rate = \"4/m\", burst = 3, delay = true }"));
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("GET /", &[&from("192.0.2.1")]));
    }
    let labels = "site=\"default\",route=\"/*\",limit=\"4/m\",key=\"{client.ip}\",effect=\"delayed\"";
    super::metrics::wait(&server, &format!("rocknet_limited_requests_total{{{labels}}}"), 2.0);
    // The burst is used up, so a further request is refused. Other clients do not wait.
    let mut client = server.connect();
    assert_eq!(statuses(&mut client, "/", &[&from("192.0.2.1")], 1), [429]);
    assert_eq!(statuses(&mut client, "/", &[&from("192.0.2.2")], 1), [200]);
    drop(client);
    // The requests would wait 15 and 30 seconds.
    let started = Instant::now();
    drop(clients);
    server.wait_until_idle();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn requests_in_progress_are_limited_until_they_end() {
    let keys = "limit = [{ connections = 2 }, { connections = 3, key = \"all\" }]";
    let (handler, mut pending) = Deferred::new();
    let server = Running::start_with(folder(), &text(keys), vec![mount("/wait/", handler)]);
    let client = from("192.0.2.1");
    let begin = |address: &str| {
        let mut client = server.connect();
        client.send(request("GET /wait/", &[&from(address)]));
        client
    };
    // The end of a request is noticed after its response was received.
    let wait_for_ok = |address: &str| {
        let until = Instant::now() + DEADLINE;
        while over_http1(&server, "GET /", &[&from(address)], "").status != 200 {
            assert!(Instant::now() < until, "requests of {address} did not end");
        }
    };
    let mut first = begin("192.0.2.1");
    let one = pending.next();
    let second = begin("192.0.2.1");
    let two = pending.next();
    // The file is served from the disk, later from the worker cache.
    for _ in 0..2 {
        let got = over_http1(&server, "GET /", &[&client], "");
        assert_eq!((got.status, got.field("Retry-After")), (429, Some("1")));
        wait_for_ok("192.0.2.2");
    }
    // The limit for all clients refuses a fourth request.
    let third = begin("192.0.2.2");
    let three = pending.next();
    let got = over_http1(&server, "GET /", &[&from("192.0.2.3")], "");
    assert_eq!((got.status, got.field("Retry-After")), (503, Some("1")));
    // A request ends with its response, or with its client.
    assert!(one.respond("one"));
    assert_eq!(first.response().text(), "one");
    wait_for_ok("192.0.2.1");
    drop((second, third));
    wait_for_ok("192.0.2.3");
    drop((two, three));
    // A request counts once, although its context changes when it waits for a guard.
    let got = statuses(&mut server.connect(), "/in/", &[&client], 5);
    assert_eq!(got, [200; 5]);
}

#[test]
fn the_bandwidth_of_each_response_is_limited() {
    let folder = folder();
    folder.write("small.bin", vec![b's'; 30_000]);
    folder.write("large.bin", vec![b'l'; 3_000_000]);
    let keys = "limit = { bandwidth = \"40000B/s\", after = \"10000B\" }\n\
                route.\"/large.bin\" = { limit = { bandwidth = \"4MB/s\", after = \"1MB\" } }";
    let server = Running::start(folder, &text(keys));
    // The first tenths of a second are free, so 10,000 of 30,000 bytes have to wait; 1,000,000 of 3,000,000 bytes.
    for (path, length, least_ms) in [("/small.bin", 30_000, 200), ("/large.bin", 3_000_000, 200)] {
        // The second time, the file is in the cache.
        for _ in 0..2 {
            for http2 in [false, true] {
                let started = Instant::now();
                let line = format!("GET {path}");
                let got = match http2 {
                    false => over_http1(&server, &line, &[], ""),
                    true => over_http2(&mut Http2::to(server.address()), &line, &[], ""),
                };
                let elapsed = started.elapsed();
                assert_eq!((got.status, got.text.len()), (200, length), "{path}");
                assert!(
                    got.field("ETag").is_some() && elapsed >= Duration::from_millis(least_ms),
                    "{path}: {elapsed:?}"
                );
            }
        }
    }
    // A short response is not limited, and a range and a HEAD request have the usual fields.
    let started = Instant::now();
    assert_eq!(server.get("/").text(), "home");
    let range = over_http1(&server, "GET /small.bin", &["Range: bytes=0-20000"], "");
    assert_eq!((range.status, range.text.len()), (206, 20_001));
    let head = server.connect().fetch("HEAD /large.bin", &[]);
    assert_eq!(head.field("Content-Length"), Some("3000000"));
    assert!(started.elapsed() < DEADLINE);
}

#[test]
fn a_file_of_the_worker_cache_is_in_progress_until_it_is_sent() {
    check_progress_of_large_file("");
}

#[test]
fn a_file_in_memory_is_in_progress_until_it_is_sent() {
    check_progress_of_large_file("[cache]\nmax_file = \"16MiB\"\n");
}

/// Checks that a large file that a client does not receive counts in a limit of `connections`. `cache`: section of the
/// configuration.
fn check_progress_of_large_file(cache: &str) {
    let folder = folder();
    folder.write("large.bin", vec![b'l'; 16 << 20]);
    folder.write("medium.bin", vec![b'm'; 30_000]);
    let text = format!("{cache}{}", text("limit = { connections = 1 }"));
    let server = Running::start(folder, &text);
    // Most likely, both workers have the files in their caches afterwards.
    for number in 10..18 {
        let (mut connection, other) = (server.connect(), from(&format!("192.0.2.{number}")));
        for line in ["HEAD /large.bin", "GET /"] {
            assert_eq!(connection.fetch(line, &[&other]).status, 200);
        }
    }
    // The clients read nothing of the body, so that most of it remains unsent.
    let client = from("192.0.2.1");
    let mut slow = server.connect();
    slow.send(request("GET /large.bin", &[&client]));
    wait_for(&server, &client, 429);
    wait_for(&server, &from("192.0.2.3"), 200);
    drop(slow);
    wait_for(&server, &client, 200);
    let client = from("192.0.2.2");
    let mut slow = Http2::to(server.address());
    let get = slow.request("GET", "/large.bin").header("X-Forwarded-For", "192.0.2.2");
    let (response, _) = slow.start_request(get, true);
    let response = slow.wait(response).unwrap();
    assert_eq!(response.status(), 200);
    wait_for(&server, &client, 429);
    wait_for(&server, &from("192.0.2.4"), 200);
    drop((response, slow));
    wait_for(&server, &client, 200);
    // Responses count one after the other, in one packet and over HTTP/2, too.
    let client = from("192.0.2.5");
    let mut pipelined = server.connect();
    let both = [request("GET /", &[&client]), request("GET /medium.bin", &[&client])].concat();
    pipelined.send(both.repeat(10));
    for _ in 0..20 {
        assert_eq!(pipelined.response().status, 200);
    }
    let client = from("192.0.2.6");
    let mut http2 = Http2::to(server.address());
    for _ in 0..20 {
        assert_eq!(over_http2(&mut http2, "GET /", &[&client], "").status, 200);
    }
}

/// Requests `/` from a client until the response has this status. The end of a request is noticed shortly after its
/// response was received.
fn wait_for(server: &Running, client: &str, expected: u16) {
    let until = Instant::now() + DEADLINE;
    while over_http1(server, "GET /", &[client], "").status != expected {
        assert!(Instant::now() < until, "the status did not become {expected}");
    }
}

#[test]
fn a_request_that_has_waited_for_a_guard_is_in_progress_until_it_is_sent() {
    let folder = folder();
    folder.write("private/large.bin", vec![b'l'; 16 << 20]);
    let keys = format!("limit = {{ connections = 1 }}\nroute.\"/private/*\" = {{ {} }}", auth());
    let text = format!("[cache]\nmax_file = \"16MiB\"\n{}", text(&keys));
    let server = Running::start(folder, &text);
    let client = from("192.0.2.1");
    let mut slow = TcpStream::connect(server.address()).expect("a connection");
    // The first password is verified by the blocking pool, so the request waits.
    let get = request("GET /private/large.bin", &[&client, &basic("bob", "secret")]);
    slow.write_all(get.as_bytes()).expect("a request");
    let mut start = [0; 12];
    slow.read_exact(&mut start).expect("a response");
    assert_eq!(&start, b"HTTP/1.1 200");
    // The response is queued now, and most of it is unsent.
    for _ in 0..10 {
        assert_eq!(over_http1(&server, "GET /", &[&client], "").status, 429);
    }
    wait_for(&server, &from("192.0.2.2"), 200);
    drop(slow);
    wait_for(&server, &client, 200);
}
