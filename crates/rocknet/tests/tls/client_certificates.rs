//! Rules for client certificates (`auth = { certificate = … }`).

mod changes;
mod users;
mod validity;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType};
use rustls::ClientConfig;
use rustls::version::{TLS12, TLS13};

use super::certs::{Authority, Kind, Leaf};
use super::client::{TlsClient, open, tool};
use super::http3_client::Http3Client;
use super::support::{Folder, Running};

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
