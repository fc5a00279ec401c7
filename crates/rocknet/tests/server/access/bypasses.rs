//! Attempts to bypass access control by other paths, methods and handlers, over HTTP/1.1 and HTTP/2: all are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use h2::Reason;
use h2::ext::Protocol;

use super::{SERVER, auth, basic, fetch, over_http1, over_http2};
use crate::support::fastcgi::{Next as AfterResponse, Peer, SOCKET, response, write_to as send_records};
use crate::support::http2::Http2;
use crate::support::upstream::{Next, Upstream, ok, write_to};
use crate::support::{Folder, Running, library};
use crate::wire::{self, GOAWAY};

/// Contents that must not be sent without the password.
const PROTECTED: &str = "what is inside";

/// Asserts that a request gets `status` with the password, and is refused without it or with a wrong one. The requests
/// are sent before the worker has cached the responses and again afterwards.
#[track_caller]
fn check(server: &Running, line: &str, fields: &[&str], body: &str, status: u16) {
    let (right, wrong) = (basic("bob", "secret"), basic("bob", "wrong"));
    for round in 0..2 {
        for refused in [None, Some(&wrong)] {
            let fields: Vec<&str> = fields.iter().copied().chain(refused.map(String::as_str)).collect();
            for got in fetch(server, line, &fields, body) {
                assert_eq!(got.status, 401, "{line} {fields:?}, round {round}: {}", got.text);
                assert!(got.field("WWW-Authenticate").is_some(), "{line} {fields:?}");
                assert!(!got.text.contains(PROTECTED), "{line} {fields:?}");
                for name in ["ETag", "Last-Modified", "Content-Range", "Location", "Allow"] {
                    assert_eq!(got.field(name), None, "{line} {fields:?}");
                }
            }
        }
        let fields: Vec<&str> = fields.iter().copied().chain([&*right]).collect();
        for got in fetch(server, line, &fields, body) {
            assert_eq!(got.status, status, "{line} {fields:?}, round {round}: {}", got.text);
        }
    }
}

/// Returns a configuration that protects the routes with these paths.
fn protected(paths: &[&str]) -> String {
    let auth = auth();
    let routes = paths.iter().map(|path| format!("route.\"{path}\" = {{ {auth} }}\n"));
    routes.collect()
}

fn site(keys: &str) -> String {
    format!("{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{keys}\n")
}

fn folder() -> Folder {
    let folder = Folder::with(&[
        ("www/in/a.txt", PROTECTED),
        ("www/in/index.html", PROTECTED),
        ("www/in/sub/b.txt", PROTECTED),
        ("www/secret.html", PROTECTED),
        ("www/area/index.html", PROTECTED),
        ("www/list/x.txt", ""),
        ("www/open.txt", "open"),
    ]);
    folder.write("www/in/a.css", PROTECTED.repeat(200));
    // The modification date of a file that is newer than the clock of the worker would be capped, and change.
    let earlier = SystemTime::now() - Duration::from_secs(60);
    let file = fs::File::open(folder.path("www/in/a.txt")).expect("the file");
    file.set_modified(earlier).expect("a modification date");
    // This file is too large for the cache and sent from an open file.
    folder.write("www/in/large.txt", PROTECTED.repeat(100_000));
    folder
}

