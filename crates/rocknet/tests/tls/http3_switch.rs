//! The key `http3`: HTTP/3 switched on and off, for the server and for single sites.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::{Http3Client, connect};
use super::support::{Folder, Running};

/// Returns a configuration with the sites `a.test` and `b.test` at one address. `server`: keys of `[server]`.
/// `keys_of_a`: further keys of `a.test`.
fn text(server: &str, keys_of_a: &str) -> String {
    let site = |name: &str, keys: &str| {
        format!(
            "[site.\"{name}.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
             tls = {{ cert = \"{name}.pem\", key = \"{name}.key\" }}\n{keys}"
        )
    };
    format!(
        "[server]\nworkers = 1\n{server}{}{}",
        site("a", keys_of_a),
        site("b", "")
    )
}

fn start(authority: &Authority, text: &str) -> Running {
    let folder = Folder::with(&[("www/index.html", "home")]);
    for name in ["a", "b"] {
        authority
            .leaf(Kind::Ecdsa, &[&format!("{name}.test")])
            .write(&folder, name);
    }
    Running::start(folder, text)
}

/// Returns the `Alt-Svc` field of a response over TCP.
fn alt_svc(authority: &Authority, server: &Running, name: &str) -> Option<String> {
    alt_svc_at(authority, server.address(), name)
}

/// Returns the `Alt-Svc` field of a response over TCP at this address.
fn alt_svc_at(authority: &Authority, address: SocketAddr, name: &str) -> Option<String> {
    let client = TlsClient::new(authority.roots(), name);
    let mut client = client.client(address);
    client.send(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n"));
    let response = client.response();
    assert_eq!(response.status, 200);
    response.field("Alt-Svc").map(str::to_owned)
}

/// Returns true if the server accepts an HTTP/3 connection for this name.
fn accepts(authority: &Authority, server: &Running, name: &str) -> bool {
    connect(&TlsClient::new(authority.roots(), name), server.address()).is_ok()
}

#[test]
fn a_reload_switches_http3_on_and_off() {
    let authority = Authority::new("root");
    let (on, off) = (text("", ""), text("http3 = false\n", ""));
    let server = start(&authority, &off);
    assert!(UdpSocket::bind(server.address()).is_ok(), "the port is free");
    assert_eq!(alt_svc(&authority, &server, "a.test").as_deref(), Some("clear"));

    let secret = server.folder.path("state/quic/secret");
    assert!(!secret.exists());
    server.reload(&on).expect("a valid configuration");
    assert_eq!(std::fs::read(secret).expect("a file").len(), 32);
    let client = Http3Client::open(&TlsClient::new(authority.roots(), "a.test"), server.address());
    let client = client.expect("a connection");
    assert_eq!(client.get("https://a.test/").body, b"home");
    let status = server.server().status();
    assert_eq!(status.http3_ports, [server.address().port()]);
    assert_eq!(status.http3_open, 1);
    assert!(status.connections_open >= 1, "{status:?}");
    // The kernel has chosen the port, so the configuration does not have the port to announce.
    assert_eq!(alt_svc(&authority, &server, "a.test"), None);

    server.reload(&off).expect("a valid configuration");
    assert_eq!(client.get("https://a.test/").body, b"home");
    assert!(!accepts(&authority, &server, "a.test"));
    assert!(server.server().status().http3_ports.is_empty());
    assert_eq!(alt_svc(&authority, &server, "a.test").as_deref(), Some("clear"));

    server.reload(&on).expect("a valid configuration");
    assert!(accepts(&authority, &server, "a.test"));
    assert!(client.connection.close_reason().is_none());
}

#[test]
fn a_site_overrides_the_server() {
    let authority = Authority::new("root");
    for (server, keys_of_a, expected) in [
        ("", "http3 = false\n", (false, true)),
        ("http3 = false\n", "http3 = { max_age = \"1h\" }\n", (true, false)),
    ] {
        let server = start(&authority, &text(server, keys_of_a));
        let accepted = ["a.test", "b.test"].map(|name| accepts(&authority, &server, name));
        assert_eq!(accepted, [expected.0, expected.1]);
        // Without HTTP/3 the field is `clear`. Otherwise it is missing, because the kernel has chosen the port.
        let is_missing = ["a.test", "b.test"].map(|name| alt_svc(&authority, &server, name).is_none());
        assert_eq!(is_missing, [expected.0, expected.1]);
    }
}

/// Binds a UDP port whose TCP port is free.
fn taken_udp_port() -> (UdpSocket, SocketAddr) {
    std::iter::repeat_with(|| {
        let taken = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
        let address = taken.local_addr().expect("an address");
        (taken, address)
    })
    .take(100)
    .find(|(_, address)| TcpListener::bind(address).is_ok())
    .expect("a port that is free for TCP")
}

#[test]
fn one_listener_of_a_site_has_no_http3() {
    let authority = Authority::new("root");
    let (free, excepted) = taken_udp_port();
    drop(free);
    let listen = format!("listen = [\"https://127.0.0.1:0\", \"https://{excepted}\"]");
    let of_every_site =
        |server: &str, keys_of_a: &str| text(server, keys_of_a).replace("listen = \"https://127.0.0.1:0\"", &listen);
    let port = excepted.port();

    let server = start(
        &authority,
        &of_every_site(&format!("http3 = {{ except = {port} }}\n"), ""),
    );
    let other = server.addresses().into_iter().find(|address| *address != excepted);
    let other = other.expect("two listeners");
    assert!(connect(&TlsClient::new(authority.roots(), "a.test"), other).is_ok());
    assert!(UdpSocket::bind(excepted).is_ok(), "the UDP port is free");
    let mut client = TlsClient::new(authority.roots(), "a.test").client(excepted);
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(client.response().body, b"home");

    // Another site keeps the UDP port open.
    let of_one_site = of_every_site("", &format!("http3 = {{ except = \"{excepted}\" }}\n"));
    server.reload(&of_one_site).expect("a valid configuration");
    let accepted = ["a.test", "b.test"].map(|name| connect(&TlsClient::new(authority.roots(), name), excepted).is_ok());
    assert_eq!(accepted, [false, true]);
}

#[test]
fn a_site_is_served_without_http3_if_its_udp_port_is_taken() {
    let authority = Authority::new("root");
    let (taken, address) = taken_udp_port();
    let text = text("", "").replace("127.0.0.1:0", &address.to_string());
    let server = start(&authority, &text);
    assert_eq!(alt_svc(&authority, &server, "a.test").as_deref(), Some("clear"));

    drop(taken);
    server.reload(&text).expect("a valid configuration");
    assert!(accepts(&authority, &server, "a.test"));
    let announced = format!("h3=\":{}\"; ma=86400", address.port());
    assert_eq!(alt_svc(&authority, &server, "a.test"), Some(announced));
}

#[test]
fn a_reload_announces_http3_only_with_its_udp_port() {
    let authority = Authority::new("root");
    let server = start(&authority, &text("", ""));
    let other = UdpSocket::bind(("127.0.0.9", 0)).expect("a socket");
    let added = other.local_addr().expect("an address");
    let with_added = text("", "").replace("https://127.0.0.1:0", &format!("https://{added}"));
    server.reload(&with_added).expect("a valid configuration");
    assert_eq!(alt_svc_at(&authority, added, "a.test").as_deref(), Some("clear"));
    // The next reload opens the port, which is free by then.
    drop(other);
    server.reload(&with_added).expect("a valid configuration");
    let announced = alt_svc_at(&authority, added, "a.test");
    assert!(announced.is_some_and(|announced| announced.contains("h3=")));
}
