//! Rules of a site: rewrites, redirects, fixed responses, and their results in the worker cache.

use super::support::client::request;
use super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::support::http2::Http2;
use super::support::upstream::{Upstream, ok};
use super::support::{Folder, Running};

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "home"),
        ("www/new/a.txt", "new a"),
        ("www/old/a.txt", "old a"),
        ("www/de/index.html", "Hallo"),
        ("www/docs/v2/index.html", "documents"),
        ("www/gone.html", "our own page"),
        ("www/static/logo.svg", "logo"),
        ("www/run.php", "<?php secret"),
        ("other/docs/only.txt", "other root"),
    ])
}

/// The first rule ends the evaluation for paths below `/static/`, so the rule that responds with 403 never applies.
const RULES: &str = r#"
errors = { 410 = "/gone.html" }
headers = { "X-Site" = "here" }
route."/new/*".headers = { "X-Route" = "new" }
rule = [
    { path = "/static/*", last = true },
    { path = "/old/*", rewrite = "/new/{*}" },
    { path = "/", header = { "Accept-Language" = "de*" }, rewrite = "/de/" },
    { path = "/docs/*", rewrite = "/docs/v2/{*}", last = true },
    { path = "/manual", rewrite = "/docs/v2" },
    { path = "/away/*", redirect = "https://example.org/{*}", status = 302 },
    { path = ["/wp-login.php", "*.asp"], respond = 410 },
    { query = { closed = "*" }, respond = 503, body = "Back at noon." },
    { path = "/new/*", cookie = { beta = "on" }, rewrite = "/docs/v2/" },
    { method = "POST", respond = 204 },
    { path = "/static/*", respond = 403 },
    { path = "/outside", rewrite = "/../x" },
]
"#;

#[test]
fn rules_rewrite_redirect_and_respond() {
    let server = Running::site(folder(), RULES);
    let mut client = server.connect();
    // The second responses come from the worker cache.
    for _ in 0..2 {
        for (line, fields, status, expected, content) in [
            ("GET /", &[][..], 200, &["X-Site: here"][..], "home"),
            ("GET /", &["Accept-Language: de-CH"], 200, &[], "Hallo"),
            ("GET /?x", &["Accept-Language: fr"], 200, &[], "home"),
            ("GET /old/a.txt", &[], 200, &["X-Route: new"], "new a"),
            ("GET /new/a.txt", &[], 200, &["X-Route: new"], "new a"),
            ("GET /new/a.txt", &["Cookie: a=b; beta=on"], 200, &[], "documents"),
            ("GET /new/a.txt", &["Cookie: beta=off"], 200, &[], "new a"),
            ("GET /old/b.txt", &[], 404, &[], ""),
            ("GET /static/logo.svg", &[], 200, &[], "logo"),
            ("GET /static/logo.svg?closed", &[], 200, &[], "logo"),
            ("GET /docs/", &[], 200, &[], "documents"),
            // The redirect that adds a slash uses the rewritten path, because the requested path has no folder.
            ("GET /manual", &[], 308, &["Location: /docs/v2/"], ""),
            (
                "GET /away/a%20b?c=d",
                &[],
                302,
                &["Location: https://example.org/a%20b?c=d"],
                "",
            ),
            ("GET /wp-login.php", &[], 410, &["X-Site: here"], "our own page"),
            ("GET /a/b.asp", &[], 410, &[], "our own page"),
            (
                "GET /index.html?a&closed=1",
                &[],
                503,
                &["Content-Type: text/plain; charset=utf-8", "X-Site: here"],
                "Back at noon.",
            ),
            ("HEAD /index.html?closed", &[], 503, &["Content-Length: 13"], ""),
            ("GET /index.html", &[], 200, &[], "home"),
        ] {
            let response = client.fetch(line, fields);
            response.expect(line, status, expected);
            assert!(response.text().starts_with(content), "{line}: {response:?}");
        }
    }
    client.send(request("POST /new/a.txt", &["Content-Length: 4"]));
    client.send("data");
    client.response().expect("content is read and dropped", 204, &[]);
    client.fetch("GET /old/a.txt", &[]).expect("the next", 200, &[]);
    client
        .fetch("GET /old/a.txt", &["Range: bytes=0-2"])
        .expect("a part", 206, &["Content-Range: bytes 0-2/5"]);
}

