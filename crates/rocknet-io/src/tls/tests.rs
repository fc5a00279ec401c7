//! Tests of TLS over a link in memory: the result does not depend on how the bytes are split.

mod client;
mod client_hello;

use std::any::Any;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::{ClientHelloAcceptor, FirstBytes, Tls, TlsBuffers};
use crate::link::Link;
use crate::queue::{COPY_BELOW, SendQueue, SharedBytes};
use crate::sim::{self, SimLink, SimPeer};
use crate::wheel::Wheel;

/// Name in the certificate of the server.
const NAME: &str = "a.test";
/// Limit on the polls until the ClientHello is complete, so that a failing test ends. One poll is enough, because it
/// reads all available bytes.
const ROUNDS: usize = 10;

/// Configurations of a server, and of a client that trusts its certificate.
struct TlsConfigs {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

/// Configurations for one protocol version, without further restrictions.
fn configs(version: &'static SupportedProtocolVersion) -> TlsConfigs {
    configs_with(version, aws_lc_rs::default_provider())
}

/// Configurations for one protocol version, in which the server uses `provider`. The client uses the default provider.
fn configs_with(version: &'static SupportedProtocolVersion, provider: CryptoProvider) -> TlsConfigs {
    let generated = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
    let mut server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![generated.cert.der().clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"x/1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(generated.cert.der().clone()).unwrap();
    let mut client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"x/1".to_vec()];
    TlsConfigs {
        server: Arc::new(server),
        client: Arc::new(client),
    }
}

/// A client, its connection to the server, and the way in which its bytes are split.
struct TestClient {
    tls: ClientConnection,
    peer: SimPeer,
    /// Maximum number of bytes that arrive at once.
    split: usize,
    /// Plaintext received from the server.
    received: Vec<u8>,
    /// Lengths of the application data records received.
    records: Vec<usize>,
}

impl TestClient {
    /// Creates a client, and the acceptor of the server at the other end of the link.
    fn new(configs: &TlsConfigs, split: usize) -> (TestClient, ClientHelloAcceptor<SimLink>) {
        let (link, peer) = sim::pair();
        // Ticks of 250 ms, and memory for one deadline. The test never advances the wheel.
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let name = ServerName::try_from(NAME).unwrap();
        let client = TestClient {
            tls: ClientConnection::new(Arc::clone(&configs.client), name).unwrap(),
            peer,
            split,
            received: Vec::new(),
            records: Vec::new(),
        };
        (client, ClientHelloAcceptor::new(link, &TlsBuffers::new(&wheel)))
    }

    /// Transfers the bytes that each side has sent to the other.
    fn transfer(&mut self) -> Result<(), rustls::Error> {
        let mut sent = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut sent).unwrap();
        }
        for part in sent.chunks(self.split) {
            self.peer.send(part);
        }
        let bytes = self.peer.take_received();
        self.note_records(&bytes);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            self.tls.read_tls(&mut rest).unwrap();
            self.tls.process_new_packets()?;
            let mut room = vec![0; 64 * 1024];
            while let Ok(got) = self.tls.reader().read(&mut room) {
                if got == 0 {
                    break;
                }
                self.received.extend_from_slice(&room[..got]);
            }
        }
        Ok(())
    }

    /// Stores the lengths of the application data records (content type 23) at the front of `bytes`.
    fn note_records(&mut self, mut bytes: &[u8]) {
        while let [23, 3, 3, high, low, rest @ ..] = bytes {
            let length = usize::from(*high) << 8 | usize::from(*low);
            self.records.push(length);
            bytes = rest.get(length..).unwrap_or_default();
        }
    }
}

/// Returns a context that wakes no task.
fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Completes the ClientHello and the handshake.
fn handshake(
    client: &mut TestClient,
    mut acceptor: ClientHelloAcceptor<SimLink>,
    config: &Arc<ServerConfig>,
) -> Tls<SimLink> {
    let first_bytes = (0..ROUNDS).find_map(|_| {
        client.transfer().unwrap();
        match acceptor.poll(&mut context()) {
            Poll::Ready(first_bytes) => Some(first_bytes.unwrap()),
            Poll::Pending => None,
        }
    });
    assert_eq!(first_bytes, Some(FirstBytes::ClientHello));
    let hello = acceptor.client_hello().unwrap();
    assert_eq!(hello.server_name(), Some(NAME));
    let mut tls = acceptor.accept(Arc::clone(config)).unwrap();
    loop {
        match tls.poll_handshake(&mut context()) {
            Poll::Ready(done) => break done.unwrap(),
            Poll::Pending => client.transfer().unwrap(),
        }
    }
    assert_eq!(tls.negotiated().alpn, Some(&b"x/1"[..]));
    tls
}

