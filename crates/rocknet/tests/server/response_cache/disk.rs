//! Stored responses on disk: restarts, purges, variants, and clients that arrive together.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_control::response_purge::ResponsePurge;

use super::super::support::client::request;
use super::super::support::upstream::Upstream;
use super::super::support::{DEADLINE, Folder, Running};
use super::{expect, response, status, upstream};

/// Returns a configuration with a cache on disk. `cache`: value of `cache` of the site.
pub(super) fn text(upstream: &Upstream, cache: &str) -> String {
    format!(
        "[server]\nworkers = 2\nblocking_threads = 2\nstate = \"state\"\nevents = {{ wait = \"20ms\", connections = 16 }}\n\
         [cache]\nresponses_disk = \"16MiB\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = {cache}\n",
        upstream.key()
    )
}

/// Starts a server, and waits until it can read responses from disk.
pub(super) fn start(folder: Folder, text: &str) -> Running {
    let server = Running::start(folder, text);
    let disk = server.server().registries().responses.disk().expect("a store on disk");
    let deadline = Instant::now() + DEADLINE;
    while !disk.is_ready() {
        assert!(Instant::now() < deadline, "the store on disk is not ready");
        thread::yield_now();
    }
    server
}

/// Stops a server after all responses were written, and starts another one with its folder.
pub(super) fn restart(server: Running, text: &str) -> Running {
    flush(&server);
    let (stopped, folder) = server.take();
    assert!(stopped.stop());
    start(folder, text)
}

pub(super) fn flush(server: &Running) {
    let disk = server.server().registries().responses.disk().expect("a store on disk");
    assert!(disk.flush(DEADLINE));
}

#[test]
fn responses_survive_a_restart() {
    let upstream = upstream(|request| {
        let fields = "Cache-Control: max-age=600, stale-while-revalidate=60|ETag: \"1\"|Age: 30|Cache-Tag: t|X-A: b";
        response("200 OK", fields, &request.line)
    });
    let text = text(&upstream, "true");
    let server = start(Folder::with(&[]), &text);
    for path in [
        "/a",
        "/head",
        "/part",
        "/none",
        "/purged",
        "/prefix/a",
        "/posted",
        "/lonely",
    ] {
        expect(
            &server.get(path),
            "fwd=uri-miss; stored",
            &format!("GET {path} HTTP/1.1"),
        );
    }
    let purge = |server: &Running, url: &str| {
        let purge = ResponsePurge {
            url: Some(url.to_owned()),
            ..ResponsePurge::default()
        };
        server.server().purge_responses(&purge).expect("a purge");
    };
    purge(&server, "http://localhost/purged");
    let prefix = ResponsePurge {
        prefix: Some("http://localhost/prefix/".to_owned()),
        ..ResponsePurge::default()
    };
    server.server().purge_responses(&prefix).expect("a purge");
    server.fetch("POST /posted", &["Content-Length: 0"]);
    let before = upstream.all().len();
    let server = restart(server, &text);
    let first = server.get("/a");
    expect(&first, "hit; detail=disk", "GET /a HTTP/1.1");
    first.expect("fields", 200, &["ETag: \"1\"", "X-A: b", "Age"]);
    let age: u64 = first.field("Age").and_then(|age| age.parse().ok()).expect("an age");
    assert!((30..120).contains(&age), "{age}");
    expect(&server.get("/a"), "hit", "GET /a HTTP/1.1");
    let head = server.fetch("HEAD /head", &[]);
    expect(&head, "hit; detail=disk", "");
    expect(&server.get("/head"), "hit", "GET /head HTTP/1.1");
    let part = server.fetch("GET /part", &["Range: bytes=0-2"]);
    part.expect("part", 206, &["Content-Range: bytes 0-2/18"]);
    expect(&part, "hit; detail=disk", "GET");
    server
        .fetch("GET /none", &["If-None-Match: \"1\""])
        .expect("304", 304, &["ETag: \"1\""]);
    let lonely = server.fetch("GET /lonely", &["Cache-Control: only-if-cached"]);
    expect(&lonely, "hit; detail=disk", "GET /lonely HTTP/1.1");
    assert_eq!(upstream.all().len(), before);
    for path in ["/purged", "/prefix/a", "/posted"] {
        assert_eq!(status(&server.get(path)), "fwd=uri-miss; stored", "{path}");
    }
    // A purge drops responses in memory and on disk.
    purge(&server, "http://localhost/a");
    assert_eq!(status(&server.get("/a")), "fwd=uri-miss; stored");
    let everything = ResponsePurge::default();
    server.server().purge_responses(&everything).expect("a purge");
    let server = restart(server, &text);
    assert_eq!(status(&server.get("/head")), "fwd=uri-miss; stored");
    let metrics = rocknet::inventory::metrics(server.server());
    for line in [
        "rocknet_stored_disk_writes_total 1",
        "rocknet_stored_disk_errors_total 0",
    ] {
        assert!(metrics.lines().any(|other| other == line), "no {line} in {metrics}");
    }
    let disk = server.server().status().response_cache.disk.expect("a store on disk");
    assert_eq!((disk.responses, disk.hits), (1, 0));
    assert!(disk.bytes > 0);
}

