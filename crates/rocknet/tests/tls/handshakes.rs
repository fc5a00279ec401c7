//! TLS handshakes: versions, resumption, RSA and ECDSA keys, client certificates, and command-line tools as clients.

use std::net::SocketAddr;
use std::sync::Arc;

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, ProtocolVersion};

use super::certs::{Authority, Kind, Leaf};
use super::client::{TlsClient, open, tool};
use super::support::running::mount;
use super::support::{Client, Folder, Running};

/// Returns the folder and configuration of a site `default` with an RSA and an ECDSA certificate, and further keys in
/// its `tls` section.
fn site(authority: &Authority, keys: &str) -> (Folder, String) {
    let folder = Folder::with(&[("www/index.html", "hello under TLS")]);
    authority
        .leaf(Kind::Ecdsa, &["a.test", "localhost"])
        .write(&folder, "ecdsa");
    authority
        .leaf(Kind::Rsa, &["a.test", "localhost"])
        .write(&folder, "rsa");
    let text = format!(
        "[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         tls = {{ cert = [\"rsa.pem\", \"ecdsa.pem\"], key = [\"rsa.key\", \"ecdsa.key\"]{keys} }}\n"
    );
    (folder, text)
}

fn start(authority: &Authority, keys: &str) -> Running {
    let (folder, text) = site(authority, keys);
    Running::start(folder, &text)
}

#[test]
fn both_versions_work_and_the_older_can_be_disabled() {
    let authority = Authority::new("root");
    for (keys, version, expected) in [
        ("", &TLS13, Some(ProtocolVersion::TLSv1_3)),
        ("", &TLS12, Some(ProtocolVersion::TLSv1_2)),
        (", min = \"1.3\"", &TLS13, Some(ProtocolVersion::TLSv1_3)),
        (", min = \"1.3\"", &TLS12, None),
    ] {
        let server = start(&authority, keys);
        let client_config = TlsClient {
            only: Some(version),
            ..TlsClient::new(authority.roots(), "a.test")
        };
        let opened = client_config.open(server.address());
        let found = opened.as_ref().ok().and_then(|tls| tls.0.conn.protocol_version());
        assert_eq!(found, expected, "{keys}");
        if let Ok(tls) = opened {
            assert_eq!(tls.0.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
            let mut client = Client::over(tls);
            for _ in 0..3 {
                client.get("/").expect(
                    "over TLS",
                    200,
                    &["Content-Length: 15", "Strict-Transport-Security: max-age=2592000"],
                );
            }
        }
    }
}

#[test]
fn the_hybrid_key_exchange_is_preferred() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let tls = TlsClient::new(authority.roots(), "a.test")
        .open(server.address())
        .unwrap();
    let group = tls.0.conn.negotiated_key_exchange_group().map(|group| group.name());
    assert_eq!(group, Some(rustls::NamedGroup::X25519MLKEM768));
}

#[test]
fn a_client_without_a_protocol_in_common_is_refused() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    for (alpn, works) in [(&[][..], true), (&[&b"http/1.1"[..]], true), (&[&b"spdy/3"[..]], false)] {
        let client_config = TlsClient {
            alpn,
            ..TlsClient::new(authority.roots(), "a.test")
        };
        assert_eq!(client_config.open(server.address()).is_ok(), works, "{alpn:?}");
    }
}

/// Makes two handshakes with the same client, which keeps its tickets. The second one is with the server `name`.
/// Returns the kind of the second handshake.
fn second_handshake(address: SocketAddr, client_config: &TlsClient<'_>, name: &str) -> Option<HandshakeKind> {
    let config = Arc::new(client_config.config());
    let first = open(address, &config, client_config.name).expect("a handshake");
    // The server sends the tickets before the first response.
    Client::over(first).get("/").expect("first", 200, &[]);
    open(address, &config, name).ok()?.0.conn.handshake_kind()
}