#[test]
fn files_are_protected_by_any_path_method_and_condition() {
    let keys = format!(
        "try = [\"{{path}}\", \"{{path}}.html\"]\nbrowse = true\n\
         redirects = {{ \"/in/old\" = \"/in/new\" }}\n{}",
        protected(&["/in/*", "/secret.html", "/area/index.html", "/list/"])
    );
    let server = Running::start(folder(), &site(&keys));
    let tag = over_http1(&server, "GET /in/a.txt", &[&basic("bob", "secret")], "");
    let since = format!("If-Modified-Since: {}", tag.field("Last-Modified").expect("a date"));
    let tag = format!("If-None-Match: {}", tag.field("ETag").expect("a tag"));
    for (line, fields, status) in [
        ("GET /in/a.txt", &[][..], 200),
        ("HEAD /in/a.txt", &[], 200),
        ("OPTIONS /in/a.txt", &[], 204),
        ("POST /in/a.txt", &[], 405),
        ("BREW /in/a.txt", &[], 405),
        ("GET /in/a.txt", &[&*tag], 304),
        ("GET /in/a.txt", &["If-Match: \"other\""], 412),
        ("GET /in/a.txt", &[&since], 304),
        ("GET /in/a.txt", &["Range: bytes=0-3"], 206),
        ("GET /in/a.txt", &["Range: bytes=0-1,3-4"], 206),
        ("GET /in/a.txt", &["Range: bytes=900-"], 416),
        ("GET /in/large.txt", &[], 200),
        ("HEAD /in/large.txt", &[], 200),
        ("GET /in/large.txt", &["Range: bytes=0-9"], 206),
        ("GET /in/a.css", &["Accept-Encoding: gzip"], 200),
        ("GET /in/none", &[], 404),
        ("GET /in/old", &[], 308),
        ("GET /in", &[], 308),
        ("GET /in/sub", &[], 308),
        ("GET /in/sub/", &[], 200),
        ("GET /in/", &[], 200),
        // Other spellings of the path of one file. Three of them lead to no file.
        ("GET /%69n/a.txt", &[], 200),
        ("GET /in/%61.txt", &[], 200),
        ("GET //in//a.txt", &[], 200),
        ("GET /./in/./a.txt", &[], 200),
        ("GET /x/../in/a.txt", &[], 200),
        ("GET /x/%2e%2e/in/a.txt", &[], 200),
        ("GET /in/a.txt?query", &[], 200),
        ("GET /in/a.txt/", &[], 404),
        ("GET /in%2Fa.txt", &[], 404),
        ("GET /in%5Ca.txt", &[], 404),
        // These paths lead to an index file, or to a file by a suffix that `try` appends.
        ("GET /secret.html", &[], 200),
        ("GET /secret", &[], 200),
        ("GET /secret/", &[], 200),
        ("GET /area/index.html", &[], 200),
        ("GET /area/", &[], 200),
        ("HEAD /area/", &["Range: bytes=0-3"], 200),
        ("GET /list/", &[], 200),
    ] {
        check(&server, line, fields, "", status);
    }
    check(&server, "POST /in/a.txt", &[], "a body", 405);
    // Other paths of the site are open without a password.
    for got in fetch(&server, "GET /open.txt", &[], "") {
        assert_eq!((got.status, &*got.text), (200, "open"));
    }
}

#[test]
fn fallbacks_and_rules_do_not_bypass_protection() {
    let keys = format!(
        "fallback = \"/in/a.txt\"\n{}\
         rule = [ {{ path = \"/rewritten\", rewrite = \"/in/a.txt\" }}, {{ path = \"/in/out\", rewrite = \"/open.txt\" }},\n\
         {{ path = \"/in/gone\", respond = 410 }}, {{ path = \"/in/moved\", redirect = \"/open.txt\" }},\n\
         {{ path = \"/in/far\", redirect = \"https://a.test/\" }} ]\n",
        protected(&["/in/*"])
    );
    let server = Running::start(folder(), &site(&keys));
    for (line, status) in [
        ("GET /nothing", 200),
        ("HEAD /nothing", 200),
        ("GET /a:b", 200),
        ("GET /rewritten", 200),
        ("GET /in/out", 200),
        ("GET /in/gone", 410),
        ("GET /in/moved", 308),
        ("GET /in/far", 308),
    ] {
        check(&server, line, &[], "", status);
    }
    check(&server, "POST /rewritten", &[], "a body", 405);
    for got in fetch(&server, "GET /open.txt", &[], "") {
        assert_eq!((got.status, &*got.text), (200, "open"));
    }
}

#[test]
fn routes_can_be_protected_or_opened_regardless_of_their_site() {
    let keys = format!("{}\nroute.\"/in/sub/*\" = {{ auth = false }}", auth());
    let server = Running::start(folder(), &site(&keys));
    for line in ["GET /open.txt", "GET /in/sub/../a.txt", "GET /in/sub/%2e%2e/a.txt"] {
        check(&server, line, &[], "", 200);
    }
    for got in fetch(&server, "GET /in/sub/b.txt", &[], "") {
        assert_eq!(got.status, 200);
    }
    // An upstream or application would resolve this path to a path of the protected route.
    check(&server, "GET /in/sub/..%2Fa.txt", &[], "", 404);
}

