//! Forward authentication: an authorization service decides about requests (`auth = { forward = "…" }`).

mod counters;
mod identities;
mod queries;

use std::net::TcpStream;

use super::access::{AnyResponse, SERVER, fetch};
use super::support::http2::Http2;
use super::support::refusing_port::RefusingPort;
use super::support::upstream::{Next, ReceivedRequest, Upstream, ok, write_to};
use super::support::{Folder, Running};

over_http3! {
    an_authorization_service_admits_or_responds,
    nothing_is_open_without_the_authorization_service,
}

/// Starts an authorization service that admits the cookie `session=ann` and redirects other clients.
fn service() -> Upstream {
    Upstream::start(|request, stream| {
        write_to(stream, decide(request));
        Next::Keep
    })
}

fn decide(request: &ReceivedRequest) -> &'static str {
    assert!(request.content.is_empty(), "{request:?}");
    match request.field("Cookie") {
        Some("session=ann") => {
            "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nRemote-Groups: a,b\r\nX-Other: 1\r\nContent-Length: 2\r\n\r\nok"
        }
        Some("session=renewed") => {
            "HTTP/1.1 204 No Content\r\nRemote-User: bob\r\nSet-Cookie: session=new; Path=/\r\nSet-Cookie: b=2\r\n\r\n"
        }
        Some("session=nameless") => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        Some("status=401") => "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n",
        Some("status=located") => {
            "HTTP/1.1 401 Unauthorized\r\nLocation: https://login.test/?rd=y\r\nSet-Cookie: flow=2\r\nSet-Cookie: b=3\r\nContent-Length: 2\r\n\r\nno"
        }
        Some("status=304") => "HTTP/1.1 304 Not Modified\r\n\r\n",
        Some("status=500") => "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
        _ => {
            "HTTP/1.1 302 Found\r\nLocation: https://login.test/?rd=x\r\nSet-Cookie: flow=1\r\nContent-Length: 5\r\n\r\nlogin"
        }
    }
}

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "home"),
        ("www/a.txt", "text a"),
        ("www/401.html", "log in"),
    ])
}

/// Starts a site with these keys, whose authorization service is `service`.
fn start(service: &Upstream, keys: &str, more: &str) -> Running {
    Running::start(
        folder(),
        &format!(
            "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nauth = {{ forward = \"{}/verify?x=1\" {more} }}\n{keys}\n",
            service.url()
        ),
    )
}

#[test]
fn an_authorization_service_admits_or_responds() {
    let service = service();
    let server = start(&service, "errors = { 401 = \"/401.html\" }", "");
    // The second request finds the file in the worker cache.
    for _ in 0..2 {
        for response in fetch(&server, "GET /a.txt?q=1", &["Cookie: session=ann", "X-In: 2"], "") {
            assert_eq!((response.status, &*response.text), (200, "text a"));
        }
        let seen = service.last();
        assert_eq!(seen.line, "GET /verify?x=1 HTTP/1.1");
        assert_eq!(seen.field("Host"), service.url().strip_prefix("http://"));
        assert_eq!(seen.field("X-In"), Some("2"));
        assert_eq!(seen.field("X-Forwarded-Method"), Some("GET"));
        assert_eq!(seen.field("X-Forwarded-Uri"), Some("/a.txt?q=1"));
        assert_eq!(seen.field("X-Original-URI"), Some("/a.txt?q=1"));
        let (host, scheme) = (seen.field("X-Forwarded-Host"), seen.field("X-Forwarded-Proto"));
        let url = format!("{}://{}/a.txt?q=1", scheme.expect("a scheme"), host.expect("a host"));
        assert_eq!(seen.field("X-Original-URL"), Some(&url[..]));
        assert!(
            seen.field("X-Forwarded-For")
                .is_some_and(|client| client.starts_with("127.0.0."))
        );
    }
    let check = |cookie: &str, status: u16, text: &str| -> AnyResponse {
        let [one, two] = fetch(&server, "GET /a.txt", &[&format!("Cookie: {cookie}")], "");
        for response in [&one, &two] {
            assert_eq!((response.status, &*response.text), (status, text), "{cookie}");
        }
        one
    };
    let login = check("none=1", 302, "login");
    assert_eq!(login.field("Location"), Some("https://login.test/?rd=x"));
    assert_eq!(login.field("Set-Cookie"), Some("flow=1"));
    let unauthorized = check("status=401", 401, "log in");
    assert_eq!(unauthorized.field("WWW-Authenticate"), Some("Bearer"));
    check("status=500", 500, "oops");
    check("session=nameless", 200, "text a");
    let [confirmed, _] = fetch(&server, "GET /a.txt", &["Cookie: status=304"], "");
    assert_eq!(confirmed.status, 502);
    // Connections to the service are kept.
    assert!(service.connections() <= 4, "{}", service.connections());
}

