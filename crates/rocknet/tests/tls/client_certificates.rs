//! Rules for client certificates (`auth = { certificate = … }`), revocation lists, and connections whose certificate is
//! no longer valid.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rcgen::{CertificateParams, DnType, SanType};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind};

use super::certs::{Authority, Kind, Leaf};
use super::client::{TlsClient, open, tool};
use super::http3_client::{Http3Client, connect};
use super::support::fastcgi::{self, Peer, SOCKET};
use super::support::upstream::{Upstream, ok};
use super::support::{Client, DEADLINE, Folder, Running};

fn named(name: &'static str) -> impl FnOnce(&mut CertificateParams) {
    move |params| params.distinguished_name.push(DnType::CommonName, name)
}

/// Authority of the server and that of its clients.
struct Authorities {
    server: Authority,
    clients: Authority,
}

impl Authorities {
    fn new() -> Authorities {
        Authorities {
            server: Authority::new("root"),
            clients: Authority::new("clients"),
        }
    }

    /// Returns a folder with the certificates of the server and of the authority of clients.
    fn folder(&self) -> Folder {
        let folder = Folder::with(&[("www/x", "x"), ("www/bob/x", "for bob"), ("www/any/x", "for any")]);
        self.server.leaf(Kind::Ecdsa, &["a.test", "b.test"]).write(&folder, "a");
        folder.write("clients.pem", &self.clients.pem);
        folder
    }

    /// Starts a site whose `tls` has `tls`, with the lines `rest`.
    fn start(&self, folder: Folder, tls: &str, rest: &str) -> Running {
        Running::start(folder, &text(tls, rest))
    }

    fn client<'l>(&self, own: Option<&'l Leaf>) -> TlsClient<'l> {
        TlsClient {
            own,
            ..TlsClient::new(self.server.roots(), "a.test")
        }
    }

    fn config(&self, own: Option<&Leaf>) -> Arc<ClientConfig> {
        Arc::new(self.client(own).config())
    }
}

fn text(tls: &str, rest: &str) -> String {
    format!(
        "[site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\", client_ca = \"clients.pem\"{tls} }}\n{rest}"
    )
}

const OPTIONAL: &str = ", client = \"optional\"";

/// Returns a route with a rule.
fn route(path: &str, auth: &str) -> String {
    format!("[site.\"a.test\".route.\"{path}\"]\nauth = {auth}\n")
}

/// Fetches a path over a new connection. Returns the status and the text of the response; `None` if the handshake is
/// refused.
fn fetch(config: &Arc<ClientConfig>, address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut tls = open(address, config, "a.test").ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    tls.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    tls.read_to_string(&mut response).ok()?;
    let status = response.get(9..12)?.parse().ok()?;
    Some((status, response.split_once("\r\n\r\n")?.1.to_owned()))
}

fn status(config: &Arc<ClientConfig>, address: SocketAddr, path: &str) -> Option<u16> {
    fetch(config, address, path).map(|(status, _)| status)
}

/// Returns the statuses of all paths over HTTP/2 by curl, and over HTTP/3.
fn statuses_of_other_versions(
    authorities: &Authorities,
    server: &Running,
    own: Option<(&Leaf, &str)>,
    paths: &[&str],
) -> [Vec<u16>; 2] {
    let address = server.address();
    let resolve = format!("a.test:{}:127.0.0.1", address.port());
    let files = own.map(|(leaf, name)| {
        leaf.write(&server.folder, name);
        [".pem", ".key"].map(|end| server.folder.path(&format!("{name}{end}")).display().to_string())
    });
    let curl = |path: &&str| {
        let url = format!("https://a.test:{}{path}", address.port());
        let mut arguments = vec![
            "-sko",
            "/dev/null",
            "--http2",
            "--resolve",
            &resolve,
            "-w",
            "%{http_version} %{http_code}",
        ];
        if let Some([cert, key]) = &files {
            arguments.extend(["--cert", cert, "--key", key]);
        }
        arguments.push(&url);
        let output = tool("curl", &arguments, "");
        let status = output.strip_prefix("2 ").and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("curl printed {output}"))
    };
    let http3 = Http3Client::open(&authorities.client(own.map(|(leaf, _)| leaf)), address).expect("HTTP/3");
    let quic = |path: &&str| http3.get(&format!("https://a.test{path}")).status;
    [paths.iter().map(curl).collect(), paths.iter().map(quic).collect()]
}

