//! Responses of one client that must not reach another: privacy, poisoning and guards.

use super::super::access::SECRET;
use super::super::support::http2::Http2;
use super::super::support::upstream::Upstream;
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
