//! Metrics of queries to an authorization service.

use rocknet::inventory;

use super::*;
use crate::metrics::value;

/// Returns the number of queries of the default site with an outcome.
fn queries(server: &Running, outcome: &str) -> f64 {
    let labels = format!("site=\"default\",outcome=\"{outcome}\"");
    let sample = format!("rocknet_forward_auth_queries_total{{{labels}}}");
    value(server, &sample).unwrap_or_else(|| panic!("no sample {outcome}"))
}

/// Returns the numbers of queries: allowed, denied, redirected, errors and timeouts.
fn all(server: &Running) -> [f64; 5] {
    ["allowed", "denied", "redirected", "error", "timeout"].map(|outcome| queries(server, outcome))
}

#[test]
fn queries_are_counted_by_outcome() {
    let service = service();
    let keys = format!(
        "fallback = \"/index.html\"\n[site.default.route.\"/pages/*\"]\nauth = {{ forward = \"{0}\", sign_in = \"/sign_in\" }}\n\
         [site.default.route.\"/open/*\"]\nauth = false\n\
         [site.default.route.\"/near/*\"]\nauth = {{ forward = \"{0}\" }}\nallow = \"127.0.0.0/8\"\nsatisfy = \"any\"\n\
         [site.open]\nlisten = \"127.0.0.1:0\"\ntls = \"off\"\nroot = \"www\"",
        service.url()
    );
    let server = start(&service, &keys, "");
    for path in ["www/open/b.txt", "www/near/b.txt"] {
        server.folder.write(path, "text b");
    }
    assert_eq!(all(&server), [0.0; 5], "there are samples before the first query");
    let mut expected = [0.0; 5];
    for (line, cookie, index) in [
        ("GET /a.txt", "session=ann", Some(0)),
        ("GET /a.txt", "session=nameless", Some(0)),
        // The fallback leads to another path with the same service, which is not queried again.
        ("GET /missing", "session=ann", Some(0)),
        ("GET /a.txt", "status=401", Some(1)),
        ("GET /a.txt", "none=1", Some(2)),
        ("GET /pages/", "status=401", Some(2)),
        ("GET /a.txt", "status=304", Some(3)),
        ("GET /a.txt", "status=500", Some(3)),
        // No query is needed.
        ("GET /open/b.txt", "none=1", None),
        ("GET /near/b.txt", "none=1", None),
    ] {
        let responses = fetch(&server, line, &[&format!("Cookie: {cookie}")], "");
        if let Some(index) = index {
            expected[index] += responses.len() as f64;
        }
        assert_eq!(all(&server), expected, "{line} {cookie}");
    }
    assert_eq!(server.server().status().auth_errors, 4);
    let text = inventory::metrics(server.server());
    let others = text
        .lines()
        .filter(|line| line.starts_with("rocknet_forward_auth_queries_total"));
    assert!(others.clone().all(|line| line.contains("site=\"default\"")), "{text}");
    assert_eq!(others.count(), 5);
    // A reload keeps the counters, also if it removes the service.
    let plain = format!("{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n");
    server.reload(&plain).expect("a valid configuration");
    assert_eq!(server.get("/a.txt").status, 200);
    assert_eq!(all(&server), expected);
}

#[test]
fn failures_and_timeouts_of_authorization_services_are_counted() {
    let closed = RefusingPort::new();
    let site = |address: &str| {
        let auth = format!("auth = {{ forward = \"{address}\", timeout = \"100ms\" }}");
        let text = format!("{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{auth}\n");
        Running::start(folder(), &text)
    };
    let server = site(&format!("http://{}/", closed.address()));
    assert_eq!(server.get("/a.txt").status, 502);
    assert_eq!(all(&server), [0.0, 0.0, 0.0, 1.0, 0.0]);
    let silent = Upstream::raw(|stream: TcpStream| {
        let mut room = [0; 4096];
        while std::io::Read::read(&mut &stream, &mut room).is_ok_and(|got| got > 0) {}
    });
    let server = site(&silent.url());
    assert_eq!(server.get("/a.txt").status, 504);
    assert_eq!(all(&server), [0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(server.server().status().auth_errors, 1);
}
