//! Connections that begin with a PROXY protocol header, which contains the address of the client.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;

use super::support::client::request;
use super::support::http2::Http2;
use super::support::peer::Peer;
use super::support::running::mount;
use super::support::{Client, DEADLINE, Folder, Running};

/// Responds with the address of the client.
struct ShowClient;

impl Handler for ShowClient {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let text = format!("{:?}", exchange.client);
        respond_with(async move { Response::new(Status::OK).body(text.into_bytes()) })
    }
}

/// Starts a server. `from` is a TOML list of the balancers that send the header, and `more` has further keys.
fn start(from: &str, more: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = {{ wait = \"20ms\", connections = 16 }}\n\
         proxy_protocol = {from}\n{more}\n\
         [site.default]\nlisten = [\"127.0.0.1:0\", \"unix:site.sock\"]\nroot = \"www\"\n"
    );
    let folder = Folder::with(&[("www/index.html", "root")]);
    Running::start_with(folder, &text, vec![mount("/who", ShowClient)])
}

/// Header of version 2: from the client 192.0.2.7, port 5000, to 192.0.2.2, port 80.
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc0\0\x02\x02\x13\x88\0\x50";

/// Returns the client address that the server uses for the connection.
fn who(client: &mut Client) -> String {
    client.get("/who").text()
}

#[test]
fn the_header_sets_the_client_address() {
    let server = start("[\"127.0.0.0/8\", \"unix\"]", "");
    let named = "Ip { address: 192.0.2.7, port: 5000 }";
    for (header, expected) in [
        (&b"PROXY TCP4 192.0.2.7 192.0.2.2 5000 80\r\n"[..], named),
        (
            b"PROXY TCP6 2001:db8::1 ::1 7 80\r\n",
            "Ip { address: 2001:db8::1, port: 7 }",
        ),
        (V2, named),
    ] {
        for step in [1, 5, usize::MAX] {
            let mut client = server.connect();
            for piece in [header, request("GET /who", &[]).as_bytes()].concat().chunks(step) {
                client.send(piece);
            }
            assert_eq!(client.response().text(), expected, "by {step}");
            // Later requests of the connection have the same client.
            assert_eq!(who(&mut client), expected);
        }
    }
    let mut unix = server.connect_unix("site.sock");
    unix.send(V2);
    assert_eq!(who(&mut unix), named);
    // If the header names no client, or the balancer itself opened the connection, the balancer's address is used.
    for header in ["PROXY UNKNOWN\r\n", "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
        let mut client = server.connect();
        client.send(header);
        assert!(who(&mut client).starts_with("Ip { address: 127.0.0.1, port: "));
    }
}

#[test]
fn a_connection_with_a_header_is_counted_once() {
    // All connections are without TLS. The server detects the HTTP version (`h2c = true`), or serves only HTTP/1.
    for h2c in ["h2c = true", "h2c = false"] {
        let text = format!(
            "[server]\nworkers = 1\nblocking_threads = 2\n{h2c}\nproxy_protocol = [\"127.0.0.0/8\"]\n\
             [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n"
        );
        let server = Running::start(Folder::with(&[("www/index.html", "root")]), &text);
        let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send(V2);
            assert_eq!(client.get("/").status, 200);
        }
        let status = server.server().status();
        assert_eq!((status.connections_total, status.connections_open), (3, 3), "{h2c}");
        // A connection with an invalid header is closed, but counted.
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(client.rest(), b"");
        drop(clients);
        let deadline = Instant::now() + DEADLINE;
        loop {
            let status = server.server().status();
            assert_eq!(status.connections_total, 4, "{h2c}");
            if status.connections_open == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{h2c}: {status:?}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_header_is_required_from_balancers_and_refused_from_others() {
    let server = start("[\"127.0.0.0/8\"]", "[limits]\nheader_timeout = \"300ms\"\n");
    for bytes in [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "PROXY TCP4 x y 1 2\r\n",
        "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 ",
        "PROXY",
    ] {
        let mut client = server.connect();
        client.send(bytes);
        assert_eq!(client.rest(), b"", "{bytes}");
    }
    server.connect().assert_closed("a client that sends nothing");
    let server = start("[\"192.0.2.1\", \"unix\"]", "");
    let mut client = server.connect();
    client.send("PROXY TCP4 192.0.2.7 192.0.2.2 5000 80\r\n");
    assert_eq!(client.response().status, 400);
    assert!(who(&mut server.connect()).starts_with("Ip { address: 127.0.0.1"));
}

#[test]
fn the_header_of_haproxy_is_accepted() {
    for version in ["send-proxy", "send-proxy-v2"] {
        let server = start("[\"127.0.0.1\"]", "");
        let socket = server.folder.path("front.sock").display().to_string();
        let address = server.address();
        // HAProxy receives the client's address by the same protocol. It listens at a socket file, so that no port has
        // to be free.
        let settings = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
             listen x\n bind unix@{socket} accept-proxy\n server s {address} {version}\n"
        );
        server.folder.write("haproxy.cfg", settings);
        let arguments = ["-db", "-f", "haproxy.cfg"];
        let _haproxy = Peer::start(&server.folder, "haproxy", &arguments, "front.sock", "haproxy.log");
        for named in ["192.0.2.7", "2001:db8::7"] {
            let (family, to) = if named.contains(':') {
                ("TCP6", "2001:db8::1")
            } else {
                ("TCP4", "192.0.2.1")
            };
            let mut client = server.connect_unix("front.sock");
            client.send(format!("PROXY {family} {named} {to} 5000 80\r\n"));
            assert_eq!(
                who(&mut client),
                format!("Ip {{ address: {named}, port: 5000 }}"),
                "{version}"
            );
        }
    }
}

#[test]
fn http_2_works_after_the_header() {
    let server = start("[\"127.0.0.0/8\"]", "");
    // A relay between client and server inserts the header.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (between, to) = (listener.local_addr().expect("an address"), server.address());
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("a client");
        let mut server = std::net::TcpStream::connect(to).expect("a server");
        server.write_all(V2).expect("sent");
        let (mut back, mut from) = (
            client.try_clone().expect("a handle"),
            server.try_clone().expect("a handle"),
        );
        std::thread::spawn(move || std::io::copy(&mut from, &mut back));
        let mut room = [0; 4096];
        let mut client = client;
        while let Ok(got) = client.read(&mut room) {
            if got == 0 || server.write_all(&room[..got]).is_err() {
                return;
            }
        }
    });
    let mut client = Http2::to(between);
    assert_eq!(client.get("/who").content, b"Ip { address: 192.0.2.7, port: 5000 }");
}
