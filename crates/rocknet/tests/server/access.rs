//! Access control over sockets: addresses, passwords, and the responses to refused requests.

mod bypasses;

use std::fs;
use std::time::Instant;

use http::Request;

use super::support::client::request;
use super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::support::http2::Http2;
use super::support::{DEADLINE, Folder, Running};

/// bcrypt hash of the password `secret`, with the lowest cost.
pub const SECRET: &str = "$2y$04$RwBnJOpDEQZiy2VKUT52Q.YEkrK.DMrhbaOu12VTXkM2GvfW0CUZW";
/// Apache MD5 hash of the password `secret`.
const OTHER_SECRET: &str = "$apr1$salta$B9BjV5iJxTOEigFCDPnZQ0";

/// Section `[server]` of the configurations: few threads, and HTTP/2 without TLS.
pub const SERVER: &str =
    "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";

/// Returns the key `auth` with the user `bob`, whose password is `secret`.
pub fn auth() -> String {
    format!("auth = {{ bob = \"{SECRET}\" }}")
}

/// Returns the `Authorization` header field for a user and a password.
pub fn basic(user: &str, password: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("Authorization: Basic ");
    for three in format!("{user}:{password}").as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A response, independent of the HTTP version.
pub struct AnyResponse {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub text: String,
}

impl AnyResponse {
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Sends a request over HTTP/1.1.
pub fn over_http1(server: &Running, line: &str, fields: &[&str], body: &str) -> AnyResponse {
    let mut client = server.connect();
    let length = format!("Content-Length: {}", body.len());
    let mut all = fields.to_vec();
    if !body.is_empty() {
        all.push(&length);
    }
    client.send_anyway(request(line, &all) + body);
    let response = client.response_to(line.split(' ').next().unwrap_or_default());
    AnyResponse {
        status: response.status,
        text: response.text(),
        fields: response.fields,
    }
}

/// Sends a request on an HTTP/2 connection.
pub fn over_http2(client: &mut Http2, line: &str, fields: &[&str], body: &str) -> AnyResponse {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut builder = Request::builder().method(method).uri(format!("http://localhost{path}"));
    for field in fields {
        let (name, value) = field.split_once(": ").expect("a name and a value");
        builder = builder.header(name, value);
    }
    let response = match body.is_empty() {
        true => {
            let (response, _) = client.start_request(builder, true);
            client.response(response)
        }
        false => client.send(builder.header("content-length", body.len()), body.as_bytes()),
    };
    let response = response.expect("a response");
    let fields = response.fields.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    });
    AnyResponse {
        status: response.status.as_u16(),
        fields: fields.collect(),
        text: String::from_utf8_lossy(&response.content).into_owned(),
    }
}

/// Sends a request over HTTP/1.1 and over HTTP/2.
pub fn fetch(server: &Running, line: &str, fields: &[&str], body: &str) -> [AnyResponse; 2] {
    let mut http2 = Http2::to(server.address());
    [
        over_http1(server, line, fields, body),
        over_http2(&mut http2, line, fields, body),
    ]
}

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "home"),
        ("www/page.html", "the page"),
        ("www/in/a.txt", "inside"),
    ])
}

