//! Upstreams that receive the client's address in a PROXY protocol header.

use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc;

use super::support::upstream::{Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

/// Starts a server that trusts this machine as a proxy and sends the PROXY protocol header to the upstream at `to`.
fn announcing(to: &str, keys: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\ntrusted_proxies = [\"127.0.0.1\"]\n\
         [site.default]\nlisten = [\"127.0.0.1:0\", \"unix:site.sock\"]\nproxy = {{ to = \"{to}\", {keys} }}\n"
    );
    Running::start(Folder::with(&[]), &text)
}

#[test]
fn another_rocknet_gets_the_client_address() {
    let upstream = Upstream::responding_with(ok("hello"));
    let text = format!(
        "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\nproxy_protocol = [\"127.0.0.1\"]\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = \"{}\"\n",
        upstream.url()
    );
    let second = Running::start(Folder::with(&[]), &text);
    for version in ["v1", "v2"] {
        let proxy = announcing(
            &format!("http://{}", second.address()),
            &format!("proxy_protocol = \"{version}\", forwarded = false"),
        );
        let mut client = proxy.connect();
        for (fields, expected) in [
            (&["X-Forwarded-For: 192.0.2.1"][..], "192.0.2.1"),
            (&["X-Forwarded-For: 2001:db8::1"], "2001:db8::1"),
            (&[], "127.0.0.1"),
        ] {
            client.fetch("GET /", fields).expect(version, 200, &[]);
            assert_eq!(
                upstream.last().field("X-Forwarded-For"),
                Some(expected),
                "{version} {fields:?}"
            );
        }
        // A client at a socket file has no address, so the upstream gets the address of the proxy.
        let mut unix = proxy.connect_unix("site.sock");
        unix.get("/").expect("through a socket file", 200, &[]);
        assert_eq!(upstream.last().field("X-Forwarded-For"), Some("127.0.0.1"), "{version}");
    }
}

#[test]
fn each_request_has_its_own_connection_with_a_header() {
    let (heads, received) = mpsc::channel();
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
            head.push(byte[0]);
        }
        let _ = heads.send(String::from_utf8_lossy(&head).into_owned());
        write_to(&mut stream, ok("hello"));
        // The upstream keeps the connection open, so that a proxy that reuses connections would reuse it.
        let _ = stream.read(&mut byte);
    });
    let server = announcing(&upstream.url(), "proxy_protocol = \"v1\"");
    let mut client = server.connect();
    for source in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
        client
            .fetch("GET /x", &[&format!("X-Forwarded-For: {source}")])
            .expect(source, 200, &[]);
        let head = received.recv_timeout(DEADLINE).expect("a request");
        // Both ports in the header are 0: `X-Forwarded-For` contains no port of the client, and the configured port of
        // the server is 0, so that the kernel chooses one.
        let expected = match source.contains(':') {
            true => format!("PROXY TCP6 {source} ::ffff:127.0.0.1 0 0\r\nGET /x HTTP/1.1\r\n"),
            false => format!("PROXY TCP4 {source} 127.0.0.1 0 0\r\nGET /x HTTP/1.1\r\n"),
        };
        assert!(head.starts_with(&expected), "{head}");
    }
    assert_eq!(upstream.connections(), 3);
    // The header of a health check contains no address.
    let server = announcing(&upstream.url(), "proxy_protocol = \"v1\", health = \"/up\"");
    let head = received.recv_timeout(DEADLINE).expect("a check");
    assert!(head.starts_with("PROXY UNKNOWN\r\nGET /up HTTP/1.1\r\n"), "{head}");
    drop(server);
}
