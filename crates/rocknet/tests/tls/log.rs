//! The TLS version in the access log.

use std::fs;
use std::io::{Read, Write};

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::support::client::request;
use super::support::{Folder, Running};

#[test]
fn records_contain_the_tls_version() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "root")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let log = folder.path("access.log");
    let server = Running::start(
        folder,
        &format!(
            "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\ntls = {{ cert = \"a.pem\", key = \"a.key\" }}\n\
             log = {{ access = \"{}\", format = \"json\" }}",
            log.display()
        ),
    );
    // The first response comes from disk and the second from the cache.
    for _ in 0..2 {
        let mut tls = TlsClient::new(authority.roots(), "a.test")
            .open(server.address())
            .expect("a handshake");
        let fields = ["Host: a.test", "Connection: close"];
        tls.write_all(request("GET /", &fields).as_bytes()).expect("room");
        let mut response = Vec::new();
        let _ = tls.read_to_end(&mut response);
        assert!(response.ends_with(b"root"), "{}", String::from_utf8_lossy(&response));
    }
    let (server, _folder) = server.take();
    server.stop();
    let log = fs::read_to_string(&log).expect("an access log");
    assert_eq!(log.lines().count(), 2, "{log}");
    for line in log.lines() {
        assert!(line.contains("\"protocol\":\"HTTP/1.1\",\"tls\":\"TLSv1.3\""), "{line}");
    }
}
