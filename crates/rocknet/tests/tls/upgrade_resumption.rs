//! TLS sessions across an upgrade: clients resume the sessions of the old process in the new one, and early data that
//! was recorded is served once.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, HandshakeKind, SignatureScheme};

use super::certs::Authority;
use super::child::{DEADLINE, Server, Setup};
use super::client::{TlsClient, open};
use super::http3_client::get_frame;
use super::http3_upgrade::{NewProcess, serve, upgrade};
use super::support::Client;

/// Server with the TLS site `z.test`.
struct Fixture {
    authority: Authority,
    server: Server,
    address: SocketAddr,
    /// Processes that have taken over. They are killed when the fixture is dropped.
    successors: Vec<NewProcess>,
}

impl Fixture {
    /// Starts the server. `tls`: further keys of `tls`.
    fn start(tls: &str) -> Fixture {
        let authority = Authority::new("root");
        let setup = Setup::new().tables("state = \"state\"\n[log]\naccess = \"access.txt\"\n");
        let (server, address) = serve(&authority, setup, tls);
        Fixture {
            authority,
            server,
            address,
            successors: Vec::new(),
        }
    }

    fn upgrade(&mut self) {
        let old = self.successors.last().map_or(self.server.pid(), |process| process.0);
        self.successors.push(upgrade(&self.server, old));
    }

    /// Returns the number of requests with this query in the access log.
    fn served(&self, query: &str) -> usize {
        let log = std::fs::read_to_string(self.server.setup.folder.path().join("access.txt"));
        log.unwrap_or_default().matches(query).count()
    }

    #[track_caller]
    fn wait_until_served(&self, query: &str) {
        let deadline = Instant::now() + DEADLINE;
        while self.served(query) == 0 {
            assert!(Instant::now() < deadline, "{query} was not served");
            thread::yield_now();
        }
    }
}

#[test]
fn tickets_of_the_old_process_are_resumed_in_the_new_one() {
    let mut fixture = Fixture::start("");
    let mut clients = Vec::new();
    for version in [&TLS13, &TLS12] {
        for alpn in [&[&b"http/1.1"[..]], &[&b"h2"[..]]] {
            let client = TlsClient {
                only: Some(version),
                alpn,
                ..TlsClient::new(fixture.authority.roots(), "z.test")
            };
            clients.push((format!("{version:?} {alpn:?}"), Arc::new(client.config())));
        }
    }
    let address = fixture.address;
    let handshake = |name: &str, config: &Arc<ClientConfig>| {
        let mut tls = open(address, config, "z.test").unwrap_or_else(|error| panic!("{name}: {error}"));
        let kind = tls.0.conn.handshake_kind();
        // The tickets of TLS 1.3 arrive after the handshake.
        if config.alpn_protocols[0] == b"http/1.1" {
            Client::over(tls).get("/small.txt").expect(name, 200, &[]);
        } else {
            // The preface with empty settings.
            tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                .expect(name);
            tls.read_exact(&mut [0; 9]).expect("the settings of the server");
        }
        kind
    };
    for (name, config) in &clients {
        assert_eq!(handshake(name, config), Some(HandshakeKind::Full), "{name}");
    }
    let (verifications, quic) = counting_client(&fixture);
    visit(&fixture, &quic, fixture.address, "quic");
    visit(&fixture, &quic, fixture.address, "quic");
    assert_eq!(
        verifications.load(Ordering::SeqCst),
        1,
        "the second visit resumes the session"
    );
    // There are two upgrades, because the second process must pass on the ticket secrets that it has received itself.
    fixture.upgrade();
    fixture.upgrade();
    for (name, config) in &clients {
        assert_eq!(handshake(name, config), Some(HandshakeKind::Resumed), "{name}");
    }
    let early = visit(&fixture, &quic, fixture.address, "quic");
    assert_eq!((verifications.load(Ordering::SeqCst), early), (1, false));
}

