//! Requests without TLS for a site that has TLS: they are redirected to `https://`, except ACME challenges.

use crate::test_server::{TestClient, TestServer};
use crate::wire;

/// Asserts the status and the `Location` that a request gets. `expected`: both, separated by a space.
#[track_caller]
fn check(server: &TestServer, request: &str, expected: &str) {
    let mut client = server.connect();
    client.peer.send(request.as_bytes()).end();
    client.run_to_end();
    let received = client.received();
    let status = received.get(9..12).unwrap_or_default();
    let location = received.split("\r\n").find_map(|line| line.strip_prefix("Location: "));
    let found = format!("{status} {}", location.unwrap_or_default());
    assert_eq!(found.trim_end(), expected, "{request:?}");
}

/// Returns a server with one site on a plain-HTTP port and an HTTPS port. `keys`: further keys of its `tls`.
/// `with_certificate`: false if the certificate file is empty.
fn server(keys: &str, with_certificate: bool) -> TestServer {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let cert = if with_certificate {
        made.cert.pem()
    } else {
        String::new()
    };
    let site = format!(
        "[site.\"a.test\"]\nlisten = [\"http://127.0.0.1:81\", \"127.0.0.1:8443\"]\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\"{keys} }}\n"
    );
    TestServer::of(
        "",
        &site,
        &[("a.pem", &cert), ("a.key", &made.signing_key.serialize_pem())],
    )
}

#[test]
fn requests_are_redirected_to_the_same_path_under_https() {
    let server = server("", true);
    server
        .worker
        .shared
        .certificates
        .store
        .insert_http_challenge("token", "token.thumb");
    for (request, expected) in [
        (
            "GET /small.txt HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "308 https://a.test:8443/small.txt",
        ),
        (
            "GET /x?y=%20 HTTP/1.1\r\nHost: A.Test:81\r\n\r\n",
            "308 https://a.test:8443/x?y=%20",
        ),
        ("HEAD / HTTP/1.1\r\nHost: [::1]:81\r\n\r\n", "308 https://[::1]:8443/"),
        (
            "GET //evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "308 https://a.test:8443//evil.test/",
        ),
        (
            "GET http://a.test/q HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "308 https://a.test:8443/q",
        ),
        (
            "POST /f HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc",
            "308 https://a.test:8443/f",
        ),
        ("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "204"),
        ("GET / HTTP/1.1\r\nHost: a.test/evil\r\n\r\n", "400"),
        (
            "GET /.well-known/acme-challenge/token HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "200",
        ),
        (
            "GET /.well-known/acme-challenge/other HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "308 https://a.test:8443/.well-known/acme-challenge/other",
        ),
    ] {
        check(&server, request, expected);
    }
}

#[test]
fn requests_are_not_redirected_to_a_closed_port_or_if_disabled() {
    for (keys, with_certificate) in [(", redirect = false", true), ("", false)] {
        let server = server(keys, with_certificate);
        check(&server, "GET /small.txt HTTP/1.1\r\nHost: a.test\r\n\r\n", "200");
    }
}

/// `Strict-Transport-Security` and `Alt-Svc` are never sent without TLS, because an attacker on the path could have
/// inserted them (RFC 6797 §7.2, RFC 7838 §9.1).
#[test]
fn responses_without_tls_never_carry_fields_of_tls() {
    for (keys, with_certificate) in [
        ("", false),
        (", hsts = \"1d\"", false),
        (", redirect = false, hsts = \"1d\"", true),
    ] {
        let server = server(keys, with_certificate);
        for (target, status) in [("/small.txt", "200"), ("/missing", "404"), ("/%00", "400")] {
            let mut client = server.connect();
            let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
            client.peer.send(request.as_bytes()).end();
            client.run_to_end();
            let received = client.received();
            assert_eq!(received.get(9..12), Some(status), "{keys} {target}");
            for field in ["Strict-Transport-Security", "Alt-Svc"] {
                assert!(!received.contains(field), "{keys} {target}: {received}");
            }
        }
    }
}

/// HTTP/2 requests that wait until the client reads the queued responses are also redirected.
#[test]
fn queued_requests_are_redirected() {
    let server = server("", true);
    let mut client = server.connect_http2();
    client.peer.send(&wire::open_beginning());
    client.settle();
    client.peer.accept(0);
    for stream in [1, 3] {
        client.peer.send(&wire::get(stream, "/small.txt"));
        client.settle();
    }
    client.peer.accept_all();
    let responses = |client: &TestClient| wire::frames(&client.peer.received()).0;
    let ended = |client: &TestClient, stream| {
        let is_end = |frame: &wire::Frame| frame.stream == stream && frame.ends_stream();
        responses(client).iter().any(is_end)
    };
    client.run_until(|client| ended(client, 1) && ended(client, 3));
    for stream in [1, 3] {
        let frames = responses(&client);
        let head = frames
            .iter()
            .find(|frame| frame.kind == wire::HEADERS && frame.stream == stream)
            .expect("a head");
        assert!(head.payload.windows(3).any(|part| part == b"308"), "{stream}: {head:?}");
    }
}

#[test]
fn a_site_that_requires_client_certificates_is_never_served_without_tls() {
    for with_certificate in [true, false] {
        let made = rcgen::generate_simple_self_signed(["ca.test".to_owned()]).expect("a certificate");
        let server = requiring_client_certificates(with_certificate, &made.cert.pem());
        for (request, expected) in [
            (
                "GET /small.txt HTTP/1.1\r\nHost: a.test\r\n\r\n",
                "308 https://a.test:8443/small.txt",
            ),
            // The request has no host, so there is no URL to redirect to.
            ("GET /small.txt HTTP/1.0\r\n\r\n", "403"),
        ] {
            check(&server, request, expected);
        }
    }
    // The same applies if the file of client authorities is invalid.
    check(
        &requiring_client_certificates(true, "nothing"),
        "GET /small.txt HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "308 https://a.test:8443/small.txt",
    );
}

/// Returns a server like [`server`] whose site requires client certificates. `authority`: contents of the file
/// `client_ca`.
fn requiring_client_certificates(with_certificate: bool, authority: &str) -> TestServer {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let cert = if with_certificate {
        made.cert.pem()
    } else {
        String::new()
    };
    let site = "[site.\"a.test\"]\nlisten = [\"http://127.0.0.1:81\", \"127.0.0.1:8443\"]\n\
                tls = { cert = \"a.pem\", key = \"a.key\", client_ca = \"ca.pem\" }\n";
    let files = [
        ("a.pem", cert.as_str()),
        ("a.key", &made.signing_key.serialize_pem()),
        ("ca.pem", authority),
    ];
    TestServer::of("", site, &files)
}
