//! TLS of a QUIC connection (RFC 9001). The configuration is chosen after the ClientHello has arrived, because each
//! site has its own certificate and client authentication.

use std::any::Any;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{self, ExportKeyingMaterialError, KeyPair, Keys, PacketKey, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::CertificateDer;
use rustls::quic::{KeyChange, Secrets, ServerConnection, Version};
use rustls::server::{Acceptor, ClientHello};
use rustls::{HandshakeKind, ProtocolVersion, SupportedCipherSuite};

/// Version number of QUIC version 1 (RFC 9000 §15).
pub(crate) const QUIC_V1: u32 = 1;
/// Maximum size of a ClientHello in bytes. Browsers send about 2 KiB.
const MAX_CLIENT_HELLO: usize = 32 * 1024;
/// Maximum payload of a TLS record in bytes (RFC 8446 §5.1).
const MAX_RECORD: usize = 16 * 1024;
/// Alerts of RFC 8446 §6.2.
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;
const INTERNAL_ERROR: u8 = 80;
const UNRECOGNIZED_NAME: u8 = 112;

/// Chooses the TLS configuration of each connection. It is shared by all connections of an endpoint.
pub trait SelectConfig: Send + Sync + 'static {
    /// Returns the configuration for a ClientHello; `None` if no site has its server name, or if the site has no
    /// certificate. `local` is the address that the client sent to, if known.
    fn select(&self, hello: &ClientHello<'_>, local: Option<IpAddr>) -> Option<SelectedConfig>;
}

/// Configuration chosen for a connection.
pub struct SelectedConfig {
    /// TLS configuration. It must permit TLS 1.3, and early data of 0 or of 2^32-1 bytes (RFC 9001 §4.6.1).
    pub config: Arc<rustls::ServerConfig>,
    /// Value that [`HandshakeInfo::context`] returns.
    pub context: Arc<dyn Any + Send + Sync>,
}

/// Properties of a handshake whose configuration has been chosen. A property is `None` if the client sent no such
/// value, or if the handshake has not determined it yet.
#[derive(Clone)]
pub struct HandshakeInfo {
    /// Value that belongs to the chosen configuration.
    pub context: Arc<dyn Any + Send + Sync>,
    /// Application protocol selected by ALPN (RFC 7301).
    pub alpn: Option<Vec<u8>>,
    /// Server name that the client sent (SNI).
    pub server_name: Option<String>,
    /// Cipher suite.
    pub suite: Option<SupportedCipherSuite>,
    /// Certificate chain of the client, its own certificate first.
    pub peer: Option<Vec<CertificateDer<'static>>>,
    /// Version of TLS.
    pub version: Option<ProtocolVersion>,
    /// True if an earlier session was resumed.
    pub resumed: bool,
}

/// Configuration from which quinn-proto starts the session of each connection.
pub(crate) struct SelectingConfig {
    /// `None` once the connection has its configuration. The transport keeps this value for the life of the connection,
    /// and a selector in it would keep the sites of an earlier configuration in memory.
    selector: Mutex<Option<Arc<dyn SelectConfig>>>,
    /// Local address that the client sent to, if known.
    local: Option<IpAddr>,
    /// Creates the keys of Initial packets and the tags of Retry packets, which depend only on the QUIC version.
    base: Arc<QuicServerConfig>,
}

impl SelectingConfig {
    /// Creates the configuration of an endpoint. Fails if the provider lacks AES-128-GCM, with which Initial packets
    /// are encrypted.
    pub fn new(selector: Arc<dyn SelectConfig>) -> io::Result<SelectingConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let base = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
        let base = QuicServerConfig::try_from(base).map_err(io::Error::other)?;
        Ok(SelectingConfig {
            selector: Mutex::new(Some(selector)),
            local: None,
            base: Arc::new(base),
        })
    }

    fn selector(&self) -> MutexGuard<'_, Option<Arc<dyn SelectConfig>>> {
        self.selector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the configuration for a connection to this local address.
    pub fn at(&self, local: Option<IpAddr>) -> SelectingConfig {
        SelectingConfig {
            selector: Mutex::new(self.selector().clone()),
            local,
            base: Arc::clone(&self.base),
        }
    }
}

