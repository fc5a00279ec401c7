//! Connection data that controllers receive over TLS, with every kind of execution (`run_on` and `isolate`), and that
//! the keys of limits have.

use rustls::version::{TLS12, TLS13};

use super::certs::{Authority, Kind, Leaf};
use super::client::TlsClient;
use super::support::{Folder, Running, library};

/// Routes of a controller, each with the key that selects the kind of execution.
const ROUTES: [(&str, &str); 3] = [
    ("worker", "run_on = \"worker\""),
    ("network", "run_on = \"network\""),
    ("process", "isolate = true"),
];

fn start(authority: &Authority, clients: &Authority) -> Running {
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    folder.write("clients.pem", &clients.pem);
    let mut text = String::from(
        "[site.\"a.test\"]\nlisten = [\"127.0.0.1:0\", \"unix:plain.sock\"]\n\
         tls = { cert = \"a.pem\", key = \"a.key\", client_ca = \"clients.pem\", client = \"optional\" }\n",
    );
    for (route, how) in ROUTES {
        let library = library::plain().display();
        text.push_str(&format!(
            "[site.\"a.test\".route.\"/{route}\"]\ncontroller = \"{library}:mirror\"\n{how}\n"
        ));
    }
    Running::start(folder, &text)
}

#[test]
fn controllers_see_the_handshake_and_the_client() {
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let bob = clients.leaf(Kind::Ecdsa, &["bob"]);
    let server = start(&authority, &clients);
    // Only TLS version of the client, certificate of the client, and true if the ClientHello contains a server name.
    for (only, own, sni) in [
        (&TLS13, Some(&bob), true),
        (&TLS13, None, false),
        (&TLS12, None, true),
        (&TLS12, Some(&bob), false),
    ] {
        let own: Option<&Leaf> = own;
        let client_config = TlsClient {
            only: Some(only),
            own,
            sni,
            ..TlsClient::new(authority.roots(), "a.test")
        };
        let tls = client_config.open(server.address()).expect("a handshake");
        let suite = tls.0.conn.negotiated_cipher_suite().expect("a suite").suite();
        // rustls gives the suites of TLS 1.3 a prefix that the standard names lack.
        let cipher = suite.as_str().expect("a name").replace("TLS13_", "TLS_");
        let port = tls.0.sock.local_addr().expect("an address").port();
        let version = if only.version == TLS13.version {
            "TLSv1.3"
        } else {
            "TLSv1.2"
        };
        let mut client = super::support::Client::over(tls);
        for (route, _) in ROUTES {
            // The controller responds with a line for each property of the connection.
            let text = client.fetch(&format!("GET /{route}"), &["Host: a.test"]).text();
            let lines: Vec<&str> = text.lines().collect();
            let optional = |name: &str, value: Option<&str>| match value {
                Some(value) => format!("{name}={value}"),
                None => name.to_owned(),
            };
            for line in [
                "scheme=https".to_owned(),
                "address=127.0.0.1".to_owned(),
                format!("port={port}"),
                format!("tls={version}"),
                format!("cipher={cipher}"),
                optional("name", sni.then_some("a.test")),
                optional("certificate", own.map(|_| "CN=bob")),
            ] {
                assert!(lines.contains(&&*line), "{route}: {line} is not in {text}");
            }
        }
    }
}

#[test]
fn limits_of_further_routes_know_the_handshake() {
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let leaves = ["bob", "eve"].map(|name| clients.leaf(Kind::Ecdsa, &[name]));
    let folder = Folder::with(&[("www/index.html", "home"), ("www/named/index.html", "named")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    folder.write("clients.pem", &clients.pem);
    // The path of the request is `/` or `/named/`, and the limits are those of the routes of the index files.
    let text = "[site.\"a.test\"]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
                tls = { cert = \"a.pem\", key = \"a.key\", client_ca = \"clients.pem\", client = \"optional\" }\n\
                [site.\"a.test\".route.\"/index.html\"]\nlimit = { rate = \"1/h\", key = \"{tls.version}\" }\n\
                [site.\"a.test\".route.\"/named/index.html\"]\n\
                limit = { rate = \"1/h\", key = \"{tls.client.subject}\" }\n";
    let server = Running::start(folder, text);
    for (path, only, own, status) in [
        ("/", &TLS13, None, 200),
        ("/", &TLS12, None, 200),
        ("/", &TLS13, None, 429),
        ("/", &TLS12, None, 429),
        ("/named/", &TLS13, Some(&leaves[0]), 200),
        ("/named/", &TLS13, Some(&leaves[1]), 200),
        ("/named/", &TLS12, Some(&leaves[0]), 429),
    ] {
        let client_config = TlsClient {
            only: Some(only),
            own,
            ..TlsClient::new(authority.roots(), "a.test")
        };
        let tls = client_config.open(server.address()).expect("a handshake");
        let mut client = super::support::Client::over(tls);
        let got = client.fetch(&format!("GET {path}"), &["Host: a.test"]);
        assert_eq!(
            got.status,
            status,
            "{path}, {:?}, certificate: {}",
            only.version,
            own.is_some()
        );
    }
}