#[test]
fn early_data_is_accepted_once_in_all_processes() {
    let mut fixture = Fixture::start(", early_data = true");
    let (verifications, client) = counting_client(&fixture);
    let relay = Relay::start(fixture.address);
    assert!(!visit(&fixture, &client, relay.address, "first"));
    relay.take_recorded();
    // The old process serves this request.
    assert!(visit(&fixture, &client, relay.address, "used"));
    let used = relay.take_recorded();
    fixture.wait_until_served("?used");
    // The relay records this request, and does not pass it to the old process.
    relay.hold(true);
    send_early(&client, &relay, "held");
    let held = relay.take_recorded();
    assert_eq!(fixture.served("?held"), 0);

    fixture.upgrade();
    replay(&used, fixture.address);
    replay(&held, fixture.address);
    fixture.wait_until_served("?held");
    replay(&held, fixture.address);
    // The client has a further ticket of the old process, and then one of the new process.
    for query in ["next", "last"] {
        assert!(visit(&fixture, &client, fixture.address, query), "{query}");
        fixture.wait_until_served(&format!("?{query}"));
    }
    assert_eq!((fixture.served("?used"), fixture.served("?held")), (1, 1));
    assert_eq!(verifications.load(Ordering::SeqCst), 1);
}

#[test]
fn early_data_is_rejected_if_the_new_process_has_other_settings() {
    let mut fixture = Fixture::start(", early_data = true");
    let (verifications, client) = counting_client(&fixture);
    visit(&fixture, &client, fixture.address, "first");
    let path = fixture.server.setup.folder.path().join("rocknet.toml");
    let text = std::fs::read_to_string(&path).expect("a configuration");
    // Clients remember the maximum size of a request head together with a ticket, so a server with another maximum must
    // reject early data.
    std::fs::write(&path, format!("{text}\n[limits]\nheader_size = \"8KiB\"\n")).expect("written");
    fixture.upgrade();
    assert!(!visit(&fixture, &client, fixture.address, "second"));
    assert_eq!(verifications.load(Ordering::SeqCst), 2);
    assert!(visit(&fixture, &client, fixture.address, "third"));
}

/// Verifies certificates, and counts them: a resumed session has no certificate.
#[derive(Debug)]
struct CountingVerifier {
    inner: Arc<WebPkiServerVerifier>,
    count: Arc<AtomicUsize>,
}

impl ServerCertVerifier for CountingVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.inner.verify_server_cert(certificate, chain, name, status, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Returns a QUIC client that keeps its tickets, and the number of certificates that it has verified.
fn counting_client(fixture: &Fixture) -> (Arc<AtomicUsize>, quinn::ClientConfig) {
    let mut tls = TlsClient::new(fixture.authority.roots(), "z.test").config();
    let provider = Arc::clone(tls.crypto_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(fixture.authority.roots()), provider);
    let count = Arc::<AtomicUsize>::default();
    tls.dangerous().set_certificate_verifier(Arc::new(CountingVerifier {
        inner: inner.build().expect("a verifier"),
        count: Arc::clone(&count),
    }));
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.enable_early_data = true;
    let tls = QuicClientConfig::try_from(tls).expect("TLS 1.3");
    (count, quinn::ClientConfig::new(Arc::new(tls)))
}

fn run<T>(client: &quinn::ClientConfig, visit: impl AsyncFnOnce(&quinn::Endpoint) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
        endpoint.set_default_client_config(client.clone());
        tokio::time::timeout(DEADLINE, visit(&endpoint)).await.expect("in time")
    })
}

async fn send_request(connection: &quinn::Connection, query: &str) -> quinn::RecvStream {
    let (mut to, from) = connection.open_bi().await.expect("a stream");
    let request = get_frame("z.test", &format!("/small.txt?{query}"));
    to.write_all(&request).await.expect("an open stream");
    to.finish().expect("an open stream");
    from
}

