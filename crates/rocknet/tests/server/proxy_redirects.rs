//! Addresses in responses of upstreams that do not know their public address: redirects and cookies.

use super::proxy::folder;
use super::support::Running;
use super::support::upstream::{Next, Upstream, write_to};

/// Starts an upstream that responds with the fields that the query names, in which `ORIGIN` stands for its own URL.
fn redirecting() -> Upstream {
    Upstream::start(|incoming, stream| {
        let host = stream.local_addr().expect("an address");
        let target = incoming.line.split(' ').nth(1).expect("a target");
        let fields = target.split_once('?').map_or("", |(_, fields)| fields);
        let fields = fields
            .replace("ORIGIN", &format!("http://{host}"))
            .replace("HOST", &host.ip().to_string());
        let fields: String = fields
            .split('&')
            .map(|field| field.replacen('~', ": ", 1).replace('+', " ") + "\r\n")
            .collect();
        write_to(
            stream,
            format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n{fields}\r\n"),
        );
        Next::Keep
    })
}

#[test]
fn redirects_to_the_upstream_itself_become_paths() {
    let upstream = redirecting();
    let server = Running::site(folder(), &upstream.key());
    let mut client = server.connect();
    for (field, name, expected) in [
        ("Location~ORIGIN/login", "Location", "/login"),
        ("Location~ORIGIN", "Location", "/"),
        ("Location~ORIGIN//evil.test/", "Location", "/.//evil.test/"),
        ("Location~http://evil.test/", "Location", "http://evil.test/"),
        ("Location~ORIGIN.evil.test/", "Location", ""),
        ("Content-Location~ORIGIN/doc", "Content-Location", "/doc"),
        ("Refresh~5;+url=ORIGIN/next", "Refresh", "5; url=/next"),
        ("Set-Cookie~a=1;+Path=/x;+Domain=HOST", "Set-Cookie", "a=1; Path=/x"),
        ("Location~/login&Set-Cookie~a=1;+Path=/x", "Set-Cookie", "a=1; Path=/x"),
    ] {
        let response = client.get(&format!("/?{field}"));
        let value = response.field(name).expect(field);
        match expected {
            "" => assert!(
                value.ends_with(".evil.test/") && value.starts_with("http://"),
                "{field}: {value}"
            ),
            _ => assert_eq!(value, expected, "{field}"),
        }
    }
}

#[test]
fn a_stripped_prefix_is_added_again() {
    let upstream = redirecting();
    let server = Running::site(
        folder(),
        &format!("proxy = {{ to = \"{}\", strip = \"/app\" }}", upstream.url()),
    );
    let mut client = server.connect();
    for (path, field, name, expected) in [
        ("/app/", "Location~/login", "Location", "/app/login"),
        ("/app/", "Location~ORIGIN/login", "Location", "/app/login"),
        ("/app/", "Location~/app/login", "Location", "/app/login"),
        ("/app/", "Location~login", "Location", "login"),
        (
            "/app/",
            "Location~http://localhost/x",
            "Location",
            "http://localhost/app/x",
        ),
        // The prefix was not removed from this path.
        ("/", "Location~/login", "Location", "/login"),
        (
            "/app/",
            "Set-Cookie~a=1;+Path=/admin",
            "Set-Cookie",
            "a=1; Path=/app/admin",
        ),
        ("/app/", "Set-Cookie~a=1;+Path=/", "Set-Cookie", "a=1; Path=/"),
    ] {
        let response = client.get(&format!("{path}?{field}"));
        assert_eq!(response.field(name), Some(expected), "{path}, {field}");
    }
}

#[test]
fn pairs_go_first_and_false_changes_nothing() {
    let upstream = redirecting();
    let url = upstream.url();
    let keys = format!(
        "proxy = {{ to = \"{url}\", redirects = {{ \"http://app.internal/one/\" = \"/two/\" }}, cookie_paths = {{ \"/\" = \
         \"/two\" }}, cookie_domains = {{ \"app.internal\" = \"example.com\" }} }}"
    );
    let off = format!("proxy = {{ to = \"{url}\", redirects = false, cookie_domains = false }}");
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    let response = client.get("/?Location~http://app.internal/one/x");
    assert_eq!(response.field("Location"), Some("/two/x"));
    let response = client.get("/?Location~http://app.internal/onex");
    assert_eq!(response.field("Location"), Some("http://app.internal/onex"));
    let response = client.get("/?Location~ORIGIN/x");
    assert_eq!(response.field("Location"), Some("/x"));
    let response = client.get("/?Set-Cookie~a=1;+Path=/;+Domain=app.internal");
    assert_eq!(response.field("Set-Cookie"), Some("a=1; Path=/two; Domain=example.com"));
    let server = Running::site(folder(), &off);
    let response = server.connect().get("/?Location~ORIGIN/x&Set-Cookie~a=1;+Domain=HOST");
    assert_eq!(response.field("Location"), Some(&*format!("{url}/x")));
    assert!(
        response
            .field("Set-Cookie")
            .is_some_and(|cookie| cookie.ends_with("Domain=127.0.0.1"))
    );
}

