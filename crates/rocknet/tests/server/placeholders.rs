//! Placeholders in header fields, redirects, rewrites and response bodies, and in fields for upstreams.

use super::access::{auth, basic};
use super::support::http2::Http2;
use super::support::upstream::{Upstream, ok};
use super::support::{Folder, Running};

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "home"),
        ("www/a.txt", "text a"),
        ("www/lang/de/index.html", "Hallo"),
        ("www/secret.txt", "secret"),
    ])
}

#[test]
fn header_fields_have_values_of_each_request() {
    let server = Running::site(
        folder(),
        r#"
        headers = { "X-Client" = "{client.ip}", "X-Seen" = "{method} {path} {status}", "X-Sent" = "{request.header.X-In}" }
        errors = { 404 = "/a.txt" }
        "#,
    );
    let mut client = server.connect();
    // The first response is loaded from the disk, the next ones come from the cache.
    for sent in ["1", "2", "three", "4"] {
        let field = format!("X-In: {sent}");
        let response = client.fetch("GET /a%2Etxt", &[&field, "Accept-Encoding: gzip"]);
        let expected = format!("X-Sent: {sent}");
        response.expect(sent, 200, &["X-Client: 127.0.0.1", "X-Seen: GET /a.txt 200", &expected]);
        assert_eq!(response.text(), "text a");
    }
    let response = client.get("/a.txt");
    response.expect("an empty value", 200, &["Accept-Ranges: bytes"]);
    assert_eq!(response.field("X-Sent"), None);
    let tag = format!("If-None-Match: {}", response.field("ETag").expect("a tag"));
    let unchanged = client.fetch("GET /a.txt", &[&tag, "X-In: 5"]);
    unchanged.expect("304", 304, &["X-Seen: GET /a.txt 304", "X-Sent: 5"]);
    assert_eq!(unchanged.field("ETag"), response.field("ETag"));
    let part = client.fetch("GET /a.txt", &["Range: bytes=0-3", "X-In: 6"]);
    part.expect("a part", 206, &["X-Sent: 6", "Content-Range: bytes 0-3/6"]);
    let head = client.fetch("HEAD /a.txt", &["X-In: 7"]);
    head.expect("no content", 200, &["X-Sent: 7", "Content-Length: 6"]);
    // Bytes that no field can have are encoded.
    let missing = client.fetch("GET /n%C3%B6ne", &["X-In: 8"]);
    missing.expect("missing", 404, &["X-Seen: GET /n%C3%B6ne 404", "X-Sent: 8"]);
    assert_eq!(missing.text(), "text a");
    let refused = client.fetch("GET /a%0Ab", &["X-In: 9"]);
    refused.expect("a control character", 400, &["X-Seen: GET /a%0Ab 400", "X-Sent: 9"]);
}

#[test]
fn coded_and_partial_responses_keep_their_validators() {
    let text = "some words to compress. ".repeat(400);
    let folder = Folder::with(&[("www/big.txt", &text)]);
    let server = Running::site(folder, "headers = { \"X-Path\" = \"{path}\" }");
    let mut client = server.connect();
    let plain = client.get("/big.txt");
    let plain_tag = plain.field("ETag").expect("a tag").to_owned();
    // The first request encodes the file; the second gets the stored variant.
    for _ in 0..2 {
        let coded = client.fetch("GET /big.txt", &["Accept-Encoding: gzip"]);
        coded.expect(
            "coded",
            200,
            &["Content-Encoding: gzip", "Vary: Accept-Encoding", "X-Path: /big.txt"],
        );
        assert!(coded.body.len() < text.len() / 4, "{} bytes", coded.body.len());
        let tag = coded.field("ETag").expect("a tag").to_owned();
        assert_ne!(tag, plain_tag);
        let unchanged = client.fetch(
            "GET /big.txt",
            &["Accept-Encoding: gzip", &format!("If-None-Match: {tag}")],
        );
        unchanged.expect(
            "304 of the coded form",
            304,
            &[&format!("ETag: {tag}"), "X-Path: /big.txt"],
        );
    }
    // A range selects the plain form, whatever the client accepts.
    let fields = [
        "Accept-Encoding: gzip",
        "Range: bytes=0-3",
        &format!("If-None-Match: {plain_tag}"),
    ];
    let unchanged = client.fetch("GET /big.txt", &fields);
    unchanged.expect("304 of the plain form", 304, &[&format!("ETag: {plain_tag}")]);
}

