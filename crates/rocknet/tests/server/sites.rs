//! Virtual hosts: which site serves a name, port and address.

use std::net::TcpListener;

use rocknet::server::StartError;

use super::support::client::request;
use super::support::http2::Http2;
use super::support::{Client, DEADLINE, Folder, Running};

/// Returns a folder with a root for each name. The index file of a root contains the name of the root.
fn folders(names: &[&str]) -> Folder {
    let folder = Folder::with(&[]);
    for name in names {
        folder.write(&format!("{name}/index.html"), name);
    }
    folder
}

/// Asserts the site that serves a `Host`, or the status if there is no site.
#[track_caller]
fn check(client: &mut Client, rows: &[(&str, Result<&str, u16>)]) {
    for _ in 0..2 {
        for (host, expected) in rows {
            let response = client.fetch("GET /", &[&format!("Host: {host}")]);
            let text = response.text();
            let found = if response.status == 200 {
                Ok(&*text)
            } else {
                Err(response.status)
            };
            assert_eq!(found, *expected, "Host: {host}");
        }
    }
}

const NAMED: &str = "
[site.\"a.example\"]
aliases = [\"www.a.example\", \"A2.Example\"]
listen = \"http://127.0.0.1:0\"
root = \"a\"
[site.\"b.example\"]
aliases = [\"*.b.example\", \"*.deep.x.b.example\"]
listen = \"http://127.0.0.1:0\"
root = \"b\"
[site.\"exact.b.example\"]
listen = \"http://127.0.0.1:0\"
root = \"c\"
";
const DEFAULT: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"d\"\n";

#[test]
fn sites_are_selected_by_name() {
    for (text, unknown) in [(NAMED.to_owned(), Err(404)), (format!("{NAMED}{DEFAULT}"), Ok("d"))] {
        let server = Running::start(folders(&["a", "b", "c", "d"]), &text);
        let mut client = server.connect();
        check(
            &mut client,
            &[
                ("a.example", Ok("a")),
                ("A.EXAMPLE", Ok("a")),
                ("a.example.", Ok("a")),
                ("a.example:8080", Ok("a")),
                ("a.example.:80", Ok("a")),
                ("www.a.example", Ok("a")),
                ("a2.example", Ok("a")),
                ("b.example", Ok("b")),
                ("x.b.example", Ok("b")),
                ("x.y.b.example", Ok("b")),
                ("X.B.EXAMPLE.", Ok("b")),
                ("exact.b.example", Ok("c")),
                ("x.exact.b.example", Ok("b")),
                ("xb.example", unknown),
                ("b.example.evil", unknown),
                ("x.a.example", unknown),
                ("unknown", unknown),
                ("127.0.0.1", unknown),
                ("[::1]:80", unknown),
                (".b.example", unknown),
            ],
        );
        // HTTP/1.0 may omit the name.
        let mut old = server.connect();
        old.send("GET / HTTP/1.0\r\n\r\n");
        let response = old.response();
        let text = response.text();
        assert_eq!(
            if response.status == 200 {
                Ok(&*text)
            } else {
                Err(response.status)
            },
            unknown,
            "no name"
        );
    }
}

#[test]
fn sites_are_selected_by_absolute_form() {
    let server = Running::start(folders(&["a", "b", "c"]), NAMED);
    let mut client = server.connect();
    for (target, host, expected) in [
        ("http://a.example/", "a.example", (200, "a")),
        ("http://A.example", "a.example", (200, "a")),
        ("HTTP://x.b.example:80/?q", "x.b.example", (200, "b")),
        ("http://unknown/", "unknown", (404, "")),
    ] {
        let response = client.fetch(&format!("GET {target}"), &[&format!("Host: {host}")]);
        let text = response.text();
        assert_eq!(
            (response.status, if response.status == 200 { &*text } else { "" }),
            expected,
            "{target}"
        );
    }
    for (target, host) in [
        ("http://a.example/", "b.example"),
        ("http://a.example/", ""),
        ("http://u@a.example/", "a.example"),
    ] {
        let mut client = server.connect();
        client.send(request(&format!("GET {target}"), &[&format!("Host: {host}")]));
        client.response().expect(target, 400, &["Connection: close"]);
        client.assert_closed(target);
    }
}

#[test]
fn the_only_site_of_a_port_serves_every_name() {
    let text = "[site.\"a.example\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"a\"\n[site.\"b.example\"]\nlisten = \"http://127.0.0.2:0\"\nroot = \"b\"";
    let server = Running::start(folders(&["a", "b"]), text);
    for (address, site) in server.addresses().into_iter().zip(["a", "b"]) {
        check(
            &mut Client::to(address),
            &[("a.example", Ok(site)), ("unknown", Ok(site)), ("127.0.0.1", Ok(site))],
        );
    }
}

#[test]
fn sites_are_selected_by_port() {
    let text =
        "[site.\"127.0.0.1:0\"]\nroot = \"a\"\n[site.\"127.0.0.2:0\"]\nroot = \"b\"\n[site.\"[::1]:0\"]\nroot = \"c\"";
    let server = Running::start(folders(&["a", "b", "c"]), text);
    let addresses = server.addresses();
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    for (address, site) in addresses.into_iter().zip(["a", "b", "c"]) {
        check(
            &mut Client::to(address),
            &[("anything", Ok(site)), ("b.example", Ok(site))],
        );
    }
    let whole = Running::start(folders(&["a"]), "[site.\":0\"]\nroot = \"a\"");
    let port = whole.server().listeners()[0].1.port().expect("a port");
    check(&mut Client::to(([127, 0, 0, 1], port).into()), &[("x", Ok("a"))]);
    check(
        &mut Client::to((std::net::Ipv6Addr::LOCALHOST, port).into()),
        &[("x", Ok("a"))],
    );
}

/// A port that some sites use on one address and others on all addresses has one listening socket.
#[test]
fn sites_are_selected_by_address() {
    let started = std::time::Instant::now();
    let (server, port) = loop {
        let port = free_port();
        let text = format!(
            "[site.\"a.example\"]\nlisten = \"http://{port}\"\nroot = \"a\"\n[site.\"b.example\"]\nlisten = \"http://127.0.0.2:{port}\"\nroot = \"b\"\n\
             [site.\"127.0.0.3:{port}\"]\nroot = \"c\"\n[site.default]\nlisten = \"http://{port}\"\nroot = \"d\""
        );
        match Running::try_start(folders(&["a", "b", "c", "d"]), &text, Vec::new()) {
            Ok(server) => break (server, port),
            // Another process has bound the port in the meantime.
            Err(StartError::Bind(_)) if started.elapsed() < DEADLINE => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(server.server().listeners().len(), 1);
    let at = |last: u8| Client::to(([127, 0, 0, last], port).into());
    check(
        &mut at(1),
        &[("a.example", Ok("a")), ("b.example", Ok("d")), ("x", Ok("d"))],
    );
    check(
        &mut at(2),
        &[("a.example", Ok("a")), ("b.example", Ok("b")), ("x", Ok("d"))],
    );
    check(
        &mut at(3),
        &[("a.example", Ok("c")), ("b.example", Ok("c")), ("x", Ok("c"))],
    );
}

/// Returns a port that is currently free.
fn free_port() -> u16 {
    TcpListener::bind("0.0.0.0:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}

#[test]
fn many_sites_are_selected_by_name() {
    const SITES: usize = 2000;
    let folder = folders(&["a", "b"]);
    let text: String = (0..SITES)
        .map(|number| {
            let root = if number % 2 == 0 { "a" } else { "b" };
            format!("[site.\"s{number}.example\"]\nlisten = \"http://127.0.0.1:0\"\nroot = \"{root}\"\n")
        })
        .collect();
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("s0.example", Ok("a")),
            ("s1.example", Ok("b")),
            ("s1998.example", Ok("a")),
            ("s1999.example", Ok("b")),
            ("s2000.example", Err(404)),
        ],
    );
}

const TWO: &str = "
[site.\"a.example\"]
listen = \"127.0.0.1:0\"
tls = \"off\"
root = \"a\"
[site.\"*.b.example\"]
listen = \"127.0.0.1:0\"
tls = \"off\"
root = \"b\"
";

/// Without TLS there is no handshake that could name another site, so the name is reported as unknown.
#[test]
fn an_unknown_name_gets_a_page_that_explains_it() {
    // Only in `dev` mode, the page lists the sites.
    for (mode, lists) in [("prod", false), ("dev", true)] {
        let text = format!("[server]\nmode = \"{mode}\"\nh2c = true\n{TWO}");
        let server = Running::start(folders(&["a", "b"]), &text);
        let port = server.address().port();
        let link = format!("<li><a href=\"http://a.example:{port}/\">http://a.example:{port}/</a></li>");
        let wildcard = format!("<li>http://*.b.example:{port}/</li>");
        let check = |what: &str, status: u16, page: &str, output: &str| {
            assert_eq!(status, 404, "{mode} {what}");
            assert!(page.contains(output), "{mode} {what}: {page}");
            let (has_link, has_wildcard) = (page.contains(&link), page.contains(&wildcard));
            assert_eq!((has_link, has_wildcard), (lists, lists), "{mode} {what}: {page}");
            // Only the page for 421 (Misdirected Request) advises to open a new window.
            assert!(!page.contains("new window"), "{mode} {what}: {page}");
        };
        let named = "No site here is called <code>c.example</code>.";
        let mut client = server.connect();
        for host in ["C.example", "c.example."] {
            let response = client.fetch("GET /x?y", &[&format!("Host: {host}:{port}")]);
            check(host, response.status, &response.text(), named);
        }
        // The request has a body, which is discarded.
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: c.example:{port}\r\nContent-Length: 5\r\n\r\nhello"
        ));
        let response = client.response();
        check("POST", response.status, &response.text(), named);
        client.send("HEAD / HTTP/1.1\r\nHost: c.example\r\n\r\n");
        assert_eq!(client.response_to("HEAD").status, 404);
        let mut client = Http2::to(server.address());
        let request = client.request("GET", "/x").uri(format!("http://c.example:{port}/x"));
        let (response, _) = client.start_request(request, true);
        let response = client.response(response).expect("a response");
        check(
            "HTTP/2",
            response.status.as_u16(),
            &String::from_utf8_lossy(&response.content),
            named,
        );
        let mut client = server.connect();
        client.send("GET / HTTP/1.0\r\n\r\n");
        let response = client.response();
        assert_eq!(response.status, 404);
        assert!(
            response.text().contains("does not say which site"),
            "{}",
            response.text()
        );
    }
}
