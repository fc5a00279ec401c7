//! A site under TLS: which certificates it shows, and whom it trusts.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rocknet_config::model::{self, CertificateFiles, ClientAuth, TlsVersion};
use rustls::{ProtocolVersion, ServerConfig};

use super::files::FileSet;
use super::{CertificateSet, CertificateStore};

pub struct SecureSite {
    certificates: SiteCertificates,
    /// Everything but the certificates, or why no connection can be secured: what clients must prove cannot be checked.
    config: Result<Arc<ServerConfig>, String>,
    /// The last set that was asked for, with the configuration made for it: mostly there is only one.
    ready: ArcSwapOption<(Arc<CertificateSet>, Arc<ServerConfig>)>,
    pub policy: Arc<TlsPolicy>,
}

/// Where the certificates come from.
pub enum SiteCertificates {
    Files(Arc<FileSet>),
    /// From the store; the first of the site's names stands in where a client says none.
    Issued {
        default_name: String,
    },
}

/// What a connection was told, and what it has proved.
#[derive(Debug)]
pub struct TlsPolicy {
    shown: ShownCertificate,
    client: Option<ClientAuth>,
    min: TlsVersion,
}

impl TlsPolicy {
    /// Whether what a client saw and proved here is what it would have seen and proved there.
    pub fn is_equivalent(&self, other: &TlsPolicy) -> bool {
        self.shown == other.shown && self.client == other.client
    }

    /// Whether clients have to show a certificate.
    pub fn requires_client_certificate(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.required)
    }

    pub fn accepts(&self, version: Option<ProtocolVersion>) -> bool {
        self.min == TlsVersion::V12 || version == Some(ProtocolVersion::TLSv1_3)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ShownCertificate {
    Files(Vec<CertificateFiles>),
    /// The site's own, from an issuer.
    Site(String),
}

impl SecureSite {
    pub fn new(
        site: &model::Site,
        tls: &model::SiteTls,
        certificates: SiteCertificates,
        config: Result<Arc<ServerConfig>, String>,
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
                client: tls.client.clone(),
                min: tls.min,
            }),
        }
    }

    /// The configuration for a handshake; `name`: the client's SNI in lower case, if it is a name of this site. `None`:
    /// there is no certificate.
    pub fn server_config(&self, store: &CertificateStore, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        let config = self.config.as_ref().ok()?;
        let set = self.set(store, name)?;
        if let Some(ready) = &*self.ready.load()
            && Arc::ptr_eq(&ready.0, &set)
        {
            return Some(Arc::clone(&ready.1));
        }
        let mut config = ServerConfig::clone(config);
        config.cert_resolver = Arc::<CertificateSet>::clone(&set);
        let config = Arc::new(config);
        self.ready.store(Some(Arc::new((set, Arc::clone(&config)))));
        Some(config)
    }

    /// Whether there is any certificate to show.
    pub fn has_certificate(&self, store: &CertificateStore) -> bool {
        let has_set = match &self.certificates {
            SiteCertificates::Files(files) => files.set().is_some(),
            SiteCertificates::Issued { default_name } => store.find(default_name).is_some(),
        };
        has_set && self.config.is_ok()
    }

    /// What keeps the site from being served under TLS with the files as they are now.
    pub fn error(&self) -> Option<String> {
        if let Err(error) = &self.config {
            return Some(error.clone());
        }
        match &self.certificates {
            SiteCertificates::Files(files) => files.error(),
            SiteCertificates::Issued { .. } => None,
        }
    }

    /// Whether no handshake can succeed until its files are mended.
    pub fn is_unavailable(&self) -> bool {
        let has_set = match &self.certificates {
            SiteCertificates::Files(files) => files.set().is_some(),
            SiteCertificates::Issued { .. } => true,
        };
        !has_set || self.config.is_err()
    }

    fn set(&self, store: &CertificateStore, name: Option<&str>) -> Option<Arc<CertificateSet>> {
        let default_name = match &self.certificates {
            SiteCertificates::Files(files) => return files.set(),
            SiteCertificates::Issued { default_name } => default_name,
        };
        let own = name.and_then(|name| {
            store.find(name).or_else(|| {
                store.report_missing(name);
                // An issuer of this machine has made one by now.
                store.find(name)
            })
        });
        own.or_else(|| store.find(default_name))
    }
}