/// Receives `count` bytes with a buffer of `room` bytes.
fn receive(client: &mut TestClient, tls: &mut Tls<SimLink>, count: usize, room: usize) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
    while all.len() < count {
        match tls.poll_recv(&mut context(), &mut buffer) {
            Poll::Ready(received) => {
                let received = received.unwrap();
                assert!(!received.is_empty(), "ended after {} of {count}", all.len());
                all.extend_from_slice(&received);
            }
            Poll::Pending => client.transfer().unwrap(),
        }
    }
    all
}

/// Sends the whole queue. After each part, the client accepts up to 100,000 bytes more.
fn send(client: &mut TestClient, tls: &mut Tls<SimLink>, queue: &mut SendQueue) {
    while tls.poll_send(&mut context(), queue).map(Result::unwrap).is_pending() {
        client.transfer().unwrap();
        client.peer.accept(100_000);
    }
    client.peer.accept_all();
    client.transfer().unwrap();
}

/// Returns bytes that reveal their position.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A queue with every kind of segment but a pipe, and its content. Each large segment has about `large` bytes.
fn mixed(large: usize) -> (SendQueue, Vec<u8>) {
    let (mut queue, mut expected) = (SendQueue::default(), b"head".to_vec());
    queue.buffer().extend_from_slice(b"head");
    let content = pattern(large);
    let shared: SharedBytes = Rc::new(content.clone());
    queue.push_shared(&shared, 1, large - 1);
    expected.extend_from_slice(&content[1..large - 1]);
    queue.push_owned(Bytes::from(content.clone()));
    expected.extend_from_slice(&content);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    queue.push_file(Arc::new(file), 7, large as u64 - 7);
    expected.extend_from_slice(&content[7..]);
    queue.buffer().extend_from_slice(b"tail");
    expected.extend_from_slice(b"tail");
    (queue, expected)
}

#[test]
fn any_split_gives_the_same_result() {
    for version in [&TLS13, &TLS12] {
        let configs = configs(version);
        // Maximum bytes that arrive at once, size of the receive buffer, and size of each large segment.
        for (split, room, large) in [
            (1, 7, COPY_BELOW + 2),
            (5, 64 * 1024, COPY_BELOW + 2),
            (1000, 100, 100_000),
            (usize::MAX, 64 * 1024, 3_000_000),
        ] {
            let (mut client, acceptor) = TestClient::new(&configs, split);
            let mut tls = handshake(&mut client, acceptor, &configs.server);
            for length in [1, 300, 40_000] {
                let content = pattern(length);
                client.tls.writer().write_all(&content).unwrap();
                assert!(
                    receive(&mut client, &mut tls, length, room) == content,
                    "{length} in {split}"
                );
            }
            let (mut queue, expected) = mixed(large);
            client.peer.accept(10_000);
            send(&mut client, &mut tls, &mut queue);
            assert!(client.received == expected, "{large} out, {split}");
            tls.finish();
            assert!(client.transfer().is_ok());
            let mut rest = [0; 1];
            assert_eq!(
                client.tls.reader().read(&mut rest).unwrap(),
                0,
                "the client received no close_notify"
            );
        }
    }
}

#[test]
fn records_start_small_in_a_long_response_and_a_short_one_fits_in_one() {
    let configs = configs(&TLS13);
    let (mut client, acceptor) = TestClient::new(&configs, usize::MAX);
    let mut tls = handshake(&mut client, acceptor, &configs.server);
    client.transfer().unwrap();
    // Length of the response, and plaintext lengths of its records. A small record has 4,229 bytes. The last 11,542
    // bytes of the longest response are few enough for one large record.
    for (length, expected) in [
        (13, vec![13]),
        (10_000, vec![10_000]),
        (20_000, vec![4_229, 4_229, 11_542]),
    ] {
        client.records.clear();
        let mut queue = SendQueue::default();
        queue.buffer().extend_from_slice(&pattern(length));
        send(&mut client, &mut tls, &mut queue);
        // A record has 17 bytes more than its plaintext: the content type and the tag.
        let plain: Vec<usize> = client.records.iter().map(|record| record - 17).collect();
        assert_eq!(plain, expected);
    }
    let (mut queue, _) = mixed(1 << 20);
    client.records.clear();
    send(&mut client, &mut tls, &mut queue);
    assert_eq!(client.records.first(), Some(&(4_229 + 17)));
    // The response has 3 MiB, of which about 256 KiB are sent in small records. The rest fills 176 large records.
    assert!(client.records.iter().filter(|record| **record == 16_384 + 17).count() > 100);
}

