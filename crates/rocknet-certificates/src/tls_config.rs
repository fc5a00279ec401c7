//! What sites ask of TLS, as configurations of rustls: few, shared by all sites that ask for the same.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rocknet_config::model::{ClientAuth, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets, ResolvesServerCert, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// The protocols above TLS that are spoken, the most wished for first.
pub const PROTOCOLS: &[&[u8]] = &[HTTP_2, b"http/1.1"];
/// RFC 9113 §3.2.
pub const HTTP_2: &[u8] = b"h2";
/// RFC 8737: who offers it wants to see the answer to a challenge.
pub const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// Whose certificates a client may show, by content: a ticket is worth what the handshake before it proved.
type Roots = (bool, Vec<CertificateDer<'static>>);

/// Makes configurations. Keys of tickets are shared by all workers, and by all sites that trust the same.
pub struct TlsConfigBuilder {
    provider: Arc<CryptoProvider>,
    tickets: Mutex<HashMap<Option<Roots>, Arc<dyn ProducesTickets>>>,
}

impl TlsConfigBuilder {
    pub fn new() -> TlsConfigBuilder {
        TlsConfigBuilder {
            provider: Arc::new(aws_lc_rs::default_provider()),
            tickets: Mutex::default(),
        }
    }

    /// A configuration that has everything but a certificate. Told in words for whoever wrote the configuration.
    pub fn build(&self, min: TlsVersion, client: Option<&ClientAuth>) -> Result<ServerConfig, String> {
        let versions: &[_] = match min {
            TlsVersion::V12 => &[&TLS13, &TLS12],
            TlsVersion::V13 => &[&TLS13],
        };
        let describe = |error: rustls::Error| error.to_string();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)
            .map_err(describe)?;
        let roots = client
            .map(|client| Ok::<Roots, String>((client.required, roots(&client.ca)?)))
            .transpose()?;
        let builder = match &roots {
            None => builder.with_no_client_auth(),
            Some(roots) => builder.with_client_cert_verifier(self.verifier(roots)?),
        };
        let mut config = builder.with_cert_resolver(Arc::new(NoCertificate));
        config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        // Sessions are kept by the client, in tickets: nothing here grows with the number of clients.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = self.tickets(roots)?;
        config.max_early_data_size = 0;
        Ok(config)
    }

    /// For the answer to a challenge: nothing but that is spoken.
    pub fn challenge(&self) -> Result<ServerConfig, String> {
        let mut config = self.build(TlsVersion::V12, None)?;
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn verifier(&self, (required, roots): &Roots) -> Result<Arc<dyn ClientCertVerifier>, String> {
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

    fn tickets(&self, roots: Option<Roots>) -> Result<Arc<dyn ProducesTickets>, String> {
        let mut all = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ticketer) = all.get(&roots) {
            return Ok(Arc::clone(ticketer));
        }
        let ticketer = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
        all.insert(roots, Arc::clone(&ticketer));
        Ok(ticketer)
    }
}

impl Default for TlsConfigBuilder {
    fn default() -> TlsConfigBuilder {
        TlsConfigBuilder::new()
    }
}

/// The certificates of authorities that clients are to be vouched for by.
pub(super) fn roots(files: &[PathBuf]) -> Result<Vec<CertificateDer<'static>>, String> {
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
            "{}: there is no certificate in it",
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(roots)
}

/// The certificates of a file.
pub fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = super::pem::read(path).map_err(|error| describe(&error))?;
    CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| describe(&error))
}

/// Stands where a certificate is put in later.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}
