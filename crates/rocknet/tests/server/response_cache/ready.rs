//! Responses to frequent requests, which a worker sends without a lookup: they equal the first hit, and no phase that
//! depends on the request is skipped.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rocknet_control::response_purge::ResponsePurge;

use super::super::access::{SECRET, basic};
use super::super::metrics::value;
use super::super::support::http2::Http2;
use super::super::support::upstream::{Next, Upstream, write_to};
use super::super::support::{Client, DEADLINE, Folder, ReceivedResponse, Running};
use super::{response, status, upstream};

over_http3! {
    frequent_hits_equal_the_first,
    other_requests_are_not_answered_as_the_frequent_one,
    guards_decide_about_frequent_hits,
    changes_end_frequent_hits_at_once,
}

/// Number of requests after which a worker sends the response without a lookup, unless the machine is very slow.
pub const FREQUENT: usize = 6;

/// Starts a server with one worker that caches the responses of an upstream. Clients name their address, as behind a
/// proxy. `keys`: further keys of the site.
pub fn start(upstream: &Upstream, keys: &str) -> Running {
    Running::start(Folder::with(&[("www/x", "")]), &text(upstream, keys))
}

pub fn text(upstream: &Upstream, keys: &str) -> String {
    with_cache(upstream, "true", keys)
}

