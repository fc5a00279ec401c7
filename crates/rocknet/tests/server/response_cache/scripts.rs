//! Stored pages of PHP on sites with guards: workers send them without a lookup, and no guard, rule or change of a file
//! is passed over.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::super::access::{SECRET, basic};
use super::super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::super::support::{Client, DEADLINE, Folder, Running};
use super::ready::{heat, ready_hits, while_hot};
use super::status;

over_http3! {
    a_limit_of_another_path_leaves_pages_fast,
    limits_count_fast_pages,
    guards_of_scripts_decide_about_fast_pages,
    rules_for_files_decide_about_fast_pages,
    changes_of_files_end_fast_pages,
}

const VISITOR: &str = "X-Forwarded-For: 198.51.100.1";
const OTHER: &str = "X-Forwarded-For: 198.51.100.2";
/// Limit of a path that no test requests, so that the site has a guard.
const LIMIT: &str = "route.\"/wp-login.php\" = { limit = { rate = \"10/m\", burst = 21 } }\n";

/// A server with one worker that caches the pages of a scripted PHP. Clients name their address, as behind a proxy.
struct Site {
    server: Running,
    /// Number of scripts that were run.
    runs: Arc<AtomicUsize>,
    _peer: Peer,
}

impl Site {
    /// `keys`: further keys of the site. `files`: those below its root besides `index.php`.
    fn start(keys: &str, files: &[&str]) -> Site {
        let folder = Folder::with(&[("www/index.php", "")]);
        files.iter().for_each(|file| folder.write(&format!("www/{file}"), ""));
        let runs = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&runs);
        let peer = Peer::start(&folder.path(SOCKET), move |incoming, stream| {
            counter.fetch_add(1, Ordering::SeqCst);
            let (name, target) = (incoming.variable("SCRIPT_NAME"), incoming.variable("REQUEST_URI"));
            let fields = "Content-Type: text/plain\r\nCache-Control: public, max-age=3600\r\nX-A: b";
            write_to(stream, response(format!("{fields}\r\n\r\n{name} {target}").as_bytes()));
            Next::Keep
        });
        let text = format!(
            "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\ntrusted_proxies = [\"127.0.0.0/8\"]\n\
             events = {{ wait = \"20ms\", connections = 16 }}\n\
             [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"unix:php.sock\"\ncache = true\n{keys}\n"
        );
        Site {
            server: Running::start(folder, &text),
            runs,
            _peer: peer,
        }
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Requests a page until `expected` is its body, and asserts that it changes in this way.
    #[track_caller]
    fn wait_for(&self, client: &mut Client, line: &str, status: u16, expected: &str) {
        let until = Instant::now() + DEADLINE;
        loop {
            let next = client.fetch(line, &[OTHER]);
            if next.status == status && next.text().starts_with(expected) {
                return;
            }
            assert!(Instant::now() < until, "{line}: {next:?}");
        }
    }
}

#[test]
fn a_limit_of_another_path_leaves_pages_fast() {
    let keys = format!("{LIMIT}route.\"/shared/*\" = {{ cors = {{ origins = [\"https://a.example\"] }} }}");
    let site = Site::start(&keys, &["shop/index.php", "a.php"]);
    let (server, mut client) = (&site.server, site.server.connect());
    for (at, (target, script)) in [
        ("/", "/index.php"),
        ("/post/", "/index.php"),
        ("/post/?x=1", "/index.php"),
        ("/index.php", "/index.php"),
        ("/a.php/Special:Search", "/a.php"),
        ("/wiki/Special:Search", "/index.php"),
        ("/a%2Fphp", "/index.php"),
        ("/shop/", "/shop/index.php"),
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!("GET {target}");
        let first = client.fetch(&line, &[VISITOR]);
        assert_eq!(status(&first), "fwd=uri-miss; stored", "{first:?}");
        let hot = heat(server, &mut client, &line, &[VISITOR]);
        assert_eq!(hot.text(), format!("{script} {target}"));
        assert_eq!(first.text(), hot.text());
        hot.expect(target, 200, &["X-A: b", "Content-Type: text/plain", "Age", "Date"]);
        let head = heat(server, &mut client, &line.replace("GET", "HEAD"), &[VISITOR]);
        assert_eq!((&*status(&head), &*head.text()), ("hit", ""));
        // Clients with other coding preferences, and of other addresses, get the same.
        assert_eq!(status(&client.fetch(&line, &["Accept-Encoding: gzip", OTHER])), "hit");
        assert_eq!(site.runs(), at + 1, "{target}");
    }
    // The fields of these pages depend on the request.
    for _ in 0..6 {
        for (origin, expected) in [
            ("a", "Access-Control-Allow-Origin: https://a.example"),
            ("b", "!Access-Control-Allow-Origin"),
        ] {
            let page = client.fetch("GET /shared/x", &[&format!("Origin: https://{origin}.example")]);
            page.expect(origin, 200, &["X-A: b", expected]);
        }
    }
    // Requests with other methods run the script.
    assert_eq!(client.fetch("POST /", &[VISITOR]).text(), "/index.php /");
}