#[test]
fn an_empty_value_removes_the_field_of_an_upstream() {
    let upstream = Upstream::responding_with("HTTP/1.1 200 OK\r\nX-User: forged\r\nContent-Length: 2\r\n\r\nok");
    let server = Running::site(
        folder(),
        &format!(
            "proxy = \"{}\"\nheaders = {{ \"X-User\" = \"{{user}}\" }}",
            upstream.url()
        ),
    );
    let response = server.fetch("GET /", &[]);
    response.expect("a response of the upstream", 200, &[]);
    assert_eq!(response.field("X-User"), None);
}

#[test]
fn the_authenticated_user_is_known_everywhere() {
    let keys = r#"
        headers = { "X-User" = "{user}" }
        redirects = { "/me" = "/users/{user}" }
        rule = [{ path = "/who", respond = 200, body = "{user}" }, { path = "/home", redirect = "/~{user}/" }]
    "#;
    let server = Running::site(folder(), &format!("{}\n{keys}", auth()));
    // The first request waits for the check of the password; later ones use its result.
    for _ in 0..2 {
        for (line, status, location, body) in [
            ("GET /a.txt", 200, None, "text a"),
            ("GET /who", 200, None, "bob"),
            ("GET /home", 308, Some("/~bob/"), ""),
            ("GET /me", 308, Some("/users/bob"), ""),
        ] {
            let response = server.fetch(line, &[&basic("bob", "secret")]);
            response.expect(line, status, &["X-User: bob"]);
            assert_eq!(response.field("Location"), location, "{line}");
            assert!(response.text().starts_with(body), "{line}: {response:?}");
        }
    }
    let refused = server.fetch("GET /a.txt", &[]);
    refused.expect("without a password", 401, &[]);
    assert_eq!(refused.field("X-User"), None);
}

#[test]
fn header_fields_have_values_over_http2() {
    let server = Running::start(
        folder(),
        "[server]\nh2c = true\n[site.\":0\"]\nroot = \"www\"\nheaders = { \"X-Path\" = \"{path}{query.a}\", \
         \"X-Protocol\" = \"{protocol} {scheme}\" }\n",
    );
    let mut client = Http2::to(server.address());
    for _ in 0..3 {
        let response = client.get("/a.txt?b=1&a=2");
        assert_eq!((response.status.as_u16(), &response.content[..]), (200, &b"text a"[..]));
        assert_eq!(response.fields["x-path"], "/a.txt2");
        assert_eq!(response.fields["x-protocol"], "HTTP/2.0 http");
    }
}

#[test]
fn redirects_and_rewrites_have_values() {
    let server = Running::site(
        folder(),
        r#"
        redirects = { "/secure" = "https://{host}:8443{target}", "/www/*" = { to = "https://www.{host}/{*}", status = 302 } }
        rule = [
            { path = "/login", redirect = "/in?next={target}&from={request.header.Referer}", status = 303 },
            { path = "/", cookie = { lang = "*" }, rewrite = "/lang/{request.cookie.lang}/" },
            { path = "/text", rewrite = "/a.{query.kind}" },
        ]
        "#,
    );
    let mut client = server.connect();
    // Request line, further fields, status, and `Location` or the beginning of the body.
    for (line, fields, status, expected) in [
        (
            "GET /secure?a=b",
            &["Host: EXAMPLE.org:80"][..],
            308,
            "https://example.org:8443/secure?a=b",
        ),
        (
            "GET /www/x?q",
            &["Host: example.org"],
            302,
            "https://www.example.org/x?q",
        ),
        ("GET /secure", &["Host: a_b..c/evil"], 400, ""),
        (
            "GET /login?a=1&b=%20",
            &["Referer: http://h/?x&y#z"],
            303,
            "/in?next=/login%3Fa%3D1%26b%3D%2520&from=http%3A//h/%3Fx%26y%23z",
        ),
        ("GET /", &["Cookie: lang=de"], 200, "Hallo"),
        ("GET /", &["Cookie: lang=.."], 404, ""),
        ("GET /", &["Cookie: lang=../../secret.txt"], 404, ""),
        ("GET /text?kind=txt", &[], 200, "text a"),
        ("GET /text?kind=../secret.txt", &[], 404, ""),
        ("GET /text?kind=/../secret.txt", &[], 404, ""),
    ] {
        let response = client.fetch(line, fields);
        response.expect(line, status, &[]);
        match status {
            300..400 => assert_eq!(response.field("Location"), Some(expected), "{line}"),
            _ => assert!(response.text().starts_with(expected), "{line}: {response:?}"),
        }
        if response.status == 400 {
            client = server.connect();
        }
    }
}

