//! Routes of a site: matching, fallbacks, error pages, redirects and added header fields.

use super::support::handlers::Echo;
use super::support::running::{mount, site};
use super::support::{Client, Folder, Running};

/// Request line, and expected status, header fields and beginning of the body.
type Row<'a> = (&'a str, u16, &'a [&'a str], &'a str);

#[track_caller]
fn check(client: &mut Client, rows: &[Row<'_>]) {
    for _ in 0..2 {
        // The second responses come from the worker cache.
        for (line, status, fields, content) in rows {
            let response = client.fetch(line, &[]);
            response.expect(line, *status, fields);
            assert!(response.text().starts_with(content), "{line}: {response:?}");
        }
    }
}

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "home"),
        ("www/about.html", "about"),
        ("www/app.js", "script"),
        ("www/404.html", "custom missing"),
        ("www/405.html", "custom method"),
        ("www/.well-known/x", "known"),
        ("www/api/data", "data"),
        ("www/deep/a/b.txt", "deep"),
        ("www/docs/index.html", "docs"),
        ("www/file.zip", "zip"),
        ("downloads/downloads/file.zip", "another root"),
        ("downloads/downloads/deep/x.zip", "another root, deep"),
        ("exact/hello", "exact"),
    ])
}

#[test]
fn a_path_that_no_file_can_have_reaches_its_route() {
    let server = Running::site(folder(), "route.\"/wiki/*\" = { fallback = \"/about.html\" }");
    check(
        &mut server.connect(),
        &[
            ("GET /wiki/Special:Search", 200, &[], "about"),
            ("GET /wiki/a%2Fb", 200, &[], "about"),
            ("GET /x/..//wiki/con", 200, &[], "about"),
            ("GET /other:x", 404, &[], ""),
            ("GET /wiki/:%00", 400, &[], ""),
        ],
    );
}

#[test]
fn a_fallback_is_served_for_missing_files() {
    let server = Running::site(folder(), "fallback = \"/index.html\"");
    check(
        &mut server.connect(),
        &[
            (
                "GET /app.js",
                200,
                &["Content-Type: text/javascript; charset=utf-8"],
                "script",
            ),
            (
                "GET /users/17",
                200,
                &["Content-Type: text/html; charset=utf-8"],
                "home",
            ),
            ("GET /users/17/", 200, &[], "home"),
            ("GET /users/a%2Fb", 200, &[], "home"),
            (
                "HEAD /nothing.png",
                200,
                &["Content-Type: text/html; charset=utf-8"],
                "",
            ),
            ("GET /api", 308, &["Location: ./api/"], ""),
            ("GET /.git/config", 404, &[], ""),
            ("GET /%00", 400, &[], ""),
            ("POST /users/17", 405, &[], ""),
        ],
    );
    // The fallback is disabled for a route, so a missing file below it gets a 404.
    let server = Running::site(
        folder(),
        "fallback = \"/index.html\"\n\
         route.\"/assets/*\" = { fallback = false, headers = { Cache-Control = \"max-age=60, immutable\", X-A = \"1\" } }",
    );
    check(
        &mut server.connect(),
        &[
            ("GET /users/17", 200, &[], "home"),
            ("GET /assets/gone.js", 404, &["X-A: 1", "!Cache-Control"], ""),
        ],
    );
}

#[test]
fn paths_are_tried_in_order() {
    let server = Running::site(folder(), "try = [\"{path}\", \"{path}.html\", \"/404.html\"]");
    check(
        &mut server.connect(),
        &[
            ("GET /", 200, &[], "home"),
            ("GET /about.html", 200, &[], "about"),
            ("GET /about", 200, &["Content-Type: text/html; charset=utf-8"], "about"),
            ("GET /about/", 200, &[], "about"),
            ("GET /nothing", 200, &[], "custom missing"),
            ("GET /no:file", 200, &[], "custom missing"),
            ("GET /con", 200, &[], "custom missing"),
            ("GET /docs/", 200, &[], "docs"),
            ("GET /.git/x", 404, &[], ""),
        ],
    );
    let server = Running::site(folder(), "try = [\"{path}.html\"]\nfallback = \"/app.js\"");
    check(
        &mut server.connect(),
        &[("GET /about", 200, &[], "about"), ("GET /nothing", 200, &[], "script")],
    );
    let server = Running::site(folder(), "try = [\"{path}.html\"]");
    check(
        &mut server.connect(),
        &[("GET /about", 200, &[], "about"), ("GET /nothing", 404, &[], "")],
    );
}

