//! Settings that select the requests of the cache, the keys of responses, and their memory.

use rocknet_control::response_purge::ResponsePurge;

use super::super::support::upstream::Upstream;
use super::super::support::{Folder, Running};
use super::{cached, expect, response, status, upstream};

/// Starts an upstream whose responses contain the request line, and may be stored.
fn echo() -> Upstream {
    upstream(|request| match request.line.starts_with("GET") {
        true => response("200 OK", "Cache-Control: max-age=60", &request.line),
        false => response("200 OK", "Location: /a?id=1&new", ""),
    })
}

fn purge_of(url: &str) -> ResponsePurge {
    ResponsePurge {
        url: Some(url.to_owned()),
        ..ResponsePurge::default()
    }
}

#[test]
fn conditions_bypass_the_store() {
    let upstream = echo();
    let bypass = "{ query = { preview = \"*\" }, path = \"/a\" }, { header = { X-Fresh = \"*\" } }";
    let server = cached(&upstream, &format!("{{ bypass = [{bypass}] }}"));
    for (line, fields, expected) in [
        ("GET /a?preview=1", &[][..], "fwd=bypass"),
        ("GET /b?preview=1", &[], "fwd=uri-miss; stored"),
        ("GET /b?preview=1", &[], "hit"),
        ("GET /b?preview=1", &["X-Fresh: 1"], "fwd=bypass"),
        ("GET /a", &[], "fwd=uri-miss; stored"),
        ("GET /a", &[], "hit"),
        ("GET /a?preview=1", &[], "fwd=bypass"),
    ] {
        assert_eq!(status(&server.fetch(line, fields)), expected, "{line} {fields:?}");
    }
}

#[test]
fn a_template_makes_the_key() {
    let upstream = echo();
    let server = cached(&upstream, "{ key = \"{host}{path}?{query.id}{query.page}\" }");
    let body = "GET /a?id=1&utm_source=x HTTP/1.1";
    expect(&server.get("/a?id=1&utm_source=x"), "fwd=uri-miss; stored", body);
    expect(&server.get("/a?utm_source=y&id=1"), "hit", body);
    for (line, fields) in [
        // The parts of a key cannot be shifted from one value to another.
        ("GET /a?id=12", &[][..]),
        ("GET /a?id=1&page=2", &[]),
        ("GET /b?id=1", &[]),
        ("GET /a?id=1", &["Host: other.test"]),
        // Fields that some applications obey distinguish responses in any case.
        ("GET /a?id=1", &["X-Forwarded-Host: evil.test"]),
    ] {
        let other = server.fetch(line, fields);
        assert_eq!(status(&other), "fwd=uri-miss; stored", "{line} {fields:?}");
    }
    // A purge compares the path only.
    assert_eq!(
        server.server().purge_responses(&purge_of("http://localhost/c?id=1")),
        Ok(0)
    );
    let url = "http://localhost/a?utm_source=y";
    let dropped = server.server().purge_responses(&purge_of(url));
    assert_eq!(dropped, Ok(4), "all keys of /a at this host");
    assert_eq!(status(&server.get("/a?id=1&new")), "fwd=uri-miss; stored");
    // Unsafe methods invalidate the response with the same key, and that of `Location`.
    server.fetch("POST /b?id=1", &["Content-Length: 0"]);
    for path in ["/a?id=1", "/b?id=1"] {
        assert_eq!(status(&server.get(path)), "fwd=uri-miss; stored", "{path}");
    }
}

/// The keys of a URI are not known, so its path leads to all responses that an unsafe method invalidates.
#[test]
fn unsafe_methods_invalidate_all_responses_to_their_path() {
    let upstream = echo();
    let server = cached(
        &upstream,
        "{ key = \"{host}{path}?{query.page}{request.cookie.lang}\" }",
    );
    let requests = [
        ("GET /a", &[][..]),
        ("GET /a?page=1", &[]),
        ("GET /a?page=1", &["Cookie: lang=de"]),
        ("GET /list?page=9", &[]),
        ("GET /a/b", &[]),
        ("GET /a?page=1", &["Host: other.test"]),
    ];
    let heat = || {
        for (line, fields) in &requests {
            server.fetch(line, fields);
        }
    };
    for (line, fields, dropped) in [
        ("POST /a?page=2", &["Content-Length: 0"][..], 3),
        ("DELETE /a", &["Content-Length: 0", "Host: LOCALHOST:80"], 3),
        ("PUT /a/b?x", &["Content-Length: 0"], 4),
        ("POST /unknown", &["Content-Length: 0"], 3),
    ] {
        heat();
        heat();
        server.fetch(line, fields);
        let is_hit = |(line, fields): &(&str, &[&str])| status(&server.fetch(line, fields)) == "hit";
        let missing: Vec<_> = requests.iter().filter(|request| !is_hit(request)).collect();
        assert_eq!(missing.len(), dropped, "{line}: {missing:?}");
    }
}

