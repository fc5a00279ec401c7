//! Upstreams over TLS: trusted and untrusted certificates, session resumption, connections that are closed without
//! close_notify, tunnels, and health checks.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::certs::{Authority, Kind, Leaf};
use super::support::upstream::{ReceivedRequest, Upstream, ok, request};
use super::support::{DEADLINE, Folder, Running};

type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// Settings of a TLS upstream.
struct TlsServer<'w> {
    leaf: &'w Leaf,
    /// Only protocol version that the upstream accepts; `None` for all.
    only: Option<&'static rustls::SupportedProtocolVersion>,
    alpn: &'static [&'static [u8]],
    /// Authorities of accepted client certificates; `None` if the upstream requests no certificate.
    clients: Option<RootCertStore>,
}

impl<'w> TlsServer<'w> {
    fn new(leaf: &'w Leaf) -> TlsServer<'w> {
        TlsServer {
            leaf,
            only: None,
            alpn: &[b"http/1.1"],
            clients: None,
        }
    }

    fn settings(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions: &[_] = match self.only {
            Some(only) => &[only],
            None => &[&TLS13, &TLS12],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("versions");
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots.clone()), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let mut settings = builder
            .with_single_cert(vec![self.leaf.der.clone()], self.leaf.private_key())
            .expect("a certificate");
        settings.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(settings)
    }

    /// Starts an upstream that runs `serve` for each connection after its handshake.
    fn start(&self, serve: impl Fn(&mut TlsStream) + Send + Sync + Clone + 'static) -> Upstream {
        let settings = self.settings();
        Upstream::raw(move |mut socket: TcpStream| {
            let mut tls = ServerConnection::new(Arc::clone(&settings)).expect("a connection");
            while tls.is_handshaking() {
                if tls.complete_io(&mut socket).is_err() {
                    return;
                }
            }
            serve(&mut StreamOwned::new(tls, socket));
        })
    }

    /// Starts an upstream that reads whole requests and sends the responses that `response` returns.
    fn responding(&self, response: impl Fn(&ReceivedRequest) -> String + Send + Sync + Clone + 'static) -> Upstream {
        self.start(move |stream| {
            let mut reader = BufReader::new(stream);
            while let Ok(Some(incoming)) = request(&mut reader) {
                let output = response(&incoming);
                if reader.get_mut().write_all(output.as_bytes()).is_err() {
                    return;
                }
            }
        })
    }
}

fn url(upstream: &Upstream) -> String {
    upstream.url().replace("http://", "https://")
}

fn proxied(folder: Folder, upstream: &Upstream, keys: &str) -> Running {
    let text = format!(
        "[server]\nmode = \"dev\"\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[log]\nerrors = \"off\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"{}\", {keys} }}\n",
        url(upstream)
    );
    Running::start(folder, &text)
}

/// Returns a folder with the certificate of an authority in `ca.pem`.
fn trusting(authority: &Authority) -> Folder {
    Folder::with(&[("ca.pem", &authority.pem)])
}

#[test]
fn requests_and_responses_pass_under_both_versions() {
    let authority = Authority::new("root");
    let leaf = authority.leaf(Kind::Ecdsa, &["127.0.0.1"]);
    for only in [&TLS13, &TLS12] {
        let tls_server = TlsServer {
            only: Some(only),
            ..TlsServer::new(&leaf)
        };
        let upstream = tls_server.responding(|incoming| ok(&format!("{} {}", incoming.line, incoming.content.len())));
        let server = proxied(trusting(&authority), &upstream, "ca = \"ca.pem\"");
        let mut client = server.connect();
        for _ in 0..3 {
            // The length of `GET /a?b HTTP/1.1 0`.
            client.get("/a?b").expect("a page", 200, &["Content-Length: 19"]);
        }
        let sent = "x".repeat(3_000_000);
        client.send(format!(
            "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{sent}",
            sent.len()
        ));
        let response = client.response();
        response.expect("content", 200, &[]);
        assert_eq!(response.text(), "POST /up HTTP/1.1 3000000");
        assert_eq!(upstream.connections(), 1, "the connection must be reused");
    }
}

#[test]
fn long_responses_arrive_complete() {
    let authority = Authority::new("root");
    let leaf = authority.leaf(Kind::Ecdsa, &["127.0.0.1"]);
    let page: String = (0..400_000).map(|number| format!("{number} ")).collect();
    let (expected, output) = (page.clone(), ok(&page));
    let upstream = TlsServer::new(&leaf).responding(move |_| output.clone());
    let server = proxied(trusting(&authority), &upstream, "ca = \"ca.pem\"");
    let mut client = server.connect();
    for _ in 0..2 {
        assert!(client.get("/").text() == expected);
    }
}

/// No request is sent to an untrusted upstream, and the error page shows the reason.
#[test]
fn untrusted_upstreams_get_no_request() {
    let (authority, other) = (Authority::new("root"), Authority::new("other"));
    let good = authority.leaf(Kind::Ecdsa, &["127.0.0.1", "a.test"]);
    let named = authority.leaf(Kind::Ecdsa, &["b.test"]);
    let foreign = other.leaf(Kind::Rsa, &["127.0.0.1"]);
    let expired = authority.expired(&["127.0.0.1"]);
    let own = other.leaf(Kind::Ecdsa, &["client"]);
    let ca = "ca = \"ca.pem\"";
    // Certificate of the upstream, keys of the proxy, authorities of the client certificate that the upstream requires,
    // and status and a part of the response.
    for (leaf, keys, clients, status, output) in [
        (&good, ca, None, 200, "hello"),
        (&good, "", None, 502, "Name the file of its authority"),
        (&foreign, ca, None, 502, "not signed by a trusted authority"),
        (&foreign, "verify = false", None, 200, "hello"),
        (&named, ca, None, 502, "not for 127.0.0.1, but for"),
        (&named, "ca = \"ca.pem\", server_name = \"b.test\"", None, 200, "hello"),
        (&good, "ca = \"ca.pem\", server_name = \"A.test\"", None, 200, "hello"),
        (&expired, ca, None, 502, "has expired"),
        (&good, ca, Some(other.roots()), 502, "`cert` and `key`"),
        (
            &good,
            "ca = \"ca.pem\", cert = \"own.pem\", key = \"own.key\"",
            Some(other.roots()),
            200,
            "hello",
        ),
        (
            &good,
            "ca = \"ca.pem\", cert = \"own.pem\", key = \"own.key\"",
            Some(authority.roots()),
            502,
            "`cert` and `key`",
        ),
    ] {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let tls_server = TlsServer {
            clients: clients.clone(),
            ..TlsServer::new(leaf)
        };
        let upstream = tls_server.responding(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            ok("hello")
        });
        let folder = trusting(&authority);
        own.write(&folder, "own");
        let server = proxied(folder, &upstream, keys);
        let response = server.get("/");
        assert_eq!(response.status, status, "{keys}: {response:?}");
        assert!(response.text().contains(output), "{keys}: {}", response.text());
        assert_eq!(requests.load(Ordering::SeqCst), usize::from(status == 200), "{keys}");
    }
}

