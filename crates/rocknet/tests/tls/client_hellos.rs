//! Large ClientHellos over real sockets, and resumption with a long client certificate chain in the ticket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConfig, ClientConnection, HandshakeKind, StreamOwned};

use super::certs::{Authority, Kind};
use super::client::{Tls, TlsClient, open};
use super::support::client::Stream;
use super::support::{Client, DEADLINE, Folder, Running};

fn start(authority: &Authority, keys: &str) -> Running {
    let folder = Folder::with(&[("www/index.html", "hello")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    running(folder, keys)
}

fn running(folder: Folder, keys: &str) -> Running {
    Running::start(
        folder,
        &format!(
            "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\"{keys} }}"
        ),
    )
}

/// Splits the first flight of a client into records with at most `payload` bytes each.
fn in_records(mut flight: &[u8], payload: usize) -> Vec<u8> {
    let mut records = Vec::new();
    while let [kind, major, minor, high, low, rest @ ..] = flight {
        let (record, rest) = rest.split_at(usize::from(*high) << 8 | usize::from(*low));
        for part in record.chunks(payload) {
            records.extend_from_slice(&[*kind, *major, *minor, (part.len() >> 8) as u8, part.len() as u8]);
            records.extend_from_slice(part);
        }
        flight = rest;
    }
    records
}

#[test]
fn a_client_hello_may_have_any_size_up_to_64_kib() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    // Long ALPN protocol names give the ClientHello its size.
    let filler = [b'-'; 255];
    for size in [3_800, 4_096, 4_097, 8_192, 20_000, 60_000] {
        // The records have the largest size or are small, and arrive in one write or in pieces.
        for (payload, piece) in [(16_384, usize::MAX), (16_384, 1_400), (200, usize::MAX), (16_384, 1)] {
            // The other parts of the ClientHello have up to 2,000 bytes.
            let names = (size - 2_000) / (filler.len() + 1);
            let mut alpn = vec![&filler[..]; names];
            alpn.push(b"http/1.1");
            let client_config = TlsClient {
                alpn: &alpn,
                ..TlsClient::new(authority.roots(), "a.test")
            };
            let name = ServerName::try_from("a.test").unwrap();
            let mut tls = ClientConnection::new(Arc::new(client_config.config()), name).unwrap();
            let mut flight = Vec::new();
            tls.write_tls(&mut flight).unwrap();
            while tls.wants_write() {
                tls.write_tls(&mut flight).unwrap();
            }
            assert!(size - flight.len().min(size) < 1_000, "{} of {size}", flight.len());
            let flight = in_records(&flight, payload);
            let mut socket = TcpStream::connect(server.address()).unwrap();
            Stream::set_deadline(&socket, DEADLINE).unwrap();
            // Only the first 300 pieces are sent separately, because further pieces are processed in the same way.
            let (first, rest) = flight.split_at(flight.len().min(piece.saturating_mul(300)));
            for part in first.chunks(piece) {
                socket.write_all(part).unwrap();
            }
            socket.write_all(rest).unwrap();
            let mut client = Client::over(Tls(StreamOwned::new(tls, socket)));
            client
                .get("/")
                .expect(&format!("{size} by {payload} and {piece}"), 200, &[]);
        }
    }
}

/// Returns the alert that ends a handshake. The client sends data as soon as possible, and this data must not cause the
/// alert to be discarded.
fn alert_for(client_config: &TlsClient<'_>, server: &Running) -> Option<AlertDescription> {
    let ended = client_config.open(server.address()).and_then(|mut tls| {
        tls.write_all(&[b'x'; 20_000])?;
        tls.read_to_end(&mut Vec::new())
    });
    let error = ended.expect_err("no response");
    match error.get_ref()?.downcast_ref() {
        Some(rustls::Error::AlertReceived(alert)) => Some(*alert),
        other => panic!("{other:?} in {error}"),
    }
}

#[test]
fn a_refused_client_gets_the_right_alert() {
    let (authority, clients, others) = (
        Authority::new("root"),
        Authority::new("clients"),
        Authority::new("others"),
    );
    let (known, unknown) = (clients.leaf(Kind::Ecdsa, &["bob"]), others.leaf(Kind::Ecdsa, &["eve"]));
    let folder = Folder::with(&[("www/index.html", "hello"), ("clients.pem", &clients.pem)]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let server = running(folder, ", client_ca = \"clients.pem\", client = \"required\"");
    for version in [&TLS13, &TLS12] {
        let client_config = || TlsClient {
            only: Some(version),
            own: Some(&known),
            ..TlsClient::new(authority.roots(), "a.test")
        };
        let no_protocol: &[&[u8]] = &[b"spdy/3"];
        for (client_config, expected) in [
            (
                TlsClient {
                    alpn: no_protocol,
                    ..client_config()
                },
                AlertDescription::NoApplicationProtocol,
            ),
            (
                TlsClient {
                    own: None,
                    ..client_config()
                },
                AlertDescription::CertificateRequired,
            ),
            (
                TlsClient {
                    own: Some(&unknown),
                    ..client_config()
                },
                AlertDescription::UnknownCA,
            ),
        ] {
            for _ in 0..10 {
                assert_eq!(alert_for(&client_config, &server), Some(expected), "{version:?}");
            }
        }
    }
}

/// Returns a chain of `length` certificates with RSA keys of 4096 bits, the key of the client, and the root that signed
/// the chain. The first certificate of the chain is that of the client.
fn long_chain(length: usize) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String) {
    // All certificates share one key, because generating a key of this size takes seconds.
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096).expect("a key");
    let der = key.serialize_der();
    let same_key = || KeyPair::try_from(der.as_slice()).expect("the key again");
    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let root = authority("client root");
    let pem = root.self_signed(&key).expect("a root").pem();
    let mut issuer = Issuer::new(root, same_key());
    let mut chain = Vec::new();
    for number in (0..length).rev() {
        let params = if number == 0 {
            let mut params = CertificateParams::new(vec!["client.test".to_owned()]).expect("a name");
            params.distinguished_name.push(DnType::CommonName, "client.test");
            params
        } else {
            authority(&format!("client authority {number}"))
        };
        let cert = params.signed_by(&same_key(), &issuer).expect("a certificate");
        chain.insert(0, cert.der().clone());
        issuer = Issuer::new(params, same_key());
    }
    (chain, PrivateKeyDer::try_from(der).expect("a key"), pem)
}

#[test]
fn a_session_resumes_with_three_large_certificates_in_its_ticket() {
    let authority = Authority::new("root");
    let (chain, key, pem) = long_chain(3);
    let folder = Folder::with(&[("www/index.html", "hello"), ("clients.pem", &pem)]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let server = running(folder, ", client_ca = \"clients.pem\", client = \"required\"");
    for version in [&TLS13, &TLS12] {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(authority.roots())
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .unwrap();
        let config = Arc::new(config);
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
            let mut tls = open(server.address(), &config, "a.test").expect("a handshake");
            tls.flush().unwrap();
            let kind = tls.0.conn.handshake_kind();
            assert_eq!(kind, Some(expected), "{version:?}");
            Client::over(tls).get("/").expect("over it", 200, &[]);
        }
    }
}