#[test]
fn limits_count_fast_pages() {
    const BURST: usize = 60;
    let limit = format!("limit = {{ rate = \"1/h\", burst = {BURST} }}");
    // Keys, the requests that are counted together, and one that is not counted.
    for (keys, limited, free) in [
        (
            format!("route.\"/wp-login.php\" = {{ {limit} }}"),
            &[
                "GET /wp-login.php",
                "HEAD /wp-login.php",
                "GET /x/../wp-login.php",
                "GET //wp-login.php",
                "GET /wp-login.php/x",
                "GET /wp-login.php/",
            ][..],
            "GET /",
        ),
        (
            format!("route.\"/\" = {{ {limit} }}"),
            &["GET /", "GET //", "GET /?a=1", "HEAD /"],
            "GET /post/",
        ),
        (
            format!("route.\"/index.php\" = {{ {limit} }}"),
            &["GET /", "GET /post/", "GET /index.php", "GET /index.php/x"],
            "GET /wp-login.php",
        ),
        (limit.clone(), &["GET /", "GET /post/", "GET /wp-login.php"], ""),
        // Two limits apply to the page, one of which admits fewer requests.
        (
            format!("limit = {{ rate = \"10/h\", burst = 1000 }}\nroute.\"/index.php\" = {{ {limit} }}"),
            &["GET /"],
            "GET /wp-login.php",
        ),
    ] {
        let site = Site::start(&keys, &["wp-login.php"]);
        let (server, mut client) = (&site.server, site.server.connect());
        let mut served = 0;
        for line in limited.iter().cycle() {
            let next = client.fetch(line, &[VISITOR]);
            if next.status != 200 {
                next.expect(line, 429, &["Retry-After", "!Cache-Status"]);
                break;
            }
            served += 1;
            assert!(served <= BURST, "{keys}: a request was not counted");
        }
        assert_eq!(served, BURST, "{keys}");
        assert!(ready_hits(server) > 0.0, "{keys}: no page was sent without a lookup");
        // For others, the page stays fast.
        let check = |client: &mut Client| {
            for line in limited {
                client.fetch(line, &[VISITOR]).expect(line, 429, &["!Cache-Status"]);
            }
        };
        if !free.is_empty() {
            while_hot(server, &mut server.connect(), free, &[OTHER], || check(&mut client));
        }
        heat(server, &mut server.connect(), limited[0], &[OTHER]);
        check(&mut client);
    }
}