#[test]
fn bodies_escape_values_for_their_media_type() {
    let server = Running::site(
        folder(),
        r#"
        rule = [{ path = ["/ip", "/html/*", "/json/*"], respond = 200, body = "<{request.header.X}> {{host}} {client.ip}" }]
        route."/html/*".headers = { "Content-Type" = "text/html; charset=utf-8" }
        route."/json/*".headers = { "Content-Type" = "application/json" }
        "#,
    );
    let mut client = server.connect();
    for (path, expected) in [
        ("/ip", "<<b a=\"\\\">> {host} 127.0.0.1"),
        ("/html/x", "<&lt;b a=&quot;\\&quot;&gt;> {host} 127.0.0.1"),
        ("/json/x", "<\\u003cb a=\\\"\\\\\\\">> {host} 127.0.0.1"),
    ] {
        let response = client.fetch(&format!("GET {path}"), &["X: <b a=\"\\\">"]);
        response.expect(path, 200, &[]);
        assert_eq!(response.text(), expected, "{path}");
    }
}

#[test]
fn upstreams_and_clients_get_the_same_request_id() {
    let upstream = Upstream::responding_with(ok("hello"));
    let text = format!(
        "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[site.default]\nlisten = \"127.0.0.1:0\"\n\
         headers = {{ \"X-Request-Id\" = \"{{request.id}}\", \"X-Upstream\" = \"{{upstream}}\" }}\n\
         proxy = {{ to = \"{}\", headers = {{ \"X-Request-Id\" = \"{{request.id}}\", \"X-Real-IP\" = \"{{client.ip}}\", \
         \"X-User\" = \"{{user}}\", \"Host\" = \"{{host}}.internal\" }} }}\n",
        upstream.url()
    );
    let server = Running::start(folder(), &text);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let response = server.fetch(
            "GET /",
            &["Host: a.test:81", "X-User: forged", "X-Forwarded-For: 192.0.2.7"],
        );
        response.expect("a proxied request", 200, &[]);
        let incoming = upstream.last();
        assert_eq!(incoming.field("X-Real-IP"), Some("192.0.2.7"));
        assert_eq!(
            incoming.field("X-User"),
            None,
            "an empty value removes the field of the client"
        );
        assert_eq!(incoming.field("Host"), Some("a.test.internal"));
        let id = response.field("X-Request-Id").expect("an identifier").to_owned();
        assert_eq!(incoming.field("X-Request-Id"), Some(&*id));
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{id}"
        );
        assert!(
            upstream
                .url()
                .ends_with(response.field("X-Upstream").expect("an upstream")),
            "{response:?}"
        );
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
    // The peer is trusted, so its identifier is kept if it is one.
    for (sent, is_kept) in [("abc-123", true), ("a b", false), ("", false)] {
        let response = server.fetch("GET /", &[&format!("X-Request-Id: {sent}")]);
        assert_eq!(response.field("X-Request-Id") == Some(sent), is_kept, "{sent}");
        assert_eq!(upstream.last().field("X-Request-Id"), response.field("X-Request-Id"));
    }
    let untrusted = Running::site(folder(), "headers = { \"X-Request-Id\" = \"{request.id}\" }");
    let response = untrusted.fetch("GET /a.txt", &["X-Request-Id: forged"]);
    assert_eq!(response.field("X-Request-Id").map(str::len), Some(32));
}

over_http3! {
    header_fields_have_values_of_each_request,
    bodies_escape_values_for_their_media_type,
}