#[test]
fn an_authorization_service_gets_the_url_that_the_nearest_proxy_reports() {
    let service = service();
    let server = Running::start(
        folder(),
        &format!(
            "{SERVER}trusted_proxies = [\"127.0.0.0/8\"]\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
             auth = {{ forward = \"{}/verify\" }}\n",
            service.url()
        ),
    );
    // The client has written all but the last element.
    let reported = [
        "Cookie: session=ann",
        "X-Forwarded-Proto: http, https",
        "X-Forwarded-Host: evil.test, a.test",
    ];
    fetch(&server, "GET /a.txt", &reported, "");
    let seen = service.last();
    assert_eq!(seen.field("X-Original-URL"), Some("https://a.test/a.txt"));
    assert_eq!(seen.field("X-Forwarded-Proto"), Some("https"));
    assert_eq!(seen.field("X-Forwarded-Host"), Some("a.test"));
}

#[test]
fn clients_without_a_session_are_sent_to_the_login_page() {
    let service = service();
    let more = ", sign_in = \"https://login.test/start?rd={scheme}://{host}{target}&path={path}\"";
    let keys = format!(
        "route.\"/plain/*\".auth = {{ forward = \"{0}\", sign_in = \"/sign_in\" }}\n\
         route.\"/named/*\".auth = {{ forward = \"{0}\", sign_in = \"{{location}}\" }}\n",
        service.url()
    );
    let server = start(&service, &keys, more);
    let check = |line: &str, cookie: &str, status: u16, location: Option<&str>| {
        for response in fetch(&server, line, &[&format!("Cookie: status={cookie}")], "") {
            assert_eq!(
                (response.status, response.field("Location")),
                (status, location),
                "{line}"
            );
            let cookies = response
                .fields
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case("Set-Cookie"));
            assert_eq!(cookies.count(), if cookie == "located" { 2 } else { 0 }, "{line}");
            assert_eq!(response.field("WWW-Authenticate").is_some(), status == 401, "{line}");
        }
    };
    let page = "https://login.test/start?rd=http://localhost/a%2520b%3Fx%3D1%26y&path=/a%20b";
    check("GET /a%20b?x=1&y", "401", 302, Some(page));
    check("GET /a%20b?x=1&y", "located", 302, Some(page));
    check("POST /plain/?x=1", "401", 302, Some("/sign_in"));
    check("GET /named/", "located", 302, Some("https://login.test/?rd=y"));
    check("GET /named/", "401", 401, None);
    check("GET /named/", "500", 500, None);
}

#[test]
fn the_login_page_can_get_the_identifier_of_the_request() {
    let service = service();
    let server = start(&service, "", ", sign_in = \"/sign_in?id={request.id}\"");
    for response in fetch(&server, "GET /", &["Cookie: status=401"], "") {
        let location = response.field("Location").expect("a redirect");
        let id = location.strip_prefix("/sign_in?id=").expect(location);
        assert_eq!(id.len(), 32, "{location}");
    }
}

#[test]
fn an_address_can_suffice_without_an_identity() {
    let (service, upstream) = (service(), Upstream::responding_with(ok("x")));
    let keys = format!("{}\nallow = \"127.0.0.0/8\"\nsatisfy = \"any\"", upstream.key());
    let server = start(&service, &keys, "");
    for response in fetch(&server, "GET /", &["Remote-User: root", "Remote_User: root"], "") {
        assert_eq!(response.status, 200);
        let sent = upstream.last();
        assert_eq!((sent.field("Remote-User"), sent.field("Remote_User")), (None, None));
    }
    assert_eq!(service.all().len(), 0);
    // A denied address is not sent to the service.
    let server = start(&service, "deny = \"127.0.0.0/8\"", "");
    assert_eq!(server.fetch("GET /", &["Cookie: session=ann"]).status, 403);
    assert_eq!(service.all().len(), 0);
}

#[test]
fn nothing_is_open_without_the_authorization_service() {
    let closed = RefusingPort::new();
    let address = closed.address();
    let site = |address: &str, more: &str| {
        let text = format!(
            "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nauth = {{ forward = \"{address}\" {more} }}\n"
        );
        Running::start(folder(), &text)
    };
    let server = site(&format!("http://{address}/"), "");
    for path in ["/a.txt", "/a.txt", "/missing"] {
        assert_eq!(
            server.fetch(&format!("GET {path}"), &["Cookie: session=ann"]).status,
            502,
            "{path}"
        );
    }
    // A service that never responds, and one that responds with something else.
    let silent = Upstream::raw(|stream: TcpStream| {
        let mut room = [0; 4096];
        while std::io::Read::read(&mut &stream, &mut room).is_ok_and(|got| got > 0) {}
    });
    let server = site(&silent.url(), ", timeout = \"100ms\"");
    assert_eq!(server.get("/a.txt").status, 504);
    for junk in ["junk\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok", ""] {
        let service = Upstream::start(move |_, stream| {
            write_to(stream, junk);
            Next::Close
        });
        assert_eq!(site(&service.url(), "").get("/a.txt").status, 502, "{junk:?}");
    }
    // A response that is too large to become an identity.
    let big = format!(
        "HTTP/1.1 200 OK\r\nRemote-User: {}\r\nContent-Length: 0\r\n\r\n",
        "x".repeat(17 * 1024)
    );
    let service = Upstream::responding_with(big);
    assert_eq!(site(&service.url(), "").get("/a.txt").status, 502);
}

#[test]
fn tunnels_are_opened_for_admitted_clients_alone() {
    let service = service();
    let upstream = Upstream::start(|_, stream| {
        write_to(
            stream,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello",
        );
        Next::Close
    });
    let server = start(&service, &upstream.key(), "");
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let mut client = server.connect();
    let mut fields = upgrade.to_vec();
    fields.push("Cookie: session=ann");
    client.send(super::support::client::request("GET /chat", &fields));
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(client.bytes(5), b"hello");
    let query = service.last();
    assert_eq!((query.field("Upgrade"), query.field("Sec-WebSocket-Key")), (None, None));
    let refused = server.fetch("GET /chat", &upgrade);
    assert_eq!(refused.status, 302);
    // Over HTTP/2, a tunnel begins with CONNECT, and the service sees the method that upstreams get.
    let mut http2 = Http2::to(server.address());
    assert_eq!(http2.get("/chat").status.as_u16(), 302);
    assert!(http2.is_extended_connect_enabled());
    let mut request = http2.request("CONNECT", "/chat").header("cookie", "session=none");
    let extensions = request.extensions_mut().expect("a request");
    extensions.insert(h2::ext::Protocol::from_static("websocket"));
    let (response, _stream) = http2.start_request(request, false);
    let status = http2.wait(response).expect("a response").status();
    assert_eq!(status.as_u16(), 302);
    assert_eq!(service.last().field("X-Forwarded-Method"), Some("GET"));
    assert_eq!(upstream.all().len(), 1);
}