#[test]
fn sessions_resume_on_any_worker() {
    let authority = Authority::new("root");
    let (folder, text) = site(&authority, "");
    let server = Running::start(folder, &format!("[server]\nworkers = 3\n{text}"));
    for version in [&TLS13, &TLS12] {
        for _ in 0..6 {
            let client_config = TlsClient {
                only: Some(version),
                ..TlsClient::new(authority.roots(), "a.test")
            };
            assert_eq!(
                second_handshake(server.address(), &client_config, "a.test"),
                Some(HandshakeKind::Resumed)
            );
        }
    }
    // A connection without a byte is no handshake, and one with other bytes is a failed one.
    drop(Client::to(server.address()));
    let mut failing = Client::to(server.address());
    failing.send([0x16, 3, 1, 0, 2, 1, 0]);
    failing.end();
    failing.rest();
    server.wait_until_idle();
    let metrics = rocknet::inventory::metrics(server.server());
    // Two versions with six pairs of handshakes each.
    for sample in [
        "rocknet_tls_handshakes_total{result=\"full\"} 12",
        "rocknet_tls_handshakes_total{result=\"resumed\"} 12",
        "rocknet_tls_handshakes_total{result=\"failed\"} 1",
        "rocknet_protocol_connections_total{version=\"1\"} 24",
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample} in {metrics}");
    }
}

#[test]
fn the_certificate_is_chosen_by_the_signature_schemes_of_the_client() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let place = server.address().to_string();
    for (schemes, expected) in [
        ("ecdsa_secp256r1_sha256", "ECDSA"),
        ("rsa_pss_rsae_sha256", "RSA-PSS"),
        ("ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256", "ECDSA"),
    ] {
        let output = tool(
            "openssl",
            &[
                "s_client",
                "-connect",
                &place,
                "-servername",
                "a.test",
                "-sigalgs",
                schemes,
            ],
            "",
        );
        assert!(
            output.contains(&format!("Peer signature type: {expected}")),
            "{schemes}: {output}"
        );
    }
}

#[test]
fn a_client_without_a_common_suite_gets_handshake_failure() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let place = server.address().to_string();
    for offer in [
        // rustls does not support key exchange by RSA or DHE, nor these signatures and curves.
        &["-tls1_2", "-cipher", "AES128-SHA"][..],
        &["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
        &["-tls1_2", "-sigalgs", "ed448"],
        &["-tls1_3", "-sigalgs", "ed448"],
        &["-tls1_3", "-groups", "X448"],
    ] {
        let arguments = [&["s_client", "-connect", &place, "-servername", "a.test"][..], offer].concat();
        let output = tool("openssl", &arguments, "");
        assert!(output.contains("alert handshake failure"), "{offer:?}: {output}");
    }
}

#[test]
fn common_tools_connect() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    server.folder.write("root.pem", &authority.pem);
    let (root, port) = (server.folder.path("root.pem"), server.address().port());
    let root = root.to_str().unwrap();
    let url = format!("https://a.test:{port}/");
    let resolve = format!("a.test:{port}:127.0.0.1");
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        for (http, spoken) in [("--http1.1", "1.1"), ("--http2", "2")] {
            let arguments = [
                "-sS",
                "--cacert",
                root,
                "--resolve",
                &resolve,
                version,
                http,
                "-w",
                " %{http_version}",
                &url,
            ];
            let expected = format!("hello under TLS {spoken}");
            assert_eq!(tool("curl", &arguments, ""), expected, "{version} {http}");
        }
    }
    let place = server.address().to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let arguments = [
            "s_client",
            "-connect",
            &place,
            "-servername",
            "a.test",
            "-CAfile",
            root,
            version,
            "-ign_eof",
        ];
        let output = tool("openssl", &arguments, "GET / HTTP/1.0\r\n\r\n");
        for expected in [
            "Verification: OK",
            "hello under TLS",
            "Secure Renegotiation IS supported",
        ] {
            // TLS 1.3 has no renegotiation, so the version is checked instead.
            let expected = if version == "-tls1_3" && expected.starts_with("Secure") {
                "TLSv1.3"
            } else {
                expected
            };
            assert!(output.contains(expected), "{version}: no {expected:?} in {output}");
        }
        // OpenSSL reports this error if the server does not send close_notify.
        assert!(!output.contains("unexpected eof"), "{version}: {output}");
    }
    let old = tool(
        "openssl",
        &["s_client", "-connect", &place, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
        "",
    );
    assert!(
        old.contains("alert protocol version") && old.contains("Cipher is (NONE)"),
        "{old}"
    );
}

