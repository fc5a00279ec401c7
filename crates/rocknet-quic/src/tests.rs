//! Connections on virtual time: client and server with a network that loses, duplicates and reorders datagrams.

mod client;
mod network;
mod node;
mod server;

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionError, Dir, EndpointConfig, NoneTokenStore, TokenMemoryCache, TokenStore, VarInt,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ClientHello;

use crate::config::{self, SharedKeys};
use crate::congestion::permit_close;
use crate::connection_id::Owner;
use crate::forwarding::Forwarding;
use crate::tls::{SelectConfig, SelectedConfig, SelectingConfig};
use client::Client;
use network::{Network, PathProperties, Side};
use node::{Node, endpoint};
use server::Server;

/// Maximum number of steps of a simulation. Each step runs both sides, and then moves the time to the next arrival or
/// timer.
const MAX_STEPS: usize = 1_000_000;

/// Selector that chooses the same configuration for every connection.
struct OneCertificate(Arc<rustls::ServerConfig>);

impl SelectConfig for OneCertificate {
    fn select(&self, _: &ClientHello<'_>, _: Option<IpAddr>) -> Option<SelectedConfig> {
        Some(SelectedConfig {
            config: Arc::clone(&self.0),
            context: Arc::new(()) as Arc<dyn Any + Send + Sync>,
        })
    }
}

/// Client and server with a path between them.
struct Simulation {
    start: Instant,
    now: Instant,
    network: Network,
    client_node: Node,
    server_node: Node,
    client: Client,
    server: Server,
}

impl Simulation {
    /// Creates a simulation in which the client sends this number of requests. `seed` determines all random values.
    fn new(path: PathProperties, seed: u64, requests: usize) -> Simulation {
        Simulation::with(
            path,
            seed,
            requests,
            [7; config::SECRET_LENGTH],
            Arc::new(NoneTokenStore),
        )
    }

    /// Creates a simulation as [`Simulation::new`] does, but with this secret of the server, and with a client that
    /// keeps its tokens in `tokens`.
    fn with(
        path: PathProperties,
        seed: u64,
        requests: usize,
        secret: [u8; config::SECRET_LENGTH],
        tokens: Arc<dyn TokenStore>,
    ) -> Simulation {
        let key = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).expect("a certificate");
        let certificate = key.cert.der().clone();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], private)
            .expect("a valid certificate");
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let keys = SharedKeys::new(&secret).expect("keys");
        let crypto = Arc::new(SelectingConfig::new(Arc::new(OneCertificate(Arc::new(tls)))).expect("a configuration"));
        let owner = Owner {
            generation: 1,
            worker: 0,
        };
        let server_node = Node::new(
            Side::Server,
            endpoint(
                config::endpoint_config(&keys, owner, &Forwarding::default(), &Arc::default()),
                Some(Arc::new(config::server_config(&keys, &crypto))),
                seed,
            ),
        );
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).expect("a root");
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let mut client_node = Node::new(Side::Client, endpoint(EndpointConfig::default(), None, seed + 1));
        let start = Instant::now();
        let crypto = QuicClientConfig::try_from(tls).expect("a configuration");
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.token_store(tokens);
        client_node.connect(start, config);
        Simulation {
            start,
            now: start,
            network: Network::new(path, seed),
            client_node,
            server_node,
            client: Client::new(requests),
            server: Server::new(),
        }
    }

    /// Runs until `is_done` returns true. Panics if nothing can happen any more, or after [`MAX_STEPS`].
    fn run(&mut self, is_done: impl Fn(&Simulation) -> bool) {
        for _ in 0..MAX_STEPS {
            self.act();
            if is_done(self) {
                return;
            }
            self.wait();
            while let Some((to, datagram)) = self.network.receive(self.now) {
                self.deliver(to, datagram);
            }
        }
        panic!("no end after {MAX_STEPS} steps and {:?}", self.elapsed());
    }

    /// Runs both sides at the current time.
    fn act(&mut self) {
        if let Some(connection) = &mut self.client_node.connection {
            self.client.run(connection);
        }
        if let Some(connection) = &mut self.server_node.connection {
            self.server.run(connection);
        }
        self.client_node.run(self.now, &mut self.network);
        self.server_node.run(self.now, &mut self.network);
    }

    /// Moves the time to the next arrival or timer, and handles the timers.
    fn wait(&mut self) {
        let (client, server) = (self.client_node.timeout(), self.server_node.timeout());
        let next = [self.network.next_arrival(), client, server]
            .into_iter()
            .flatten()
            .min();
        self.now = self.now.max(next.expect("something happens later"));
        self.client_node.handle_timeout(self.now);
        self.server_node.handle_timeout(self.now);
    }

    /// Passes a datagram that has arrived to its receiver.
    fn deliver(&mut self, to: Side, datagram: BytesMut) {
        let node = match to {
            Side::Client => &mut self.client_node,
            Side::Server => &mut self.server_node,
        };
        node.receive(self.now, datagram, &mut self.network);
    }

    fn elapsed(&self) -> Duration {
        self.now - self.start
    }
}

/// Returns the properties of a path. Delay and jitter are in milliseconds; loss and duplicates are per 1,000 datagrams.
const fn path(delay: u64, jitter: u64, loss: u64, duplicates: u64) -> PathProperties {
    PathProperties {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        loss,
        duplicates,
    }
}

