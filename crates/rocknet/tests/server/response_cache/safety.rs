//! Responses of one client that must not reach another: privacy, poisoning and guards.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use rocknet_control::response_purge::ResponsePurge;

use super::super::access::SECRET;
use super::super::support::client::request;
use super::super::support::http2::Http2;
use super::super::support::upstream::{Next, Upstream, write_to};
use super::super::support::{Folder, Running};
use super::{cached, expect, response, status, upstream};

#[test]
fn private_responses_are_not_stored() {
    let upstream = upstream(|request| {
        let fields = request.field("X-Fields").unwrap_or_default().to_owned();
        response("200 OK", &fields, "x")
    });
    let server = cached(&upstream, "true");
    for (path, fields, more, expected) in [
        ("/none", "", "", "fwd=uri-miss; detail=no-freshness"),
        (
            "/private",
            "Cache-Control: private, max-age=60",
            "",
            "fwd=uri-miss; detail=private",
        ),
        (
            "/no-store",
            "Cache-Control: no-store, max-age=60",
            "",
            "fwd=uri-miss; detail=no-store",
        ),
        (
            "/cookie",
            "Cache-Control: max-age=60|Set-Cookie: a=b",
            "",
            "fwd=uri-miss; detail=set-cookie",
        ),
        (
            "/vary",
            "Cache-Control: max-age=60|Vary: *",
            "",
            "fwd=uri-miss; detail=vary",
        ),
        (
            "/login",
            "Cache-Control: max-age=60",
            "Authorization: x",
            "fwd=uri-miss; detail=authorization",
        ),
        (
            "/client",
            "Cache-Control: max-age=60",
            "Cache-Control: no-store",
            "fwd=uri-miss; detail=no-store",
        ),
    ] {
        for _ in 0..2 {
            let script = format!("X-Fields: {fields}");
            let fields = [&script[..], more];
            let response = server.fetch(&format!("GET {path}"), &fields[..if more.is_empty() { 1 } else { 2 }]);
            expect(&response, expected, "x");
        }
    }
    // A response to a request without `Authorization` is not sent to one with it, unless it is public.
    for (path, control, expected) in [
        (
            "/shared",
            "Cache-Control: max-age=60",
            "fwd=request; detail=authorization",
        ),
        ("/public", "Cache-Control: max-age=60, public", "hit"),
    ] {
        let script = format!("X-Fields: {control}");
        server.fetch(&format!("GET {path}"), &[&script]);
        let response = server.fetch(&format!("GET {path}"), &[&script, "Authorization: x"]);
        assert_eq!(status(&response), expected, "{path}");
    }
}

#[test]
fn fields_that_replace_host_or_target_poison_nothing() {
    let upstream = upstream(|request| {
        let content = format!("{:?}", request.fields);
        response("200 OK", "Cache-Control: max-age=60", &content)
    });
    let server = cached(&upstream, "true");
    for field in [
        "X-Forwarded-Host: evil.test",
        "X-Forwarded-Scheme: evil.test",
        "X-Forwarded-Prefix: /evil.test",
        "X-Host: evil.test",
        "X-Original-URL: /evil.test",
        "X-Rewrite-URL: /evil.test",
        "X-HTTP-Method-Override: evil.test",
        "Forwarded: host=evil.test",
    ] {
        let path = format!("/{}", field.split(':').next().expect("a name"));
        let poisoned = server.fetch(&format!("GET {path}"), &[field]);
        assert_eq!(status(&poisoned), "fwd=uri-miss; stored", "{field}");
        let clean = server.get(&path);
        assert_eq!(status(&clean), "fwd=uri-miss; stored", "{field}");
        assert!(!clean.text().contains("evil.test"), "{field}: {clean:?}");
    }
    // A path that ends like a static file is no reason to store a page.
    let private = Upstream::responding_with(response("200 OK", "Cache-Control: private", "account"));
    let server = cached(&private, "{ ttl = \"1h\" }");
    for path in ["/account/x.css", "/account%2Fx.css", "/account;x.css", "/account?x.css"] {
        server.get(path);
        expect(&server.get(path), "fwd=uri-miss; detail=private", "account");
    }
}

