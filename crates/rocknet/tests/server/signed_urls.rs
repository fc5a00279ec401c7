//! Signed URLs (`auth = { signed = … }`): the requests that they admit, and what handlers, caches and logs get of them.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rocknet::signed_url::{SignedRequest, SigningKeys, Terms, Verdict};
use rocknet::url_keys;
use rocknet_config::url_keys::UrlKey;

use super::access::{SERVER, auth, basic, fetch};
use super::support::upstream::{Next, Upstream, write_to};
use super::support::{Folder, Running};

over_http3! {
    only_signed_urls_are_admitted,
    signatures_reach_neither_upstreams_nor_the_cache,
}

pub const SECRET: &str = "5f3c1e0b9a7d4c2f8e6a1b3d5c7f9e0a2b4d6f8091a3c5e7";

pub fn key() -> SigningKeys {
    SigningKeys::new(&[UrlKey {
        id: "main".into(),
        secret: SECRET.into(),
    }])
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Returns a target with its signature for `seconds`; a negative number is a time in the past. `change`: changes the
/// terms.
pub fn signed_by(keys: &SigningKeys, line: &str, seconds: i64, change: impl FnOnce(&mut Terms)) -> String {
    let (method, target) = line.split_once(' ').unwrap();
    let mut terms = Terms {
        expires: now().checked_add_signed(seconds).unwrap(),
        is_for_client: false,
        folder_depth: None,
    };
    change(&mut terms);
    let request = SignedRequest {
        method: method.as_bytes(),
        authority: b"localhost",
        target: target.as_bytes(),
        client: Some("127.0.0.1".parse().unwrap()),
    };
    let value = keys.sign(&request, &terms, None).unwrap();
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{line}{separator}signed={value}")
}

/// Returns a request line with a signature for an hour.
pub fn signed(line: &str) -> String {
    signed_by(&key(), line, 3_600, |_| {})
}

fn folder() -> Folder {
    let folder = Folder::with(&[
        ("www/index.html", "home"),
        ("www/dl/index.html", "list"),
        ("www/dl/a b.txt", "text a"),
        ("www/dl/b.txt", "text b"),
        ("www/v/1/index.m3u8", "playlist"),
        ("www/v/1/seg.ts", "segment"),
        ("www/v/2/seg.ts", "other"),
        ("www/410.html", "expired"),
        ("url.keys", ""),
    ]);
    folder.write("url.keys", format!("main:{SECRET}\n"));
    folder
}

fn start(keys: &str) -> Running {
    let text = format!(
        "{SERVER}state = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{keys}\n\
         errors = {{ 410 = \"/410.html\" }}\n"
    );
    Running::start(folder(), &text)
}

pub const SIGNED: &str = "auth = { signed = \"url.keys\" }";

#[test]
fn only_signed_urls_are_admitted() {
    let server = start(SIGNED);
    let check = |line: &str, fields: &[&str], expected: (u16, &str)| {
        for response in fetch(&server, line, fields, "") {
            let text = if expected.0 == 403 { "" } else { &response.text };
            assert_eq!((response.status, text), expected, "{line}");
        }
    };
    // The second request finds the file in the worker cache.
    for _ in 0..2 {
        check(&signed("GET /dl/a%20b.txt"), &[], (200, "text a"));
        check(&signed("GET /dl/b.txt?x=1"), &[], (200, "text b"));
        // An index file needs no signature of its own.
        check(&signed("GET /dl/"), &[], (200, "list"));
        check("GET /dl/b.txt", &[], (403, ""));
        check("GET /dl/", &[], (403, ""));
    }
    let line = signed("GET /dl/b.txt");
    check(&line.replace("GET", "HEAD"), &[], (200, ""));
    check(&line.replace("GET", "POST"), &[], (403, ""));
    check(&line.replace("b.txt", "a%20b.txt"), &[], (403, ""));
    check(&format!("{line}&x=1"), &[], (403, ""));
    check(&line.replace("/dl/", "/dl/../dl//"), &[], (200, "text b"));
    let past = signed_by(&key(), "GET /dl/b.txt", -1, |_| {});
    check(&past, &[], (410, "expired"));
    // A forged time is not distinguished from any other forged signature.
    check(&past.replace("/dl/b.txt", "/dl/"), &[], (403, ""));
    let for_client = signed_by(&key(), "GET /dl/b.txt", 60, |terms| terms.is_for_client = true);
    check(&for_client, &[], (200, "text b"));
    let text = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]";
    let behind = Running::start(
        folder(),
        &format!("{text}\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{SIGNED}\n"),
    );
    for (client, status) in [("127.0.0.1", 200), ("192.0.2.1", 403)] {
        let field = format!("X-Forwarded-For: {client}");
        assert_eq!(behind.fetch(&for_client, &[&field]).status, status, "{client}");
    }
    let folder = signed_by(&key(), "GET /v/1/index.m3u8", 60, |terms| terms.folder_depth = Some(2));
    let value = folder.rsplit_once("signed=").unwrap().1;
    check(&folder, &[], (200, "playlist"));
    check(&format!("GET /v/1/seg.ts?signed={value}"), &[], (200, "segment"));
    let cookie = format!("Cookie: a=b; signed={value}");
    check("GET /v/1/seg.ts?x=1", &[&cookie], (200, "segment"));
    check("GET /v/2/seg.ts", &[&cookie], (403, ""));
    check("GET /v/1/../2/seg.ts", &[&cookie], (403, ""));
}

