//! The dashboard over sockets: signing in, sessions, and requests that pages of other sites make.

mod forms;
mod sessions;

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::program::{ProgramFolder, Server};

const CONFIG: &str = "[server]\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
                      [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

/// Views, and the other paths that need a session.
const PAGES: [&str; 15] = [
    "/",
    "/websites",
    "/websites/add",
    "/websites/edit?name=default",
    "/websites/copy?name=default",
    "/logs",
    "/upstreams",
    "/traffic",
    "/certificates",
    "/php",
    "/settings",
    "/history",
    "/doctor",
    "/maintenance",
    "/explain",
];

/// Views with forms for instructions.
const INSTRUCTED: [&str; 3] = ["/traffic", "/php", "/maintenance"];

/// Media type of the fields of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns true for the pages that browsers send a form to.
fn takes_form(page: &str) -> bool {
    page.starts_with("/websites/") || INSTRUCTED.contains(&page)
}

struct Dashboard {
    dir: ProgramFolder,
    _server: Server,
    address: String,
}

/// Status, head and body of a response.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Dashboard {
    fn start() -> Dashboard {
        let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", CONFIG)]);
        let server = dir.serve(&["run"]);
        let link = link(&dir);
        let (address, _) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let port = address.strip_prefix("rocknet.localhost:").unwrap();
        Dashboard {
            dir,
            _server: server,
            address: format!("127.0.0.1:{port}"),
        }
    }

    fn connect(&self, method: &str, path: &str, fields: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = if fields.contains("Host: ") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{fields}");
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    fn send(&self, method: &str, path: &str, fields: &str, body: &str) -> Reply {
        let mut stream = self.connect(method, path, fields, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head[9..12].parse().unwrap(),
            head: format!("{head}\r\n"),
            body: body.to_owned(),
        }
    }

    fn login(&self, body: &str) -> Reply {
        self.send("POST", "/login", "Content-Type: application/json\r\n", body)
    }

    /// Signs in with the token in the file `name` of the state folder, and returns the cookie as a header field.
    fn cookie(&self, name: &str) -> String {
        let token = self.dir.read(&format!("state/admin/{name}"));
        let reply = self.login(&format!("{{\"token\":\"{}\"}}", token.trim()));
        assert_eq!(reply.status, 200, "{}", reply.body);
        cookie(&reply)
    }
}

/// Returns the link that `rocknet dashboard` prints.
fn link(dir: &ProgramFolder) -> String {
    let output = dir.run(&["dashboard"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    output.out.trim().to_owned()
}

/// Returns the cookie that a response sets, as a header field with another cookie before it.
fn cookie(reply: &Reply) -> String {
    let (_, rest) = reply.head.split_once("\r\nSet-Cookie: ").unwrap();
    let line = rest.lines().next().unwrap();
    let (pair, attributes) = line.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert_eq!(pair.len(), "rocknet_session=".len() + 64);
    format!("Cookie: other=1; {pair}\r\n")
}

#[test]
fn pages_need_a_session() {
    let dashboard = Dashboard::start();
    for page in PAGES {
        for fields in ["", "Cookie: rocknet_session=\r\n", "Cookie: rocknet_session=0000\r\n"] {
            let reply = dashboard.send("GET", page, fields, "");
            assert_eq!(reply.status, 303, "{page}: {}", reply.body);
            assert!(
                reply.head.contains("\r\nLocation: /login\r\n"),
                "{page}: {}",
                reply.head
            );
        }
    }
    assert_eq!(dashboard.send("GET", "/events", "", "").status, 401);
    let login = dashboard.send("GET", "/login", "", "");
    assert_eq!(login.status, 200);
    let cookie = dashboard.cookie("token");
    for page in PAGES {
        let reply = dashboard.send("GET", page, &cookie, "");
        assert_eq!(reply.status, 200, "{page}: {}", reply.body);
        for field in [
            "\r\nContent-Type: text/html; charset=utf-8\r\n",
            "\r\nCache-Control: no-store\r\n",
            "\r\nX-Content-Type-Options: nosniff\r\n",
            "\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; ",
            " frame-ancestors 'none'\r\n",
        ] {
            assert!(reply.head.contains(field), "{page}: {field:?} in {}", reply.head);
        }
        for inline in ["<style", " style=", "onclick=", "<script>", "javascript:"] {
            assert!(!reply.body.contains(inline), "{page}: {inline}");
        }
        assert_eq!(dashboard.send("HEAD", page, &cookie, "").status, 200, "{page}");
        let refused = dashboard.send("DELETE", page, &cookie, "");
        let methods = if takes_form(page) {
            "GET, HEAD, POST"
        } else {
            "GET, HEAD"
        };
        let has_methods = refused.head.contains(&format!("\r\nAllow: {methods}\r\n"));
        assert_eq!((refused.status, has_methods), (405, true), "{page}");
    }
    assert_eq!(dashboard.send("GET", "/logout", &cookie, "").status, 405);
    let (_, asset) = login.body.split_once("href=\"/assets/").unwrap();
    let asset = format!("/assets/{}", asset.split('"').next().unwrap());
    assert_eq!(dashboard.send("GET", &asset, "", "").status, 200);
    assert_eq!(dashboard.send("GET", "/assets/0/Cargo.toml", &cookie, "").status, 404);
}

#[test]
fn requests_of_other_pages_are_rejected() {
    let dashboard = Dashboard::start();
    let cookie = dashboard.cookie("token");
    // Header fields of a request that a page of the dashboard itself makes.
    let own = format!("{cookie}Origin: http://{}\r\n", dashboard.address);
    let paths = [
        "/login",
        "/logout",
        "/events",
        "/assets/0/dashboard.js",
        "/api/status",
        "/api/config",
    ];
    for path in PAGES.into_iter().chain(paths) {
        for fields in [
            "Host: a.test\r\n",
            "Host: a.localhost\r\n",
            "Origin: http://a.test\r\n",
            "Origin: null\r\n",
            "Origin: http://127.0.0.1:1\r\n",
            "Origin: http://localhost\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\n",
        ] {
            let reply = dashboard.send("GET", path, &format!("{cookie}{fields}"), "");
            assert_eq!(reply.status, 403, "{path} {fields}: {}", reply.body);
        }
        // Forms are sent with these media types, and never as JSON. Only the paths with a form accept them.
        for media_type in ["text/plain", FORM] {
            let fields = format!("{own}Content-Type: {media_type}\r\n");
            let expected = match media_type {
                // The result of an instruction is on the next page.
                FORM if INSTRUCTED.contains(&path) => 303,
                FORM if takes_form(path) => 200,
                _ => 415,
            };
            assert_eq!(
                dashboard.send("POST", path, &fields, "{}").status,
                expected,
                "{path} {media_type}"
            );
        }
        if takes_form(path) {
            for origin in [
                "",
                "Origin: null\r\n",
                "Origin: http://127.0.0.1:1\r\n",
                "Sec-Fetch-Site: none\r\n",
            ] {
                let fields = format!("{cookie}{origin}Content-Type: {FORM}\r\n");
                assert_eq!(
                    dashboard.send("POST", path, &fields, "do=save").status,
                    403,
                    "{path} {origin}"
                );
            }
        }
    }
    // The cookie alone is no evidence that the dashboard has made the request.
    for (method, path) in [
        ("GET", "/api/status"),
        ("GET", "/api/config"),
        ("POST", "/api/reload"),
        ("POST", "/api/stop"),
    ] {
        assert_eq!(dashboard.send(method, path, &cookie, "").status, 401, "{path}");
        // Browsers send `none` if the user has typed the address.
        let typed = format!("{cookie}Sec-Fetch-Site: none\r\n");
        assert_eq!(dashboard.send(method, path, &typed, "").status, 401, "{path}");
    }
    assert_eq!(dashboard.send("GET", "/events", &cookie, "").status, 401);
    assert_eq!(dashboard.send("POST", "/api/reload", &own, "").status, 200);
    let same = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(dashboard.send("GET", "/api/config", &same, "").status, 200);
    // A wrong token is not replaced by the cookie.
    let wrong = format!("{own}Authorization: Bearer 0000\r\n");
    assert_eq!(dashboard.send("GET", "/api/status", &wrong, "").status, 401);
}

#[test]
fn names_and_texts_are_escaped() {
    let dashboard = Dashboard::start();
    let cookie = dashboard.cookie("token");
    let own = format!("{cookie}Sec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n");
    let text = format!("{CONFIG}# </textarea><script>alert(1)</script>\n");
    dashboard.dir.write("rocknet.toml", &text);
    let page = dashboard.send("GET", "/settings", &cookie, "").body;
    assert!(
        page.contains("&#60;/textarea&#62;&#60;script&#62;") && !page.contains("<script>"),
        "{page}"
    );
    let added_site = r#"{"edits":[{"op":"set","path":["site","a\"'><b>"],"value":"{ root = \"www\" }"}]}"#;
    let checked = dashboard.send("POST", "/api/config/check-edits", &own, added_site);
    assert!(
        checked.status == 200 && checked.body.contains("is_valid"),
        "{}",
        checked.body
    );
    assert_eq!(dashboard.dir.read("rocknet.toml"), text, "a check changes nothing");
    let missing = r#"{"edits":[{"op":"remove","path":["site","none"]}]}"#;
    assert_eq!(
        dashboard.send("POST", "/api/config/check-edits", &own, missing).status,
        422
    );
    let unknown = dashboard.send("GET", "/websites/edit?name=%3Cb%3E", &cookie, "");
    assert!(
        unknown.status == 404 && !unknown.body.contains("<b>"),
        "{}",
        unknown.body
    );
}

#[test]
fn a_server_without_an_address_has_no_dashboard() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        (
            "rocknet.toml",
            "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n",
        ),
    ]);
    let _server = dir.serve(&["run"]);
    let refused = dir.run(&["dashboard"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("set `listen = \"127.0.0.1:7625\"` below [admin]"),
        "{}",
        refused.err
    );
}