/// Requests a file, in early data if the client has a ticket that permits it. Returns true if the early data was
/// accepted.
fn visit(fixture: &Fixture, client: &quinn::ClientConfig, to: SocketAddr, query: &str) -> bool {
    let accepted = run(client, async |endpoint| {
        let connecting = endpoint.connect(to, "z.test").expect("a valid name");
        let (connection, accepted) = match connecting.into_0rtt() {
            Ok((connection, accepted)) => (connection, Some(accepted)),
            Err(connecting) => (connecting.await.expect("a connection"), None),
        };
        let mut response = send_request(&connection, query).await;
        let accepted = match accepted {
            Some(accepted) => accepted.await,
            None => false,
        };
        // Early data that was rejected is sent again by the application.
        let received = match response.read_to_end(64 * 1024).await {
            Ok(received) => received,
            Err(_) if !accepted => {
                let mut again = send_request(&connection, query).await;
                again.read_to_end(64 * 1024).await.expect("a response")
            }
            Err(error) => panic!("{error}"),
        };
        let body = b"Hello, world!";
        assert!(
            received.windows(body.len()).any(|window| window == body),
            "{received:?}"
        );
        // The tickets for later visits arrive before this response, but not always before a response to early data.
        let mut response = send_request(&connection, "fence").await;
        response.read_to_end(64 * 1024).await.expect("a response");
        connection.close(0_u32.into(), b"");
        accepted
    });
    fixture.wait_until_served(&format!("?{query}"));
    accepted
}

/// Sends a request in early data to a relay that holds it back.
fn send_early(client: &quinn::ClientConfig, relay: &Relay, query: &str) {
    run(client, async |endpoint| {
        let connecting = endpoint.connect(relay.address, "z.test").expect("a valid name");
        let (connection, _) = connecting.into_0rtt().unwrap_or_else(|_| panic!("no ticket"));
        let _response = send_request(&connection, query).await;
        let recorder = Arc::clone(&relay.recorder);
        // More datagrams than the first flight has: the client has begun to repeat it.
        let recorded = tokio::task::spawn_blocking(move || recorder.wait_for(6));
        recorded.await.expect("no panic");
    });
}

/// Relay between a client and the server that records the datagrams of the client.
struct Relay {
    address: SocketAddr,
    recorder: Arc<Recorder>,
}

#[derive(Default)]
struct Recorder {
    datagrams: Mutex<Vec<Vec<u8>>>,
    arrived: Condvar,
    /// True if datagrams are recorded but not forwarded.
    holds: AtomicBool,
}

impl Relay {
    /// Starts a relay to `server`. Its threads run until the test process ends.
    fn start(server: SocketAddr) -> Relay {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        let back = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        back.connect(server).expect("an address");
        let relay = Relay {
            address: front.local_addr().expect("an address"),
            recorder: Arc::default(),
        };
        let client = Arc::new(Mutex::new(None));
        let (recorder, sender) = (Arc::clone(&relay.recorder), Arc::clone(&client));
        let (to_client, from_server) = (Arc::clone(&front), Arc::clone(&back));
        thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok((size, from)) = front.recv_from(&mut buffer) {
                *sender.lock().expect("no panic") = Some(from);
                recorder
                    .datagrams
                    .lock()
                    .expect("no panic")
                    .push(buffer[..size].to_vec());
                recorder.arrived.notify_all();
                if !recorder.holds.load(Ordering::SeqCst) {
                    let _ = back.send(&buffer[..size]);
                }
            }
        });
        thread::spawn(move || {
            let mut buffer = [0; 65_536];
            loop {
                // An error reports that an earlier datagram was not received.
                let Ok(size) = from_server.recv(&mut buffer) else {
                    continue;
                };
                if let Some(client) = *client.lock().expect("no panic") {
                    let _ = to_client.send_to(&buffer[..size], client);
                }
            }
        });
        relay
    }

    fn hold(&self, holds: bool) {
        self.recorder.holds.store(holds, Ordering::SeqCst);
    }

    fn take_recorded(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.recorder.datagrams.lock().expect("no panic"))
    }
}

impl Recorder {
    fn wait_for(&self, count: usize) {
        let datagrams = self.datagrams.lock().expect("no panic");
        let waited = self
            .arrived
            .wait_timeout_while(datagrams, DEADLINE, |datagrams| datagrams.len() < count);
        assert!(!waited.expect("no panic").1.timed_out(), "too few datagrams");
    }
}

/// Sends recorded datagrams again, as an attacker would.
fn replay(datagrams: &[Vec<u8>], to: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for datagram in datagrams {
        socket.send_to(datagram, to).expect("sent");
    }
}
