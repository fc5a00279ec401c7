//! Builds the rustls client configurations for upstreams: trusted authorities, client certificate, and HTTP version.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rocknet_config::model::{CertificateFiles, UpstreamTls};
use rustls::crypto::aws_lc_rs;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;

use rocknet_certificates::{Certificate, HTTP_2, files, read_roots};

use crate::accept_any_certificate::AcceptAnyCertificate;

/// Configuration for TLS handshakes with upstreams. It contains the session cache, so that later connections resume
/// sessions.
pub struct TlsClientConfig {
    /// Configuration in the form that rustls uses.
    pub config: Arc<ClientConfig>,
    /// Identifies the configuration within a server.
    pub id: u32,
}

/// Properties that identify a configuration. The contents of files are compared, not their names.
#[derive(PartialEq)]
struct TlsConfigKey {
    trust: Trust,
    /// Client certificate with its chain; empty if there is no client certificate.
    client_certificate: Vec<CertificateDer<'static>>,
    http2: bool,
}

/// Server certificates that are accepted.
#[derive(PartialEq)]
enum Trust {
    /// Certificates issued by an authority that the system trusts.
    System,
    /// Certificates issued by one of these authorities.
    Roots(Vec<CertificateDer<'static>>),
    /// All certificates, without verification.
    AnyCertificate,
}

/// TLS client configurations of one server.
#[derive(Default)]
pub struct TlsClientConfigs {
    /// Configurations that some upstream uses.
    all: Mutex<Vec<(TlsConfigKey, Weak<TlsClientConfig>)>>,
    /// Id of the next configuration.
    ids: AtomicU32,
}

impl TlsClientConfigs {
    /// Returns the configuration for these settings. Upstreams with the same settings share it. `http2`: true to offer
    /// HTTP/2, false to offer HTTP/1.1.
    ///
    /// The system's certificate store is read for each new configuration that needs it.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if a file cannot be used, or if the system has no certificate authority.
    pub fn get(&self, model: &UpstreamTls, http2: bool) -> Result<Arc<TlsClientConfig>, String> {
        let trust = match (model.verify, &model.ca[..]) {
            (false, _) => Trust::AnyCertificate,
            (true, []) => Trust::System,
            (true, paths) => {
                let mut all = Vec::new();
                for path in paths {
                    all.extend(read_roots(path).map_err(|error| format!("`ca`: {error}"))?);
                }
                Trust::Roots(all)
            }
        };
        let certificate = model.client.as_ref().map(|(cert, key)| {
            let files = CertificateFiles {
                cert: cert.clone(),
                key: key.clone(),
                ocsp: None,
            };
            files::load(&files).map_err(|error| format!("`cert`: {error}"))
        });
        let certificate = certificate.transpose()?;
        let key = TlsConfigKey {
            trust,
            client_certificate: certificate
                .as_ref()
                .map(|certificate| certificate.key().cert.clone())
                .unwrap_or_default(),
            http2,
        };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let existing = all.iter().find(|(other, _)| *other == key);
        if let Some(shared) = existing.and_then(|(_, shared)| shared.upgrade()) {
            return Ok(shared);
        }
        all.retain(|(_, shared)| shared.strong_count() > 0);
        let shared = Arc::new(TlsClientConfig {
            config: Arc::new(config(&key, certificate.as_ref())?),
            id: self.ids.fetch_add(1, Ordering::Relaxed),
        });
        all.push((key, Arc::downgrade(&shared)));
        Ok(shared)
    }
}

/// Builds the configuration with these properties. `certificate`: client certificate with its private key.
fn config(key: &TlsConfigKey, certificate: Option<&Certificate>) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?;
    let builder = match &key.trust {
        Trust::System => builder.with_root_certificates(system_roots()?),
        Trust::Roots(all) => {
            let mut store = RootCertStore::empty();
            for root in all {
                store.add(root.clone()).map_err(|error| format!("`ca`: {error}"))?;
            }
            if store.is_empty() {
                return Err("`ca` contains no certificate, so no server could be verified".to_owned());
            }
            builder.with_root_certificates(store)
        }
        Trust::AnyCertificate => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate::new(&provider))),
    };
    let mut config = match certificate {
        Some(certificate) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(certificate.key()))))
        }
        None => builder.with_no_client_auth(),
    };
    // Only one protocol is offered, because each protocol has its own pool, which is selected before there is a
    // connection.
    config.alpn_protocols = vec![if key.http2 {
        HTTP_2.to_vec()
    } else {
        b"http/1.1".to_vec()
    }];
    Ok(config)
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    // Old roots that cannot be parsed are skipped, so that they do not disable the others.
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found
            .errors
            .first()
            .map(|error| format!(" ({error})"))
            .unwrap_or_default();
        return Err(format!(
            "the system has no usable certificate authority{why}: install its list (Debian: ca-certificates), or name \
             one with `ca`"
        ));
    }
    Ok(store)
}