/// Returns the configuration of [`start`] with a value of `cache`.
pub fn with_cache(upstream: &Upstream, cache: &str, keys: &str) -> String {
    format!(
        "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
         events = {{ wait = \"20ms\", connections = 16 }}\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = {cache}\n{keys}\n",
        upstream.key()
    )
}

/// Returns the number of hits that workers have sent without a lookup.
pub fn ready_hits(server: &Running) -> f64 {
    value(server, "rocknet_stored_ready_hits_total").expect("a counter")
}

/// Requests a page until its response is sent without a lookup. Returns this response.
#[track_caller]
pub fn heat(server: &Running, client: &mut Client, line: &str, fields: &[&str]) -> ReceivedResponse {
    let until = Instant::now() + DEADLINE;
    loop {
        let before = ready_hits(server);
        let last = client.fetch(line, fields);
        if ready_hits(server) > before {
            assert_eq!(status(&last), "hit", "{line} {fields:?}");
            return last;
        }
        assert!(
            Instant::now() < until,
            "{line} {fields:?} always needs a lookup: {last:?}"
        );
    }
}

/// Requests a page by all clients until each of them gets it without a lookup.
#[track_caller]
pub fn heat_all(server: &Running, clients: &mut [Client], line: &str, fields: &[&str]) {
    let until = Instant::now() + DEADLINE;
    loop {
        let before = ready_hits(server);
        clients.iter_mut().for_each(|client| drop(client.fetch(line, fields)));
        if ready_hits(server) - before == clients.len() as f64 {
            return;
        }
        assert!(Instant::now() < until, "{line} {fields:?} needs lookups");
    }
}

/// Calls `check` while a page is sent without a lookup. Calls it again if that has ended before `check` did, which a
/// slow machine can cause.
#[track_caller]
pub fn while_hot(server: &Running, client: &mut Client, line: &str, fields: &[&str], mut check: impl FnMut()) {
    let until = Instant::now() + DEADLINE;
    loop {
        heat(server, client, line, fields);
        check();
        let before = ready_hits(server);
        client.fetch(line, fields);
        if ready_hits(server) > before {
            return;
        }
        assert!(Instant::now() < until, "{line} {fields:?} does not stay ready");
    }
}

/// Waits until the worker of each client uses a configuration whose site adds the field `X-Round` with this value. A
/// reload sends the configuration to the workers, and does not wait for them.
#[track_caller]
pub fn wait_for_round(clients: &mut [Client], fields: &[&str], round: &str) {
    let until = Instant::now() + DEADLINE;
    for client in clients {
        while client.fetch("GET /round", fields).field("X-Round") != Some(round) {
            assert!(Instant::now() < until, "a worker has another configuration");
        }
    }
}

/// Returns status, fields and body without what changes with the time.
fn lasting(response: &ReceivedResponse) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let fields = response.fields.iter().filter(|(name, _)| {
        let changes = ["date", "age", "cache-status"];
        !changes.contains(&&*name.to_ascii_lowercase())
    });
    (response.status, fields.cloned().collect(), response.body.clone())
}

/// Returns an upstream whose responses have a version that each response increments.
pub fn versions(fields: &'static str) -> Upstream {
    let version = Arc::<AtomicUsize>::default();
    upstream(move |request| {
        let version = version.fetch_add(1, Ordering::Relaxed);
        response("200 OK", fields, &format!("{} {version}", request.line))
    })
}

#[test]
fn frequent_hits_equal_the_first() {
    let page = "many words of a page, ".repeat(5_000);
    let upstream = upstream(move |request| match &request.line[..] {
        "GET /empty HTTP/1.1" => response("204 No Content", "Cache-Control: max-age=60", ""),
        "GET /moved HTTP/1.1" => response("301 Moved Permanently", "Cache-Control: max-age=60|Location: /x", ""),
        "GET /page HTTP/1.1" => response(
            "200 OK",
            "Cache-Control: max-age=60|Content-Type: text/html|ETag: \"1\"",
            &page,
        ),
        _ => response("200 OK", "Cache-Control: max-age=60|X-Own: 1", "small"),
    });
    let server = start(
        &upstream,
        "harden = true\nheaders = { X-Site = \"1\", Server = \"\", X-Own = \"2\" }",
    );
    let mut client = server.connect();
    let targets = ["/small?a=b", "/page", "/empty", "/moved"];
    for (number, target) in targets.into_iter().enumerate() {
        for fields in [&[][..], &["Accept-Encoding: gzip"], &["Accept-Encoding: br, gzip"]] {
            let line = format!("GET {target}");
            client.fetch(&line, fields);
            let first = client.fetch(&line, fields);
            assert_eq!(status(&first), "hit", "{line}");
            for _ in 0..FREQUENT {
                let next = client.fetch(&line, fields);
                assert_eq!(lasting(&next), lasting(&first), "{line} {fields:?}");
                next.expect(
                    &line,
                    first.status,
                    &["X-Site: 1", "Age", "Date", "Cache-Status", "!Server"],
                );
            }
            let ready = heat(&server, &mut client, &line, fields);
            assert_eq!(lasting(&ready), lasting(&first), "{line} {fields:?}");
            let head = heat(&server, &mut client, &format!("HEAD {target}"), fields);
            assert_eq!((head.status, head.body.len()), (first.status, 0), "{line}");
        }
        assert_eq!(upstream.all().len(), number + 1);
    }
    let coded = client.fetch("GET /page", &["Accept-Encoding: gzip"]);
    coded.expect(
        "a coding",
        200,
        &["Content-Encoding: gzip", "Content-Length", "Vary: Accept-Encoding"],
    );
}

/// A body in memory is encoded once for all hits, and each client gets the coding that it accepts.
#[test]
fn frequent_hits_over_http2_equal_those_over_http1() {
    let page = "many words of a page, ".repeat(20_000);
    let upstream = upstream(move |_| response("200 OK", "Cache-Control: max-age=60|Content-Type: text/html", &page));
    let server = start(&upstream, "headers = { X-Site = \"1\" }");
    let mut http1 = server.connect();
    let mut http2 = Http2::to(server.address());
    for accepted in ["identity", "gzip", "br"] {
        let field = format!("Accept-Encoding: {accepted}");
        let first = heat(&server, &mut http1, "GET /page", &[&field]);
        for _ in 0..FREQUENT {
            let request = http2.request("GET", "/page").header("accept-encoding", accepted);
            // The authority of the request is that of the client over HTTP/1.1.
            let request = request.uri("http://localhost/page");
            let (response, _) = http2.start_request(request, true);
            let next = http2.response(response).expect("a response");
            let value = |name: &str| next.fields.get(name).map(|value| value.to_str().expect("text"));
            assert_eq!(next.status, 200);
            for name in ["content-encoding", "content-length", "content-type", "vary", "x-site"] {
                assert_eq!(value(name), first.field(name), "{accepted} {name}");
            }
            assert!(value("date").is_some() && value("age").is_some() && value("cache-status").is_some());
            assert!(next.content == first.body, "{accepted}");
        }
        let request = http2.request("HEAD", "/page").uri("http://localhost/page");
        let (response, _) = http2.start_request(request.header("accept-encoding", accepted), true);
        let head = http2.response(response).expect("a response");
        assert_eq!((head.status.as_u16(), head.content.len()), (200, 0));
    }
    assert_eq!(upstream.all().len(), 1);
}

#[test]
fn other_requests_are_not_answered_as_the_frequent_one() {
    let upstream = upstream(|request| {
        let seen = ["X-Forwarded-Host", "X-Original-URL", "Accept-Language", "Cookie"];
        let seen = seen
            .iter()
            .filter_map(|name| Some(format!("{name}={}", request.field(name)?)));
        let content = seen.collect::<Vec<_>>().join(",") + " of a page";
        let fields = "Cache-Control: max-age=60|ETag: \"1\"|Vary: Accept-Language";
        response("200 OK", fields, &content)
    });
    let cache = "{ obey_clients = true, bypass_cookies = [\"login\"], bypass = [{ header = { X-Preview = \"*\" } }] }";
    let server = Running::start(Folder::with(&[]), &with_cache(&upstream, cache, ""));
    let mut client = server.connect();
    for (fields, expected, code) in [
        (&["Cookie: login=1"][..], "fwd=bypass", 200),
        (&["X-Preview: 1"], "fwd=bypass", 200),
        (&["Range: bytes=0-1"], "hit", 206),
        (&["If-None-Match: \"1\""], "hit", 304),
        (&["If-None-Match: \"2\""], "hit", 200),
        (&["Accept-Language: de"], "fwd=vary-miss; stored", 200),
        (&["X-Original-URL: /evil"], "fwd=uri-miss; stored", 200),
        (&["Forwarded: host=evil.test"], "fwd=uri-miss; stored", 200),
        (&["Authorization: Basic YTpi"], "fwd=request; detail=authorization", 200),
        (&["Cache-Control: no-cache"], "fwd=request; stored", 200),
        (&["Host: other.test"], "fwd=uri-miss; stored", 200),
    ] {
        let plain = heat(&server, &mut client, "GET /page", &[]);
        let other = client.fetch("GET /page", fields);
        assert_eq!((&*status(&other), other.status), (expected, code), "{fields:?}");
        // Nothing of the other request reaches the frequent ones.
        let again = heat(&server, &mut client, "GET /page", &[]);
        assert_eq!(lasting(&again), lasting(&plain), "{fields:?}");
    }
    // Another path, query or method.
    for (line, expected) in [
        ("GET /page?", "fwd=uri-miss; stored"),
        ("GET /page?a", "fwd=uri-miss; stored"),
        ("GET /Page", "fwd=uri-miss; stored"),
        ("OPTIONS /page", "fwd=method"),
        ("HEAD /page", "hit"),
    ] {
        heat(&server, &mut client, "GET /page", &[]);
        assert_eq!(status(&client.fetch(line, &[])), expected, "{line}");
    }
}

#[test]
fn guards_decide_about_frequent_hits() {
    let upstream = upstream(|_| response("200 OK", "Cache-Control: max-age=60", "page"));
    let from = |address: &str| format!("X-Forwarded-For: {address}");
    // A client that is denied.
    let server = start(&upstream, "deny = [\"192.0.2.9\"]");
    let mut client = server.connect();
    let (visitor, denied) = (from("192.0.2.1"), from("192.0.2.9"));
    heat(&server, &mut client, "GET /a", &[&visitor]);
    client
        .fetch("GET /a", &[&denied])
        .expect("denied", 403, &["!Cache-Status"]);
    heat(&server, &mut client, "GET /a", &[&visitor]);
    // A rate: each response counts.
    server
        .reload(&text(&upstream, "limit = { rate = \"1/h\", burst = 20 }"))
        .expect("a valid configuration");
    let statuses: Vec<_> = (0..25).map(|_| client.fetch("GET /a", &[&visitor]).status).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        20,
        "{statuses:?}"
    );
    assert_eq!(client.fetch("GET /a", &[&denied]).status, 200);
    // An allowed address, or else a password.
    let keys = format!("allow = [\"192.0.2.1\"]\nsatisfy = \"any\"\nauth = {{ bob = \"{SECRET}\" }}");
    server.reload(&text(&upstream, &keys)).expect("a valid configuration");
    for _ in 0..2 {
        heat(&server, &mut client, "GET /a", &[&visitor]);
        client
            .fetch("GET /a", &[&denied])
            .expect("no password", 401, &["!Cache-Status"]);
        let password = basic("bob", "secret");
        let known = client.fetch("GET /a", &[&denied, &password]);
        assert_eq!(known.status, 200);
        assert_ne!(status(&known), "hit", "{known:?}");
        client
            .fetch("GET /a", &[&denied, &basic("bob", "wrong")])
            .expect("a wrong password", 401, &["!Cache-Status"]);
    }
}

