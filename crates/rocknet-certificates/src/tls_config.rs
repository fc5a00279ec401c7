//! Builds the rustls configurations of sites. Sites with the same client authentication share session ticket keys.

use std::fs::OpenOptions;
use std::sync::{Arc, OnceLock};

use rocknet_config::model::{ClientAuth, Mode, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::version::{TLS12, TLS13};
use rustls::{KeyLog, KeyLogFile, NoKeyLog, ServerConfig, SupportedProtocolVersion};

use super::client_trust::ClientTrust;
use super::resumption::{TicketCipher, TicketSecrets};

/// ALPN protocols of a site, most preferred first.
pub const PROTOCOLS: &[&[u8]] = &[HTTP_2, b"http/1.1"];
/// ALPN name of HTTP/2 (RFC 9113 §3.2).
pub const HTTP_2: &[u8] = b"h2";
/// ALPN name of HTTP/3, offered only over QUIC (RFC 9114 §3.1).
pub const HTTP_3: &[u8] = b"h3";
/// ALPN name of HTTP/0.9 over QUIC, which test clients use.
pub const HQ_INTEROP: &[u8] = b"hq-interop";
/// ALPN name that a CA offers to validate a TLS-ALPN-01 challenge (RFC 8737 §3).
pub const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// Builds TLS configurations. All workers, and all sites with the same client authentication, share ticket keys.
pub struct TlsConfigBuilder {
    provider: Arc<CryptoProvider>,
    ticket_secrets: Arc<TicketSecrets>,
    /// Ticket cipher of sites without client authentication.
    tickets: Arc<TicketCipher>,
    /// Writes handshake secrets to the file that [`KEY_LOG_VARIABLE`] names. Opened once.
    key_log: OnceLock<Arc<dyn KeyLog>>,
}

/// Environment variable that names a file. In `dev` mode, the server appends the secrets of its TLS connections to the
/// file, in the format that Wireshark reads (RFC 9850).
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";

impl TlsConfigBuilder {
    /// Creates a builder. `secrets`: the secrets of ticket keys.
    pub fn new(secrets: TicketSecrets) -> TlsConfigBuilder {
        let ticket_secrets = Arc::new(secrets);
        let context = b"no client authentication".to_vec();
        TlsConfigBuilder {
            provider: Arc::new(aws_lc_rs::default_provider()),
            tickets: Arc::new(TicketCipher::new(Arc::clone(&ticket_secrets), context)),
            ticket_secrets,
            key_log: OnceLock::new(),
        }
    }

    /// Builds a configuration without a certificate and without client authentication. In `dev` mode, the secrets of
    /// its connections are written to the file that the variable `SSLKEYLOGFILE` names.
    ///
    /// # Errors
    /// Describes for the operator why the configuration cannot be built.
    pub fn build(&self, min: TlsVersion, mode: Mode) -> Result<ServerConfig, String> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions(min))
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(NoCertificate));
        config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        // Clients store the session state in tickets, so server memory does not grow with the number of clients.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Arc::<TicketCipher>::clone(&self.tickets);
        config.max_early_data_size = 0;
        if mode == Mode::Dev {
            config.key_log = Arc::clone(self.key_log.get_or_init(open_key_log));
        }
        Ok(config)
    }

    /// Builds the configuration for TLS-ALPN-01, which negotiates no other protocol.
    ///
    /// # Errors
    /// Describes why the configuration cannot be built.
    pub fn challenge(&self) -> Result<ServerConfig, String> {
        let mut config = self.build(TlsVersion::V12, Mode::Prod)?;
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Reads the authorities and revocation lists of client certificates.
    pub fn client_trust(&self, client: &ClientAuth) -> ClientTrust {
        ClientTrust::new(client, &self.provider, &self.ticket_secrets)
    }

    /// Returns the secrets of ticket keys.
    pub fn ticket_secrets(&self) -> &TicketSecrets {
        &self.ticket_secrets
    }
}

/// Returns the versions from a minimum on, most preferred first.
pub(super) fn versions(min: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    const FROM_TLS12: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
    const FROM_TLS13: &[&SupportedProtocolVersion] = &[&TLS13];
    match min {
        TlsVersion::V12 => FROM_TLS12,
        TlsVersion::V13 => FROM_TLS13,
    }
}

/// Opens the file for secrets, if the variable names one. A new file is readable for the user of the server only.
fn open_key_log() -> Arc<dyn KeyLog> {
    let Some(path) = std::env::var_os(KEY_LOG_VARIABLE) else {
        return Arc::new(NoKeyLog);
    };
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(&path);
    let path = path.display();
    if let Err(error) = opened {
        tracing::error!("SSLKEYLOGFILE is set, but {path} cannot be opened, so no secrets are written: {error}");
        return Arc::new(NoKeyLog);
    }
    tracing::warn!("SSLKEYLOGFILE is set: with {path}, anyone can decrypt the TLS connections of this server");
    // `KeyLogFile` reads the variable itself and opens the file again.
    Arc::new(KeyLogFile::new())
}

/// Placeholder that [`super::SecureSite`] replaces with its certificates.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}