#[test]
fn scripts_are_protected_by_path_info_index_and_front_controller() {
    let folder = Folder::with(&[
        ("www/index.php", ""),
        ("www/admin.php", ""),
        ("www/dir/index.php", ""),
        ("www/in/x.php", ""),
    ]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let text = format!(
            "Content-Type: text/plain\r\n\r\n{PROTECTED} {}",
            incoming.variable("SCRIPT_NAME")
        );
        send_records(stream, response(text.as_bytes()));
        AfterResponse::Keep
    });
    let keys = format!(
        "php = \"unix:php.sock\"\n{}",
        protected(&["/admin.php", "/dir/index.php", "/in/*"])
    );
    let server = Running::start(folder, &site(&keys));
    for line in [
        "GET /admin.php",
        "GET /admin.php/more",
        "GET /admin.php/more/a%2Fb",
        "GET /index.php/in/x",
        "GET /index.php/in%2Fx",
        "GET /index.php/y/..%2Fin/x",
        "GET /admin.php/",
        "GET /dir/",
        "HEAD /dir/index.php",
        "GET /in/x.php",
        "GET /in/none",
    ] {
        check(&server, line, &[], "", 200);
    }
    check(&server, "POST /admin.php/more", &[], "a body", 200);
    assert_eq!(
        over_http1(&server, "GET /none", &[], "").text,
        format!("{PROTECTED} /index.php")
    );
}

#[test]
fn programs_with_path_info_are_protected() {
    let script = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s' \"$REMOTE_USER\"\n";
    let folder = Folder::with(&[("www/cgi-bin/admin.sh", script), ("www/cgi-bin/free.sh", script)]);
    for name in ["admin.sh", "free.sh"] {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(&format!("www/cgi-bin/{name}")), mode).expect("a mode");
    }
    let keys = format!("cgi = \"/cgi-bin\"\n{}", protected(&["/cgi-bin/admin.sh", "/in/*"]));
    let server = Running::start(folder, &site(&keys));
    for line in [
        "GET /cgi-bin/admin.sh",
        "GET /cgi-bin/admin.sh/more/path",
        "GET /cgi-bin/admin.sh/a%2Fb",
        "GET /cgi-bin/free.sh/in/x",
        "GET /cgi-bin/free.sh/in%2Fx",
    ] {
        check(&server, line, &[], "", 200);
    }
    let right = basic("bob", "secret");
    assert_eq!(
        over_http1(&server, "GET /cgi-bin/admin.sh/x", &[&right], "").text,
        "bob"
    );
    assert_eq!(over_http1(&server, "GET /cgi-bin/free.sh/x", &[&right], "").text, "");
}

#[test]
fn proxied_paths_that_an_upstream_would_decode_are_protected() {
    let upstream = Upstream::responding_with(ok(PROTECTED));
    let open = "route.\"/both\" = { auth = false }\n";
    let keys = format!(
        "{}\n{}{open}",
        upstream.key(),
        protected(&["/in/*", "/exact", "/both/*"])
    );
    let server = Running::start(folder(), &site(&keys));
    for (line, status) in [
        ("GET /in/x", 200),
        ("GET /%69n/x", 200),
        ("GET //in/x", 200),
        ("GET /in", 200),
        ("GET /in?x", 200),
        ("GET /exact", 200),
        ("GET /exact/", 200),
        ("GET /in%2Fx", 200),
        ("GET /in%2fx", 200),
        ("GET /in%5Cx", 200),
        ("GET /in/x%5C..%5C..%2fy", 400),
        ("GET /open/..%2Fin/x", 400),
        ("BREW /in/x", 200),
    ] {
        check(&server, line, &[], "", status);
    }
    // These paths do not belong to a protected route.
    for path in ["/open%2Fx", "/both", "/in-and-out", "/inn/", "/exact/more"] {
        assert_eq!(
            over_http1(&server, &format!("GET {path}"), &[], "").status,
            200,
            "{path}"
        );
    }
    check(&server, "GET /both/", &[], "", 200);
    // An upstream that decodes these paths would resolve them to the root or a folder above it.
    for path in ["/..%2Fin/x", "/in%2Fx%5C..%5C.."] {
        assert_eq!(
            over_http1(&server, &format!("GET {path}"), &[], "").status,
            400,
            "{path}"
        );
    }
    let got = over_http1(&server, "GET /in/x", &[&basic("bob", "secret")], "");
    assert_eq!(got.text, PROTECTED);
    assert_eq!(upstream.last().field("Authorization"), Some("Basic Ym9iOnNlY3JldA=="));
}