/// The authorization service decides about each request, also about one whose response is in use by others.
#[test]
fn an_authorization_service_decides_about_frequent_hits() {
    let upstream = upstream(|_| response("200 OK", "Cache-Control: public, max-age=60", "page"));
    let service = Upstream::start(|request, stream| {
        write_to(
            stream,
            match request.field("Cookie") {
                Some("session=1") => "HTTP/1.1 204 No Content\r\n\r\n",
                _ => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
            },
        );
        Next::Keep
    });
    let server = start(&upstream, &format!("auth = {{ forward = \"{}\" }}", service.url()));
    let mut client = server.connect();
    for _ in 0..3 * FREQUENT {
        assert_eq!(client.fetch("GET /a", &["Cookie: session=1"]).status, 200);
        client
            .fetch("GET /a", &[])
            .expect("no session", 403, &["!Cache-Status"]);
    }
    assert_eq!(service.all().len(), 6 * FREQUENT);
    assert_eq!(ready_hits(&server), 0.0);
}

/// Clients cannot name a user, although frequent hits skip the phase that removes the field.
#[test]
fn frequent_hits_have_no_user_of_the_client() {
    let upstream = upstream(|request| {
        let user = request.field("Remote-User").unwrap_or("nobody");
        response("200 OK", "Cache-Control: max-age=60|Vary: Remote-User", user)
    });
    let keys = "route.\"/in/*\" = { auth = { forward = \"http://127.0.0.1:9\" } }";
    let server = start(&upstream, keys);
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(heat(&server, &mut client, "GET /a", &[]).text(), "nobody");
        for name in ["Remote-User: eve", "remote_user: eve"] {
            for _ in 0..FREQUENT {
                assert_eq!(client.fetch("GET /a", &[name]).text(), "nobody", "{name}");
            }
        }
    }
}