#[test]
fn rules_apply_over_http2_and_change_with_a_reload() {
    let site = |rules: &str| format!("[server]\nh2c = true\n[site.\":0\"]\nroot = \"www\"\n{rules}");
    let server = Running::start(folder(), &site("rule = [{ path = \"/x\", rewrite = \"/new/a.txt\" }]"));
    let mut client = Http2::to(server.address());
    for _ in 0..2 {
        let response = client.get("/x");
        assert_eq!((response.status.as_u16(), &response.content[..]), (200, &b"new a"[..]));
    }
    server
        .reload(&site("rule = [{ path = \"/x\", rewrite = \"/old/a.txt\" }]"))
        .expect("a good file");
    let response = client.get("/x");
    assert_eq!((response.status.as_u16(), &response.content[..]), (200, &b"old a"[..]));
    server.reload(&site("")).expect("a good file");
    assert_eq!(client.get("/x").status.as_u16(), 404);
}

#[test]
fn an_application_gets_the_rewritten_and_the_requested_path() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let names = ["SCRIPT_NAME", "QUERY_STRING", "REQUEST_URI"];
        let values: Vec<_> = names.iter().map(|name| incoming.variable(name)).collect();
        write_to(
            stream,
            response(format!("Content-Type: text/plain\r\n\r\n{}", values.join(" ")).as_bytes()),
        );
        Next::Keep
    });
    let keys = "php = \"unix:php.sock\"\nrule = [{ path = \"/page/*\", rewrite = \"/run.php?page={*}\" }]";
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    for _ in 0..2 {
        let text = client.get("/page/a/b?c").text();
        assert_eq!(text, "/run.php page=a/b&c /page/a/b?c");
    }
}

#[test]
fn a_script_gets_the_query_of_try_and_fallback() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let names = ["SCRIPT_NAME", "QUERY_STRING", "REQUEST_URI"];
        let values: Vec<_> = names.iter().map(|name| incoming.variable(name)).collect();
        let text = format!("Content-Type: text/plain\r\n\r\n{}", values.join(" "));
        write_to(stream, response(text.as_bytes()));
        Next::Keep
    });
    let keys = r#"
php = "unix:php.sock"
fallback = "/run.php?q={path}"
route."/try/*".try = ["{path}", "/new{path}", "/run.php?from=try&p={path}"]
"#;
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    // The second responses come from the worker cache.
    for _ in 0..2 {
        for (path, expected) in [
            ("/none/a%26b?c=d", "/run.php q=/none/a%26b&c=d /none/a%26b?c=d"),
            ("/none", "/run.php q=/none /none"),
            ("/try/x?", "/run.php from=try&p=/try/x /try/x?"),
            ("/try/x?y", "/run.php from=try&p=/try/x&y /try/x?y"),
            // No file can have these paths.
            ("/try/a:b", "/run.php from=try&p=/try/a%3Ab /try/a:b"),
            ("/try/a%5Cb", "/run.php from=try&p=/try/a%5Cb /try/a%5Cb"),
            ("/run.php?z", "/run.php z /run.php?z"),
        ] {
            assert_eq!(client.get(path).text(), expected, "{path}");
        }
    }
}

#[test]
fn an_upstream_gets_the_rewritten_path() {
    let upstream = Upstream::responding_with(ok("hello"));
    let rule =
        "rule = [{ path = \"/page/*\", rewrite = \"/run?page={*}\" }, { path = \"/bare/*\", rewrite = \"/run?\" }]";
    let server = Running::site(folder(), &format!("{}\n{rule}", upstream.key()));
    let mut client = server.connect();
    for (path, line) in [
        ("/page/a%20b?c", "GET /run?page=a%20b&c HTTP/1.1"),
        ("/page/a%20b", "GET /run?page=a%20b HTTP/1.1"),
        ("/bare/x?c", "GET /run HTTP/1.1"),
        ("/other?c", "GET /other?c HTTP/1.1"),
    ] {
        client.get(path).expect(path, 200, &[]);
        assert_eq!(upstream.last().line, line);
    }
    let alone = Running::site(folder(), &format!("proxy = \"http://127.0.0.1:1\"\n{rule}"));
    alone.connect().get("/page/a").expect("nothing is listening", 502, &[]);
}

