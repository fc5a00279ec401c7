//! `SSLKEYLOGFILE`: in `dev` mode, the secrets of TLS connections are written for tools such as Wireshark.

use std::os::unix::fs::PermissionsExt;

use super::certs::{Authority, Kind};
use super::child::{Server, Setup};
use super::client::TlsClient;
use super::http3_client::Http3Client;
use super::support::Folder;

/// Starts the program with the variable, and makes a request over TCP and one over QUIC. Returns the content of the
/// file that the variable names, and the server.
fn visit(mode: &str) -> (Option<String>, Server) {
    let authority = Authority::new("root");
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let (certificate, key) = (folder.path("a.pem"), folder.path("a.key"));
    let file = folder.path("secrets");
    let mut setup = Setup::new().under(&["env", &format!("SSLKEYLOGFILE={}", file.display())]);
    setup.scheme = "https";
    setup.tables = format!("mode = \"{mode}\"\nstate = \"state\"\n");
    setup.keys = format!("tls = {{ cert = {certificate:?}, key = {key:?} }}\n");
    let server = setup.start();
    let client = TlsClient::new(authority.roots(), "a.test");
    let mut tcp = client.client(server.address());
    tcp.send("GET /small.txt HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(tcp.response().status, 200);
    let quic = Http3Client::open(&client, server.address()).expect("a connection");
    assert_eq!(quic.get("https://a.test/small.txt").body, b"Hello, world!");
    if let Ok(file) = file.metadata() {
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    (std::fs::read_to_string(file).ok(), server)
}

#[test]
fn secrets_are_written_in_dev_mode_only() {
    let (secrets, server) = visit("dev");
    let secrets = secrets.expect("a file");
    // One connection over TCP and one over QUIC.
    for label in [
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ] {
        let lines = secrets.lines().filter(|line| line.split(' ').next() == Some(label));
        assert_eq!(lines.count(), 2, "{label} in {secrets}");
    }
    server.error_with("SSLKEYLOGFILE is set");

    let (secrets, _server) = visit("prod");
    assert_eq!(secrets, None);
}
