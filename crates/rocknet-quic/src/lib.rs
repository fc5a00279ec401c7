//! QUIC (RFC 9000) on the event loop of a worker. The protocol is implemented by `quinn-proto`. This crate sends and
//! receives its datagrams, drives its timers and chooses the TLS configuration of each connection.
//!
//! A [`QuicEndpoint`] receives the datagrams of all connections of a worker. Each [`Connection`] belongs to a task of
//! its own. Nothing is shared between workers except keys and datagrams that reached the wrong worker.

#![deny(missing_docs)]

mod config;
mod congestion;
mod connection;
mod connection_id;
mod endpoint;
mod forwarding;
mod relay;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod timers;
mod tls;
mod trace;

pub use config::{MAX_STREAMS, PING_INTERVAL, SECRET_LENGTH, SEND_WINDOW, SharedKeys, remembered_parameters};
pub use connection::Connection;
pub use connection_id::{ConnectionIdKey, Owner};
pub use endpoint::{MAX_HANDSHAKES, NewConnection, QuicEndpoint, RETRY_THRESHOLD};
pub use forwarding::{Forwarding, WorkerInbox};
pub use quinn_proto::{ConnectionError, Dir, Event, StreamEvent, StreamId};
pub use relay::{Relay, RelayReceiver, Relays};
pub use stream::{ReadOutcome, stream_id};
pub use tls::{HandshakeInfo, SelectConfig, SelectedConfig};
pub use trace::OpenTrace;