impl crypto::ServerConfig for SelectingConfig {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.base.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.base.retry_tag(version, id, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn crypto::Session> {
        let mut parameters = Vec::new();
        params.write(&mut parameters);
        Box::new(Session {
            // Always version 1, because no other is configured.
            version,
            config: self,
            stage: Stage::ClientHello {
                received: Vec::new(),
                parameters,
            },
            is_announced: false,
        })
    }
}

/// TLS session of a connection.
struct Session {
    version: u32,
    config: Arc<SelectingConfig>,
    stage: Stage,
    /// True if the properties of the handshake have been announced to the connection.
    is_announced: bool,
}

enum Stage {
    /// Waits for the complete ClientHello. `parameters` contains the encoded transport parameters of the server.
    ClientHello { received: Vec<u8>, parameters: Vec<u8> },
    /// The configuration was chosen.
    Selected(Box<Selected>),
    /// The handshake is complete, and its last message was sent. The state of the handshake was dropped, because it
    /// occupies about 6 KiB.
    Established(Box<Established>),
    /// The ClientHello was rejected, or no configuration could be chosen for it. The connection closes.
    Failed,
}

/// Handshake whose configuration was chosen.
struct Selected {
    tls: ServerConnection,
    /// Value for [`HandshakeInfo::context`].
    context: Arc<dyn Any + Send + Sync>,
    /// Secrets of the next key update (RFC 9001 §6); `None` before the keys for 1-RTT packets exist.
    next_secrets: Option<Secrets>,
}

/// Remains of a complete handshake.
struct Established {
    info: HandshakeInfo,
    /// Secrets of the next key update (RFC 9001 §6).
    next_secrets: Option<Secrets>,
}

impl Selected {
    fn info(&self) -> HandshakeInfo {
        let Selected { tls, context, .. } = self;
        HandshakeInfo {
            context: Arc::clone(context),
            alpn: tls.alpn_protocol().map(<[u8]>::to_vec),
            server_name: tls.server_name().map(str::to_owned),
            suite: tls.negotiated_cipher_suite(),
            peer: tls
                .peer_certificates()
                .map(|chain| chain.iter().map(|one| one.clone().into_owned()).collect()),
            version: tls.protocol_version(),
            resumed: tls.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

impl Session {
    /// Returns the handshake if its configuration was chosen and its state has not been dropped.
    fn selected(&self) -> Option<&Selected> {
        match &self.stage {
            Stage::Selected(selected) => Some(selected),
            Stage::ClientHello { .. } | Stage::Established(_) | Stage::Failed => None,
        }
    }

    /// Drops the state of a handshake that is complete and whose messages were all sent.
    fn drop_handshake(&mut self) {
        if let Stage::Selected(selected) = &mut self.stage
            && !selected.tls.is_handshaking()
        {
            let (info, next_secrets) = (selected.info(), selected.next_secrets.take());
            self.stage = Stage::Established(Box::new(Established { info, next_secrets }));
        }
    }

    /// Adds handshake bytes until the ClientHello is complete, then chooses the configuration.
    fn receive_hello(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        let Stage::ClientHello { received, .. } = &mut self.stage else {
            return Ok(());
        };
        if received.len() + bytes.len() > MAX_CLIENT_HELLO {
            return Err(alert(DECODE_ERROR, "the ClientHello is too large"));
        }
        received.extend_from_slice(bytes);
        // The ClientHello is parsed once, when it is complete. Otherwise a ClientHello in pieces of one byte would be
        // parsed again for each piece. It begins with a type of one byte and a length of three bytes (RFC 8446 §4).
        let Some(&[_, high, middle, low]) = received.first_chunk::<4>() else {
            return Ok(());
        };
        let length = 4 + u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > MAX_CLIENT_HELLO {
            return Err(alert(DECODE_ERROR, "the ClientHello is too large"));
        }
        if received.len() < length {
            return Ok(());
        }
        let mut acceptor = Acceptor::default();
        let mut records = &as_records(received)[..];
        while !records.is_empty() {
            acceptor
                .read_tls(&mut records)
                .map_err(|_| alert(DECODE_ERROR, "the ClientHello is too large"))?;
        }
        let accepted = acceptor.accept().map_err(|(error, _)| invalid_hello(&error))?;
        // Always present, because the ClientHello is complete.
        let Some(accepted) = accepted else {
            return Ok(());
        };
        let selector = self.config.selector().take();
        let chosen = selector.and_then(|selector| selector.select(&accepted.client_hello(), self.config.local));
        let SelectedConfig { config, context } =
            chosen.ok_or_else(|| alert(UNRECOGNIZED_NAME, "no certificate for this name"))?;
        let Stage::ClientHello { received, parameters } = mem::replace(&mut self.stage, Stage::Failed) else {
            return Ok(());
        };
        let mut tls = ServerConnection::new(config, Version::V1, parameters)
            .map_err(|error| alert(INTERNAL_ERROR, &error.to_string()))?;
        read_handshake(&mut tls, &received)?;
        self.stage = Stage::Selected(Box::new(Selected {
            tls,
            context,
            next_secrets: None,
        }));
        Ok(())
    }
}

/// Passes handshake bytes to rustls. An error becomes the alert that rustls selects.
fn read_handshake(tls: &mut ServerConnection, bytes: &[u8]) -> Result<(), TransportError> {
    tls.read_hs(bytes).map_err(|error| {
        let code = tls.alert().map_or(INTERNAL_ERROR, u8::from);
        alert(code, &error.to_string())
    })
}

/// Wraps handshake bytes into TLS records. QUIC has no records, but the parser of rustls expects them.
fn as_records(handshake: &[u8]) -> Vec<u8> {
    const HANDSHAKE: u8 = 22;
    // A ClientHello fills at most two records, each of which has a header of five bytes.
    let mut records = Vec::with_capacity(handshake.len() + 2 * 5);
    for payload in handshake.chunks(MAX_RECORD) {
        // Type and legacy version of the record, which is 0x0303 (RFC 8446 §5.1).
        records.extend_from_slice(&[HANDSHAKE, 3, 3]);
        records.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        records.extend_from_slice(payload);
    }
    records
}

/// Returns the error that closes the connection with a TLS alert.
fn alert(code: u8, reason: &str) -> TransportError {
    TransportError {
        code: TransportErrorCode::crypto(code),
        frame: None,
        reason: reason.to_owned(),
    }
}

#[cold]
fn invalid_hello(error: &rustls::Error) -> TransportError {
    alert(DECODE_ERROR, &error.to_string())
}

impl crypto::Session for Session {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        debug_assert_eq!(side, Side::Server);
        let keys = crypto::ServerConfig::initial_keys(&*self.config, self.version, id);
        keys.unwrap_or_else(|_| unreachable!("quinn-proto starts sessions of supported versions only"))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let info = match &self.stage {
            Stage::Selected(selected) => selected.info(),
            Stage::Established(established) => established.info.clone(),
            Stage::ClientHello { .. } | Stage::Failed => return None,
        };
        Some(Box::new(info))
    }

    /// Returns `None`, because [`HandshakeInfo::peer`] contains the certificates of the client.
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.selected()?.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    /// Returns `None`, because `quinn-proto` uses the value only on the side of a client.
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match &self.stage {
            Stage::Selected(selected) => selected.tls.is_handshaking(),
            Stage::Established(_) => false,
            Stage::ClientHello { .. } | Stage::Failed => true,
        }
    }

    /// Returns true once, when `handshake_data` has a value for the first time.
    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        match &mut self.stage {
            Stage::ClientHello { .. } => {
                let received = self.receive_hello(bytes);
                if received.is_err() {
                    self.stage = Stage::Failed;
                }
                received?;
            }
            Stage::Selected(selected) => read_handshake(&mut selected.tls, bytes)?,
            // A client sends no TLS message after the handshake (RFC 9001 §4.4, §6).
            Stage::Established(_) => return Err(alert(UNEXPECTED_MESSAGE, "a TLS message after the handshake")),
            Stage::Failed => return Ok(false),
        }
        let is_new = !self.is_announced && self.selected().is_some();
        self.is_announced |= is_new;
        Ok(is_new)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(encoded) = self
            .selected()
            .and_then(|selected| selected.tls.quic_transport_parameters())
        else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(
            Side::Server,
            &mut io::Cursor::new(encoded),
        )?))
    }

    /// Appends handshake bytes. Returns keys if the following bytes belong to the next level of encryption.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Stage::Selected(selected) = &mut self.stage else {
            return None;
        };
        let before = out.len();
        let Some(change) = selected.tls.write_hs(out) else {
            if out.len() == before {
                // Nothing is left to send.
                self.drop_handshake();
            }
            return None;
        };
        let keys = match change {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                selected.next_secrets = Some(next);
                keys
            }
        };
        Some(Keys {
            header: KeyPair {
                local: Box::new(keys.local.header),
                remote: Box::new(keys.remote.header),
            },
            packet: KeyPair {
                local: Box::new(keys.local.packet),
                remote: Box::new(keys.remote.packet),
            },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let secrets = match &mut self.stage {
            Stage::Selected(selected) => &mut selected.next_secrets,
            Stage::Established(established) => &mut established.next_secrets,
            Stage::ClientHello { .. } | Stage::Failed => return None,
        };
        let keys = secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    /// Returns false, because only clients receive Retry packets.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    /// Returns an error, because HTTP/3 does not use this function.
    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