#[test]
fn only_routes_with_a_rule_need_a_certificate() {
    let authorities = Authorities::new();
    let rest = route("/any/*", "{ certificate = true }")
        + &route(
            "/bob/*",
            "{ certificate = { subject = { CN = \"bob\" }, issuer = \"CN=clients\" } }",
        );
    let server = authorities.start(authorities.folder(), OPTIONAL, &rest);
    let clients = &authorities.clients;
    let (bob, eve) = (clients.client(named("bob")), clients.client(named("eve")));
    let two = clients.client(|params| {
        params.distinguished_name.push(DnType::CommonName, "bob");
        params.distinguished_name.push(DnType::OrganizationName, "CN=bob");
    });
    let similar = clients.client(named("bob, CN=eve"));
    let paths = ["/x", "/any/x", "/bob/x", "/bob/../any/x"];
    for (own, name, expected) in [
        (None, "none", [200, 403, 403, 403]),
        (Some(&bob), "bob", [200, 200, 200, 200]),
        (Some(&two), "two", [200, 200, 200, 200]),
        (Some(&eve), "eve", [200, 200, 403, 200]),
        (Some(&similar), "similar", [200, 200, 403, 200]),
    ] {
        for version in [&TLS13, &TLS12] {
            let client = TlsClient {
                only: Some(version),
                ..authorities.client(own)
            };
            let config = Arc::new(client.config());
            // The second round finds the files in the worker cache.
            for _ in 0..2 {
                let found = paths.map(|path| status(&config, server.address(), path).unwrap_or(0));
                assert_eq!(found, expected, "{name} {version:?}");
            }
        }
        let others = statuses_of_other_versions(&authorities, &server, own.map(|leaf| (leaf, name)), &paths);
        // Both clients resolve dot segments themselves, with the same result.
        assert_eq!(others, [expected.to_vec(), expected.to_vec()], "{name}");
    }
    let (_, page) = fetch(&authorities.config(None), server.address(), "/any/x").expect("a page");
    assert!(page.contains("sent no certificate"), "{page}");
    let (_, page) = fetch(&authorities.config(Some(&eve)), server.address(), "/bob/x").expect("a page");
    assert!(page.contains("does not admit you"), "{page}");
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
        let expected = is_accepted.then_some(200);
        assert_eq!(
            status(&authorities.config(Some(&own)), server.address(), "/any/x"),
            expected,
            "{what}"
        );
        let client = authorities.client(Some(&own));
        if is_accepted {
            let client = Http3Client::open(&client, server.address()).expect("HTTP/3");
            assert_eq!(client.get("https://a.test/any/x").status, 200, "{what} over HTTP/3");
            continue;
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
    let end = SystemTime::now() + Duration::from_secs(2);
    let bob = authorities.clients.client(|params| params.not_after = end.into());
    let config = authorities.config(Some(&bob));
    let mut connection = Client::over(open(server.address(), &config, "a.test").expect("a handshake"));
    let request = |connection: &mut Client| connection.fetch("GET /any/x", &["Host: a.test"]).status;
    assert_eq!(request(&mut connection), 200);
    let start = Instant::now();
    while request(&mut connection) == 200 {
        assert!(start.elapsed() < DEADLINE, "the certificate does not expire");
        std::thread::yield_now();
    }
    assert!(SystemTime::now() >= end - Duration::from_secs(1));
    assert_eq!(request(&mut connection), 421);
    assert_eq!(status(&config, server.address(), "/any/x"), None);
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

/// The application may verify the credentials of the request, which the server has not read.
#[test]
fn applications_get_the_credentials_beside_a_certificate() {
    let authorities = Authorities::new();
    let folder = authorities.folder();
    let _peer = Peer::start(&folder.path(SOCKET), |request, stream| {
        let names = ["REMOTE_USER", "AUTH_TYPE", "HTTP_AUTHORIZATION", "HTTP_X_CLIENT"];
        let values = names.map(|name| request.variable(name).to_owned());
        let text = format!("Content-Type: text/plain\r\n\r\n{}", values.join("|"));
        fastcgi::write_to(stream, fastcgi::response(text.as_bytes()));
        fastcgi::Next::Keep
    });
    let app = |path: &str, headers: &str| {
        route(path, &format!("{{ certificate = {{ user = \"cn\"{headers} }} }}"))
            + &format!("fastcgi = \"unix:{SOCKET}\"\n")
    };
    let rest = app("/plain/*", "") + &app("/fields/*", ", headers = { X-Client = \"{user}\" }");
    let server = authorities.start(folder, OPTIONAL, &rest);
    let bob = authorities.clients.client(named("bob"));
    let mut connection = authorities.client(Some(&bob)).client(server.address());
    for (path, field) in [("/plain/x", ""), ("/fields/x", "bob")] {
        let response = connection.fetch(
            &format!("GET {path}"),
            &["Host: a.test", "Authorization: Basic Ym9iOng="],
        );
        assert_eq!(response.text(), format!("bob||Basic Ym9iOng=|{field}"), "{path}");
    }
}

#[test]
fn names_become_users_and_fields_that_clients_cannot_forge() {
    let authorities = Authorities::new();
    let upstream = Upstream::responding_with(ok("done"));
    let rule = "{ certificate = { uri = \"spiffe://example.org/ns/*\", user = \"uri\", headers = { X-Client = \
                \"{user} {tls.client.subject} {tls.client.serial}\", Client-Cert = \"{tls.client.certificate}\", X-Pem = \
                \"{tls.client.pem}\" } } }";
    let rest = format!(
        "[site.\"a.test\".route.\"/any/*\"]\nauth = {rule}\n{0}\n[site.\"a.test\".route.\"/open/*\"]\n{0}\n",
        upstream.key()
    );
    let server = authorities.start(authorities.folder(), OPTIONAL, &rest);
    let spiffe = |id: &str| {
        let id = SanType::URI(id.try_into().expect("ASCII"));
        authorities.clients.client(move |params| {
            params.distinguished_name.push(DnType::CommonName, "web, O=Admin");
            params.subject_alt_names = vec![id];
        })
    };
    let web = spiffe("spiffe://example.org/ns/web");
    let connect = |own: &Leaf| authorities.client(Some(own)).client(server.address());
    let forged = [
        "Host: a.test",
        "X-Client: eve",
        "X_Client: eve",
        "client-cert: :AAAA:",
        "X-PEM: x",
        "Connection: X-Client",
    ];
    connect(&web).fetch("GET /any/", &forged).expect("admitted", 200, &[]);
    let seen = upstream.last();
    assert_eq!(
        seen.field("X-Client"),
        Some("spiffe://example.org/ns/web CN=web\\, O=Admin 07")
    );
    assert_eq!(seen.field("X_Client"), None);
    let cert = seen.field("Client-Cert").expect("a certificate");
    assert!(
        cert.len() > 100 && cert.starts_with(':') && cert.ends_with(':'),
        "{cert}"
    );
    let pem = seen
        .field("X-Pem")
        .expect("a certificate")
        .replace("%0A", "\n")
        .replace("%20", " ");
    let pem = pem.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
    assert_eq!(pem.trim(), web.cert.replace('\r', "").trim());
    // An open route passes none of these fields on, with and without a certificate.
    for mut connection in [connect(&web), authorities.client(None).client(server.address())] {
        connection.fetch("GET /open/", &forged).expect("open", 200, &[]);
        let seen = upstream.last();
        assert!(
            ["X-Client", "X_Client", "Client-Cert", "X-Pem"]
                .iter()
                .all(|name| seen.field(name).is_none()),
            "{seen:?}"
        );
    }
    connect(&spiffe("spiffe://example.org/nsx/web"))
        .fetch("GET /any/", &["Host: a.test"])
        .expect("another", 403, &[]);
}

#[test]
fn an_address_admits_in_place_of_a_certificate() {
    let authorities = Authorities::new();
    for (allow, expected) in [("127.0.0.0/8", [200, 200]), ("192.0.2.0/24", [403, 200])] {
        let rest = format!("allow = \"{allow}\"\nsatisfy = \"any\"\nauth = {{ certificate = true }}\n");
        let server = authorities.start(authorities.folder(), OPTIONAL, &rest);
        let bob = authorities.clients.client(named("bob"));
        for _ in 0..2 {
            let found =
                [None, Some(&bob)].map(|own| status(&authorities.config(own), server.address(), "/x").unwrap_or(0));
            assert_eq!(found, expected, "{allow}");
        }
    }
}