#[test]
fn errors_get_the_configured_pages() {
    let server = Running::site(
        folder(),
        "errors = { 404 = \"/404.html\", 400 = \"/gone.html\" }\nheaders = { \"X-Site\" = \"here\" }\n\
         route.\"/api/*\" = { errors = { 404 = \"/app.js\" } }",
    );
    let mut client = server.connect();
    check(
        &mut client,
        &[
            (
                "GET /none",
                404,
                &[
                    "!ETag",
                    "!Last-Modified",
                    "X-Site: here",
                    "Content-Type: text/html; charset=utf-8",
                ],
                "custom",
            ),
            ("HEAD /none", 404, &["Content-Length: 14"], ""),
            ("GET /.env", 404, &[], "custom"),
            ("GET /a%2Fb", 404, &[], "custom"),
            ("GET /404.html", 200, &["ETag"], "custom"),
            (
                "GET /api/none",
                404,
                &["Content-Type: text/javascript; charset=utf-8"],
                "script",
            ),
            // If the error page is missing, the built-in page is sent.
            (
                "GET /%zz",
                400,
                &["Content-Type: text/html; charset=utf-8"],
                "<!doctype html>",
            ),
        ],
    );
    for fields in [
        &["If-None-Match: *"][..],
        &["Range: bytes=0-1"],
        &["If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT"],
    ] {
        client
            .fetch("GET /none", fields)
            .expect("a condition on a missing file", 404, &["Content-Length: 14"]);
    }
    let plain = Running::site(folder(), "");
    check(
        &mut plain.connect(),
        &[
            (
                "GET /none",
                404,
                &[
                    "Content-Type: text/html; charset=utf-8",
                    "X-Content-Type-Options: nosniff",
                ],
                "<!doctype html>",
            ),
            ("HEAD /none", 404, &["Content-Length"], ""),
            (
                "POST /",
                405,
                &["Content-Type: text/html; charset=utf-8"],
                "<!doctype html>",
            ),
        ],
    );
}

#[test]
fn every_error_of_a_site_gets_its_page() {
    let server = Running::site(folder(), "errors = { 405 = \"/405.html\", 400 = \"/404.html\" }");
    check(
        &mut server.connect(),
        &[
            (
                "POST /",
                405,
                &["Allow: GET, HEAD, OPTIONS", "Content-Type: text/html; charset=utf-8"],
                "custom method",
            ),
            ("GET /%zz", 400, &["!ETag"], "custom missing"),
        ],
    );
}

#[test]
fn fields_are_added_and_removed() {
    let server = Running::site(
        folder(),
        "headers = { \"X-Site\" = \"site\", \"X-Both\" = \"site\", \"Content-Type\" = \"text/x-own\", \"x-content-type-options\" = \"\" }\n\
         redirects = { \"/old\" = \"/new\" }\n\
         route.\"/api/*\" = { headers = { \"X-Both\" = \"route\", \"X-Route\" = \"r\", \"X-Site\" = \"\", \"Server\" = \"\" } }",
    );
    let site = [
        "X-Site: site",
        "X-Both: site",
        "!X-Route",
        "Server: RockNet",
        "!X-Content-Type-Options",
    ];
    check(
        &mut server.connect(),
        &[
            (
                "GET /about.html",
                200,
                &["X-Site: site", "Content-Type: text/x-own"],
                "about",
            ),
            ("GET /about.html", 200, &site, "about"),
            ("GET /none", 404, &site, ""),
            ("GET /old", 308, &site, ""),
            ("GET /docs", 308, &site, ""),
            ("POST /docs", 405, &site, ""),
            ("OPTIONS /docs", 204, &site, ""),
            ("GET /%00", 400, &site, ""),
            (
                "GET /api/data",
                200,
                &["X-Both: route", "X-Route: r", "!X-Site", "!Server"],
                "data",
            ),
            ("GET /api/none", 404, &["X-Both: route", "!Server"], ""),
        ],
    );
    let mut client = server.connect();
    let etag = format!(
        "If-None-Match: {}",
        client.get("/about.html").field("ETag").expect("a tag")
    );
    client
        .fetch("GET /about.html", &[&etag])
        .expect("not modified", 304, &["X-Site: site"]);
    client
        .fetch("GET /about.html", &["Range: bytes=0-1"])
        .expect("a part", 206, &["X-Site: site"]);
}

