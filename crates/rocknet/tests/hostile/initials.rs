//! QUIC handshakes that a test drives datagram by datagram and does not complete.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event};
use rustls::crypto::aws_lc_rs::{self, kx_group};

use crate::support::tls_client::TlsClient;

/// Size in bytes of the smallest datagram that may contain an Initial packet (RFC 9000 §14.1).
pub const INITIAL_LENGTH: usize = 1200;

/// Source of handshakes, each with connection IDs and keys of its own.
pub struct Handshakes {
    endpoint: Endpoint,
    config: ClientConfig,
    server: SocketAddr,
}

/// Handshake that the test drives datagram by datagram.
pub struct HalfOpen {
    handle: ConnectionHandle,
    connection: Connection,
    /// First datagram.
    pub initial: Vec<u8>,
}

impl Handshakes {
    pub fn new(client: &TlsClient<'_>, server: SocketAddr) -> Handshakes {
        let mut provider = aws_lc_rs::default_provider();
        // The key share of a post-quantum group does not fit into one datagram.
        provider.kx_groups = vec![kx_group::X25519];
        let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(client.roots.clone())
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicClientConfig::try_from(tls).expect("TLS 1.3");
        Handshakes {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None),
            config: ClientConfig::new(Arc::new(tls)),
            server,
        }
    }

    /// Begins a handshake.
    pub fn begin(&mut self) -> HalfOpen {
        let now = Instant::now();
        let (handle, mut connection) = self
            .endpoint
            .connect(now, self.config.clone(), self.server, super::secure::NAME)
            .expect("a handshake");
        let initial = next_datagram(&mut connection);
        assert_eq!(initial.len(), INITIAL_LENGTH);
        HalfOpen {
            handle,
            connection,
            initial,
        }
    }

    /// Handles a Retry packet. Returns the Initial packet that proves the address of the client.
    pub fn answer_retry(&mut self, half_open: &mut HalfOpen, retry: &[u8]) -> Vec<u8> {
        self.receive(half_open, retry);
        next_datagram(&mut half_open.connection)
    }

    /// Handles a datagram of the server. Returns the reason if the server has refused the connection.
    pub fn refusal(&mut self, half_open: &mut HalfOpen, datagram: &[u8]) -> Option<String> {
        self.receive(half_open, datagram);
        while let Some(event) = half_open.connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                return Some(reason.to_string());
            }
        }
        None
    }

    fn receive(&mut self, half_open: &mut HalfOpen, datagram: &[u8]) {
        let (now, bytes) = (Instant::now(), BytesMut::from(datagram));
        let event = self
            .endpoint
            .handle(now, self.server, None, None, bytes, &mut Vec::new());
        let Some(DatagramEvent::ConnectionEvent(handle, event)) = event else {
            panic!("a datagram for no handshake");
        };
        assert_eq!(handle, half_open.handle);
        half_open.connection.handle_event(event);
    }
}

fn next_datagram(connection: &mut Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    let transmit = connection.poll_transmit(Instant::now(), 1, &mut bytes);
    assert_eq!(transmit.map(|transmit| transmit.size), Some(bytes.len()));
    bytes
}

/// Socket of a client that receives only when the test requests it.
pub fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("an option");
    socket
}

/// Receives datagrams until none has arrived for a short time.
pub fn drain(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), [0; 2048]);
    while let Ok(length) = socket.recv(&mut buffer) {
        all.push(buffer[..length].to_vec());
    }
    all
}

/// Type of a packet, by its long header (RFC 9000 §17.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet {
    Initial,
    Handshake,
    Retry,
    /// Another type, or a packet with a short header.
    Other,
}

/// Returns the type of the first packet of a datagram.
pub fn packet(datagram: &[u8]) -> Packet {
    match datagram[0] & 0xf0 {
        0xc0 => Packet::Initial,
        0xe0 => Packet::Handshake,
        0xf0 => Packet::Retry,
        _ => Packet::Other,
    }
}