#[test]
fn guards_of_scripts_decide_about_fast_pages() {
    let restricted = "allow = \"198.51.100.1\"";
    let any = format!("{restricted}, satisfy = \"any\", auth = {{ bob = \"{SECRET}\" }}");
    // Keys, requests that the other client may not send, and the status.
    for (keys, lines, expected) in [
        // The front controller and the index file of another route.
        (
            format!("fallback = \"/in/index.php\"\nroute.\"/in/*\" = {{ {restricted} }}"),
            &["GET /post/", "GET /in/index.php", "GET /in/", "GET /none.php"][..],
            403,
        ),
        (
            format!("fallback = \"/in/index.php\"\nroute.\"/in/*\" = {{ {any} }}"),
            &["GET /post/", "GET /in/index.php"],
            401,
        ),
        (
            format!("route.\"/in/index.php\" = {{ {restricted} }}"),
            &["GET /in/", "GET /in/index.php/x"],
            403,
        ),
        // A path after the script, which applications use as the path.
        (
            format!("route.\"/in/*\" = {{ {restricted} }}"),
            &[
                "GET /index.php/in/x",
                "GET /index.php/in%2Fx",
                "GET /in%2Fx",
                "GET /x/..%2Fin/x",
            ],
            403,
        ),
        // A route for the path with a slash.
        (
            format!("route.\"/area/\" = {{ {restricted} }}"),
            &["GET /area", "GET /area/"],
            403,
        ),
    ] {
        let site = Site::start(&keys, &["in/index.php", "free.php"]);
        let (server, mut client) = (&site.server, site.server.connect());
        for line in lines {
            let is_stored = status(&client.fetch(line, &[VISITOR]));
            assert!(is_stored.ends_with("stored") || is_stored == "hit", "{keys}: {line}");
            while_hot(server, &mut server.connect(), line, &[VISITOR], || {
                client
                    .fetch(line, &[OTHER])
                    .expect(line, expected, &["!Cache-Status", "!X-A"]);
            });
            if expected == 401 {
                let page = client.fetch(line, &[OTHER, &basic("bob", "secret")]);
                assert_eq!((page.status, &*status(&page)), (200, "fwd=bypass"), "{line}");
                client
                    .fetch(line, &[OTHER, &basic("bob", "wrong")])
                    .expect(line, 401, &["!X-A"]);
                client.fetch(line, &[OTHER]).expect(line, 401, &["!X-A"]);
            }
        }
        // Requests without a lookup are not refused elsewhere.
        heat(server, &mut client, "GET /free.php", &[OTHER]);
    }
}

#[test]
fn rules_for_files_decide_about_fast_pages() {
    let keys = r#"
rule = [
    { path = "*/index.php", client = "198.51.100.2", unless = [{ path = "/open/*" }], respond = 403, resolved = true },
    { path = "*/index.php", header = { X-Block = "a" }, respond = 410, resolved = true },
    { path = "/old/*", respond = 404 },
]
"#;
    let site = Site::start(keys, &["shop/index.php", "open/index.php", "free.php"]);
    let (server, mut client) = (&site.server, site.server.connect());
    for (line, fields, expected) in [
        ("GET /shop/", &[OTHER][..], 403),
        ("GET /post/", &[OTHER], 403),
        ("GET /shop/index.php/x", &[OTHER], 403),
        ("GET /shop/", &[VISITOR, "X-Block: a"], 410),
        ("GET /post/", &[VISITOR, "X-Block: a"], 410),
        ("GET /open/", &[OTHER, "X-Block: a"], 410),
        ("GET /open/", &[OTHER], 200),
    ] {
        while_hot(server, &mut server.connect(), line, &[VISITOR], || {
            client.fetch(line, fields).expect(line, expected, &[]);
        });
    }
    heat(server, &mut client, "GET /free.php", &[OTHER]);
}

/// A file, a new index and a new script take the place of a page while it is sent without a lookup, and the guards of
/// the new script apply.
#[test]
fn changes_of_files_end_fast_pages() {
    let keys = format!("{LIMIT}route.\"/shop/index.php\" = {{ allow = \"198.51.100.1\" }}");
    let site = Site::start(&keys, &["shop/x.txt", "list/x.txt", "gone.php"]);
    let (server, mut client) = (&site.server, site.server.connect());
    let path = |name: &str| server.folder.path(&format!("www/{name}"));
    for (line, before, name, status, after) in [
        ("GET /page", "/index.php /page", "page", 200, "a file"),
        ("GET /list/", "/index.php /list/", "list/index.html", 200, "a file"),
        // The stored page belongs to the path, and the guard to the new script.
        ("GET /shop/", "/index.php /shop/", "shop/index.php", 403, ""),
    ] {
        assert_eq!(heat(server, &mut client, line, &[OTHER]).text(), before);
        fs::write(path(name), "a file").expect("a file");
        site.wait_for(&mut client, line, status, after);
        // No later request gets the page.
        for _ in 0..6 {
            let next = client.fetch(line, &[OTHER]);
            assert_eq!((next.status, next.field("X-A")), (status, None), "{line}: {next:?}");
        }
        fs::remove_file(path(name)).expect("the file");
        site.wait_for(&mut client, line, 200, before);
        assert_eq!(heat(server, &mut client, line, &[OTHER]).text(), before);
    }
    // A script that is missing is not in use any longer: the front controller handles its path.
    heat(server, &mut client, "GET /gone.php", &[OTHER]);
    fs::remove_file(path("index.php")).expect("the front controller");
    fs::remove_file(path("gone.php")).expect("the script");
    site.wait_for(&mut client, "GET /gone.php", 404, "");
}