#[test]
fn every_request_arrives_once_and_every_response_is_whole() {
    const REQUESTS: usize = 60;
    // Path, and maximum duration in seconds of virtual time.
    let rows = [
        (path(10, 0, 0, 0), 2),
        (path(50, 0, 10, 0), 20),
        (path(10, 0, 50, 0), 30),
        (path(10, 0, 200, 0), 200),
        (path(10, 0, 0, 300), 3),
        (path(10, 20, 0, 0), 20),
        (path(10, 20, 50, 100), 60),
    ];
    // Number of sections that had to wait for the dynamic table, in all simulations.
    let mut blocked = 0;
    for (path, seconds) in rows {
        for seed in 1..=3 {
            let mut simulation = Simulation::new(path, seed, REQUESTS);
            simulation.run(|simulation| simulation.client.is_done() || simulation.client.lost.is_some());
            let (client, server) = (&simulation.client, &mut simulation.server);
            assert_eq!(client.lost, None, "{path:?}, seed {seed}");
            server
                .requests
                .sort_by_key(|number| number.parse::<usize>().expect("a number"));
            let expected: Vec<String> = (0..REQUESTS).map(|number| number.to_string()).collect();
            assert_eq!(server.requests, expected, "{path:?}, seed {seed}");
            blocked += server.blocked;
            let elapsed = simulation.elapsed();
            assert!(
                elapsed < Duration::from_secs(seconds),
                "{path:?}, seed {seed}: {elapsed:?}"
            );
        }
    }
    assert!(blocked > 0, "no section has waited for the dynamic table");
}

#[test]
fn a_silent_path_ends_the_connection_after_the_idle_timeout() {
    let mut simulation = Simulation::new(path(10, 0, 0, 0), 1, 10);
    simulation.run(|simulation| simulation.client.is_done());
    let cut = simulation.elapsed();
    simulation.network.cut();
    simulation.run(|simulation| simulation.server.lost.is_some());
    assert_eq!(simulation.server.lost, Some(ConnectionError::TimedOut));
    // The idle timeout is 30 seconds. It may begin before the cut, or with a packet that is sent after the cut.
    let idle = simulation.elapsed() - cut;
    assert!(
        (Duration::from_secs(25)..Duration::from_secs(40)).contains(&idle),
        "{idle:?}"
    );
}

#[test]
fn a_close_is_sent_although_the_congestion_window_is_full() {
    let mut simulation = Simulation::new(path(50, 0, 0, 0), 1, 1);
    simulation.run(|simulation| simulation.client.is_done());
    let server = simulation.server_node.connection.as_mut().expect("a connection");
    let stream = server.streams().open(Dir::Uni).expect("a stream");
    // More than the congestion window permits.
    server
        .send_stream(stream)
        .write(&[0; 200_000])
        .expect("room in the send buffer");
    simulation.act();
    let server = simulation.server_node.connection.as_mut().expect("a connection");
    server.close(simulation.now, VarInt::from_u32(7), Bytes::from_static(b"reason"));
    permit_close(server.congestion_state());
    simulation.run(|simulation| simulation.client.lost.is_some());
    match &simulation.client.lost {
        Some(ConnectionError::ApplicationClosed(closed)) => assert_eq!(closed.error_code, VarInt::from_u32(7)),
        other => panic!("not closed by the server: {other:?}"),
    }
}

#[test]
fn a_client_that_has_proven_nothing_receives_at_most_three_times_its_bytes() {
    // No datagram reaches the client, so it sends its first packet again and again.
    for seed in 1..=3 {
        let mut simulation = Simulation::new(path(10, 0, 0, 0), seed, 1);
        // Bytes that the server has received, and the largest ratio of sent bytes to received bytes.
        let (mut received, mut largest_ratio) = (0, 0.0_f64);
        while simulation.client.lost.is_none() {
            simulation.act();
            let sent = simulation.network.bytes_to(Side::Client);
            assert!(sent <= 3 * received, "seed {seed}: {sent} bytes for {received}");
            if received > 0 {
                largest_ratio = largest_ratio.max(sent as f64 / received as f64);
            }
            simulation.wait();
            while let Some((to, datagram)) = simulation.network.receive(simulation.now) {
                if to == Side::Server {
                    received += datagram.len();
                    simulation.deliver(to, datagram);
                }
            }
        }
        assert!(
            largest_ratio > 1.0,
            "seed {seed}: the server has sent too little to test the limit, {largest_ratio}"
        );
    }
}

#[test]
fn a_token_proves_the_address_to_servers_with_the_same_secret() {
    let tokens = Arc::new(TokenMemoryCache::default());
    // Each byte of the secret of the server, and true if the token of the server before it proves the address. The
    // client has no token for the first server.
    for (secret, expected) in [(7, false), (7, true), (8, false)] {
        let secret = [secret; config::SECRET_LENGTH];
        let tokens = Arc::<TokenMemoryCache>::clone(&tokens);
        let mut simulation = Simulation::with(path(10, 0, 0, 0), 1, 3, secret, tokens);
        simulation.run(|simulation| simulation.client.is_done());
        assert_eq!(simulation.server_node.is_address_validated, Some(expected));
    }
}