#[test]
fn guards_precede_the_store() {
    let upstream = upstream(|request| response("200 OK", "Cache-Control: max-age=60, public", &request.line));
    let text = |guard: &str| {
        format!(
            "[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n[site.default.route.\"/in/*\"]\n{guard}\n",
            upstream.key()
        )
    };
    let server = Running::start(Folder::with(&[]), &text("priority = \"low\""));
    server.get("/in/a");
    assert_eq!(status(&server.get("/in/a")), "hit");
    // The response is still stored under the new configuration, and no client gets it without the password.
    server
        .reload(&text(&format!("auth = {{ bob = \"{SECRET}\" }}")))
        .expect("a valid configuration");
    server.get("/in/a").expect("no password", 401, &["!Cache-Status"]);
    // Responses for a user are neither taken from the store nor stored.
    let bob = ["Authorization: Basic Ym9iOnNlY3JldA=="];
    for _ in 0..2 {
        expect(&server.fetch("GET /in/a", &bob), "fwd=bypass", "GET /in/a HTTP/1.1");
    }
    server.reload(&text("deny = \"all\"")).expect("a valid configuration");
    server.get("/in/a").expect("denied", 403, &["!Cache-Status"]);
}

/// A client that sends fields with underscores, or fields of less known servers, changes nothing for others.
#[test]
fn other_spellings_of_these_fields_poison_nothing() {
    let upstream =
        upstream(|request| response("200 OK", "Cache-Control: max-age=60", &format!("{:?}", request.fields)));
    let server = cached(&upstream, "true");
    for (number, name) in [
        "X_Forwarded_Ssl",
        "X_Original_URL",
        "X-Forwarded-Protocol",
        "Front-End-Https",
        "X-Scheme",
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!("GET /{number}");
        server.fetch(&line, &[&format!("{name}: evil.test")]);
        let clean = server.fetch(&line, &[]);
        assert_eq!(status(&clean), "fwd=uri-miss; stored", "{name}");
        assert!(!clean.text().contains("evil.test"), "{name}: {clean:?}");
    }
}

/// The proxy sets these fields for each client, so the client's own fields do not select a response.
#[test]
fn responses_that_depend_on_fields_of_the_proxy_are_not_stored() {
    let upstream = upstream(|request| {
        let vary = request.line.split(['/', ' ']).nth(2).unwrap_or_default().to_owned();
        response("200 OK", &format!("Cache-Control: max-age=60|Vary: {vary}"), "page")
    });
    let proxy = format!(
        "proxy = {{ to = \"{}\", headers = {{ X-Own = \"{{client.ip}}\" }} }}\ncache = true",
        upstream.url()
    );
    let server = Running::site(Folder::with(&[("www/x", "")]), &proxy);
    for name in ["X-Forwarded-For", "X-Real-IP", "Forwarded", "Via", "x-own"] {
        server.get(&format!("/{name}"));
        expect(&server.get(&format!("/{name}")), "fwd=uri-miss; detail=vary", "page");
    }
    server.get("/Accept-Language");
    expect(&server.get("/Accept-Language"), "hit", "page");
}

/// While a stale response is validated in the background, HEAD and ranges must not replace it.
#[test]
fn a_request_for_less_than_the_page_does_not_replace_a_stale_one() {
    let upstream = upstream(
        |request| match request.line.starts_with("HEAD") || request.field("Range").is_some() {
            true => response("416 Range Not Satisfiable", "Cache-Control: max-age=60", ""),
            false => response(
                "200 OK",
                "Cache-Control: max-age=0, stale-while-revalidate=60|ETag: \"1\"",
                "page",
            ),
        },
    );
    let server = cached(&upstream, "true");
    server.get("/");
    for (line, fields) in [("HEAD /", &[][..]), ("GET /", &["Range: bytes=99-"][..])] {
        server.fetch(line, fields);
        let page = server.get("/");
        page.expect(line, 200, &[]);
        assert_eq!(page.text(), "page", "{line}");
    }
    // Only requests for the whole page are sent in the background.
    while upstream.all().len() < 2 {
        server.get("/");
    }
    for request in upstream.all() {
        assert!(
            request.line.starts_with("GET") && request.field("Range").is_none(),
            "{request:?}"
        );
    }
}

#[test]
fn a_head_alone_is_not_stored() {
    let upstream = upstream(|request| {
        let page = response("200 OK", "Cache-Control: max-age=60", "page");
        match request.line.starts_with("HEAD") {
            true => page.replace("page", ""),
            false => page,
        }
    });
    let server = cached(&upstream, "true");
    expect(&server.fetch("HEAD /", &[]), "fwd=uri-miss", "");
    expect(&server.get("/"), "fwd=uri-miss; stored", "page");
}