#[test]
fn renegotiation_is_refused() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let place = server.address().to_string();
    // The line `R` makes OpenSSL request a renegotiation.
    let output = tool(
        "openssl",
        &["s_client", "-connect", &place, "-tls1_2"],
        "R\nGET / HTTP/1.0\n\n",
    );
    assert!(output.contains("RENEGOTIATING"), "{output}");
    assert!(!output.contains("hello under TLS"), "{output}");
}

/// Responds with the name in the client certificate.
struct ShowClient;

impl Handler for ShowClient {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let client = exchange.tls.as_ref().and_then(|secure| secure.client.as_ref());
        let name = client.map_or("nobody".to_owned(), |client| client.subject.clone());
        respond_with(async move { Response::new(Status::OK).body(name.into_bytes()) })
    }
}

#[test]
fn client_certificates_are_verified() {
    let (authority, clients, others) = (
        Authority::new("root"),
        Authority::new("clients"),
        Authority::new("others"),
    );
    let known = clients.leaf(Kind::Ecdsa, &["bob"]);
    let unknown = others.leaf(Kind::Ecdsa, &["eve"]);
    for (rule, rows) in [
        (
            "required",
            [(Some(&known), Some("CN=bob")), (None, None), (Some(&unknown), None)],
        ),
        (
            "optional",
            [
                (Some(&known), Some("CN=bob")),
                (None, Some("nobody")),
                (Some(&unknown), None),
            ],
        ),
    ] {
        let (folder, text) = site(
            &authority,
            &format!(", client_ca = \"clients.pem\", client = \"{rule}\""),
        );
        folder.write("clients.pem", &clients.pem);
        let server = Running::start_with(folder, &text, vec![mount("/who/", ShowClient)]);
        for (own, expected) in rows {
            for version in [&TLS13, &TLS12] {
                let client_config = TlsClient {
                    only: Some(version),
                    own: own.map(|leaf: &Leaf| leaf),
                    ..TlsClient::new(authority.roots(), "a.test")
                };
                let found = shown_client(&client_config, server.address());
                assert_eq!(found.as_deref(), expected, "{rule} {version:?}");
            }
        }
    }
}

#[test]
fn responses_of_mounted_handlers_carry_hsts() {
    let authority = Authority::new("root");
    let (folder, text) = site(&authority, "");
    let server = Running::start_with(folder, &text, vec![mount("/who/", ShowClient)]);
    let mut client = TlsClient::new(authority.roots(), "a.test").client(server.address());
    let field = "Strict-Transport-Security: max-age=2592000";
    client.get("/who/").expect("mounted", 200, &[field]);
    client.get("/missing").expect("an error", 404, &[field]);
}

/// Returns the name that the handler reports, or `None` if the client is refused. In TLS 1.3 the client learns of a
/// refusal only when it reads the response.
fn shown_client(client_config: &TlsClient<'_>, address: SocketAddr) -> Option<String> {
    use std::io::{Read, Write};
    let mut tls = client_config.open(address).ok()?;
    tls.write_all(b"GET /who/ HTTP/1.0\r\n\r\n").ok()?;
    let mut response = String::new();
    tls.read_to_string(&mut response).ok()?;
    Some(response.split_once("\r\n\r\n")?.1.to_owned())
}