#[test]
fn an_application_that_knows_its_public_address_is_left_alone() {
    let upstream = redirecting();
    let url = upstream.url();
    let pairs = "redirects = { \"/\" = \"/two/\" }, cookie_paths = { \"/\" = \"/two\" }";
    let site = "[site.default]\nlisten = \"127.0.0.1:0\"\n";
    let server = Running::start(
        folder(),
        &format!(
            "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n{site}proxy = \"{url}\"\n[site.default.route.\"/app/*\"]\n\
             proxy = {{ to = \"{url}\", strip = \"/app\" }}\n[site.default.route.\"/two/*\"]\nproxy = {{ to = \
             \"{url}\", strip = \"/two\", {pairs} }}\n"
        ),
    );
    let outer: &[&str] = &["X-Forwarded-Prefix: /outer", "X-Forwarded-Host: public.test"];
    for (path, headers, field, expected) in [
        ("/app/", outer, "Location~/outer/app/login", "/outer/app/login"),
        ("/app/", outer, "Location~/outer/portal", "/outer/portal"),
        ("/app/", outer, "Location~/login", "/app/login"),
        (
            "/app/",
            outer,
            "Location~https://public.test/outer/app/x",
            "https://public.test/outer/app/x",
        ),
        (
            "/app/",
            outer,
            "Location~https://public.test/x",
            "https://public.test/app/x",
        ),
        (
            "/app/",
            outer,
            "Set-Cookie~a=1;+Path=/outer/app",
            "a=1; Path=/outer/app",
        ),
        // A value that is no path is not announced, and counts for nothing.
        ("/app/", &["X-Forwarded-Prefix: //evil.test"], "Location~/x", "/app/x"),
        ("/app/", &[], "Location~/outer/app/login", "/app/outer/app/login"),
        (
            "/app/",
            &[],
            "Location~http://localhost/app/x",
            "http://localhost/app/x",
        ),
        // Pairs that add a prefix add it once.
        ("/two/", &[], "Location~/login", "/two/login"),
        ("/two/", &[], "Location~/two/login", "/two/login"),
        ("/two/", &[], "Location~//other.test/login", "//other.test/login"),
        ("/two/", &[], "Location~?page=2", "?page=2"),
        ("/two/", &[], "Set-Cookie~a=1;+Path=/", "a=1; Path=/two"),
        ("/two/", &[], "Set-Cookie~a=1;+Path=/two/x", "a=1; Path=/two/x"),
    ] {
        let response = server.fetch(&format!("GET {path}?{field}"), headers);
        let name = field.split('~').next().expect("a name");
        assert_eq!(response.field(name), Some(expected), "{path}, {headers:?}, {field}");
    }
    // The field of a client that is no trusted proxy counts for nothing.
    let server = Running::site(folder(), &format!("proxy = {{ to = \"{url}\", strip = \"/app\" }}"));
    let response = server.fetch("GET /app/?Location~/outer/app/login", outer);
    assert_eq!(response.field("Location"), Some("/app/outer/app/login"));
}

#[test]
fn a_redirect_to_https_does_not_lead_to_itself() {
    // Leads all requests to `https`, those for `/login` to another path.
    let upstream = Upstream::start(|incoming, stream| {
        let target = incoming.line.split(' ').nth(1).expect("a target");
        let target = target.replace("/login", "/welcome");
        let location = format!("Location: https://app.internal{target}");
        write_to(
            stream,
            format!("HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\n{location}\r\n\r\n"),
        );
        Next::Keep
    });
    let site = |url: &str| {
        format!(
            "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \
             \"{url}\", strip = \"/app\", headers = {{ \"Host\" = \"app.internal\" }} }}\n"
        )
    };
    let server = Running::start(folder(), &site(&upstream.url()));
    let https: &[&str] = &["X-Forwarded-Proto: https"];
    for (path, headers, expected) in [
        ("/app/x?y", &[][..], "https://app.internal/x?y"),
        ("/x", &[], "https://app.internal/x"),
        ("/app/login", &[], "/app/welcome"),
        // The client uses `https`, so the upstream means its own page.
        ("/app/x?y", https, "/app/x?y"),
    ] {
        let response = server.fetch(&format!("GET {path}"), headers);
        assert_eq!(response.field("Location"), Some(expected), "{path} {headers:?}");
    }
}

#[test]
fn upstreams_get_the_prefix_that_was_removed() {
    let upstream = redirecting();
    let url = upstream.url();
    let prefix = |keys: &str, path: &str, fields: &[&str]| {
        let server = Running::start(folder(), keys);
        server.fetch(&format!("GET {path}"), fields);
        upstream.last().field("X-Forwarded-Prefix").map(str::to_owned)
    };
    let site = "[site.default]\nlisten = \"127.0.0.1:0\"\n";
    let stripped = format!("{site}proxy = {{ to = \"{url}\", strip = \"/a b\" }}\n");
    let trusting = format!("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n{stripped}");
    let off = format!("{site}proxy = {{ to = \"{url}\", strip = \"/a b\", forwarded = false }}\n");
    let forged = &["X-Forwarded-Prefix: /outer/"][..];
    for (keys, path, fields, expected) in [
        (&stripped, "/a%20b/x", forged, Some("/a%20b")),
        (&stripped, "/x", forged, None),
        (&stripped, "/x", &["X_Forwarded_Prefix: /outer"], None),
        (&trusting, "/a%20b/x", forged, Some("/outer/a%20b")),
        (&trusting, "/x", forged, Some("/outer/")),
        (&off, "/a%20b/x", forged, None),
    ] {
        assert_eq!(prefix(keys, path, fields).as_deref(), expected, "{path} {fields:?}");
    }
    let server = Running::start(folder(), &stripped);
    let response = server.get("/a%20b/?Location~/login");
    assert_eq!(response.field("Location"), Some("/a%20b/login"));
}
