//! Upstream responses that a site replaces: by its own error pages, and by files that the response names.

use super::support::client::request;
use super::support::upstream::{Next, Upstream, write_to};
use super::support::{Folder, Running};

fn folder() -> Folder {
    Folder::with(&[
        ("www/404.html", "own 404"),
        ("www/502.html", "own 502"),
        ("www/502.php", "<?php $password = 'secret';"),
        ("www/cgi-bin/502.sh", "#!/bin/sh\npassword=secret\n"),
        ("www/plain.txt", "0123456789"),
        ("private/inside/report.txt", "a report"),
        ("secret.txt", "outside"),
    ])
}

/// Starts an upstream that responds with the status and the fields in the path. `|` separates them, `::` separates name
/// and value, and `UP` stands for `..`, which RockNet would remove from the path.
fn scripted() -> Upstream {
    Upstream::start(|incoming, stream| {
        let path = incoming.line.split(' ').nth(1).expect("a target");
        let output = path
            .trim_start_matches('/')
            .replace('|', "\r\n")
            .replace("%20", " ")
            .replace("::", ": ")
            .replace("UP", "..");
        write_to(
            stream,
            format!("HTTP/1.1 {output}\r\nContent-Length: 5\r\n\r\n{}", "other"),
        );
        Next::Keep
    })
}

#[test]
fn errors_get_the_pages_of_the_site() {
    let keys = "errors = { 502 = \"/502.html\", 504 = \"/none.html\" }\nproxy = \"http://127.0.0.1:1\"\n";
    let server = Running::site(folder(), keys);
    let mut client = server.connect();
    for _ in 0..2 {
        let response = client.get("/x");
        response.expect(
            "nothing listens there",
            502,
            &["Content-Type: text/html; charset=utf-8", "Content-Length: 7"],
        );
        assert_eq!(response.text(), "own 502");
    }
    client.fetch("HEAD /x", &[]).expect("HEAD", 502, &["Content-Length: 7"]);
    // A site without a root has no page, so the built-in page is sent.
    let server = Running::start(
        folder(),
        "[site.default]\nlisten = \"127.0.0.1:0\"\nerrors = { 502 = \"/502.html\" }\nproxy = \"http://127.0.0.1:1\"\n",
    );
    assert!(
        server
            .get("/")
            .expect("no root", 502, &[])
            .text()
            .contains("502 Bad Gateway")
    );
}

#[test]
fn scripts_are_not_used_as_error_pages() {
    for page in ["/502.php", "/cgi-bin/502.sh"] {
        let text = format!(
            "errors = {{ 502 = \"{page}\" }}\nphp = \"unix:/none\"\ncgi = \"/cgi-bin\"\n\
             [site.default.route.\"/api/*\"]\nproxy = \"http://127.0.0.1:1\"\n"
        );
        let server = Running::site(folder(), &text);
        let response = server.get("/api/x").expect(page, 502, &[]).text();
        assert!(response.contains("502 Bad Gateway"), "{page}: {response}");
        assert!(!response.contains("secret"), "{page}: {response}");
    }
}

#[test]
fn errors_of_upstreams_are_replaced_if_configured() {
    let upstream = scripted();
    for (keys, target, status, fields, content) in [
        ("", "404", 404, &[][..], "other"),
        (
            ", intercept = true",
            "404%20No",
            404,
            &["Content-Type: text/html; charset=utf-8"][..],
            "own 404",
        ),
        (
            ", intercept = true",
            "404%20No|ETag::%22x%22|Content-Encoding::br|Retry-After::7",
            404,
            &["Retry-After: 7", "!Content-Encoding", "!ETag", "Content-Length: 7"],
            "own 404",
        ),
        (", intercept = true", "502%20No", 502, &[], "own 502"),
        // No page is configured for the status, or the page does not exist.
        (", intercept = true", "403%20No|X-A::1", 403, &["X-A: 1"], "other"),
        (", intercept = true", "500%20No|X-A::1", 500, &["X-A: 1"], "other"),
        // A response without an error is never replaced.
        (", intercept = true", "200%20OK", 200, &[], "other"),
    ] {
        let text = format!(
            "errors = {{ 404 = \"/404.html\", 500 = \"/none.html\", 502 = \"/502.html\" }}\n\
             proxy = {{ to = \"{}\"{keys} }}\n",
            upstream.url()
        );
        let server = Running::site(folder(), &text);
        let mut client = server.connect();
        for _ in 0..2 {
            let response = client.get(&format!("/{target}"));
            response.expect(target, status, fields);
            assert_eq!(response.text(), content, "{keys} {target}");
        }
    }
}