#[test]
fn variants_and_personal_responses_keep_their_rules() {
    let upstream = upstream(|request| {
        let fields = match request.line.contains("/cookie") {
            true => "Cache-Control: max-age=600|Set-Cookie: a=b",
            false => "Cache-Control: max-age=600|Vary: Accept-Language",
        };
        response("200 OK", fields, request.field("Accept-Language").unwrap_or("none"))
    });
    let text = text(&upstream, "true");
    let server = start(Folder::with(&[]), &text);
    for language in ["de", "en"] {
        server.fetch("GET /", &[&format!("Accept-Language: {language}")]);
    }
    server.get("/cookie");
    let server = restart(server, &text);
    for language in ["en", "de"] {
        let response = server.fetch("GET /", &[&format!("Accept-Language: {language}")]);
        expect(&response, "hit; detail=disk", language);
    }
    let other = server.fetch("GET /", &["Accept-Language: fr"]);
    expect(&other, "fwd=vary-miss; stored", "fr");
    assert_eq!(status(&server.get("/cookie")), "fwd=uri-miss; detail=set-cookie");
    // A response that is not `public` is not for requests with credentials.
    let server = restart(server, &text);
    let authorized = server.fetch("GET /", &["Accept-Language: de", "Authorization: Basic YTpi"]);
    assert_eq!(status(&authorized), "fwd=request; detail=authorization");
}

#[test]
fn responses_on_disk_are_validated_before_their_use() {
    let upstream = upstream(|request| match request.field("If-None-Match") {
        Some(_) => response(
            "304 Not Modified",
            "Cache-Control: max-age=600, no-cache|ETag: \"1\"",
            "",
        ),
        None => response("200 OK", "Cache-Control: max-age=600, no-cache|ETag: \"1\"", "body"),
    });
    let text = text(&upstream, "true");
    let server = start(Folder::with(&[]), &text);
    expect(&server.get("/"), "fwd=uri-miss; stored", "body");
    let server = restart(server, &text);
    expect(&server.get("/"), "fwd=stale; fwd-status=304; stored", "body");
    assert_eq!(upstream.all().len(), 2);
}

#[test]
fn a_site_can_keep_its_responses_off_the_disk() {
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=600", "body"));
    let text = text(&upstream, "{ disk = false }");
    let server = start(Folder::with(&[]), &text);
    server.get("/");
    assert_eq!(status(&server.get("/")), "hit");
    let server = restart(server, &text);
    assert_eq!(status(&server.get("/")), "fwd=uri-miss; stored");
    let disk = server.server().registries().responses.disk().expect("a store on disk");
    assert_eq!(disk.usage().objects, 0);
}

#[test]
fn clients_that_arrive_together_cause_one_read_and_no_request() {
    const CLIENTS: usize = 32;
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=600", "body"));
    let text = text(&upstream, "true");
    let server = start(Folder::with(&[]), &text);
    server.get("/");
    let server = restart(server, &text);
    let barrier = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                barrier.wait();
                client.send(request("GET /", &[]));
                let response = client.response();
                assert_eq!(response.text(), "body");
            });
        }
    });
    assert_eq!(upstream.all().len(), 1);
    let disk = server.server().registries().responses.disk().expect("a store on disk");
    assert_eq!(disk.usage().hits, 1);
}

/// While responses are read from disk, their resource changes. No response from before a change is sent after it.
#[test]
fn no_purge_is_lost_to_a_read() {
    const ROUNDS: u64 = 60;
    let version = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let current = Arc::clone(&version);
    let upstream = upstream(move |_| {
        let version = current.load(std::sync::atomic::Ordering::SeqCst);
        response(
            "200 OK",
            "Cache-Control: max-age=600|Cache-Tag: t",
            &version.to_string(),
        )
    });
    let text = text(&upstream, "true").replace("[cache]\n", "[cache]\nresponses = \"1MiB\"\n");
    let server = start(Folder::with(&[]), &text);
    for round in 1..=ROUNDS {
        server.get("/");
        flush(&server);
        // Drops the response from the memory, but not from the disk.
        server.server().registries().responses.memory.retain(|_, _| false);
        thread::scope(|scope| {
            scope.spawn(|| server.get("/"));
            scope.spawn(|| server.get("/"));
            version.store(round, std::sync::atomic::Ordering::SeqCst);
            let purge = match round % 3 {
                0 => ResponsePurge::default(),
                1 => ResponsePurge {
                    tag: Some("t".to_owned()),
                    ..ResponsePurge::default()
                },
                _ => ResponsePurge {
                    url: Some("http://localhost/".to_owned()),
                    ..ResponsePurge::default()
                },
            };
            server.server().purge_responses(&purge).expect("a purge");
            assert_eq!(server.get("/").text(), round.to_string(), "round {round}");
        });
        assert_eq!(server.get("/").text(), round.to_string(), "round {round}");
    }
}

#[test]
fn a_reload_turns_the_disk_on_and_off() {
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=600", "body"));
    let on = text(&upstream, "true");
    let off = on.replace("responses_disk = \"16MiB\"\n", "");
    let server = start(Folder::with(&[]), &on);
    server.get("/");
    flush(&server);
    server.reload(&off).expect("a valid configuration");
    assert!(server.server().registries().responses.disk().is_none());
    // The response in memory stays.
    assert_eq!(status(&server.get("/")), "hit");
    server.reload(&on).expect("a valid configuration");
    let disk = server.server().registries().responses.disk().expect("a store on disk");
    let deadline = Instant::now() + DEADLINE + Duration::from_secs(1);
    while !disk.is_ready() {
        assert!(Instant::now() < deadline, "the store on disk is not ready");
        thread::yield_now();
    }
    // Purges may have been missed meanwhile.
    assert_eq!(disk.usage().objects, 0);
}