#[test]
fn routes_have_keys_of_their_own() {
    let keys = "route.\"/dl/*\" = { auth = { signed = true } }\n\
                route.\"/v/*\" = { auth = { signed = \"url.keys\" }, allow = \"127.0.0.1\", satisfy = \"any\" }";
    let server = start(keys);
    assert_eq!(server.get("/").text(), "home");
    assert_eq!(server.get("/v/1/seg.ts").text(), "segment");
    assert_eq!(server.fetch(&signed("GET /dl/b.txt"), &[]).status, 403);
    let generated = url_keys::read_generated(&server.folder.path("state"), "default").unwrap();
    let line = signed_by(&generated, "GET /dl/b.txt", 60, |_| {});
    assert_eq!(server.fetch(&line, &[]).text(), "text b");
    // A restart keeps the key.
    let (stopped, folder) = server.take();
    assert!(stopped.stop());
    let text = format!("{SERVER}state = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{keys}\n");
    let server = Running::start(folder, &text);
    assert_eq!(server.fetch(&line, &[]).text(), "text b");
    // Keys are rotated by a reload.
    let (two, other) = (format!("new:{}", "n".repeat(40)), "v/2/seg.ts");
    let line = signed(&format!("GET /{other}"));
    let text = text.replace(", allow = \"127.0.0.1\", satisfy = \"any\"", "");
    for (file, status) in [(format!("{two}\nmain:{SECRET}\n"), 200), (format!("{two}\n"), 403)] {
        server.folder.write("url.keys", file);
        server.reload(&text).unwrap();
        assert_eq!(server.fetch(&line, &[]).status, status);
    }
    // The check of the program refuses an unusable file. Without it, no request is admitted.
    server.folder.write("url.keys", "short");
    server.reload(&text).unwrap();
    assert_eq!(server.fetch(&line, &[]).status, 503);
}

