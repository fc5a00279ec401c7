//! Builds the rustls configurations of sites. Sites with the same client authentication share session ticket keys.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::aws_lc_rs::digest;
use rocknet_config::model::{ClientAuth, Mode, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{KeyLog, KeyLogFile, NoKeyLog, RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

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

/// Client authentication of a site: whether a client certificate is required, and the accepted root certificates.
///
/// Values are compared by content. Resuming a session skips the client authentication, so a ticket must be valid only
/// for sites that accept the verification made in its handshake.
type ClientAuthRoots = (bool, Vec<CertificateDer<'static>>);

/// Builds TLS configurations. All workers, and all sites with the same client authentication, share ticket keys.
pub struct TlsConfigBuilder {
    provider: Arc<CryptoProvider>,
    ticket_secrets: Arc<TicketSecrets>,
    /// Ticket ciphers by client authentication; the key `None` is for sites without client authentication.
    tickets: Mutex<HashMap<Option<ClientAuthRoots>, Arc<TicketCipher>>>,
    /// Writer of the secrets of handshakes, opened once for the file that [`KEY_LOG_VARIABLE`] names.
    key_log: OnceLock<Arc<dyn KeyLog>>,
}

/// Environment variable with the file to which a server in `dev` mode appends the secrets of its TLS connections, in
/// the format that Wireshark reads (RFC 9850).
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";

impl TlsConfigBuilder {
    /// Creates a builder. `secrets`: the secrets of ticket keys.
    pub fn new(secrets: TicketSecrets) -> TlsConfigBuilder {
        TlsConfigBuilder {
            provider: Arc::new(aws_lc_rs::default_provider()),
            ticket_secrets: Arc::new(secrets),
            tickets: Mutex::default(),
            key_log: OnceLock::new(),
        }
    }

    /// Builds a configuration without a certificate. In `dev` mode, the secrets of its connections are written to the
    /// file that the variable `SSLKEYLOGFILE` names.
    ///
    /// # Errors
    /// Describes for the operator why the configuration cannot be built.
    pub fn build(&self, min: TlsVersion, client: Option<&ClientAuth>, mode: Mode) -> Result<ServerConfig, String> {
        let versions: &[_] = match min {
            TlsVersion::V12 => &[&TLS13, &TLS12],
            TlsVersion::V13 => &[&TLS13],
        };
        let describe = |error: rustls::Error| error.to_string();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)
            .map_err(describe)?;
        let roots = client
            .map(|client| Ok::<ClientAuthRoots, String>((client.required, read_all_roots(&client.ca)?)))
            .transpose()?;
        let builder = match &roots {
            None => builder.with_no_client_auth(),
            Some(roots) => builder.with_client_cert_verifier(self.verifier(roots)?),
        };
        let mut config = builder.with_cert_resolver(Arc::new(NoCertificate));
        config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        // Clients store the session state in tickets, so server memory does not grow with the number of clients.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = self.tickets(roots);
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
        let mut config = self.build(TlsVersion::V12, None, Mode::Prod)?;
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn verifier(&self, (required, roots): &ClientAuthRoots) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store
                .add(root.clone())
                .map_err(|error| format!("`client_ca`: {error}"))?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(&self.provider));
        let builder = if *required {
            builder
        } else {
            builder.allow_unauthenticated()
        };
        builder.build().map_err(|error| format!("`client_ca`: {error}"))
    }

    /// Returns the ticket cipher for this client authentication, and creates it on the first call.
    fn tickets(&self, roots: Option<ClientAuthRoots>) -> Arc<TicketCipher> {
        let mut all = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let cipher = all.entry(roots).or_insert_with_key(|roots| {
            let context = ticket_context(roots.as_ref());
            Arc::new(TicketCipher::new(Arc::clone(&self.ticket_secrets), context))
        });
        Arc::clone(cipher)
    }

    /// Returns the secrets of ticket keys.
    pub fn ticket_secrets(&self) -> &TicketSecrets {
        &self.ticket_secrets
    }
}

/// Returns the context of the tickets of sites with this client authentication. It is the same in every process that
/// reads the same certificates.
fn ticket_context(roots: Option<&ClientAuthRoots>) -> Vec<u8> {
    let Some((required, roots)) = roots else {
        return b"no client authentication".to_vec();
    };
    let mut context = match required {
        true => b"client certificate".to_vec(),
        false => b"optional client certificate".to_vec(),
    };
    for root in roots {
        // Hashes have a fixed length, so that different lists have different contexts.
        context.extend_from_slice(digest::digest(&digest::SHA256, root).as_ref());
    }
    context
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

/// Reads the root certificates of PEM files, of client authentication or of upstreams. Fails if a certificate cannot be
/// a root, or if there is no certificate.
pub(super) fn read_all_roots(files: &[PathBuf]) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut store = RootCertStore::empty();
    let mut roots = Vec::new();
    for path in files {
        for root in read_roots(path)? {
            store
                .add(root.clone())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            roots.push(root);
        }
    }
    if roots.is_empty() {
        let names = files.iter().map(|path| path.display().to_string());
        return Err(format!(
            "{}: contains no certificate",
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(roots)
}

/// Reads all certificates of a PEM file.
///
/// # Errors
/// Names the file and the reason why it cannot be read.
pub fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = super::pem::read(path).map_err(|error| describe(&error))?;
    CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| describe(&error))
}

/// Placeholder that [`super::SecureSite`] replaces with its certificates.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}