#[test]
fn an_idle_connection_keeps_only_its_keys() {
    let configs = configs(&TLS13);
    let (mut client, acceptor) = TestClient::new(&configs, usize::MAX);
    let mut tls = handshake(&mut client, acceptor, &configs.server);
    client.tls.writer().write_all(b"request").unwrap();
    receive(&mut client, &mut tls, 7, 100);
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(b"answer");
    send(&mut client, &mut tls, &mut queue);
    assert!(tls.poll_recv(&mut context(), &mut [0; 10]).is_pending());
    assert_eq!((tls.partial.capacity(), tls.unread.capacity()), (0, 0));
    assert!(tls.backlog.is_none());
}

#[test]
fn a_kept_value_stays_until_the_last_record_was_sent() {
    let configs = configs(&TLS13);
    let (mut client, acceptor) = TestClient::new(&configs, usize::MAX);
    let mut tls = handshake(&mut client, acceptor, &configs.server);
    client.transfer().unwrap();
    for length in [100, 1 << 20] {
        let value = Rc::new(());
        let mut queue = SendQueue::default();
        queue.buffer().extend_from_slice(&pattern(length));
        queue.keep_until_sent(Rc::clone(&value) as Rc<dyn Any>);
        client.peer.accept(0);
        while !queue.is_empty() {
            assert!(tls.poll_send(&mut context(), &mut queue).is_pending());
            assert_eq!(Rc::strong_count(&value), 2, "{} bytes are left", queue.len());
            if !queue.is_empty() {
                client.peer.accept(100);
            }
        }
        client.peer.accept_all();
        assert!(tls.poll_send(&mut context(), &mut queue).is_ready());
        assert_eq!(Rc::strong_count(&value), 1, "everything was sent");
    }
}

#[test]
fn a_limit_of_no_unsent_bytes_does_not_stop_the_sender() {
    let configs = configs(&TLS13);
    let (mut client, acceptor) = TestClient::new(&configs, usize::MAX);
    let mut tls = handshake(&mut client, acceptor, &configs.server);
    tls.limit_unsent(Some(0));
    let (mut queue, _) = mixed(COPY_BELOW);
    send(&mut client, &mut tls, &mut queue);
    assert!(queue.is_empty());
}

/// The link does not accept the close_notify. The close_notify must be dropped, because the sending direction is shut
/// down.
#[test]
fn unsent_records_are_dropped_at_shutdown() {
    let configs = configs(&TLS13);
    let (mut client, acceptor) = TestClient::new(&configs, usize::MAX);
    let mut tls = handshake(&mut client, acceptor, &configs.server);
    client.transfer().unwrap();
    client.peer.accept(0);
    tls.shut_down().unwrap();
    client.peer.fail_send(io::ErrorKind::BrokenPipe);
    assert_eq!(tls.in_flight(), 0);
    assert!(tls.poll_recv(&mut context(), &mut [0; 10]).is_pending());
    client.tls.writer().write_all(b"late").unwrap();
    // The response to the key update cannot be sent either.
    client.tls.refresh_traffic_keys().unwrap();
    client.tls.writer().write_all(b"r").unwrap();
    assert_eq!(receive(&mut client, &mut tls, 5, 100), b"later");
}

#[test]
fn plaintext_is_returned_and_invalid_records_end_the_session() {
    let configs = configs(&TLS13);
    let (client, mut acceptor) = TestClient::new(&configs, usize::MAX);
    client.peer.send(b"GET / HTTP/1.1\r\n");
    assert!(matches!(
        acceptor.poll(&mut context()),
        Poll::Ready(Ok(FirstBytes::NotTls))
    ));
    assert!(acceptor.looks_like_http(20));
    assert_eq!(acceptor.into_parts().1, b"GET / HTTP/1.1\r\n");

    // A record that was changed in transit leads to an alert, and yields no plaintext.
    let (mut client, acceptor) = TestClient::new(&configs, usize::MAX);
    let mut tls = handshake(&mut client, acceptor, &configs.server);
    client.tls.writer().write_all(b"request").unwrap();
    let mut sent = Vec::new();
    client.tls.write_tls(&mut sent).unwrap();
    *sent.last_mut().unwrap() ^= 1;
    client.peer.send(&sent);
    let received = tls
        .poll_recv(&mut context(), &mut [0; 100])
        .map(|received| received.map(drop));
    assert!(matches!(received, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::InvalidData));
    assert!(client.transfer().is_err(), "the client received no alert");
    // Nothing is sent after the alert.
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(b"answer");
    assert!(matches!(tls.poll_send(&mut context(), &mut queue), Poll::Ready(Err(_))));
    // Further records are not processed, because rustls would create a second alert.
    let mut record = vec![23, 3, 3, 0, 20];
    record.extend_from_slice(&[0; 20]);
    for _ in 0..3 {
        client.peer.send(&record);
        let mut room = [0; 100];
        let received = tls.poll_recv(&mut context(), &mut room);
        assert!(matches!(received, Poll::Ready(Err(_))));
    }
}
