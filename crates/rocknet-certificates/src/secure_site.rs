//! The TLS side of a site: its certificates, its TLS configuration, and its client authentication.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rocknet_config::model::{self, CertificateFiles, ClientAuth, TlsVersion};
use rustls::server::ProducesTickets;
use rustls::{ProtocolVersion, ServerConfig};

use super::client_trust::ClientTrust;
use super::files::FileSet;
use super::resumption::SessionStore;
use super::tls_config::versions;
use super::{Certificate, CertificateSet, CertificateStore, HQ_INTEROP, HTTP_3};

/// A site that is served over TLS.
pub struct SecureSite {
    certificates: SiteCertificates,
    /// TLS configuration without certificates and client authentication, or the reason why it cannot be built.
    config: Result<Arc<ServerConfig>, String>,
    /// The last certificate set with the configurations built for it. Most sites have only one set.
    ready: ArcSwapOption<ReadyConfigs>,
    /// Parameters that decide which other sites a connection may serve.
    pub policy: Arc<TlsPolicy>,
    /// Sessions of the site, if it accepts early data over QUIC.
    early_data: Option<Arc<SessionStore>>,
    /// True if the site also offers [`HQ_INTEROP`] over QUIC.
    hq_interop: bool,
}

/// Configurations for one certificate set.
struct ReadyConfigs {
    set: Arc<CertificateSet>,
    tcp: Arc<ServerConfig>,
    quic: Arc<ServerConfig>,
}

/// Source of a site's certificates.
pub enum SiteCertificates {
    /// Files named in the configuration.
    Files(Arc<FileSet>),
    /// An issuer. `default_name` is the first name of the site. It is looked up if a client sends no SNI, or sends a
    /// name without a certificate.
    Issued { default_name: String },
}

/// The TLS parameters of a site that decide whether a connection may also carry requests to another site: the
/// certificate shown, the client authentication, and the minimum TLS version.
#[derive(Debug)]
pub struct TlsPolicy {
    shown: ShownCertificate,
    client: Option<ClientPolicy>,
    min: TlsVersion,
}

/// Client authentication of a site.
#[derive(Debug)]
struct ClientPolicy {
    auth: ClientAuth,
    trust: Arc<ClientTrust>,
}

impl TlsPolicy {
    /// Returns true if both sites present the same certificate and authenticate clients in the same way. The minimum
    /// version is checked by [`TlsPolicy::accepts`].
    pub fn is_equivalent(&self, other: &TlsPolicy) -> bool {
        self.shown == other.shown && self.client_auth() == other.client_auth()
    }

    fn client_auth(&self) -> Option<&ClientAuth> {
        self.client.as_ref().map(|client| &client.auth)
    }

    /// Returns true if clients must present a certificate.
    pub fn requires_client_certificate(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.auth.required)
    }

    /// Returns the verification of client certificates; `None` if none are requested.
    pub fn client_trust(&self) -> Option<&Arc<ClientTrust>> {
        self.client.as_ref().map(|client| &client.trust)
    }

    /// Returns true if the site accepts this TLS version; `None` counts as TLS 1.2.
    pub fn accepts(&self, version: Option<ProtocolVersion>) -> bool {
        self.min == TlsVersion::V12 || version == Some(ProtocolVersion::TLSv1_3)
    }
}

/// Identifies the certificates that a site presents.
#[derive(Debug, PartialEq, Eq)]
enum ShownCertificate {
    Files(Vec<CertificateFiles>),
    /// Certificates of an issuer, identified by the site's name.
    Site(String),
}

impl SecureSite {
    /// Creates the TLS side of a site. `trust`: verification of client certificates, if the site requests them.
    /// `early_data`: session store of the site, if it accepts early data.
    pub fn new(
        site: &model::Site,
        tls: &model::SiteTls,
        certificates: SiteCertificates,
        config: Result<Arc<ServerConfig>, String>,
        trust: Option<Arc<ClientTrust>>,
        early_data: Option<Arc<SessionStore>>,
    ) -> SecureSite {
        let shown = match &tls.source {
            model::CertificateSource::Files(files) => ShownCertificate::Files(files.clone()),
            _ => ShownCertificate::Site(site.name.clone()),
        };
        SecureSite {
            certificates,
            config,
            ready: ArcSwapOption::empty(),
            policy: Arc::new(TlsPolicy {
                shown,
                client: tls
                    .client
                    .clone()
                    .zip(trust)
                    .map(|(auth, trust)| ClientPolicy { auth, trust }),
                min: tls.min,
            }),
            early_data,
            hq_interop: site.http3.hq_interop,
        }
    }

    /// Returns the configuration for a handshake over TCP. `name` is the client's SNI in lower case if it is a name of
    /// this site. Returns `None` if there is no certificate, the TLS configuration could not be built, or client
    /// certificates cannot be verified.
    pub fn server_config(&self, store: &CertificateStore, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        let ready = self.ready_configs(store, name)?;
        self.with_client_auth(&ready.tcp)
    }

    /// Returns the configuration for a handshake over QUIC. The configuration offers HTTP/3; otherwise the function
    /// works like [`SecureSite::server_config`].
    pub fn quic_config(&self, store: &CertificateStore, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        let ready = self.ready_configs(store, name)?;
        self.with_client_auth(&ready.quic)
    }