over_http3! {
    rules_rewrite_redirect_and_respond,
    an_application_gets_the_rewritten_and_the_requested_path,
    an_upstream_gets_the_rewritten_path,
}

#[test]
fn a_rule_with_444_gives_no_response() {
    let folder = folder();
    let log = folder.path("access.log");
    let keys = format!(
        "rule = [{{ path = \"/scan/*\", respond = 444 }}]\nerrors = {{ 444 = \"/gone.html\" }}\nlog = {{ access = {log:?} }}\n"
    );
    let server = Running::start(
        folder,
        &format!("[server]\nh2c = true\n[site.\":0\"]\nroot = \"www\"\n{keys}"),
    );
    let mut client = server.connect();
    // The response to an earlier request is sent, and nothing after it.
    client.send(request("GET /new/a.txt", &[]) + &request("GET /scan/x", &[]) + &request("GET /new/a.txt", &[]));
    client.response().expect("the first", 200, &[]);
    client.assert_closed("a rule with 444");
    let mut client = server.connect();
    client.send(request("POST /scan/x", &["Content-Length: 4"]) + "body");
    client.assert_closed("a request with a body");

    let mut client = Http2::to(server.address());
    let get = client.request("GET", "/scan/x");
    let error = client.send(get, b"").err().expect("no response");
    assert!(error.is_reset(), "{error}");
    // Other requests of the connection go on.
    assert_eq!(client.get("/new/a.txt").status.as_u16(), 200);
    drop(client);
    let (server, _folder) = server.take();
    server.stop();
    let log = std::fs::read_to_string(log).expect("an access log");
    let closed = log.lines().filter(|line| line.contains("\" 444 - "));
    assert_eq!(closed.count(), 3, "{log}");
}

#[test]
fn conditions_on_the_client_see_the_address_that_a_trusted_proxy_reports() {
    let rules = r#"
[server]
trusted_proxies = ["127.0.0.0/8"]
[site.":0"]
root = "www"
rule = [
    { client = "192.0.2.0/24", path = "/old/*", rewrite = "/new/{*}", last = true },
    { client = ["2001:db8::/32", "198.51.100.7"], respond = 410 },
    { client = "private", last = true },
    { path = "/new/*", respond = 403 },
]
"#;
    let server = Running::start(folder(), rules);
    let mut client = server.connect();
    // The second responses come from the worker cache, which must not mix up the clients.
    for _ in 0..2 {
        for (path, from, status, text) in [
            ("/old/a.txt", "192.0.2.9", 200, "new a"),
            ("/old/a.txt", "192.0.3.9", 200, "old a"),
            ("/old/a.txt", "2001:db8:7::1", 410, ""),
            ("/old/a.txt", "198.51.100.7", 410, ""),
            ("/new/a.txt", "10.1.2.3", 200, "new a"),
            ("/new/a.txt", "203.0.113.1", 403, ""),
        ] {
            let field = format!("X-Forwarded-For: {from}");
            let response = client.fetch(&format!("GET {path}"), &[&field]);
            response.expect(&format!("{path} for {from}"), status, &[]);
            assert!(response.text().starts_with(text), "{path} for {from}: {response:?}");
        }
    }
    // Without the field, the client is the peer.
    client.get("/new/a.txt").expect("the peer", 200, &[]);
}

/// Rules that depend on files, in the root of the site and of a route.
const FILE_RULES: &str = r#"
route."/docs/*".root = "other"
rule = [
    { exists = "file", exists_at = "/maintenance.html", respond = 503 },
    { path = "/.well-known/*", exists = "nothing", respond = 410 },
    { exists = "file", exists_at = "{path}.html", rewrite = "/{*}.html", last = true },
    { path = "/docs/*", exists = ["file", "folder"], last = true },
    { method = ["GET", "POST"], exists = "nothing", rewrite = "/new/a.txt" },
]
"#;

