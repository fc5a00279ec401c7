//! Side of a simulated connection: an endpoint of quinn-proto without a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint};

use super::network::{Network, Side};

/// Maximum number of datagrams in one transmit.
const SEGMENTS: usize = 10;

/// Client or server, with its only connection.
pub struct Node {
    side: Side,
    endpoint: Endpoint,
    /// Connection, once it exists.
    pub connection: Option<Connection>,
    handle: Option<ConnectionHandle>,
    /// Set once the server has a connection: true if a token has proven the address of the client.
    pub is_address_validated: Option<bool>,
}

impl Node {
    pub fn new(side: Side, endpoint: Endpoint) -> Node {
        Node {
            side,
            endpoint,
            connection: None,
            handle: None,
            is_address_validated: None,
        }
    }

    /// Returns the address of a side.
    fn address(side: Side) -> SocketAddr {
        match side {
            Side::Client => SocketAddr::from(([192, 0, 2, 1], 50_000)),
            Side::Server => SocketAddr::from(([192, 0, 2, 2], 443)),
        }
    }

    /// Returns the side that this node exchanges datagrams with.
    fn other(&self) -> Side {
        match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// Connects the client to the server.
    pub fn connect(&mut self, now: Instant, config: ClientConfig) {
        let server = Node::address(self.other());
        let (handle, connection) = self
            .endpoint
            .connect(now, config, server, "a")
            .expect("a valid configuration");
        (self.handle, self.connection) = (Some(handle), Some(connection));
    }

    /// Handles a datagram that has arrived.
    pub fn receive(&mut self, now: Instant, datagram: BytesMut, network: &mut Network) {
        let (source, mut out) = (Node::address(self.other()), Vec::new());
        match self.endpoint.handle(now, source, None, None, datagram, &mut out) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if self.handle == Some(handle)
                    && let Some(connection) = &mut self.connection
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                // A duplicate of the first packet may come after the connection has ended.
                if self.handle.is_some() {
                    return self.endpoint.ignore(incoming);
                }
                self.is_address_validated = Some(incoming.remote_address_validated());
                let (handle, connection) = self
                    .endpoint
                    .accept(incoming, now, &mut out, None)
                    .unwrap_or_else(|error| panic!("not accepted: {}", error.cause));
                (self.handle, self.connection) = (Some(handle), Some(connection));
            }
            Some(DatagramEvent::Response(transmit)) => network.send(now, self.other(), &out[..transmit.size]),
            None => {}
        }
    }

    /// Sends the datagrams that are ready, and exchanges events between the connection and the endpoint.
    pub fn run(&mut self, now: Instant, network: &mut Network) {
        let other = self.other();
        let (Some(connection), Some(handle)) = (&mut self.connection, self.handle) else {
            return;
        };
        let mut out = Vec::new();
        while let Some(transmit) = connection.poll_transmit(now, SEGMENTS, &mut out) {
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in out[..transmit.size].chunks(segment) {
                network.send(now, other, datagram);
            }
            out.clear();
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(reply) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(reply);
            }
        }
    }

    /// Handles the timers that have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(connection) = &mut self.connection
            && connection.poll_timeout().is_some_and(|timeout| timeout <= now)
        {
            connection.handle_timeout(now);
        }
    }

    /// Returns the time of the next timer; `None` if no timer is set.
    pub fn timeout(&mut self) -> Option<Instant> {
        self.connection.as_mut()?.poll_timeout()
    }
}

/// Returns an endpoint whose random values depend on the seed alone. `server` is `None` for a client.
pub fn endpoint(
    config: quinn_proto::EndpointConfig,
    server: Option<Arc<quinn_proto::ServerConfig>>,
    seed: u64,
) -> Endpoint {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    // `true` permits path MTU discovery.
    Endpoint::new(Arc::new(config), server, true, Some(bytes))
}