#[test]
fn a_client_cannot_choose_the_response_under_the_key_of_others() {
    let upstream = echo();
    let server = cached(
        &upstream,
        "{ key = \"{host}{path}?{query.page}{request.cookie.lang}{request.header.X-Api}\" }",
    );
    for (line, fields, expected) in [
        // The application may read another value than the template.
        ("GET /a?page=1&page=2", &[][..], "fwd=bypass"),
        ("GET /a?page=1&pa%67e=2", &[], "fwd=bypass"),
        ("GET /a?page=1", &["Cookie: lang=de; lang=en"], "fwd=bypass"),
        ("GET /a?page=1", &["X-Api: 1", "X-Api: 2"], "fwd=bypass"),
        ("GET /a?page=1", &["X-Api: 1", "X_Api: 2"], "fwd=bypass"),
        // The application gets another host or path than the template.
        ("GET /a?page=1", &["Host: localhost:1234"], "fwd=uri-miss; stored"),
        ("GET //a?page=1", &[], "fwd=uri-miss; stored"),
        ("GET /%61?page=1", &[], "fwd=uri-miss; stored"),
        ("GET /b/../a?page=1", &[], "fwd=uri-miss; stored"),
        ("GET /a?page=1", &[], "fwd=uri-miss; stored"),
        ("GET /a?utm=x&page=1", &[], "hit"),
    ] {
        assert_eq!(status(&server.fetch(line, fields)), expected, "{line} {fields:?}");
    }
}

#[test]
fn a_site_with_its_own_memory_displaces_no_other() {
    const PAGE: usize = 100 * 1024;
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=60", &"x".repeat(PAGE)));
    let text = |memory: &str| {
        format!(
            "[cache]\nresponses = \"2MiB\"\n[site.default]\nlisten = \"127.0.0.1:0\"\n{0}\ncache = true\n\
             [site.\"own.test\"]\nlisten = \"127.0.0.1:0\"\ntls = \"off\"\n{0}\ncache = {memory}\n",
            upstream.key()
        )
    };
    let server = Running::start(Folder::with(&[]), &text("{ memory = \"1MiB\" }"));
    let own = ["Host: own.test"];
    assert_eq!(status(&server.get("/")), "fwd=uri-miss; stored");
    for number in 0..30 {
        let line = format!("GET /{number}");
        assert_eq!(status(&server.fetch(&line, &own)), "fwd=uri-miss; stored");
    }
    // 3 MiB of the other site would have displaced it.
    assert_eq!(status(&server.get("/")), "hit");
    let metrics = rocknet::inventory::metrics(server.server());
    let bytes = metrics
        .lines()
        .find_map(|line| line.strip_prefix("rocknet_stored_bytes "));
    let bytes: usize = bytes.and_then(|bytes| bytes.parse().ok()).expect("a number of bytes");
    assert!((2 * PAGE..=PAGE * 12).contains(&bytes), "{bytes}");
    let site = ResponsePurge {
        site: Some("own.test".to_owned()),
        ..ResponsePurge::default()
    };
    let dropped = server.server().purge_responses(&site).expect("a purge");
    assert!((1..=10).contains(&dropped), "{dropped}");
    // A larger memory takes effect by a reload, and keeps the responses.
    assert_eq!(status(&server.fetch("GET /0", &own)), "fwd=uri-miss; stored");
    server
        .reload(&text("{ memory = \"8MiB\" }"))
        .expect("a valid configuration");
    assert_eq!(status(&server.fetch("GET /0", &own)), "hit");
    for number in 1..30 {
        server.fetch(&format!("GET /{number}"), &own);
    }
    assert_eq!(server.server().purge_responses(&site), Ok(30));
    // Without its own memory, the site shares that of all.
    server.reload(&text("true")).expect("a valid configuration");
    assert_eq!(status(&server.fetch("GET /0", &own)), "fwd=uri-miss; stored");
    assert_eq!(status(&server.get("/")), "hit");
}

#[test]
fn the_access_log_has_the_outcome() {
    let upstream = upstream(|request| match request.field("If-None-Match") {
        Some(_) => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        None => {
            let control = if request.line.contains("stale") {
                "max-age=0"
            } else {
                "max-age=60"
            };
            response("200 OK", &format!("Cache-Control: {control}|ETag: \"1\""), "page")
        }
    });
    let folder = Folder::with(&[("www/x", "")]);
    let file = folder.path("access.log");
    let log = format!(
        "log = {{ access = \"{}\", format = \"{{path}} {{cache.status}}\" }}",
        file.display()
    );
    let settings = format!(
        "{}\ncache = true\n{log}\nheaders = {{ Cache-Status = \"\" }}",
        upstream.key()
    );
    let server = Running::site(folder, &settings);
    for path in ["/a", "/a", "/stale", "/stale"] {
        server.get(path).expect("a hidden field", 200, &["!Cache-Status"]);
    }
    server.fetch("POST /a", &["Content-Length: 0"]);
    let (server, _folder) = server.take();
    server.stop();
    let lines = std::fs::read_to_string(&file).expect("an access log");
    let expected = ["/a MISS", "/a HIT", "/stale MISS", "/stale REVALIDATED", "/a BYPASS"];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}
