//! Certificates that are not accepted: their times, authorities and revocation lists.

use rustls::HandshakeKind;

use super::{Authorities, OPTIONAL, named, route, status};
use crate::certs::{Authority, Leaf};
use crate::client::{TlsClient, open};
use crate::http3_client::{Http3Client, connect};
use crate::support::{Client, Running};

/// Asserts that a client with this certificate reaches a route with a rule, or that the handshake fails.
#[track_caller]
fn check(authorities: &Authorities, server: &Running, what: &str, own: &Leaf, is_accepted: bool) {
    let expected = is_accepted.then_some(200);
    assert_eq!(
        status(&authorities.config(Some(own)), server.address(), "/any/x"),
        expected,
        "{what}"
    );
    let client = authorities.client(Some(own));
    if is_accepted {
        let client = Http3Client::open(&client, server.address()).expect("HTTP/3");
        assert_eq!(client.get("https://a.test/any/x").status, 200, "{what} over HTTP/3");
        return;
    }
    // The client completes the handshake before the server has verified the certificate.
    if let Ok((runtime, _endpoint, connection)) = connect(&client, server.address()) {
        let closed = runtime.block_on(async move { connection.closed().await });
        // A TLS alert is a CRYPTO_ERROR (RFC 9001 §4.8).
        assert!(
            matches!(closed, quinn::ConnectionError::ConnectionClosed(_)),
            "{what}: {closed}"
        );
    }
}

#[test]
fn invalid_certificates_end_the_handshake() {
    let authorities = Authorities::new();
    let folder = authorities.folder();
    let clients = &authorities.clients;
    folder.write("clients.crl", clients.revocation_list(&[9, 11], 4096));
    let tls = format!("{OPTIONAL}, crl = \"clients.crl\"");
    let server = authorities.start(folder, &tls, &route("/any/*", "{ certificate = true }"));
    let other = Authority::new("clients");
    for (what, own, is_accepted) in [
        ("valid", clients.client(named("bob")), true),
        (
            "revoked",
            clients.client(|params| params.serial_number = Some(11.into())),
            false,
        ),
        (
            "not revoked",
            clients.client(|params| params.serial_number = Some(10.into())),
            true,
        ),
        (
            "expired",
            clients.client(|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1)),
            false,
        ),
        (
            "not yet valid",
            clients.client(|params| params.not_before = rcgen::date_time_ymd(4000, 1, 1)),
            false,
        ),
        ("another authority of the same name", other.client(named("bob")), false),
        (
            "for servers",
            clients.client(|params| {
                params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
            }),
            false,
        ),
    ] {
        check(&authorities, &server, what, &own, is_accepted);
    }
}

#[test]
fn every_certificate_of_a_chain_has_to_be_valid() {
    let authorities = Authorities::new();
    let rest = route("/any/*", "{ certificate = true }");
    let server = authorities.start(authorities.folder(), OPTIONAL, &rest);
    let clients = &authorities.clients;
    let expired = rcgen::date_time_ymd(2001, 1, 1);
    for (what, intermediate, is_accepted) in [
        ("valid", clients.intermediate(|_| {}), true),
        (
            "two valid ones",
            clients.intermediate(|_| {}).intermediate(|_| {}),
            true,
        ),
        (
            "expired",
            clients.intermediate(|params| params.not_after = expired),
            false,
        ),
        (
            "valid, of an expired one",
            clients
                .intermediate(|params| params.not_after = expired)
                .intermediate(|_| {}),
            false,
        ),
        (
            "not yet valid",
            clients.intermediate(|params| params.not_before = rcgen::date_time_ymd(4000, 1, 1)),
            false,
        ),
        (
            "not an authority",
            clients.intermediate(|params| params.is_ca = rcgen::IsCa::ExplicitNoCa),
            false,
        ),
        (
            "of another authority",
            Authority::new("clients").intermediate(|_| {}),
            false,
        ),
    ] {
        check(
            &authorities,
            &server,
            what,
            &intermediate.client(named("bob")),
            is_accepted,
        );
    }
    // Without the certificate of the intermediate authority, nothing connects the client with the root.
    let mut alone = clients.intermediate(|_| {}).client(named("bob"));
    alone.chain.clear();
    check(&authorities, &server, "not sent", &alone, false);
}

#[test]
fn an_outdated_or_missing_list_refuses_certificates() {
    let authorities = Authorities::new();
    let bob = authorities.clients.client(named("bob"));
    for list in [
        authorities.clients.revocation_list(&[], 2002),
        Authority::new("others").revocation_list(&[], 4096),
    ] {
        let folder = authorities.folder();
        folder.write("clients.crl", list);
        let tls = format!("{OPTIONAL}, crl = \"clients.crl\"");
        let server = authorities.start(folder, &tls, &route("/any/*", "{ certificate = true }"));
        assert_eq!(status(&authorities.config(Some(&bob)), server.address(), "/x"), None);
        assert_eq!(status(&authorities.config(None), server.address(), "/x"), Some(200));
    }
}

/// Two sites with the same certificate trust different authorities of clients.
#[test]
fn a_connection_brings_its_certificate_to_no_site_with_another_authority() {
    let authorities = Authorities::new();
    let folder = authorities.folder();
    let other = Authority::new("others");
    folder.write("others.pem", &other.pem);
    let rest = route("/any/*", "{ certificate = true }")
        + "[site.\"b.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\nauth = { certificate = true }\n\
           tls = { cert = \"a.pem\", key = \"a.key\", client_ca = \"others.pem\", client = \"optional\" }\n";
    let server = authorities.start(folder, OPTIONAL, &rest);
    let (bob, ann) = (authorities.clients.client(named("bob")), other.client(named("ann")));
    for (own, name, of_a, of_b) in [
        (Some(&bob), "a.test", 200, 421),
        (Some(&ann), "b.test", 421, 200),
        (None, "a.test", 403, 421),
        (None, "b.test", 421, 403),
    ] {
        let client = TlsClient {
            own,
            ..TlsClient::new(authorities.server.roots(), name)
        };
        let mut connection = client.client(server.address());
        for _ in 0..2 {
            let of = |host: &str, connection: &mut Client| {
                connection.fetch("GET /any/x", &[&format!("Host: {host}")]).status
            };
            assert_eq!(of("a.test", &mut connection), of_a, "{name}");
            assert_eq!(of("b.test", &mut connection), of_b, "{name}");
        }
        let quic = Http3Client::open(&client, server.address()).expect("HTTP/3");
        assert_eq!(quic.get("https://a.test/any/x").status, of_a, "{name}");
        assert_eq!(quic.get("https://b.test/any/x").status, of_b, "{name}");
    }
    // A session of one site is not resumed by the other.
    let config = authorities.config(Some(&bob));
    assert_eq!(status(&config, server.address(), "/any/x"), Some(200));
    let again = open(server.address(), &config, "a.test").expect("a handshake");
    assert_eq!(again.0.conn.handshake_kind(), Some(HandshakeKind::Resumed));
}
