//! A site under TLS: which certificates it shows, and whom it trusts.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rocknet_config::model::{self, CertificateFiles, ClientAuth, TlsVersion};
use rustls::{ProtocolVersion, ServerConfig};

use super::files::FileSet;
use super::{KeySet, Shelf};

pub struct SecureSite {
    source: Source,
    /// Everything but the certificates, or why no connection can be secured: what clients must prove cannot be checked.
    settings: Result<Arc<ServerConfig>, String>,
    /// The last set that was asked for, with the configuration made for it: mostly there is only one.
    ready: ArcSwapOption<(Arc<KeySet>, Arc<ServerConfig>)>,
    pub trust: Arc<Trust>,
}

/// Where the certificates come from.
pub enum Source {
    Files(Arc<FileSet>),
    /// From the shelf; the first of the site's names stands in where a client says none.
    Shelf {
        first: String,
    },
}

/// What a connection was told, and what it has proved.
#[derive(Debug)]
pub struct Trust {
    shown: Shown,
    client: Option<ClientAuth>,
    min: TlsVersion,
}

impl Trust {
    /// Whether what a client saw and proved here is what it would have seen and proved there.
    pub fn is_worth(&self, other: &Trust) -> bool {
        self.shown == other.shown && self.client == other.client
    }

    /// Whether clients have to show a certificate.
    pub fn demands_client(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.required)
    }

    pub fn takes(&self, version: Option<ProtocolVersion>) -> bool {
        self.min == TlsVersion::V12 || version == Some(ProtocolVersion::TLSv1_3)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Files(Vec<CertificateFiles>),
    /// The site's own, from an issuer.
    Site(String),
}

impl SecureSite {
    pub fn new(
        site: &model::Site,
        tls: &model::SiteTls,
        source: Source,
        settings: Result<Arc<ServerConfig>, String>,
    ) -> SecureSite {
        let shown = match &tls.source {
            model::CertificateSource::Files(files) => Shown::Files(files.clone()),
            _ => Shown::Site(site.name.clone()),
        };
        SecureSite {
            source,
            settings,
            ready: ArcSwapOption::empty(),
            trust: Arc::new(Trust {
                shown,
                client: tls.client.clone(),
                min: tls.min,
            }),
        }
    }

    /// The configuration for a handshake; `name`: the client's SNI in lower case, if it is a name of this site. `None`:
    /// there is no certificate.
    pub fn settings(&self, shelf: &Shelf, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        let settings = self.settings.as_ref().ok()?;
        let set = self.set(shelf, name)?;
        if let Some(ready) = &*self.ready.load()
            && Arc::ptr_eq(&ready.0, &set)
        {
            return Some(Arc::clone(&ready.1));
        }
        let mut settings = ServerConfig::clone(settings);
        settings.cert_resolver = Arc::<KeySet>::clone(&set);
        let settings = Arc::new(settings);
        self.ready.store(Some(Arc::new((set, Arc::clone(&settings)))));
        Some(settings)
    }

    /// Whether there is any certificate to show.
    pub fn has_certificate(&self, shelf: &Shelf) -> bool {
        let has_set = match &self.source {
            Source::Files(files) => files.set().is_some(),
            Source::Shelf { first } => shelf.find(first).is_some(),
        };
        has_set && self.settings.is_ok()
    }

    /// What keeps the site from being served under TLS with the files as they are now.
    pub fn error(&self) -> Option<String> {
        if let Err(error) = &self.settings {
            return Some(error.clone());
        }
        match &self.source {
            Source::Files(files) => files.error(),
            Source::Shelf { .. } => None,
        }
    }

    /// Whether no handshake can succeed until its files are mended.
    pub fn is_dark(&self) -> bool {
        let has_set = match &self.source {
            Source::Files(files) => files.set().is_some(),
            Source::Shelf { .. } => true,
        };
        !has_set || self.settings.is_err()
    }

    fn set(&self, shelf: &Shelf, name: Option<&str>) -> Option<Arc<KeySet>> {
        let first = match &self.source {
            Source::Files(files) => return files.set(),
            Source::Shelf { first } => first,
        };
        let own = name.and_then(|name| {
            shelf.find(name).or_else(|| {
                shelf.is_missing(name);
                // An issuer of this machine has made one by now.
                shelf.find(name)
            })
        });
        own.or_else(|| shelf.find(first))
    }
}