#[test]
fn conditions_on_files_are_looked_up_on_disk() {
    let folder = folder();
    let maintenance = folder.path("www/maintenance.html");
    let server = Running::site(folder, FILE_RULES);
    let mut client = server.connect();
    for _ in 0..2 {
        for (path, status, text) in [
            ("/gone", 200, "our own page"),
            ("/old/a.txt", 200, "old a"),
            ("/missing", 200, "new a"),
            ("/missing/below?x", 200, "new a"),
            ("/old/a.txt/", 200, "new a"),
            ("/.well-known/none", 410, ""),
            ("/a%2Fb", 200, "new a"),
            ("/", 200, "home"),
            ("/docs/only.txt", 200, "other root"),
            ("/docs/v2/index.html", 200, "new a"),
        ] {
            let response = client.get(path);
            response.expect(path, status, &[]);
            assert!(response.text().starts_with(text), "{path}: {response:?}");
        }
    }
    // The body of a request that waits for a lookup is received.
    client.send(request("POST /unknown-until-now", &["Content-Length: 4"]));
    client.send("data");
    client.response().expect("a file takes no POST", 405, &[]);
    std::fs::write(&maintenance, "closed").expect("a writable folder");
    client.get("/old/a.txt").expect("maintenance", 503, &[]);
    std::fs::remove_file(&maintenance).expect("the file");
    client.get("/old/a.txt").expect("open again", 200, &[]);
}

#[test]
fn files_are_looked_up_for_a_route_that_serves_none() {
    let upstream = Upstream::responding_with(ok("from the application"));
    let keys = format!(
        "{}\nroute.\"/new/*\".proxy = false\nrule = [{{ exists = \"file\", exists_at = \"/new{{path}}\", rewrite = \"/new/{{*}}\" }}]",
        upstream.key()
    );
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/a.txt").text(), "new a");
        assert_eq!(client.get("/b.txt").text(), "from the application");
    }
}

/// Regular expressions in rules, redirects and routes.
const REGEX_RULES: &str = r#"
redirects = { '~^/archive/(?<year>\d{4})/(\d\d)$' = "/new/{year}-{2}", "/archive/now" = "/old/a.txt" }
route.'~^/new/.*\.txt$'.headers = { "X-Route" = "text" }
rule = [
    { path = '~^/(?:build|config|lib)(?:$|/)', respond = 404 },
    { header = { "User-Agent" = "~*badbot|^evil" }, respond = 403 },
    { path = "~*^/LETTER/([a-z])$", rewrite = "/new/{1}.txt", last = true },
    { query = { p = '~^(?<file>[a-z]+)$' }, path = "/file", redirect = "/new/{file}.txt?", status = 302 },
    { path = '~^/new/', unless = [{ path = '~\.txt$' }, { client = "192.0.2.1" }], respond = 410 },
]
"#;

#[test]
fn regular_expressions_match_paths_and_values() {
    let server = Running::site(folder(), REGEX_RULES);
    let mut client = server.connect();
    // The second responses come from the worker cache.
    for _ in 0..2 {
        for (line, fields, status, expected, text) in [
            ("GET /config", &[][..], 404, &[][..], ""),
            ("GET /config/x.php", &[], 404, &[], ""),
            ("GET /configuration", &[], 404, &[], ""),
            ("GET /letter/a", &[], 200, &["X-Route: text"], "new a"),
            ("GET /new/a.txt", &["User-Agent: Evil/1"], 403, &[], ""),
            (
                "GET /new/a.txt",
                &["User-Agent: not evil"],
                200,
                &["X-Route: text"],
                "new a",
            ),
            ("GET /new/b", &[], 410, &[], ""),
            ("GET /file?x&p=abc", &[], 302, &["Location: /new/abc.txt"], ""),
            ("GET /file?p=%0d%0aX", &[], 404, &[], ""),
            ("GET /archive/2024/07?q", &[], 308, &["Location: /new/2024-07?q"], ""),
            ("GET /archive/now", &[], 308, &["Location: /old/a.txt"], ""),
            ("GET /archive/2024/x", &[], 404, &[], ""),
        ] {
            let response = client.fetch(line, fields);
            response.expect(line, status, expected);
            assert!(response.text().starts_with(text), "{line}: {response:?}");
        }
    }
}