#[test]
fn upgrades_and_extended_connect_are_protected() {
    let upstream = Upstream::start(|incoming, stream| {
        let protocol = incoming.field("Upgrade").unwrap_or("none");
        write_to(
            stream,
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n{PROTECTED}"
            ),
        );
        Next::Close
    });
    let keys = format!("{}\n{}", upstream.key(), protected(&["/in/*"]));
    let server = Running::start(folder(), &site(&keys));
    let (right, wrong) = (basic("bob", "secret"), basic("bob", "wrong"));
    let upgrade = ["Connection: Upgrade", "Upgrade: chat"];
    for (more, status) in [(None, 401), (Some(&wrong), 401), (Some(&right), 101), (None, 401)] {
        let fields: Vec<&str> = upgrade.into_iter().chain(more.map(String::as_str)).collect();
        let mut client = server.connect();
        let got = client.fetch("GET /in/chat", &fields);
        assert_eq!(got.status, status, "{fields:?}");
        let mut http2 = Http2::to(server.address());
        // With the response, the client has received the SETTINGS that permit extended CONNECT.
        let _ = http2.get("/in/");
        let mut builder = http2
            .request("CONNECT", "/in/chat")
            .extension(Protocol::from_static("chat"));
        if let Some((name, value)) = more.and_then(|field| field.split_once(": ")) {
            builder = builder.header(name, value);
        }
        let (response, _stream) = http2.start_request(builder, false);
        let head = http2.wait(response).expect("a response");
        let expected = if status == 101 { 200 } else { 401 };
        assert_eq!(head.status().as_u16(), expected, "{fields:?} over HTTP/2");
    }
    // Only requests with the password reached the upstream: one for each version.
    assert_eq!(upstream.connections(), 2);
}

/// After `Upgrade: h2c`, the HTTP/1.1 request becomes stream 1 of the HTTP/2 connection.
#[test]
fn a_request_that_becomes_stream_1_is_protected() {
    let text = site(&protected(&["/in/*"])).replace("h2c = true", "h2c = true\nh2c_upgrade = true");
    let server = Running::start(folder(), &text);
    let mut client = server.connect();
    let fields = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: ";
    client.send(format!("GET /in/a.txt HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n"));
    assert!(client.head().starts_with("HTTP/1.1 101 "));
    client.send(wire::beginning(&[]));
    client.send(wire::get(3, "/open.txt"));
    client.send(wire::frame(GOAWAY, 0, 0, [0; 8]));
    let all = client.rest();
    let (frames, _) = wire::frames(&all);
    assert_eq!(wire::body_of(&frames, 3), b"open");
    let first = wire::body_of(&frames, 1);
    assert!(String::from_utf8_lossy(&first).contains("401"), "{first:?}");
}

#[test]
fn controllers_are_protected_on_every_thread() {
    let library = library::plain().display();
    let route = |path: &str, how: &str| {
        let auth = auth();
        format!("route.\"{path}\" = {{ controller = \"{library}:mirror\", {how}, {auth} }}\n")
    };
    let keys = [
        route("/n", "run_on = \"network\""),
        route("/n/*", "run_on = \"network\""),
        route("/w/*", "run_on = \"worker\""),
        route("/i/*", "isolate = true"),
    ];
    let server = Running::start(folder(), &site(&keys.concat()));
    for line in ["GET /n", "GET /n/x", "HEAD /n", "GET /w/x", "GET /i/x"] {
        check(&server, line, &[], "", 200);
    }
    check(&server, "GET /n%2Fx", &[], "", 404);
    for path in ["/n", "/n", "/w/x", "/i/x"] {
        let got = over_http1(&server, &format!("GET {path}"), &[&basic("bob", "secret")], "");
        assert!(got.text.contains("\nuser=bob\n"), "{path}: {}", got.text);
    }
    check(&server, "POST /w/x", &[], "a body", 200);
}

#[test]
fn accel_redirects_of_applications_are_protected() {
    let folder = folder();
    folder.write("www/index.php", "");
    folder.write("private/kept/k.txt", PROTECTED);
    folder.write("www/docs/index.html", PROTECTED);
    folder.write("other/o.txt", PROTECTED);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let fields = incoming.variable("QUERY_STRING");
        send_records(stream, response(format!("{fields}\r\n\r\nnot this").as_bytes()));
        AfterResponse::Keep
    });
    let (www, other) = (folder.path("www"), folder.path("other"));
    let keys = format!(
        "php = \"unix:php.sock\"\n{}route.\"/area/*\" = {{ deny = \"all\" }}\n\
         route.\"/kept/*\" = {{ root = \"private\", internal = true }}\n\
         route.\"/other/*\" = {{ root = \"other\", internal = true, {} }}\n",
        protected(&["/in/*", "/docs/index.html"]),
        auth()
    );
    let server = Running::start(folder, &site(&keys));
    for query in [
        "X-Accel-Redirect:/in/a.txt",
        "X-Accel-Redirect:/in/",
        "X-Accel-Redirect:/docs/",
        "X-Accel-Redirect:/%69n/large.txt",
        &format!("X-Sendfile:{}/in/a.txt", www.display()),
    ] {
        check(&server, &format!("GET /?{query}"), &[], "", 200);
        check(&server, &format!("GET /?{query}"), &["Range: bytes=0-2"], "", 206);
    }
    check(
        &server,
        &format!("GET /?X-Sendfile:{}/o.txt", other.display()),
        &[],
        "",
        200,
    );
    for (query, status) in [
        // This file is internal, so only the application can name it.
        ("X-Accel-Redirect:/kept/k.txt", 200),
        ("X-Accel-Redirect:/open.txt", 200),
        ("X-Accel-Redirect:/area/index.html", 403),
    ] {
        assert_eq!(
            over_http1(&server, &format!("GET /?{query}"), &[], "").status,
            status,
            "{query}"
        );
    }
}