    /// Returns the configuration of one handshake: with the request for a client certificate, if the site requests one.
    fn with_client_auth(&self, config: &Arc<ServerConfig>) -> Option<Arc<ServerConfig>> {
        let Some(client) = &self.policy.client else {
            return Some(Arc::clone(config));
        };
        let verification = client.trust.current()?;
        let own = verification.configure(config, versions(self.policy.min), client.auth.required);
        own.map(Arc::new)
    }

    /// Returns true if the TLS configuration was built, and client certificates can be verified if they are requested.
    fn is_configured(&self) -> bool {
        let has_trust = |trust: &Arc<ClientTrust>| trust.current().is_some();
        self.config.is_ok() && self.policy.client_trust().is_none_or(has_trust)
    }

    /// Returns the configurations for a handshake. They are built again if the last handshake used another certificate
    /// set.
    fn ready_configs(&self, store: &CertificateStore, name: Option<&str>) -> Option<Arc<ReadyConfigs>> {
        let config = self.config.as_ref().ok()?;
        let set = self.certificate_set(store, name)?;
        if let Some(ready) = &*self.ready.load()
            && Arc::ptr_eq(&ready.set, &set)
        {
            return Some(Arc::clone(ready));
        }
        let mut tcp = ServerConfig::clone(config);
        tcp.cert_resolver = Arc::<CertificateSet>::clone(&set);
        let mut quic = tcp.clone();
        quic.alpn_protocols = vec![HTTP_3.to_vec()];
        if self.hq_interop {
            quic.alpn_protocols.push(HQ_INTEROP.to_vec());
        }
        if let Some(sessions) = &self.early_data {
            accept_early_data(&mut quic, sessions);
        }
        let ready = Arc::new(ReadyConfigs {
            set,
            tcp: Arc::new(tcp),
            quic: Arc::new(quic),
        });
        self.ready.store(Some(Arc::clone(&ready)));
        Some(ready)
    }

    /// Returns true if handshakes can succeed, at least for the site's default name.
    pub fn has_certificate(&self, store: &CertificateStore) -> bool {
        let has_set = match &self.certificates {
            SiteCertificates::Files(files) => files.certificate_set().is_some(),
            SiteCertificates::Issued { default_name } => store.find(default_name).is_some(),
        };
        has_set && self.is_configured()
    }

    /// Returns the certificates of the site: the certificates in its files, or the certificates issued for its default
    /// name and for `names`. A certificate for several names is returned once.
    pub fn certificates(&self, store: &CertificateStore, names: &[String]) -> Vec<Certificate> {
        let mut sets: Vec<Arc<CertificateSet>> = Vec::new();
        let found: Vec<_> = match &self.certificates {
            SiteCertificates::Files(files) => files.certificate_set().into_iter().collect(),
            SiteCertificates::Issued { default_name } => {
                let all = std::iter::once(default_name).chain(names);
                all.filter_map(|name| store.find(name)).collect()
            }
        };
        for set in found {
            if !sets.iter().any(|known| Arc::ptr_eq(known, &set)) {
                sets.push(set);
            }
        }
        sets.iter().flat_map(|set| set.certificates().to_vec()).collect()
    }

    /// Returns the first error of the TLS configuration, the client authentication, or the last read of the site's
    /// certificate files. Returns `None` if there is no error.
    pub fn error(&self) -> Option<String> {
        if let Err(error) = &self.config {
            return Some(error.clone());
        }
        if let Some(error) = self.policy.client_trust().and_then(|trust| trust.error()) {
            return Some(error);
        }
        match &self.certificates {
            SiteCertificates::Files(files) => files.error(),
            SiteCertificates::Issued { .. } => None,
        }
    }

    /// Returns true if no handshake can succeed before an error is corrected. In that case, the TLS configuration could
    /// not be built, client certificates cannot be verified, or no read of the certificate files has succeeded. A
    /// certificate that was not issued yet is no error.
    pub fn is_unavailable(&self) -> bool {
        let has_set = match &self.certificates {
            SiteCertificates::Files(files) => files.certificate_set().is_some(),
            SiteCertificates::Issued { .. } => true,
        };
        !has_set || !self.is_configured()
    }

    /// Returns the certificate set for a name. If no certificate was issued for the name, returns the set of the site's
    /// default name, or `None` if that name has no certificate either. For a site with files, returns the set of its
    /// files regardless of the name, or `None` if no read of the files has succeeded.
    fn certificate_set(&self, store: &CertificateStore, name: Option<&str>) -> Option<Arc<CertificateSet>> {
        let default_name = match &self.certificates {
            SiteCertificates::Files(files) => return files.certificate_set(),
            SiteCertificates::Issued { default_name } => default_name,
        };
        let own = name.and_then(|name| {
            store.find(name).or_else(|| {
                store.report_missing(name);
                // The local CA signs a name below a wildcard during the report, so the certificate may exist now.
                store.find(name)
            })
        });
        own.or_else(|| store.find(default_name))
    }
}

/// Accepts early data. Sessions are then stored by the server instead of in tickets. Each session is therefore resumed
/// only once, so that a replay of its early data is rejected (RFC 8446 §8.1).
fn accept_early_data(config: &mut ServerConfig, sessions: &Arc<SessionStore>) {
    // QUIC requires this value, because only flow control limits early data (RFC 9001 §4.6.1).
    config.max_early_data_size = u32::MAX;
    config.session_storage = Arc::<SessionStore>::clone(sessions);
    config.ticketer = Arc::new(NoTickets);
}

/// Ticket encryption that is switched off.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