#[test]
fn signatures_reach_neither_upstreams_nor_the_cache() {
    let upstream = Upstream::start(|request, stream| {
        let response = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: {}\r\n\r\n{}",
            request.line.len(),
            request.line
        );
        write_to(stream, response);
        Next::Keep
    });
    let keys = format!(
        "{SIGNED}\n{}\ncache = true\nheaders = {{ X-Target = \"{{target}}\" }}\n\
         rule = [{{ path = \"/old/*\", rewrite = \"/new/{{*}}\" }}, {{ path = \"/moved\", redirect = \"/to?{{query}}\" }}]",
        upstream.key()
    );
    let server = start(&keys);
    for (line, expected) in [
        ("GET /a", "GET /a HTTP/1.1"),
        ("GET /a?b=1", "GET /a?b=1 HTTP/1.1"),
        ("GET /old/x?c=2", "GET /new/x?c=2 HTTP/1.1"),
    ] {
        for expires in [60, 70] {
            let response = server.fetch(&signed_by(&key(), line, expires, |_| {}), &[]);
            assert_eq!((response.status, &*response.text()), (200, expected));
            assert_eq!(response.field("X-Target"), line.strip_prefix("GET "));
            // All signed URLs of a resource share its response.
            let status = response.field("Cache-Status").unwrap().to_owned();
            assert_eq!(status.contains("hit"), expires == 70, "{line}: {status}");
        }
        // The response is not sent without a signature.
        let unsigned = server.fetch(line, &[]);
        assert_eq!((unsigned.status, unsigned.field("Cache-Status")), (403, None));
    }
    let direct = server.fetch("GET /new/x?c=2", &[]);
    assert_eq!(direct.status, 403);
    assert_eq!(upstream.all().len(), 3);
    let moved = server.fetch(&signed("GET /moved?x=1"), &[]);
    assert_eq!(moved.field("Location"), Some("/to?x=1"));
    // Other methods have signatures of their own.
    let post = signed("POST /form?x=1");
    assert_eq!(
        server.fetch(&post, &["Content-Length: 0"]).text(),
        "POST /form?x=1 HTTP/1.1"
    );
    assert_eq!(
        server
            .fetch(&post.replace("POST", "PUT"), &["Content-Length: 0"])
            .status,
        403
    );
}

#[test]
fn verifications_are_counted_by_outcome() {
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{SIGNED}\n\
         [site.default.route.\"/v/*\"]\nauth = false\n"
    );
    let server = Running::start(folder(), &text);
    let all = || {
        ["admitted", "expired", "invalid", "error"].map(|outcome| {
            let sample = format!("rocknet_signed_urls_total{{site=\"default\",outcome=\"{outcome}\"}}");
            super::metrics::value(&server, &sample).unwrap()
        })
    };
    let mut expected = [0.0; 4];
    assert_eq!(all(), expected);
    for (line, index) in [
        (signed("GET /dl/b.txt"), Some(0)),
        // An index file is not verified on its own.
        (signed("GET /dl/"), Some(0)),
        (signed_by(&key(), "GET /dl/b.txt", -1, |_| {}), Some(1)),
        (signed("GET /dl/b.txt").replace("/b", "/a"), Some(2)),
        ("GET /dl/b.txt".to_owned(), Some(2)),
        ("GET /v/1/seg.ts".to_owned(), None),
    ] {
        let responses = fetch(&server, &line, &[], "");
        if let Some(index) = index {
            expected[index] += responses.len() as f64;
        }
        assert_eq!(all(), expected, "{line}");
    }
    // The route has no usable key any more.
    server.folder.write("url.keys", "short");
    server.reload(&text).unwrap();
    assert_eq!(server.fetch(&signed("GET /dl/b.txt"), &[]).status, 503);
    expected[3] = 1.0;
    assert_eq!(all(), expected);
}

#[test]
fn expired_urls_lead_to_no_ban() {
    let text = format!(
        "{SERVER}[ban]\nnot_found = \"2/1m\"\nrefused = \"3/1m\"\nexempt = []\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{SIGNED}\n"
    );
    let server = Running::start(folder(), &text);
    let expired = signed_by(&key(), "GET /dl/b.txt", -1, |_| {});
    for _ in 0..5 {
        assert_eq!(server.fetch(&expired, &[]).status, 410);
    }
    let bans = || server.server().registries().bans.list().total;
    assert_eq!(bans(), 0);
    for _ in 0..3 {
        assert_eq!(server.get("/dl/b.txt").status, 403);
    }
    assert_eq!(bans(), 1);
}