#[test]
fn redirects_lead_to_their_targets() {
    let server = Running::site(
        folder(),
        "redirects = { \"/old\" = \"/new\", \"/blog/*\" = \"/news/{*}\", \"/away/*\" = \"https://other.example/{*}\", \
         \"/query\" = \"/q?fixed=1\", \"/soon\" = { to = \"/now\", status = 302 }, \"/app.js\" = \"/moved.js\" }\n\
         route.\"/api/*\" = { redirects = { \"/api/v1/*\" = \"/api/v2/{*}\" } }",
    );
    let mut client = server.connect();
    for (line, status, location) in [
        ("GET /old", 308, "/new"),
        ("GET /old?a=b", 308, "/new?a=b"),
        ("POST /old", 308, "/new"),
        ("HEAD /old", 308, "/new"),
        ("GET //old", 308, "/new"),
        ("GET /%6fld", 308, "/new"),
        ("GET /blog/2020/x%20y", 308, "/news/2020/x%20y"),
        ("GET /blog/", 308, "/news/"),
        ("GET /blog/%2F%2Fevil.example", 308, "/news/%2F%2Fevil.example"),
        ("GET /blog/Talk:Main", 308, "/news/Talk:Main"),
        ("GET /blog///evil.example", 308, "/news/evil.example"),
        ("GET /away/x?y", 308, "https://other.example/x?y"),
        ("GET /away/@evil.example", 308, "https://other.example/@evil.example"),
        ("GET /query?a", 308, "/q?fixed=1"),
        ("GET /soon", 302, "/now"),
        ("GET /app.js", 308, "/moved.js"),
        ("GET /old/", 404, ""),
        ("GET /older", 404, ""),
        ("GET /api/v1/x", 308, "/api/v2/x"),
    ] {
        let response = client.fetch(line, &["Host: localhost", "X-Forwarded-Host: evil.example"]);
        response.expect(line, status, &[]);
        assert_eq!(response.field("Location").unwrap_or_default(), location, "{line}");
    }
}

#[test]
fn the_most_specific_route_is_used() {
    let route = |pattern: &str, keys: &str| {
        format!("[site.default.route.\"{pattern}\"]\nheaders = {{ \"X-Route\" = \"{pattern}\" }}\n{keys}\n")
    };
    // The routes are listed from the least to the most specific, and in reverse order: the order must not matter.
    let routes = [
        route("*.zip", ""),
        route("/deep/*/b.txt", ""),
        route("/deep/*", ""),
        route("/downloads/*", "root = \"downloads\""),
        route("/downloads/deep/*", ""),
        route("/hello", "root = \"exact\""),
        route("/docs/", ""),
    ];
    for reversed in [false, true] {
        let mut routes = routes.to_vec();
        if reversed {
            routes.reverse();
        }
        let server = Running::site(folder(), &routes.concat());
        check(
            &mut server.connect(),
            &[
                ("GET /", 200, &["!X-Route"], "home"),
                ("GET /file.zip", 200, &["X-Route: *.zip"], "zip"),
                (
                    "GET /downloads/file.zip",
                    200,
                    &["X-Route: /downloads/*"],
                    "another root",
                ),
                // A route has the keys of its site, and none of a less specific route.
                ("GET /downloads/deep/x.zip", 404, &["X-Route: /downloads/deep/*"], ""),
                ("GET /deep/a/b.txt", 200, &["X-Route: /deep/*"], "deep"),
                ("GET /hello", 200, &["X-Route: /hello"], "exact"),
                ("GET /hello/", 404, &["!X-Route"], ""),
                ("GET /docs/", 200, &["X-Route: /docs/"], "docs"),
                ("GET /docs", 308, &["!X-Route"], ""),
                // A route applies to the decoded path, so no other encoding bypasses it.
                ("GET /%68ello", 200, &["X-Route: /hello"], "exact"),
                ("GET //hello", 200, &["X-Route: /hello"], "exact"),
                ("GET /x/../hello", 200, &["X-Route: /hello"], "exact"),
                ("GET /dee%70/a/b.txt", 200, &["X-Route: /deep/*"], "deep"),
                ("GET /HELLO", 404, &["!X-Route"], ""),
            ],
        );
    }
}

#[test]
fn mounted_handlers_precede_the_redirects_of_their_site() {
    let folder = Folder::with(&[("www/a.txt", "a")]);
    let text = site("redirects = { \"/*\" = \"https://example.org/{*}\" }");
    let server = Running::start_with(folder, &text, vec![mount("/echo", Echo)]);
    assert_eq!(server.get("/echo").status, 200);
    assert_eq!(server.get("/a.txt").status, 308);
}

over_http3! {
    a_path_that_no_file_can_have_reaches_its_route,
    a_fallback_is_served_for_missing_files,
    paths_are_tried_in_order,
    errors_get_the_configured_pages,
    every_error_of_a_site_gets_its_page,
    fields_are_added_and_removed,
    redirects_lead_to_their_targets,
    the_most_specific_route_is_used,
    mounted_handlers_precede_the_redirects_of_their_site,
}