#[test]
fn refused_requests_get_the_page_and_the_fields_of_the_route() {
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
         headers = {{ X-Site = \"yes\" }}\nerrors = {{ 401 = \"/page.html\", 403 = \"/page.html\", 429 = \"/page.html\" }}\n\
         route.\"/in/*\" = {{ auth = {{ realm = \"staff \\\"only\\\"\", users = {{ bob = \"{SECRET}\" }} }} }}\n\
         route.\"/net/*\" = {{ deny = \"127.0.0.0/8\" }}\nroute.\"/page.html\" = {{ deny = \"all\" }}\n"
    );
    let server = Running::start(folder(), &text);
    for (line, status, field) in [
        (
            "GET /in/a.txt",
            401,
            (
                "WWW-Authenticate",
                "Basic realm=\"staff \\\"only\\\"\", charset=\"UTF-8\"",
            ),
        ),
        ("GET /net/a", 403, ("X-Site", "yes")),
        // The error page itself is protected: a direct request for it is refused.
        ("GET /page.html", 403, ("X-Site", "yes")),
    ] {
        for got in fetch(&server, line, &[], "") {
            assert_eq!(got.status, status, "{line}");
            assert_eq!(got.field("X-Site"), Some("yes"), "{line}");
            assert_eq!(got.field("Server"), Some("RockNet"), "{line}");
            assert_eq!(got.field(field.0), Some(field.1), "{line}");
            assert_eq!(got.text, "the page", "{line}");
        }
    }
    // After ten wrong passwords from an address, every further attempt is refused, even with the right password.
    for number in 0..10 {
        let guess = basic("bob", &format!("guess {number}"));
        let got = over_http1(&server, "GET /in/a.txt", &[&guess], "");
        assert_eq!(got.status, 401, "{number}");
        // A repeated wrong password is counted only once. After the tenth, every attempt is refused with 429.
        let got = over_http1(&server, "GET /in/a.txt", &[&guess], "");
        assert!(got.status == 401 || number == 9, "{number}");
    }
    for got in fetch(&server, "GET /in/a.txt", &[&basic("bob", "secret")], "") {
        assert_eq!(got.status, 429);
        assert_eq!(got.field("X-Site"), Some("yes"));
        assert_eq!(got.text, "the page");
        let seconds: u64 = got.field("Retry-After").expect("a time").parse().expect("seconds");
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    // A reload keeps the count of wrong passwords, and other routes of the site are still served.
    server.reload(&text).expect("a good configuration");
    assert_eq!(
        over_http1(&server, "GET /in/a.txt", &[&basic("bob", "secret")], "").status,
        429
    );
    assert_eq!(over_http1(&server, "GET /", &[], "").text, "home");
}

#[test]
fn exactly_one_field_with_the_right_credentials_is_accepted() {
    let server = Running::start(folder(), &format!("{SERVER}{}", super::support::running::site(&auth())));
    let (right, other) = (basic("bob", "secret"), basic("ann", "secret"));
    // In the second round, the right password is in the cache of verified passwords.
    for _ in 0..2 {
        for (fields, status) in [
            (&[&*right][..], 200),
            (&[&right.replace("Basic", "bAsIc")], 200),
            (&[], 401),
            (&[&other], 401),
            (&[&basic("bob", "Secret")], 401),
            (&[&basic("bob", "")], 401),
            (&[&basic("", "secret")], 401),
            (&["Authorization: Bearer abc"], 401),
            (&["Authorization: Basic"], 401),
            (&["Authorization: Basic ***"], 401),
            // Several fields are refused, because applications differ in which one they use.
            (&[&right, &right], 401),
            (&[&right, &other], 401),
            (&[&other, &right], 401),
            (&["Proxy-Authorization: Basic Ym9iOnNlY3JldA=="], 401),
        ] {
            for got in fetch(&server, "GET /in/a.txt", fields, "") {
                assert_eq!(got.status, status, "{fields:?}");
                assert_eq!(got.text == "inside", status == 200, "{fields:?}");
                assert_eq!(got.field("WWW-Authenticate").is_some(), status == 401, "{fields:?}");
            }
        }
    }
}

#[test]
fn each_request_of_a_connection_is_checked() {
    let keys = format!("route.\"/in/*\" = {{ {} }}", auth());
    let server = Running::start(folder(), &format!("{SERVER}{}", super::support::running::site(&keys)));
    let right = basic("bob", "secret");
    let (mut http1, mut http2) = (server.connect(), Http2::to(server.address()));
    for (path, fields, status) in [
        ("/in/a.txt", &[&*right][..], 200),
        ("/in/a.txt", &[], 401),
        ("/index.html", &[&right], 200),
        ("/in/a.txt", &[], 401),
        ("/in/a.txt", &[&right], 200),
        ("/in/a.txt", &[&basic("bob", "x")], 401),
        ("/index.html", &[], 200),
    ] {
        let line = format!("GET {path}");
        assert_eq!(http1.fetch(&line, fields).status, status, "{path} {fields:?}");
        assert_eq!(
            over_http2(&mut http2, &line, fields, "").status,
            status,
            "{path} {fields:?} over HTTP/2"
        );
    }
}

#[test]
fn address_rules_apply_to_the_client_address() {
    let folder = folder();
    let text = format!(
        "{SERVER}trusted_proxies = [\"127.0.0.3\"]\n\
         [site.default]\nlisten = [\"127.0.0.1:0\", \"unix:site.sock\"]\nroot = \"www\"\n\
         route.\"/in/*\" = {{ allow = [\"192.0.2.0/24\", \"127.0.0.2\"] }}\n\
         route.\"/index.html\" = {{ allow = \"unix\" }}\nroute.\"/page.html\" = {{ allow = \"private\", deny = \"127.0.0.1\" }}\n"
    );
    let server = Running::start(folder, &text);
    let named = "X-Forwarded-For: 192.0.2.7";
    for (from, path, fields, status) in [
        ([127, 0, 0, 1], "/in/a.txt", &[][..], 403),
        ([127, 0, 0, 2], "/in/a.txt", &[], 200),
        ([127, 0, 0, 1], "/in/a.txt", &[named], 403),
        // A trusted proxy forwards requests of an allowed client or of another client, or names no client.
        ([127, 0, 0, 3], "/in/a.txt", &[named], 200),
        (
            [127, 0, 0, 3],
            "/in/a.txt",
            &["X-Forwarded-For: 192.0.2.7, 198.51.100.1"],
            403,
        ),
        ([127, 0, 0, 3], "/in/a.txt", &[], 403),
        ([127, 0, 0, 3], "/in/a.txt", &["Forwarded: for=192.0.2.7"], 403),
        ([127, 0, 0, 1], "/index.html", &[], 403),
        ([127, 0, 0, 1], "/page.html", &[], 403),
        ([127, 0, 0, 2], "/page.html", &[], 200),
        ([127, 0, 0, 3], "/page.html", &[named], 403),
    ] {
        // The second response comes from the worker cache.
        for _ in 0..2 {
            let mut client = from_address(&server, from);
            let response = client.fetch(&format!("GET {path}"), fields);
            assert_eq!(response.status, status, "{path} from {from:?} with {fields:?}");
        }
    }
    for (path, status) in [("/index.html", 200), ("/in/a.txt", 403), ("/page.html", 403)] {
        assert_eq!(server.connect_unix("site.sock").get(path).status, status, "{path}");
    }
}

/// Connects a client from this loopback address.
fn from_address(server: &Running, from: [u8; 4]) -> super::support::Client {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("an address of this machine");
        let stream = socket.connect(server.address()).await.expect("a server that listens");
        stream.into_std().expect("a socket")
    });
    stream.set_nonblocking(false).expect("an option of the socket");
    super::support::Client::over(stream)
}

