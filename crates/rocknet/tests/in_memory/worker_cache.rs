//! Worker-cache entries of paths whose controllers run on the thread of the connection (`run_on = "network"`): later
//! requests skip the lookup of the route.

use std::rc::Rc;

use rocknet::files::cache::l1::{CachedEndpoint, Hit};

use crate::library;
use crate::test_server::{TestClient, TestServer};
use crate::wire;

/// Returns a server with a controller at `/hello`, whose route also has `keys`, and with controllers at `/missing` and
/// below `/below/`.
fn server(keys: &str) -> TestServer {
    let library = library::plain().display();
    let routes = format!(
        "[site.\":0\".route.\"/hello\"]\ncontroller = \"{library}:hello\"\n{keys}\n\
         [site.\":0\".route.\"/missing\"]\ncontroller = \"{library}:missing\"\nrun_on = \"network\"\n\
         [site.\":0\".route.\"/below/*\"]\ncontroller = \"{library}:hello\"\nrun_on = \"network\"\n"
    );
    TestServer::of(&routes, "[site.\":0\"]\n", &[])
}

/// Returns the cached endpoint of a path. The server has one site, which has the number 0.
fn cached_endpoint(server: &TestServer, path: &str) -> Option<Rc<CachedEndpoint>> {
    match server.worker.files.l1().get(0, path.as_bytes())? {
        Hit::Endpoint(endpoint) => Some(Rc::clone(endpoint)),
        Hit::Entry(_) => None,
    }
}

/// Sends a request on a new connection and returns the response. `line`: method and target. `more`: further field
/// lines.
fn fetch(server: &TestServer, line: &str, more: &str) -> String {
    let mut client = server.connect();
    let request = format!("{line} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{more}\r\n");
    client.peer.send(request.as_bytes()).end();
    client.run_to_end();
    client.received()
}

const HELLO: &str = "\r\n\r\nhello from one";

#[test]
fn a_controller_route_for_one_path_is_cached_by_the_worker() {
    let server = server("run_on = \"network\"");
    assert!(cached_endpoint(&server, "/hello").is_none());
    assert!(fetch(&server, "GET /hello", "").ends_with(HELLO));
    let endpoint = cached_endpoint(&server, "/hello").expect("an endpoint");
    assert_eq!(&*endpoint.path, "/hello");
    // A lookup of the routes would find another controller for `/missing`, and no endpoint for `/nowhere`. The
    // responses show that no lookup takes place.
    for path in ["/missing", "/nowhere"] {
        let hit = Hit::Endpoint(Rc::clone(&endpoint));
        server.worker.files.l1().insert(0, path.as_bytes(), hit);
        for query in ["", "?a=b"] {
            let response = fetch(&server, &format!("GET {path}{query}"), "");
            assert!(response.ends_with(HELLO), "{path}{query}: {response}");
        }
        let mut client = server.connect_http2();
        client.peer.send(&wire::open_beginning()).send(&wire::get(1, path));
        client.run_until(|client| content(client) == b"hello from one");
        // The entry applies only to requests with a safe method and without a body.
        let response = fetch(&server, &format!("POST {path}"), "");
        assert!(!response.ends_with(HELLO), "{path}: {response}");
        let response = fetch(&server, &format!("GET {path}"), "Content-Length: 0\r\n");
        assert!(response.ends_with(HELLO), "{path}: {response}");
    }
}

fn content(client: &TestClient) -> Vec<u8> {
    wire::body_of(&wire::frames(&client.peer.received()).0, 1)
}

#[test]
fn only_the_exact_path_of_a_route_is_cached_and_only_by_a_safe_request() {
    let server = server("run_on = \"network\"");
    for (line, more) in [
        ("POST /hello", "Content-Length: 0\r\n"),
        ("PUT /hello", ""),
        ("GET /%68ello", ""),
        ("GET //hello", ""),
        ("GET /below/1", ""),
        ("GET /below/", ""),
    ] {
        let response = fetch(&server, line, more);
        assert!(response.ends_with(HELLO), "{line}: {response}");
        for path in ["/hello", "/%68ello", "//hello", "/below/1", "/below/"] {
            assert!(cached_endpoint(&server, path).is_none(), "{path} after {line}");
        }
    }
    assert!(fetch(&server, "HEAD /hello", "").starts_with("HTTP/1.1 200 "));
    assert!(cached_endpoint(&server, "/hello").is_some());
}

#[test]
fn controllers_that_respond_later_are_not_cached() {
    // The controller runs on a thread of the pool.
    let server = server("run_on = \"worker\"");
    for _ in 0..2 {
        assert!(fetch(&server, "GET /hello", "").ends_with(HELLO));
        assert!(cached_endpoint(&server, "/hello").is_none());
    }
}
