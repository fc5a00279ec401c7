//! Settings of an endpoint: keys that all workers share, and limits.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::{hkdf, hmac, rand};
use quinn_proto::{
    BloomTokenLog, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, QlogStream, ServerConfig, TransportConfig,
    ValidationTokenConfig, VarInt,
};

use crate::congestion::CubicFactory;
use crate::connection_id::{ConnectionIdKey, Generator, KEY_LENGTH, MisroutedOwner, Owner};
use crate::forwarding::Forwarding;
use crate::tls::{QUIC_V1, SelectingConfig};

/// Size of the secret that all keys are derived from, in bytes.
pub const SECRET_LENGTH: usize = 32;

/// Idle timeout (RFC 9000 §10.1). Browsers and other servers use the same value.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after which a connection with an exchange in progress sends PING (RFC 9000 §10.1.2), so that the idle timeout
/// does not end an exchange that is silent. A lost PING can be repeated before the timeout.
pub const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Receive window of a stream in bytes, the same as for HTTP/2.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Receive window of a connection in bytes, the same as for HTTP/2. It bounds the memory that a client can occupy.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bounds of the number of bytes that a connection keeps until the client has acknowledged them. Between the bounds,
/// the number is three congestion windows. The minimum is slightly less than three initial windows. The maximum allows
/// 80 MB/s at a round trip of 25 ms.
pub const SEND_WINDOW: RangeInclusive<u64> = 32 * 1024..=2 * 1024 * 1024;
/// Number of bidirectional streams that a client may have open, the same as for HTTP/2.
pub const MAX_STREAMS: u32 = 128;
/// Number of unidirectional streams that a client may have open: control stream, two streams of QPACK, and five of
/// unknown types, which have to be accepted (RFC 9114 §6.2).
const MAX_UNIDIRECTIONAL_STREAMS: u32 = 8;
/// Maximum number of bytes of handshake messages that are kept because they arrived out of order, the same as by
/// default in `quinn-proto`.
const CRYPTO_BUFFER: usize = 16 * 1024;
/// Payload of the first datagrams in bytes. Every network path supports this size (RFC 9000 §14).
const INITIAL_MTU: u16 = 1200;
/// Largest payload that path MTU discovery tries: Ethernet without the headers of IPv6 and UDP.
const MAX_MTU: u16 = 1452;
/// Maximum number of connections whose first packet has arrived and that were neither accepted nor refused. The
/// endpoint decides immediately, so there is never more than one such connection, and any small maximum suffices.
const MAX_INCOMING: usize = 16;
/// Number of address validation tokens for later connections that each connection gets (RFC 9000 §8.1.3), the same as
/// by default in `quinn-proto`.
const NEW_TOKENS: u32 = 2;

/// Keys that all workers share, so that each of them accepts the tokens and connection IDs of the others. A reload
/// keeps them.
#[derive(Clone)]
pub struct SharedKeys {
    pub(crate) connection_id: Arc<ConnectionIdKey>,
    /// Key of stateless resets (RFC 9000 §10.3).
    reset: Arc<hmac::Key>,
    /// Key of address validation tokens (RFC 9000 §8.1).
    token: Arc<hkdf::Prk>,
    /// Address validation tokens that were used. All workers share the log, so that none accepts a token again.
    token_log: Arc<BloomTokenLog>,
}

impl SharedKeys {
    /// Derives the keys. Tokens and stateless resets stay valid after a restart if the secret is the same.
    ///
    /// # Errors
    ///
    /// Fails if the cryptographic library reports an error.
    pub fn new(secret: &[u8; SECRET_LENGTH]) -> io::Result<SharedKeys> {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"rocknet quic").extract(secret);
        let mut id_key = [0; KEY_LENGTH];
        id_key.copy_from_slice(&derive(&root, b"connection id")?[..KEY_LENGTH]);
        let connection_id =
            ConnectionIdKey::new(&id_key).ok_or_else(|| io::Error::other("AES-128 is not available"))?;
        Ok(SharedKeys {
            connection_id: Arc::new(connection_id),
            reset: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &derive(&root, b"stateless reset")?)),
            token_log: Arc::default(),
            // `quinn-proto` derives a further key for each token.
            token: Arc::new(hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&derive(&root, b"token")?)),
        })
    }

    /// Creates keys from random bytes.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random bytes.
    pub fn random() -> io::Result<SharedKeys> {
        SharedKeys::new(&SharedKeys::random_secret()?)
    }

    /// Returns a random secret for [`SharedKeys::new`].
    ///
    /// # Errors
    ///
    /// Fails if the system has no random bytes.
    pub fn random_secret() -> io::Result<[u8; SECRET_LENGTH]> {
        let mut secret = [0; SECRET_LENGTH];
        rand::fill(&mut secret).map_err(io::Error::other)?;
        Ok(secret)
    }
}

/// Derives the key for one purpose from the root key.
fn derive(root: &hkdf::Prk, purpose: &[u8]) -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    root.expand(&[purpose], hkdf::HKDF_SHA256)
        .and_then(|expanded| expanded.fill(&mut key))
        .map_err(io::Error::other)?;
    Ok(key)
}