#[test]
fn conditions_of_a_client_do_not_reach_other_clients() {
    let upstream = upstream(|request| match request.field("If-Match").is_some() {
        true => response("412 Precondition Failed", "Cache-Control: max-age=60", "failed"),
        false => response("200 OK", "Cache-Control: max-age=60|ETag: \"1\"", "page"),
    });
    let server = cached(&upstream, "true");
    server
        .fetch("GET /", &["If-Match: \"other\""])
        .expect("a condition that fails", 412, &[]);
    let page = server.get("/");
    page.expect("another client", 200, &[]);
    assert_eq!(page.text(), "page");
}

/// Over HTTP/2, a body needs no field that announces it.
#[test]
fn a_body_of_get_over_http2_bypasses_the_store() {
    let upstream = upstream(|request| {
        let content = String::from_utf8_lossy(&request.content).into_owned();
        response("200 OK", "Cache-Control: max-age=60", &format!("content {content}"))
    });
    let text = format!(
        "[server]\nh2c = true\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n",
        upstream.key()
    );
    let server = Running::start(Folder::with(&[]), &text);
    let mut client = Http2::to(server.address());
    let request = client.request("GET", "/search");
    let poisoned = client.send(request, b"evil").expect("a response");
    assert_eq!(&poisoned.content[..], b"content evil");
    let clean = client.get("/search");
    assert_eq!(&clean.content[..], b"content ");
}

#[test]
fn streams_of_events_are_not_stored() {
    let events = response("200 OK", "Content-Type: text/event-stream", "data: 1\n\n");
    let upstream = Upstream::responding_with(events);
    let server = cached(&upstream, "{ ttl = \"1h\" }");
    server.get("/");
    expect(&server.get("/"), "fwd=uri-miss; detail=body", "data: 1\n\n");
}

#[test]
fn connections_for_other_protocols_and_long_targets_bypass_the_store() {
    let upstream = upstream(|request| response("200 OK", "Cache-Control: max-age=60", &request.line[..5]));
    let server = cached(&upstream, "true");
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ];
    server.get("/");
    expect(&server.fetch("GET /", &upgrade), "fwd=bypass", "GET /");
    let long = format!("/{}", "a".repeat(5_000));
    for _ in 0..2 {
        expect(&server.get(&long), "fwd=bypass", "GET /");
    }
}

/// `no-cache` requires a validation although the lifetime has not ended.
#[test]
fn a_response_with_no_cache_is_validated_before_each_use() {
    let upstream = upstream(|request| match request.field("If-None-Match") {
        Some(_) => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        None => response("200 OK", "Cache-Control: no-cache, max-age=60|ETag: \"1\"", "page"),
    });
    let server = cached(&upstream, "true");
    server.get("/");
    for _ in 0..2 {
        expect(&server.get("/"), "fwd=stale; fwd-status=304; stored", "page");
    }
}

/// A rule that depends on a field leads the same target to different pages.
#[test]
fn a_rewritten_target_has_its_own_response() {
    let upstream = upstream(|request| response("200 OK", "Cache-Control: max-age=60", &request.line));
    let text = format!(
        "[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n\
         [[site.default.rule]]\nheader = {{ X-Group = \"b\" }}\nrewrite = \"/b/{{*}}\"\n\
         [[site.default.rule]]\npath = \"/page/*\"\nheader = {{ X-Group = \"c\" }}\nrewrite = \"/page?{{*}}\"\n",
        upstream.key()
    );
    let server = Running::start(Folder::with(&[]), &text);
    let group = ["X-Group: b"];
    assert_eq!(status(&server.fetch("GET /page", &group)), "fwd=uri-miss; stored");
    expect(&server.get("/page"), "fwd=uri-miss; stored", "GET /page HTTP/1.1");
    assert_eq!(status(&server.fetch("GET /page", &group)), "hit");
    // The rewritten target has the same length, and differs in one byte.
    assert_eq!(
        status(&server.fetch("GET /page/7", &["X-Group: c"])),
        "fwd=uri-miss; stored"
    );
    expect(&server.get("/page/7"), "fwd=uri-miss; stored", "GET /page/7 HTTP/1.1");
}

