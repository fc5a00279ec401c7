//! Sessions and open connections whose certificate is no longer valid.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind};

use super::{Authorities, OPTIONAL, named, route, status, text};
use crate::certs::Authority;
use crate::client::{TlsClient, open};
use crate::http3_client::Http3Client;
use crate::support::{Client, DEADLINE};

#[test]
fn revoked_certificates_end_sessions_and_open_connections() {
    let authorities = Authorities::new();
    let folder = authorities.folder();
    let clients = &authorities.clients;
    folder.write("clients.crl", clients.revocation_list(&[], 4096));
    let tls = format!("{OPTIONAL}, crl = \"clients.crl\"");
    let server = authorities.start(folder, &tls, &route("/any/*", "{ certificate = true }"));
    let bob = clients.client(named("bob"));
    let ann = clients.client(|params| params.serial_number = Some(8.into()));
    for version in [&TLS13, &TLS12] {
        server.folder.write("clients.crl", clients.revocation_list(&[], 4096));
        server.server().certificates().maintain();
        let config = |own| {
            let client = TlsClient {
                only: Some(version),
                ..authorities.client(Some(own))
            };
            Arc::new(client.config())
        };
        let (of_bob, of_ann) = (config(&bob), config(&ann));
        let connect =
            |config: &Arc<ClientConfig>| Client::over(open(server.address(), config, "a.test").expect("a handshake"));
        let request = |connection: &mut Client| connection.fetch("GET /any/x", &["Host: a.test"]).status;
        let (mut bob_is_open, mut ann_is_open) = (connect(&of_bob), connect(&of_ann));
        assert_eq!((request(&mut bob_is_open), request(&mut ann_is_open)), (200, 200));
        // A list that revokes another certificate changes nothing for the connections.
        server.folder.write("clients.crl", clients.revocation_list(&[9], 4096));
        server.server().certificates().maintain();
        assert_eq!((request(&mut bob_is_open), request(&mut ann_is_open)), (200, 200));
        server
            .folder
            .write("clients.crl", clients.revocation_list(&[7, 9], 4096));
        server.server().certificates().maintain();
        assert_eq!(
            (request(&mut bob_is_open), request(&mut ann_is_open)),
            (421, 200),
            "{version:?}"
        );
        assert_eq!(status(&of_bob, server.address(), "/any/x"), None, "{version:?}");
        let kind = open(server.address(), &of_ann, "a.test")
            .expect("a handshake")
            .0
            .conn
            .handshake_kind();
        assert_ne!(
            kind,
            Some(HandshakeKind::Resumed),
            "the session began under another list"
        );
        assert_eq!(status(&of_ann, server.address(), "/any/x"), Some(200));
    }
}

#[test]
fn another_authority_ends_sessions_and_open_connections() {
    let authorities = Authorities::new();
    let server = authorities.start(
        authorities.folder(),
        OPTIONAL,
        &route("/any/*", "{ certificate = true }"),
    );
    let other = Authority::new("others");
    let (bob, ann) = (authorities.clients.client(named("bob")), other.client(named("ann")));
    let config = authorities.config(Some(&bob));
    let mut connection = Client::over(open(server.address(), &config, "a.test").expect("a handshake"));
    let request = |connection: &mut Client| connection.fetch("GET /any/x", &["Host: a.test"]).status;
    assert_eq!(request(&mut connection), 200);
    let quic = Http3Client::open(&authorities.client(Some(&bob)), server.address()).expect("HTTP/3");
    assert_eq!(quic.get("https://a.test/any/x").status, 200);
    server.folder.write("clients.pem", &other.pem);
    let text = text(OPTIONAL, &route("/any/*", "{ certificate = true }"));
    server.reload(&text).expect("a valid configuration");
    assert_eq!(request(&mut connection), 421);
    assert_eq!(quic.get("https://a.test/any/x").status, 421);
    assert_eq!(status(&config, server.address(), "/any/x"), None);
    assert_eq!(
        status(&authorities.config(Some(&ann)), server.address(), "/any/x"),
        Some(200)
    );
    // A broken file leaves the authority in use.
    server.folder.write("clients.pem", "no certificate");
    server.server().certificates().maintain();
    assert_eq!(
        status(&authorities.config(Some(&ann)), server.address(), "/any/x"),
        Some(200)
    );
    assert!(server.reload(&text).is_err());
}

#[test]
fn a_certificate_that_expires_ends_sessions_and_open_connections() {
    let authorities = Authorities::new();
    let server = authorities.start(
        authorities.folder(),
        OPTIONAL,
        &route("/any/*", "{ certificate = true }"),
    );
    let end = SystemTime::now() + Duration::from_secs(3);
    let clients = &authorities.clients;
    // The certificate of the client expires, and that of an intermediate authority.
    let intermediate = clients.intermediate(|params| params.not_after = end.into());
    let own = [
        clients.client(|params| params.not_after = end.into()),
        intermediate.client(named("bob")),
    ];
    let configs = own.each_ref().map(|own| authorities.config(Some(own)));
    let mut connections = configs
        .each_ref()
        .map(|config| Client::over(open(server.address(), config, "a.test").expect("a handshake")));
    let request = |connection: &mut Client| connection.fetch("GET /any/x", &["Host: a.test"]).status;
    assert_eq!(connections.each_mut().map(request), [200; 2]);
    let start = Instant::now();
    for connection in &mut connections {
        while request(connection) == 200 {
            assert!(start.elapsed() < DEADLINE, "the certificate does not expire");
            std::thread::yield_now();
        }
    }
    assert!(SystemTime::now() >= end - Duration::from_secs(1));
    assert_eq!(connections.each_mut().map(request), [421; 2]);
    for config in &configs {
        assert_eq!(status(config, server.address(), "/any/x"), None);
    }
}

#[test]
fn an_outdated_list_ends_open_connections() {
    let authorities = Authorities::new();
    let folder = authorities.folder();
    let end = SystemTime::now() + Duration::from_secs(3);
    let list = authorities
        .clients
        .revocation_list_with(&[], |params| params.next_update = end.into());
    folder.write("clients.crl", list);
    let tls = format!("{OPTIONAL}, crl = \"clients.crl\"");
    let server = authorities.start(folder, &tls, &route("/any/*", "{ certificate = true }"));
    let bob = authorities.clients.client(named("bob"));
    let mut connection = authorities.client(Some(&bob)).client(server.address());
    let mut request = || connection.fetch("GET /any/x", &["Host: a.test"]).status;
    assert_eq!(request(), 200);
    let start = Instant::now();
    while request() == 200 {
        assert!(start.elapsed() < DEADLINE, "the list does not end");
        std::thread::yield_now();
    }
    assert!(SystemTime::now() >= end - Duration::from_secs(1));
    assert_eq!(request(), 421);
}