/// Returns the transport parameters that a client remembers for early data (RFC 9000 §7.4.1), in a form that can only
/// be compared. A server must not accept early data of a session in which it has announced other parameters.
#[must_use]
pub fn remembered_parameters() -> Vec<u8> {
    let parameters = [
        MAX_STREAMS,
        MAX_UNIDIRECTIONAL_STREAMS,
        STREAM_WINDOW,
        CONNECTION_WINDOW,
        IDLE_TIMEOUT.as_secs() as u32,
    ];
    parameters
        .iter()
        .flat_map(|parameter| parameter.to_le_bytes())
        .collect()
}

/// Returns the settings that an endpoint keeps for its whole life. `forwarding` contains the inboxes of this process's
/// workers. If a datagram is rejected because it belongs to another worker, that owner is stored in `misrouted`.
pub(crate) fn endpoint_config(
    keys: &SharedKeys,
    owner: Owner,
    forwarding: &Forwarding,
    misrouted: &Arc<MisroutedOwner>,
) -> EndpointConfig {
    let reset: Arc<dyn quinn_proto::crypto::HmacKey> = Arc::<hmac::Key>::clone(&keys.reset);
    let mut config = EndpointConfig::new(reset);
    let (key, misrouted) = (Arc::clone(&keys.connection_id), Arc::clone(misrouted));
    let forwarding = forwarding.clone();
    config.cid_generator(move || {
        Box::new(Generator {
            key: Arc::clone(&key),
            owner,
            misrouted: Arc::clone(&misrouted),
            forwarding: forwarding.clone(),
        })
    });
    config.supported_versions(vec![QUIC_V1]);
    config
}

/// Returns the settings of new connections.
pub(crate) fn server_config(keys: &SharedKeys, crypto: &Arc<SelectingConfig>) -> ServerConfig {
    let crypto = Arc::<SelectingConfig>::clone(crypto);
    let token: Arc<dyn quinn_proto::crypto::HandshakeTokenKey> = Arc::<hkdf::Prk>::clone(&keys.token);
    let mut config = ServerConfig::new(crypto, token);
    let mut tokens = ValidationTokenConfig::default();
    let log = Arc::<BloomTokenLog>::clone(&keys.token_log);
    tokens.sent(NEW_TOKENS).log(log);
    config
        .transport_config(Arc::new(transport_config(None)))
        .validation_token_config(tokens)
        .max_incoming(MAX_INCOMING);
    config
}

/// Returns the transport parameters and limits of a connection. `trace` is the trace of the connection; `None` if it is
/// not traced.
pub(crate) fn transport_config(trace: Option<QlogStream>) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(MAX_MTU);
    transport
        .max_concurrent_bidi_streams(MAX_STREAMS.into())
        .max_concurrent_uni_streams(MAX_UNIDIRECTIONAL_STREAMS.into())
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(*SEND_WINDOW.start())
        .crypto_buffer_size(CRYPTO_BUFFER)
        .initial_mtu(INITIAL_MTU)
        .mtu_discovery_config(Some(discovery))
        // Without a buffer, unreliable datagrams (RFC 9221) are turned off.
        .datagram_receive_buffer_size(None)
        .qlog_stream(trace)
        .congestion_controller_factory(Arc::new(CubicFactory));
    transport
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_proto::ConnectionIdGenerator;

    #[test]
    fn all_endpoints_record_used_tokens_in_one_log() {
        struct NoSite;
        impl crate::tls::SelectConfig for NoSite {
            fn select(
                &self,
                _: &rustls::server::ClientHello<'_>,
                _: Option<std::net::IpAddr>,
            ) -> Option<crate::tls::SelectedConfig> {
                None
            }
        }
        let keys = SharedKeys::random().expect("keys");
        let crypto = Arc::new(SelectingConfig::new(Arc::new(NoSite)).expect("a configuration"));
        let log = Arc::clone(&keys.token_log);
        // Each configuration holds a reference to the log.
        let references = Arc::strong_count(&log);
        let _configs = [server_config(&keys, &crypto), server_config(&keys.clone(), &crypto)];
        assert_eq!(Arc::strong_count(&log), references + 2);
    }

    #[test]
    fn equal_secrets_make_equal_keys() {
        let keys = |byte| SharedKeys::new(&[byte; SECRET_LENGTH]).expect("keys");
        let owner = Owner {
            generation: 1,
            worker: 2,
        };
        let mut generator = Generator {
            key: keys(1).connection_id,
            owner,
            misrouted: Arc::default(),
            forwarding: Forwarding::default(),
        };
        let id = generator.generate_cid();
        assert_eq!(keys(1).connection_id.owner(&id), Some(owner));
        assert_eq!(keys(2).connection_id.owner(&id), None);
        let random = SharedKeys::random().expect("keys");
        assert_eq!(random.connection_id.owner(&id), None);
    }
}