#[test]
fn pushes_are_checked_like_requests_of_the_client() {
    let folder = folder();
    folder.write("www/index.html", "home");
    folder.write("www/net/n.txt", PROTECTED);
    let keys = format!(
        "push = {{ \"/\" = [\"/in/a.txt\", \"/net/n.txt\", \"/open.txt\"] }}\n{}\
         route.\"/net/*\" = {{ allow = [\"127.0.0.1\", \"192.0.2.0/24\"] }}\n",
        protected(&["/in/*"])
    );
    let text = site(&keys).replace("h2c = true", "h2c = true\ntrusted_proxies = [\"127.0.0.1\"]");
    let server = Running::start(folder, &text);
    let right = basic("bob", "secret");
    let right = right.split_once(": ").expect("a value").1;
    let (kept, taken_back) = (None, Some(Reason::CANCEL));
    // `Ym9iOndyb25n` is `bob:wrong`. `expected` has the error codes of the three pushes, in the order of the key
    // `push`. The server cancels a promised push whose file the client may not get.
    for (password, forwarded, expected) in [
        (None, None, [taken_back, kept, kept]),
        (Some(right), None, [kept, kept, kept]),
        (Some("Basic Ym9iOndyb25n"), None, [taken_back, kept, kept]),
        (None, Some("198.51.100.1"), [taken_back, taken_back, kept]),
        (Some(right), Some("192.0.2.1"), [kept, kept, kept]),
    ] {
        for _ in 0..2 {
            let mut client = Http2::to(server.address());
            let mut incoming = client.request("GET", "/");
            for (name, value) in [("authorization", password), ("x-forwarded-for", forwarded)] {
                if let Some(value) = value {
                    incoming = incoming.header(name, value);
                }
            }
            let page = client.page(incoming);
            assert_eq!(page.response.status.as_u16(), 200);
            let reasons: Vec<_> = page
                .pushed
                .iter()
                .map(|pushed| pushed.response.as_ref().err().and_then(h2::Error::reason))
                .collect();
            assert_eq!(reasons, expected, "{password:?} {forwarded:?}");
            for pushed in &page.pushed {
                assert!(!pushed.request.headers().contains_key("authorization"));
            }
        }
    }
    // A refused request for a page causes neither a push nor, for a client that disables pushes, early hints.
    // `Ym9iOndyb25nMg==` is `bob:wrong2`.
    let keys = format!("push = {{ \"/\" = \"/open.txt\" }}\n{}", auth());
    server.reload(&site(&keys)).expect("a good configuration");
    let mut client = Http2::to(server.address());
    let page = client.page(client.request("GET", "/"));
    assert_eq!((page.response.status.as_u16(), page.pushed.len()), (401, 0));
    let mut none = h2::client::Builder::new();
    none.enable_push(false);
    let mut client = Http2::with(server.address(), &none);
    let page = client.page(
        client
            .request("GET", "/")
            .header("authorization", "Basic Ym9iOndyb25nMg=="),
    );
    assert_eq!((page.response.status.as_u16(), page.hints.len()), (401, 0));
    // The connection still serves requests.
    let _ = over_http2(&mut client, "GET /", &[], "");
}

over_http3! {
    files_are_protected_by_any_path_method_and_condition,
    fallbacks_and_rules_do_not_bypass_protection,
    routes_can_be_protected_or_opened_regardless_of_their_site,
    scripts_are_protected_by_path_info_index_and_front_controller,
    programs_with_path_info_are_protected,
    proxied_paths_that_an_upstream_would_decode_are_protected,
    controllers_are_protected_on_every_thread,
    accel_redirects_of_applications_are_protected,
}
