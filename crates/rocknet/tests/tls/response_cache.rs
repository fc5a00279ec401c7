//! Stored responses over TLS: client certificates, and the scheme in the key.

use super::certs::{Authority, Kind, Leaf};
use super::client::TlsClient;
use super::support::upstream::Upstream;
use super::support::{Client, Folder, Running};

/// The application may know a user by the certificate, and a page may depend on the scheme.
#[test]
fn clients_with_certificates_and_other_schemes_get_no_response_for_others() {
    let upstream =
        Upstream::responding_with("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\npage");
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let bob = clients.leaf(Kind::Ecdsa, &["bob"]);
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    folder.write("clients.pem", &clients.pem);
    let text = format!(
        "[site.\"a.test\"]\nlisten = [\"https://127.0.0.1:0\", \"http://127.0.0.2:0\"]\n{}\ncache = true\n\
         [site.\"a.test\".tls]\ncert = \"a.pem\"\nkey = \"a.key\"\nredirect = false\nclient_ca = \"clients.pem\"\n\
         client = \"optional\"\n",
        upstream.key()
    );
    let server = Running::start(folder, &text);
    let addresses = server.addresses();
    let config = TlsClient::new(authority.roots(), "a.test");
    let secure = *addresses
        .iter()
        .find(|address| config.open(**address).is_ok())
        .expect("TLS");
    let plain = *addresses
        .iter()
        .find(|address| **address != secure)
        .expect("an address without TLS");
    let status = |client: &mut Client| {
        let response = client.fetch("GET /", &["Host: a.test"]);
        response.field("Cache-Status").unwrap_or_default().to_owned()
    };
    let open = |own: Option<&Leaf>| {
        let config = TlsClient {
            own,
            ..TlsClient::new(authority.roots(), "a.test")
        };
        config.client(secure)
    };
    assert_eq!(status(&mut open(None)), "RockNet; fwd=uri-miss; stored");
    assert!(status(&mut open(None)).contains("; hit"));
    for _ in 0..2 {
        assert_eq!(status(&mut open(Some(&bob))), "RockNet; fwd=bypass");
    }
    assert_eq!(status(&mut Client::to(plain)), "RockNet; fwd=uri-miss; stored");
}