#[test]
fn resolved_rules_apply_to_the_file_that_a_path_leads_to() {
    let folder = Folder::with(&[
        ("www/index.html", "home"),
        ("www/shop/index.html", "shop"),
        ("www/open/index.html", "open"),
        ("www/list/start.txt", "start"),
        ("www/old/index.htm", "old"),
        ("www/closed/index.htm", "closed"),
        ("www/page.md", "page"),
        ("www/front.txt", "front"),
        ("www/off", "off"),
    ]);
    let keys = r#"
index = ["index.html", "start.txt", "index.htm"]
try = ["{path}", "{path}.md"]
fallback = "/front.txt"
errors = { 410 = "/off" }
rule = [
    { path = "*/index.html", unless = [{ path = ["/index.html", "/open/*"] }], respond = 410, resolved = true },
    { path = "*.txt", header = { X-From = "a" }, respond = 403, body = "not {path}", resolved = true },
    { path = "*.htm", respond = 404 },
    { path = "/closed/*.htm", exists = "file", exists_at = "/off", respond = 444, resolved = true },
    { path = "*.md", client = "192.0.2.1", respond = 403, resolved = true },
]
"#;
    let server = Running::site(folder, keys);
    // The later responses come from the worker cache.
    for _ in 0..3 {
        let mut client = server.connect();
        for (line, fields, status, content) in [
            ("GET /", &[][..], 200, "home"),
            ("GET /shop/", &[], 410, "off"),
            ("GET /shop/index.html", &[], 410, "off"),
            ("GET /open/", &[], 200, "open"),
            ("GET /list/", &[], 200, "start"),
            ("GET /list/", &["X-From: a"], 403, "not /list/"),
            ("HEAD /list/", &["X-From: a"], 403, ""),
            ("GET /none", &[], 200, "front"),
            ("GET /none", &["X-From: a"], 403, "not /none"),
            // Without `resolved`, a rule applies to the path of the request.
            ("GET /old/", &[], 200, "old"),
            ("GET /old/index.htm", &[], 404, ""),
            ("GET /page", &[], 200, "page"),
        ] {
            let response = client.fetch(line, fields);
            response.expect(line, status, &[]);
            assert!(response.text().starts_with(content), "{line}: {response:?}");
        }
        client.send(request("GET /closed/", &[]));
        client.assert_closed("a rule with 444");
    }
}

#[test]
fn resolved_rules_apply_to_scripts_and_to_paths_of_applications() {
    let folder = folder();
    folder.write("www/sub/index.php", "<?php secret");
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let name = incoming.variable("SCRIPT_NAME");
        let fields = match incoming.variable("QUERY_STRING") {
            "" => "Content-Type: text/plain".to_owned(),
            path => format!("X-Accel-Redirect: {path}"),
        };
        write_to(stream, response(format!("{fields}\r\n\r\n{name}").as_bytes()));
        Next::Keep
    });
    let keys = r#"
php = "unix:php.sock"
rule = [
    { path = "*/index.php", respond = 403, resolved = true },
    { path = "/gone.html", respond = 404, resolved = true },
]
"#;
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    for _ in 0..2 {
        for (line, status, content) in [
            ("GET /run.php", 200, "/run.php"),
            ("GET /run.php/more", 200, "/run.php"),
            ("GET /sub/", 403, ""),
            ("GET /sub/index.php/more", 403, ""),
            ("GET /run.php?/static/logo.svg", 200, "logo"),
            ("GET /run.php?/gone.html", 404, ""),
        ] {
            let response = client.fetch(line, &[]);
            response.expect(line, status, &[]);
            assert!(response.text().starts_with(content), "{line}: {response:?}");
        }
    }
}