#[test]
fn upstreams_without_tls_are_502_and_silent_ones_time_out() {
    let authority = Authority::new("root");
    let talking = Upstream::raw(|mut stream: TcpStream| {
        let mut room = [0; 2000];
        let _ = stream.read(&mut room);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let response = proxied(trusting(&authority), &talking, "ca = \"ca.pem\"").get("/");
    assert_eq!(response.status, 502);
    assert!(response.text().contains("does not speak TLS"), "{}", response.text());
    let silent = Upstream::raw(|mut stream: TcpStream| drop(stream.read_to_end(&mut Vec::new())));
    let server = proxied(trusting(&authority), &silent, "ca = \"ca.pem\", connect = \"300ms\"");
    let began = Instant::now();
    let response = server.get("/");
    assert_eq!(response.status, 504, "{response:?}");
    assert!(response.text().contains("in time"), "{}", response.text());
    assert!(began.elapsed() < DEADLINE);
}

#[test]
fn sessions_resume_on_new_connections() {
    let authority = Authority::new("root");
    let leaf = authority.leaf(Kind::Ecdsa, &["127.0.0.1"]);
    let kinds: Arc<Mutex<Vec<Option<HandshakeKind>>>> = Arc::default();
    let seen = Arc::clone(&kinds);
    // The upstream closes each connection after one response, so that each request makes a handshake.
    let upstream = TlsServer::new(&leaf).start(move |stream| {
        seen.lock().expect("a lock").push(stream.conn.handshake_kind());
        let mut reader = BufReader::new(stream);
        if let Ok(Some(_)) = request(&mut reader) {
            let output = ok("hello").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
            let _ = reader.get_mut().write_all(output.as_bytes());
        }
    });
    let server = proxied(trusting(&authority), &upstream, "ca = \"ca.pem\"");
    for _ in 0..3 {
        server.get("/").expect("a page", 200, &[]);
    }
    let kinds = kinds.lock().expect("a lock");
    let resumed = |kind: &Option<HandshakeKind>| *kind == Some(HandshakeKind::Resumed);
    assert_eq!(
        kinds.iter().map(resumed).collect::<Vec<_>>(),
        [false, true, true],
        "{kinds:?}"
    );
}

/// A response that is delimited by the end of its connection is complete only after close_notify, because an attacker
/// on the path can close a TCP connection.
#[test]
fn a_response_without_close_notify_is_incomplete() {
    let authority = Authority::new("root");
    let leaf = authority.leaf(Kind::Ecdsa, &["127.0.0.1"]);
    for has_close_notify in [true, false] {
        let upstream = TlsServer::new(&leaf).start(move |stream| {
            let mut reader = BufReader::new(&mut *stream);
            if !matches!(request(&mut reader), Ok(Some(_))) {
                return;
            }
            // The body is sent in two parts, so that the response has begun when the connection is closed.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbegun");
            let _ = stream.flush();
            let _ = stream.write_all(b", ended");
            if has_close_notify {
                stream.conn.send_close_notify();
            }
            let _ = stream.flush();
        });
        let server = proxied(trusting(&authority), &upstream, "ca = \"ca.pem\"");
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let all = client.rest();
        let text = String::from_utf8_lossy(&all);
        if has_close_notify {
            assert!(text.contains("begun") && text.contains(", ended"), "{text}");
        }
        // The last chunk marks the response as complete.
        assert_eq!(text.contains("\r\n0\r\n\r\n"), has_close_notify, "{text}");
    }
}

#[test]
fn tunnels_work_over_tls() {
    let authority = Authority::new("root");
    let leaf = authority.leaf(Kind::Ecdsa, &["127.0.0.1"]);
    let upstream = TlsServer::new(&leaf).start(|stream| {
        let mut reader = BufReader::new(&mut *stream);
        let Ok(Some(incoming)) = request(&mut reader) else {
            return;
        };
        assert_eq!(incoming.field("Upgrade"), Some("echo"));
        let _ = stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
        let mut room = [0; 1000];
        while let Ok(got @ 1..) = stream.read(&mut room) {
            let _ = stream.write_all(&room[..got]);
        }
    });
    let server = proxied(trusting(&authority), &upstream, "ca = \"ca.pem\"");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    let head = client.head();
    assert!(head.contains(" 101 ") && head.contains("pgrade: echo"), "{head}");
    for word in ["one", "and another"] {
        client.send(word);
        assert_eq!(client.bytes(word.len()), word.as_bytes());
    }
}

#[test]
fn health_checks_and_requests_trust_the_same_upstreams() {
    let (authority, other) = (Authority::new("root"), Authority::new("other"));
    for (signer, status) in [(&authority, 200), (&other, 503)] {
        let leaf = signer.leaf(Kind::Ecdsa, &["127.0.0.1"]);
        let checked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&checked);
        let settings = TlsServer::new(&leaf).settings();
        let upstream = Upstream::raw(move |socket: TcpStream| {
            let tls = ServerConnection::new(Arc::clone(&settings)).expect("a connection");
            let mut stream = StreamOwned::new(tls, socket);
            let mut reader = BufReader::new(&mut stream);
            let incoming = request(&mut reader);
            // A failed handshake is counted too, because an upstream that is not trusted gets no request.
            if matches!(&incoming, Ok(Some(incoming)) if incoming.line.contains("/up ")) || incoming.is_err() {
                count.fetch_add(1, Ordering::SeqCst);
            }
            let _ = stream.write_all(ok("hello").as_bytes());
        });
        let server = proxied(
            trusting(&authority),
            &upstream,
            "ca = \"ca.pem\", health = { path = \"/up\", interval = \"100ms\" }",
        );
        let began = Instant::now();
        // The result of the first health check takes effect with a short delay.
        loop {
            let found = server.get("/").status;
            if checked.load(Ordering::SeqCst) > 0 && found == status {
                break;
            }
            assert!(began.elapsed() < DEADLINE, "{found}, not {status}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_invalid_certificate_file_keeps_the_old_configuration() {
    let authority = Authority::new("root");
    let leaf = authority.leaf(Kind::Ecdsa, &["127.0.0.1"]);
    let upstream = TlsServer::new(&leaf).responding(|_| ok("hello"));
    let server = proxied(trusting(&authority), &upstream, "ca = \"ca.pem\"");
    server.folder.write("bad.pem", "no certificate");
    let text = |ca: &str| {
        format!(
            "[server]\nworkers = 1\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"{}\", ca = \"{ca}\" }}\n",
            url(&upstream)
        )
    };
    let refused = server.reload(&text("bad.pem")).expect_err("no certificate in it");
    assert!(refused.contains("`ca`"), "{refused}");
    server.get("/").expect("as before", 200, &[]);
    // After a change of the authority, connections that were verified with the old one are not reused.
    server.folder.write("other.pem", &Authority::new("other").pem);
    server.reload(&text("other.pem")).expect("a reload");
    server.get("/").expect("no trusted authority", 502, &[]);
}
