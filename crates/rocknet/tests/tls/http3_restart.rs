//! QUIC keys in the state folder: a server that is killed and started again resets the connections of its clients.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;

use super::certs::{Authority, Kind};
use super::child::{Server, Setup};
use super::client::TlsClient;
use super::http3_client::{Http3Client, get};
use super::support::Folder;

/// Starts a server with a TLS site at `port`, or at a port that the kernel chooses if `port` is 0. Returns its TLS
/// address, which differs from the address of the site without TLS.
fn start(mut setup: Setup, certificates: &Path, port: u16) -> (Server, SocketAddr) {
    let (certificate, key) = (certificates.join("a.pem"), certificates.join("a.key"));
    setup.tables = "state = \"state\"\n".to_owned();
    setup.keys = format!(
        "[site.\"z.test\"]\nlisten = \"https://127.0.0.2:{port}\"\nroot = \"www\"\ntls = {{ cert = {certificate:?}, \
         key = {key:?} }}\n"
    );
    let server = setup.start();
    let line = server.line_with("https://z.test:");
    let port = line.split_once("https://z.test:").expect("a URL").1;
    let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
    let port = digits.parse().expect("a port");
    (server, SocketAddr::from(([127, 0, 0, 2], port)))
}

#[test]
fn a_restarted_server_resets_the_connections_of_the_killed_one() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["z.test"]).write(&folder, "a");
    let certificates = folder.path("");
    let client = || TlsClient::new(authority.roots(), "z.test");

    for keeps_secret in [true, false] {
        let (mut server, address) = start(Setup::new(), &certificates, 0);
        let old = Http3Client::open(&client(), address).expect("a connection");
        assert_eq!(old.get("https://z.test/small.txt").body, b"Hello, world!");
        server.signal(Signal::KILL);
        server.wait();
        let setup = std::mem::replace(&mut server.setup, Setup::new());
        let secret = setup.folder.path().join("state/quic/secret");
        assert_eq!(std::fs::read(&secret).expect("a file").len(), 32);
        if !keeps_secret {
            std::fs::remove_file(&secret).expect("removed");
        }

        let (_server, _) = start(setup, &certificates, address.port());
        let new = Http3Client::open(&client(), address).expect("a connection");
        assert_eq!(new.get("https://z.test/small.txt").body, b"Hello, world!");
        if keeps_secret {
            assert!(old.request(get("https://z.test/small.txt"), b"").is_err());
            assert_eq!(old.connection.close_reason(), Some(quinn::ConnectionError::Reset));
        } else {
            // Without the key of the old connection, the server does not respond to its datagrams.
            assert_eq!(old.connection.close_reason(), None);
        }
    }
}