#[test]
fn address_rules_apply_to_the_address_of_the_proxy_protocol() {
    let text = format!(
        "{SERVER}proxy_protocol = [\"127.0.0.0/8\"]\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
         route.\"/in/*\" = {{ allow = \"192.0.2.0/24\" }}\n"
    );
    let server = Running::start(folder(), &text);
    for (client, status) in [("192.0.2.7", 200), ("198.51.100.1", 403)] {
        let mut connection = server.connect();
        connection.send(format!("PROXY TCP4 {client} 192.0.2.2 5000 80\r\n"));
        for _ in 0..2 {
            let response = connection.fetch("GET /in/a.txt", &["X-Forwarded-For: 192.0.2.7"]);
            assert_eq!(response.status, status, "{client}");
        }
    }
}

#[test]
fn the_body_of_a_refused_request_is_bounded_and_the_connection_is_kept() {
    let keys = format!("limits = {{ body_size = 100 }}\n{}", auth());
    let server = Running::start(folder(), &format!("{SERVER}{}", super::support::running::site(&keys)));
    let right = basic("bob", "secret");
    let mut client = server.connect();
    for (fields, length, status) in [
        (&[][..], 100, 401),
        (&[&*right][..], 100, 405),
        // This password is not in the cache, so it is verified while the body waits.
        (&[&basic("bob", "wrong")], 100, 401),
        (&[], 101, 413),
    ] {
        let announced = format!("Content-Length: {length}");
        let fields: Vec<&str> = fields.iter().copied().chain([&*announced]).collect();
        client.send_anyway(request("POST /in/a.txt", &fields) + &"x".repeat(length));
        assert_eq!(client.response().status, status, "{fields:?}");
        if status != 413 {
            assert_eq!(
                client.fetch("GET /in/a.txt", &[&right]).text(),
                "inside",
                "after {status}"
            );
        }
    }
}