#[test]
fn access_logs_have_no_signature_that_is_valid() {
    let folder = folder();
    let log = folder.path("access.log");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{SIGNED}\nlog = {{ access = \"{}\" }}\n\
         rule = [{{ path = \"/r\", redirect = \"/\" }}, {{ path = \"/v/*\", exists = \"nothing\", rewrite = \"/index.html\" }}]\n",
        log.display()
    );
    let server = Running::start(folder, &text);
    for path in ["/dl/b.txt?x=1", "/dl/b.txt?x=1", "/none", "/r", "/v/none", "/dl"] {
        server.fetch(&signed(&format!("GET {path}")), &[]);
    }
    let (server, _folder) = server.take();
    server.stop();
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(text.contains("GET /dl/b.txt?x=1 HTTP/1.1\" 200"), "{text}");
    assert!(!text.contains("signed"), "{text}");
}

#[test]
fn access_logs_have_no_signature_that_the_route_of_an_index_file_admits() {
    let folder = folder();
    let log = folder.path("access.log");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nlog = {{ access = \"{}\" }}\n\
         [site.default.route.\"/dl/index.html\"]\n{SIGNED}\n",
        log.display()
    );
    let server = Running::start(folder, &text);
    for _ in 0..2 {
        assert_eq!(server.fetch(&signed("GET /dl/"), &[]).status, 200);
    }
    assert_eq!(server.fetch("GET /dl/", &[]).status, 403);
    let (server, _folder) = server.take();
    server.stop();
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches("GET /dl/ HTTP/1.1\" 200").count(), 2, "{text}");
}

#[test]
fn access_logs_have_no_signature_that_is_admitted_after_a_password() {
    let folder = folder();
    let log = folder.path("access.log");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nlog = {{ access = \"{}\" }}\n{}\n\
         [site.default.route.\"/dl/index.html\"]\n{SIGNED}\n",
        log.display(),
        auth()
    );
    let server = Running::start(folder, &text);
    // The first request waits for the verification of the password.
    for _ in 0..2 {
        let response = server.fetch(&signed("GET /dl/"), &[&basic("bob", "secret")]);
        assert_eq!((response.status, &*response.text()), (200, "list"));
    }
    let (server, _folder) = server.take();
    server.stop();
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches("GET /dl/ HTTP/1.1\" 200").count(), 2, "{text}");
    assert_eq!(text.matches(" - bob [").count(), 2, "{text}");
}

#[test]
fn the_examples_of_the_page_make_valid_urls() {
    let page = include_str!("../../../../docs/signed-urls.md");
    let folder = Folder::with(&[("x", "")]);
    let url = "https://example.com/dl/a%20b.zip";
    let key_line = format!("main:{SECRET}");
    for (language, program, option, call) in [
        ("php", "php-cgi8.2", "-q", "\necho signed_url('URL', 60, 'KEY');\n"),
        ("python", "python3", "-B", "\nprint(signed_url('URL', 60, 'KEY'))\n"),
        (
            "js",
            "node",
            "--no-warnings",
            "\nconsole.log(signedUrl('URL', 60, 'KEY'));\n",
        ),
    ] {
        let start = page.find(&format!("```{language}\n")).expect(language) + language.len() + 4;
        let code = page[start..].split("```").next().unwrap();
        for url in [url.to_owned(), format!("{url}?x=1&y=%41")] {
            let call = call.replace("URL", &url).replace("KEY", &key_line);
            let file = folder.path(language);
            fs::write(&file, format!("{code}{call}")).unwrap();
            let output = match Command::new(program).arg(option).arg(&file).output() {
                Ok(output) => output,
                // Continuous integration does not install Node for tests.
                Err(_) if language == "js" => continue,
                Err(error) => panic!("{program}, which `cargo xtask test` installs: {error}"),
            };
            let text = String::from_utf8(output.stdout).unwrap();
            let target = text
                .trim()
                .strip_prefix("https://example.com")
                .unwrap_or_else(|| panic!("{text}"));
            let request = SignedRequest {
                method: b"GET",
                authority: b"example.com",
                target: target.as_bytes(),
                client: None,
            };
            let verdict = |now| key().verify(&request, std::iter::empty(), now);
            assert_eq!(verdict(now()), Verdict::Valid, "{language}: {text}");
            assert_eq!(verdict(now() + 61), Verdict::Expired, "{language}: {text}");
        }
    }
}