#[test]
fn changes_end_frequent_hits_at_once() {
    let upstream = versions("Cache-Control: max-age=60");
    let server = start(&upstream, "");
    let mut clients = [server.connect(), server.connect()];
    let purge = |purge: &ResponsePurge| assert_eq!(server.server().purge_responses(purge), Ok(1));
    let url = ResponsePurge {
        url: Some("http://localhost/a".to_owned()),
        ..ResponsePurge::default()
    };
    let is_new = |clients: &mut [Client; 2], what: &str| {
        let expected = upstream.all().len();
        for client in clients {
            let next = client.get("/a");
            assert_eq!(next.text(), format!("GET /a HTTP/1.1 {expected}"), "{what}");
        }
    };
    heat_all(&server, &mut clients, "GET /a", &[]);
    for _ in 0..3 {
        purge(&url);
        is_new(&mut clients, "a purge of the URL");
        heat_all(&server, &mut clients, "GET /a", &[]);
        purge(&ResponsePurge::default());
        is_new(&mut clients, "a purge of everything");
        heat_all(&server, &mut clients, "GET /a", &[]);
        clients[0].fetch("POST /a", &["Content-Length: 0"]);
        is_new(&mut clients, "an unsafe method");
        heat_all(&server, &mut clients, "GET /a", &[]);
    }
    // A reload changes the fields of the next response.
    server
        .reload(&text(&upstream, "headers = { X-New = \"1\" }"))
        .expect("a valid configuration");
    clients[0].get("/a").expect("new fields", 200, &["X-New: 1"]);
    heat(&server, &mut clients[0], "GET /a", &[]).expect("new fields", 200, &["X-New: 1"]);
    // Without memory, nothing is sent from it.
    let without = text(&upstream, "") + "[cache]\nresponses = 0\n";
    server.reload(&without).expect("a valid configuration");
    assert_eq!(status(&clients[0].get("/a")), "fwd=uri-miss; detail=no-memory");
}