#[test]
fn applications_get_the_user_and_not_the_password() {
    let folder = Folder::with(&[("www/index.php", "")]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let text = format!(
            "Content-Type: text/plain\r\n\r\n{}|{}|{}|{}",
            incoming.variable("REMOTE_USER"),
            incoming.variable("AUTH_TYPE"),
            incoming.variable("HTTP_AUTHORIZATION"),
            incoming.variable("HTTP_REMOTE_USER"),
        );
        write_to(stream, response(text.as_bytes()));
        Next::Keep
    });
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"unix:php.sock\"\n\
         route.\"/in/*\" = {{ {} }}\nroute.\"/app/*\" = {{ fastcgi = \"unix:php.sock\", {} }}\n\
         route.\"/free/*\" = {{ fastcgi = \"unix:php.sock\" }}\n",
        auth(),
        auth()
    );
    let server = Running::start(folder, &text);
    let (right, lie) = (basic("bob", "secret"), "Remote-User: root");
    for (path, expected) in [
        ("/in/x", "bob|Basic||root".to_owned()),
        ("/app/x", "bob|Basic||root".to_owned()),
        // Routes without `auth` pass `Authorization` on, because the application may verify it.
        ("/free/x", format!("||{}|root", right.replace("Authorization: ", ""))),
        ("/x", format!("||{}|root", right.replace("Authorization: ", ""))),
    ] {
        for _ in 0..2 {
            for got in fetch(&server, &format!("GET {path}"), &[&right, lie], "") {
                assert_eq!((got.status, &*got.text), (200, &*expected), "{path}");
            }
        }
    }
}

#[test]
fn changes_of_the_user_file_take_effect() {
    let folder = folder();
    folder.write("htpasswd", format!("bob:{SECRET}\n"));
    let keys = "auth = { file = \"htpasswd\" }";
    let text = format!("{SERVER}{}", super::support::running::site(keys));
    let server = Running::start(folder, &text);
    let status = |user: &str| over_http1(&server, "GET /in/a.txt", &[&basic(user, "secret")], "").status;
    assert_eq!((status("bob"), status("ann")), (200, 401));
    // A change of the file takes effect within a second, or immediately at a reload.
    let file = server.folder.path("htpasswd");
    fs::write(&file, format!("bob:{SECRET}\ncat:{OTHER_SECRET}\n")).expect("a file");
    let started = Instant::now();
    while status("cat") != 200 {
        assert!(
            started.elapsed() < DEADLINE,
            "a user that was added to the file is refused"
        );
    }
    assert_eq!(status("bob"), 200);
    fs::write(&file, format!("dan:{OTHER_SECRET}\n")).expect("a file");
    server.reload(&text).expect("a good configuration");
    assert_eq!((status("bob"), status("cat"), status("dan")), (401, 401, 200));
    // A reload of a configuration without `auth` takes effect immediately.
    server
        .reload(&format!("{SERVER}{}", super::support::running::site("")))
        .expect("a good configuration");
    assert_eq!(over_http1(&server, "GET /in/a.txt", &[], "").status, 200);
}

over_http3! {
    refused_requests_get_the_page_and_the_fields_of_the_route,
    exactly_one_field_with_the_right_credentials_is_accepted,
    each_request_of_a_connection_is_checked,
    the_body_of_a_refused_request_is_bounded_and_the_connection_is_kept,
    applications_get_the_user_and_not_the_password,
    changes_of_the_user_file_take_effect,
}

#[test]
fn the_first_request_with_a_password_gets_listings_and_fields_of_its_route() {
    let folder = || {
        Folder::with(&[
            ("www/list/a.txt", "a"),
            ("www/b/page.txt", "page"),
            ("www/there.txt", ""),
        ])
    };
    let keys = format!(
        "{}\nbrowse = true\nheaders = {{ X-Route = \"site\" }}\n\
         [site.default.route.\"/b/*\"]\nheaders = {{ X-Route = \"{{path}}\" }}\n\
         [[site.default.rule]]\npath = \"/moved/*\"\nexists = \"file\"\nexists_at = \"/there.txt\"\nrewrite = \"/b/{{*}}\"\n",
        auth()
    );
    // A new server has verified no password, so the first request of each waits for it.
    for (path, status, field) in [("/list/", 200, "site"), ("/b/page.txt", 200, "/b/page.txt")] {
        let server = Running::site(folder(), &keys);
        let response = server
            .connect()
            .fetch(&format!("GET {path}"), &[&basic("bob", "secret")]);
        response.expect(path, status, &[&format!("X-Route: {field}")]);
    }
    // This request waits for the password and for the lookup of a rule, which leads to another route.
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    for _ in 0..2 {
        let response = client.fetch("GET /moved/page.txt", &[&basic("bob", "secret")]);
        response.expect("rewritten", 200, &[]);
        let field = response.field("X-Route").unwrap_or_default().to_owned();
        assert!(field.ends_with("/page.txt"), "{field}");
        assert_eq!(response.text(), "page");
    }
}
