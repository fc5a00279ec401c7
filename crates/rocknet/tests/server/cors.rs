//! CORS and the fields of `harden`, for files, applications and errors.

use super::support::upstream::Upstream;
use super::support::{Folder, Running};

fn folder() -> Folder {
    Folder::with(&[("www/a.txt", "text a"), ("www/page.html", "<p>page</p>")])
}

const ORIGIN: &str = "Origin: https://app.test";

/// Returns the fields of a preflight request from `origin`.
fn preflight(origin: &str) -> [String; 3] {
    [
        format!("Origin: {origin}"),
        "Access-Control-Request-Method: PUT".into(),
        "Access-Control-Request-Headers: x-a".into(),
    ]
}

#[test]
fn every_origin_gets_the_same_response_without_credentials() {
    let server = Running::site(folder(), "cors = true");
    let mut client = server.connect();
    // From the disk, from the cache, and an error.
    for (path, status) in [("/a.txt", 200), ("/a.txt", 200), ("/missing", 404)] {
        let response = client.fetch(&format!("GET {path}"), &[ORIGIN]);
        response.expect(path, status, &["Access-Control-Allow-Origin: *"]);
        assert_eq!(response.field("Access-Control-Allow-Credentials"), None);
        let vary = response.field("Vary").unwrap_or_default();
        assert!(!vary.contains("Origin"), "{vary}");
    }
    let [origin, method, headers] = preflight("null");
    let response = client.fetch("OPTIONS /a.txt", &[&origin, &method, &headers]);
    let expected = [
        "Access-Control-Allow-Origin: *",
        "Access-Control-Allow-Methods: PUT",
        "Access-Control-Allow-Headers: x-a",
        "Access-Control-Max-Age: 600",
    ];
    response.expect("preflight", 204, &expected);
}

#[test]
fn listed_origins_get_credentials_and_others_nothing() {
    let settings = r#"
        [site.default.cors]
        origins = ["https://app.test", "https://*.sub.test"]
        credentials = true
        methods = ["PUT", "PATCH"]
        headers = ["X-A", "X-B"]
        expose = ["X-Total"]
        max_age = "1h"
    "#;
    let server = Running::site(folder(), settings);
    let mut client = server.connect();
    for origin in ["https://app.test", "https://a.sub.test"] {
        let allowed = format!("Access-Control-Allow-Origin: {origin}");
        let response = client.fetch("GET /a.txt", &[&format!("Origin: {origin}")]);
        let expected = [
            allowed.as_str(),
            "Access-Control-Allow-Credentials: true",
            "Access-Control-Expose-Headers: X-Total",
            "Vary: Origin",
        ];
        response.expect(origin, 200, &expected);
        let [field, method, headers] = preflight(origin);
        let response = client.fetch("OPTIONS /a.txt", &[&field, &method, &headers]);
        let expected = [
            allowed.as_str(),
            "Access-Control-Allow-Methods: PUT, PATCH",
            "Access-Control-Allow-Headers: X-A, X-B",
            "Access-Control-Max-Age: 3600",
        ];
        response.expect(origin, 204, &expected);
    }
    for origin in [
        "https://evil.test",
        "https://app.test.evil.test",
        "http://app.test",
        "null",
    ] {
        let response = client.fetch("GET /a.txt", &[&format!("Origin: {origin}")]);
        response.expect(origin, 200, &["Vary: Origin"]);
        assert_eq!(response.field("Access-Control-Allow-Origin"), None, "{origin}");
        let [field, method, headers] = preflight(origin);
        let response = client.fetch("OPTIONS /a.txt", &[&field, &method, &headers]);
        assert_eq!(response.field("Access-Control-Allow-Methods"), None, "{origin}");
    }
}

#[test]
fn preflight_requests_need_no_password_and_other_requests_do() {
    let hash = super::access::auth();
    let server = Running::site(folder(), &format!("cors = \"https://app.test\"\n{hash}"));
    let mut client = server.connect();
    let [field, method, headers] = preflight("https://app.test");
    client
        .fetch("OPTIONS /a.txt", &[&field, &method, &headers])
        .expect("preflight", 204, &[]);
    let refused = client.fetch("GET /a.txt", &[ORIGIN]);
    refused.expect("no password", 401, &["Access-Control-Allow-Origin: https://app.test"]);
    // A preflight request of an origin that is not permitted is refused like any other request.
    let [field, method, headers] = preflight("https://evil.test");
    client
        .fetch("OPTIONS /a.txt", &[&field, &method, &headers])
        .expect("evil", 401, &[]);
}

#[test]
fn fields_of_an_application_take_precedence() {
    let fields = "Access-Control-Allow-Origin: https://own.test\r\nContent-Security-Policy: default-src 'self'\r\n\
                  X-Powered-By: Example\r\nContent-Length: 4\r\n";
    let upstream = Upstream::responding_with(format!("HTTP/1.1 200 OK\r\n{fields}\r\nbody"));
    let text = format!(
        "[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = \"{}\"\ncors = true\nharden = true\n",
        upstream.url()
    );
    let server = Running::start(folder(), &text);
    let response = server.connect().fetch("GET /", &[ORIGIN]);
    let expected = [
        "Access-Control-Allow-Origin: https://own.test",
        "Content-Security-Policy: default-src 'self'",
        "X-Content-Type-Options: nosniff",
    ];
    response.expect("proxied", 200, &expected);
    assert_eq!(response.field("X-Powered-By"), None);
    assert_eq!(response.field("X-Frame-Options"), None);
}

#[test]
fn harden_adds_fields_to_files_and_errors_and_headers_change_them() {
    let settings = "harden = true\nheaders = { Referrer-Policy = \"no-referrer\", X-Frame-Options = \"\" }";
    let server = Running::site(folder(), settings);
    let mut client = server.connect();
    for (path, status) in [("/page.html", 200), ("/page.html", 200), ("/missing", 404)] {
        let response = client.get(path);
        let expected = [
            "X-Content-Type-Options: nosniff",
            "Referrer-Policy: no-referrer",
            "Cross-Origin-Opener-Policy: same-origin-allow-popups",
            "Content-Security-Policy: base-uri 'self'; frame-ancestors 'self'",
        ];
        response.expect(path, status, &expected);
        assert_eq!(response.field("X-Frame-Options"), None);
    }
}
