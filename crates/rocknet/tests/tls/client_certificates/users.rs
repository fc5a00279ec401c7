//! Users and fields that certificates become.

use rcgen::{DnType, SanType};

use super::{Authorities, OPTIONAL, named, route};
use crate::certs::Leaf;
use crate::support::fastcgi::{self, Peer, SOCKET};
use crate::support::upstream::{Upstream, ok};

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
                \"{tls.client.pem}\", X-Id = \"{request.id}\" } } }";
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
    assert_eq!(seen.field("X-Id").map(str::len), Some(32));
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