#[test]
fn frequent_hits_grow_old() {
    // The lifetime ends a second after the response was stored.
    let upstream = versions("Cache-Control: max-age=60|Age: 58");
    let server = start(&upstream, "");
    let mut client = server.connect();
    client.get("/a");
    let begun = Instant::now();
    let mut ages = Vec::new();
    loop {
        assert!(begun.elapsed() < DEADLINE, "the response stays fresh");
        let next = client.get("/a");
        if status(&next) != "hit" {
            assert_eq!(status(&next), "fwd=stale; stored");
            break;
        }
        let age: u64 = next.field("Age").expect("an age").parse().expect("a number");
        let ttl = next
            .field("Cache-Status")
            .and_then(|value| value.split("ttl=").nth(1)?.parse::<u64>().ok());
        // Both are rounded down.
        assert!(ttl.is_some_and(|ttl| [59, 60].contains(&(age + ttl))), "{next:?}");
        ages.push(age);
    }
    assert!(
        ages.contains(&58) && ages.is_sorted() && ages.iter().all(|age| *age < 60),
        "{ages:?}"
    );
    assert_eq!(upstream.all().len(), 2);
    assert!(ready_hits(&server) > 0.0);
}

#[test]
fn rules_apply_before_frequent_hits() {
    let upstream = upstream(|request| response("200 OK", "Cache-Control: max-age=60", &request.line));
    let rules = "[[site.default.rule]]\ncookie = { beta = \"1\" }\nrewrite = \"/beta/{*}\"\n\
                 [[site.default.rule]]\nheader = { X-Old = \"*\" }\nredirect = \"/new\"";
    let server = start(&upstream, rules);
    let mut client = server.connect();
    for _ in 0..2 {
        let plain = heat(&server, &mut client, "GET /a", &[]);
        assert_eq!(plain.text(), "GET /a HTTP/1.1");
        // A rewritten request is looked up each time.
        for _ in 0..FREQUENT {
            let beta = client.fetch("GET /a", &["Cookie: beta=1"]);
            assert_eq!(beta.text(), "GET /beta/a HTTP/1.1");
        }
        let old = client.fetch("GET /a", &["X-Old: yes"]);
        old.expect("a redirect", 308, &["Location: /new", "!Cache-Status"]);
    }
}

#[test]
fn frequent_hits_are_logged_and_counted() {
    let upstream = versions("Cache-Control: max-age=60");
    let folder = Folder::with(&[("www/x", "")]);
    let file = folder.path("access.log");
    let log = format!(
        "log = {{ access = \"{}\", format = \"{{method}} {{path}} {{status}} {{cache.status}} {{bytes.sent}}\" }}",
        file.display()
    );
    let server = Running::start(folder, &text(&upstream, &log));
    let mut client = server.connect();
    for _ in 0..20 {
        client.get("/a");
    }
    let metrics = rocknet::inventory::metrics(server.server());
    for line in [
        "rocknet_stored_requests_total{site=\"default\",outcome=\"hit\"} 19",
        "rocknet_stored_requests_total{site=\"default\",outcome=\"miss\"} 1",
    ] {
        assert!(metrics.lines().any(|other| other == line), "no {line} in {metrics}");
    }
    // The first request was forwarded, and two hits made the response ready.
    assert!((1.0..=17.0).contains(&ready_hits(&server)), "{}", ready_hits(&server));
    drop(client);
    let (server, _folder) = server.take();
    server.stop();
    let lines = fs::read_to_string(&file).expect("an access log");
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("GET /a 200 MISS 17"));
    assert_eq!(lines.filter(|line| *line == "GET /a 200 HIT 17").count(), 19);
}