/// A response of known length that is too large is not stored either.
#[test]
fn a_length_beyond_the_limit_is_not_stored() {
    let body = "x".repeat(1_001);
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=60", &body));
    let server = cached(&upstream, "{ max_object = 1000 }");
    for _ in 0..2 {
        expect(&server.get("/"), "fwd=uri-miss; detail=body", &body);
    }
}

/// Starts a server with one worker and an upstream whose responses are sent when the test permits it. The worker
/// handles requests in the order in which the test sends them.
fn held(fields: &'static str) -> (Running, Upstream, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel();
    let released = Arc::new(Mutex::new(released));
    let upstream = Upstream::start(move |request, stream| {
        if !request.line.starts_with("GET /other") {
            released
                .lock()
                .expect("not poisoned")
                .recv()
                .expect("the test permits it");
        }
        let language = request.field("Accept-Language").unwrap_or("none");
        write_to(stream, response("200 OK", fields, language));
        Next::Keep
    });
    let text = format!(
        "[server]\nworkers = 1\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n",
        upstream.key()
    );
    (Running::start(Folder::with(&[]), &text), upstream, release)
}

#[test]
fn a_request_that_waits_gets_no_response_for_others() {
    for (fields, more, expected) in [
        (
            "Cache-Control: max-age=60|Vary: Accept-Language",
            "Accept-Language: en",
            "en",
        ),
        ("Cache-Control: max-age=60", "Authorization: x", "none"),
    ] {
        let (server, upstream, release) = held(fields);
        let mut clients = [server.connect(), server.connect()];
        clients[0].send(request("GET /", &[]));
        // The response to this request proves that the worker has read the previous one.
        server.get("/other");
        clients[1].send(request("GET /", &[more]));
        server.get("/other2");
        release.send(()).expect("the upstream waits");
        assert_eq!(clients[0].response().text(), "none");
        release.send(()).expect("the upstream waits");
        let response = clients[1].response();
        assert_eq!(response.text(), expected);
        assert!(!status(&response).contains("collapsed"), "{response:?}");
        assert_eq!(upstream.all().len(), 4, "{fields}");
    }
}

/// A request for which no other one waits finds purges by the number of all changes.
#[test]
fn a_purge_concerns_requests_for_which_no_other_waits() {
    let is_storable = Arc::new(AtomicBool::new(false));
    let storable = Arc::clone(&is_storable);
    let (ask, asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let channels = Arc::new(Mutex::new((ask, answers)));
    let upstream = Upstream::start(move |_, stream| {
        let control = match storable.load(Ordering::SeqCst) {
            true => {
                let channels = channels.lock().expect("not poisoned");
                channels.0.send(()).expect("the test waits");
                let () = channels.1.recv().expect("the test answers");
                "max-age=60"
            }
            false => "no-store",
        };
        write_to(stream, response("200 OK", &format!("Cache-Control: {control}"), "page"));
        Next::Keep
    });
    let server = cached(&upstream, "true");
    // After this response, requests for the address do not wait for each other for some seconds.
    server.fetch("GET /", &["If-None-Match: \"1\""]);
    is_storable.store(true, Ordering::SeqCst);
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    asked.recv().expect("a request");
    let purged = server.server().purge_responses(&ResponsePurge::default());
    assert_eq!(purged, Ok(0));
    answer.send(()).expect("the upstream waits");
    expect(&client.response(), "fwd=uri-miss; detail=purged", "page");
}

/// The guards of a route with scripts precede the store, although the path of a script is looked up first.
#[test]
fn guards_precede_stored_responses_of_programs() {
    let folder = Folder::with(&[(
        "www/cgi-bin/page",
        "#!/bin/sh\nprintf 'Cache-Control: max-age=60, public\\r\\n\\r\\npage'\n",
    )]);
    let program = folder.path("www/cgi-bin/page");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let text = |guard: &str| {
        format!("[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\ncgi = \"/cgi-bin\"\ncache = true\n{guard}\n")
    };
    let server = Running::start(folder, &text(""));
    expect(&server.get("/cgi-bin/page"), "fwd=uri-miss; stored", "page");
    expect(&server.get("/cgi-bin/page"), "hit", "page");
    for (guard, status) in [
        (format!("auth = {{ bob = \"{SECRET}\" }}"), 401),
        ("deny = \"all\"".to_owned(), 403),
    ] {
        server.reload(&text(&guard)).expect("a valid configuration");
        server.get("/cgi-bin/page").expect(&guard, status, &["!Cache-Status"]);
    }
}
