//! Every endpoint of the control API over TCP, with requests that must not be carried out.

use std::io::{Read, Write};
use std::net::TcpStream;

use rocknet_control::api::{ENDPOINTS, Endpoint, Method, Permission};

use crate::program::{ProgramFolder, Server};

const FILE: &str = "[server]\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
                    [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

/// The API of a server over TCP, with its tokens.
struct Api {
    server: Server,
    dir: ProgramFolder,
    /// Host and port.
    address: String,
    /// Token that permits all requests.
    full: String,
    /// Token that permits only reading.
    read: String,
}

/// A response with its parts.
struct ApiResponse {
    status: u16,
    text: String,
}

impl Api {
    fn start() -> Api {
        let dir = ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", FILE)]);
        let server = dir.serve(&["run"]);
        let line = server.logged("the control API listens at http://");
        let (_, rest) = line.split_once("http://").unwrap();
        let address = rest.split('/').next().unwrap().to_owned();
        let token = |name: &str| dir.read(&format!("state/admin/{name}")).trim().to_owned();
        let (full, read) = (token("token"), token("read-token"));
        Api {
            server,
            dir,
            address,
            full,
            read,
        }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    /// Sends a request with these header fields, each with its line end.
    fn send(&self, method: &str, path: &str, host: &str, fields: &str, body: &str) -> ApiResponse {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = match (method, body) {
            ("GET", "") => String::new(),
            (_, body) => format!("Content-Length: {}\r\n", body.len()),
        };
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}{fields}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text[9..12].parse().unwrap();
        ApiResponse { status, text }
    }

    /// Asserts that the server was neither stopped nor changed by the requests.
    fn assert_untouched(&self) {
        assert_eq!(self.dir.read("rocknet.toml"), FILE);
        assert!(!self.dir.path().join("state/admin/history").exists());
        assert!(self.server.get("/").contains("home"));
        let status = self.dir.run(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
        assert_eq!(
            (status["reloads"].as_u64(), status["pid"].as_u64()),
            (Some(0), Some(self.server.id().into()))
        );
    }
}

/// Returns a target that the endpoint accepts.
fn target(endpoint: &Endpoint) -> &str {
    match endpoint.path {
        "/api/explain" => "/api/explain?url=%2F",
        "/api/site" => "/api/site?name=default",
        "/api/site/visit" => "/api/site/visit?name=default",
        path => path,
    }
}

#[test]
fn every_endpoint_needs_a_token() {
    let api = Api::start();
    let authorizations = [
        String::new(),
        "Authorization: Bearer 0000\r\n".to_owned(),
        "Authorization: Bearer \r\n".to_owned(),
        // The right token with another scheme, and the beginning of the right token.
        format!("Authorization: Basic {}\r\n", api.full),
        format!("Authorization: Bearer {}\r\n", &api.full[..63]),
        format!("Cookie: rocknet={}\r\n", api.full),
    ];
    for endpoint in ENDPOINTS {
        for authorization in &authorizations {
            let (method, path) = (endpoint.method.name(), target(endpoint));
            let response = api.send(method, path, &api.address, authorization, "");
            // After 20 wrong tokens in a minute, the server asks the client to wait.
            assert!(
                matches!(response.status, 401 | 429),
                "{method} {path} {authorization}: {}",
                response.text
            );
        }
    }
    // The right token is accepted all the same.
    let authorization = format!("Authorization: Bearer {}\r\n", api.full);
    let response = api.send("GET", "/api/status", &api.address, &authorization, "");
    assert_eq!(response.status, 200, "{}", response.text);
    api.assert_untouched();
}

#[test]
fn the_read_token_permits_reading_only() {
    let api = Api::start();
    let authorization = format!("Authorization: Bearer {}\r\n", api.read);
    let mut permitted = 0;
    for endpoint in ENDPOINTS {
        let (method, path) = (endpoint.method.name(), target(endpoint));
        let response = api.send(method, path, &api.address, &authorization, "");
        let expected = match endpoint.permission {
            Permission::Read => 200,
            Permission::Full => 403,
        };
        assert_eq!(response.status, expected, "{method} {path}: {}", response.text);
        permitted += usize::from(expected == 200);
        // The read token must never permit a method other than GET.
        assert!(endpoint.method == Method::Get || expected == 403, "{method} {path}");
    }
    let granted = |token: &str| {
        let authorization = format!("Authorization: Bearer {token}\r\n");
        let text = api
            .send("GET", "/api/permission", &api.address, &authorization, "")
            .text;
        text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(granted(&api.read), r#"{"permission":"read"}"#);
    assert_eq!(granted(&api.full), r#"{"permission":"full"}"#);
    // At least nine endpoints only read, and at least five make changes or send texts that may contain secrets.
    assert!(permitted >= 9 && permitted + 5 <= ENDPOINTS.len(), "{permitted}");
    api.assert_untouched();
}

#[test]
fn every_endpoint_rejects_requests_of_web_pages() {
    let api = Api::start();
    let own = &api.address;
    let port = api.port();
    let bearer = format!("Authorization: Bearer {}\r\n", api.full);
    // Hosts that are not the server's own. An attacker can make such a name resolve to this machine (DNS rebinding).
    let hosts = [
        "a.test".to_owned(),
        format!("a.test:{port}"),
        format!("localhost.a.test:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        format!("127.0.0.1.:{port}"),
        format!("0.0.0.0:{port}"),
        format!("a.localhost:{port}"),
    ];
    let origins = [
        "Origin: http://a.test\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: https://{own}\r\n"),
        format!("Origin: http://localhost:{port}\r\n"),
        "Origin: http://127.0.0.1:1\r\n".to_owned(),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        "Sec-Fetch-Site: same-site\r\n".to_owned(),
    ];
    for endpoint in ENDPOINTS {
        let (method, path) = (endpoint.method.name(), target(endpoint));
        for host in &hosts {
            let response = api.send(method, path, host, &bearer, "");
            assert_eq!(response.status, 403, "{method} {path} {host}: {}", response.text);
        }
        for origin in &origins {
            let response = api.send(method, path, own, &format!("{bearer}{origin}"), "");
            assert_eq!(response.status, 403, "{method} {path} {origin}: {}", response.text);
        }
        // No response permits a page of another origin to read it.
        let preflight = "Origin: http://a.test\r\nAccess-Control-Request-Method: POST\r\n";
        let response = api.send("OPTIONS", path, own, preflight, "");
        assert_eq!(response.status, 403, "{path}: {}", response.text);
        assert!(
            !response.text.to_ascii_lowercase().contains("access-control-"),
            "{}",
            response.text
        );
    }
    api.assert_untouched();
}

#[test]
fn every_endpoint_rejects_other_methods_and_bodies() {
    let api = Api::start();
    let own = &api.address;
    let bearer = format!("Authorization: Bearer {}\r\n", api.full);
    for endpoint in ENDPOINTS {
        let (method, path) = (endpoint.method.name(), target(endpoint));
        for other in ["DELETE", "PATCH", "OPTIONS", "TRACE"] {
            let response = api.send(other, path, own, &bearer, "");
            // The server itself does not pass TRACE to a handler.
            assert!(
                matches!(response.status, 405 | 501),
                "{other} {path}: {}",
                response.text
            );
            if response.status == 405 && other != "TRACE" {
                let allow = response
                    .text
                    .lines()
                    .find_map(|line| line.strip_prefix("Allow: "))
                    .unwrap();
                assert!(allow.split(", ").any(|allowed| allowed == method), "{path}: {allow}");
            }
        }
        for (content_type, body, expected) in [
            ("", "{}", 415),
            ("Content-Type: text/plain\r\n", "{}", 415),
            ("Content-Type: application/x-www-form-urlencoded\r\n", "a=b", 415),
            ("Content-Type: multipart/form-data; boundary=b\r\n", "--b--", 415),
            ("Content-Type: application/json\r\n", "no JSON", 400),
            ("Content-Type: application/json\r\n", "{\"unknown\": 1}", 400),
        ] {
            let response = api.send(method, path, own, &format!("{bearer}{content_type}"), body);
            assert_eq!(
                response.status, expected,
                "{method} {path} {content_type}: {}",
                response.text
            );
        }
    }
    api.assert_untouched();
}