#[test]
fn accel_redirects_of_upstreams_are_followed_if_allowed() {
    let upstream = scripted();
    let start = |keys: &str| {
        let text = format!(
            "errors = {{ 404 = \"/404.html\" }}\nproxy = {{ to = \"{}\", {keys} }}\n\
             [site.default.route.\"/inside/*\"]\nroot = \"private\"\ninternal = true\n\
             [site.default.route.\"/plain.txt\"]\nroot = \"www\"\n",
            upstream.url()
        );
        Running::site(folder(), &text)
    };
    let server = start("send_files = true");
    let root = server
        .folder
        .path("private")
        .canonicalize()
        .expect("a root")
        .display()
        .to_string();
    let secret = server.folder.path("secret.txt").display().to_string();
    let mut client = server.connect();
    for (target, status, fields, content) in [
        (
            "200%20OK|X-Accel-Redirect::/inside/report.txt|Content-Type::text/x|Set-Cookie::a=b",
            200,
            &["Content-Type: text/x", "Set-Cookie: a=b", "ETag", "!X-Accel-Redirect"][..],
            "a report",
        ),
        (
            &format!("200%20OK|X-Sendfile::{root}/inside/report.txt"),
            200,
            &["!X-Sendfile"],
            "a report",
        ),
        ("200%20OK|X-Accel-Redirect::/plain.txt", 200, &[], "0123456789"),
        ("200%20OK|X-Accel-Redirect::/inside/none.txt", 404, &[], "own 404"),
        // A proxied path has no files.
        ("200%20OK|X-Accel-Redirect::/404.html", 404, &[], "own 404"),
        (
            &format!("200%20OK|X-Sendfile::{secret}"),
            404,
            &["!X-Sendfile"],
            "own 404",
        ),
        ("200%20OK|X-Accel-Redirect::/UP/secret.txt", 404, &[], "own 404"),
        ("200%20OK|X-A::1", 200, &["X-A: 1"], "other"),
    ] {
        let response = client.get(&format!("/{target}"));
        response.expect(target, status, fields);
        assert_eq!(response.text(), content, "{target}");
    }
    let response = client.fetch("GET /200%20OK|X-Accel-Redirect::/plain.txt", &["Range: bytes=2-3"]);
    response.expect("a range", 206, &["Content-Range: bytes 2-3/10"]);
    // Without the configuration key, the field is forwarded instead.
    let server = start("connect = \"3s\"");
    let response = server.get("/200%20OK|X-Accel-Redirect::/inside/report.txt");
    response.expect("not allowed", 200, &["X-Accel-Redirect: /inside/report.txt"]);
    assert_eq!(response.text(), "other");
}

#[test]
fn a_tunnel_ignores_accel_redirects() {
    let upstream = Upstream::start(|_, stream| {
        write_to(
            stream,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\nX-Accel-Redirect: /plain.txt\r\n\r\nhello",
        );
        Next::Close
    });
    let keys = format!(
        "proxy = {{ to = \"{}\", send_files = true, intercept = true }}\n[site.default.route.\"/plain.txt\"]\nroot = \"www\"\n",
        upstream.url()
    );
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    client.send(request("GET /", &["Connection: upgrade", "Upgrade: echo"]));
    assert!(client.head().starts_with("HTTP/1.1 101 "));
    assert_eq!(client.rest(), b"hello");
}

over_http3! {
    errors_get_the_pages_of_the_site,
    scripts_are_not_used_as_error_pages,
    errors_of_upstreams_are_replaced_if_configured,
    accel_redirects_of_upstreams_are_followed_if_allowed,
}
