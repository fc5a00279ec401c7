//! Stores of roots: how each is read, and a root is put into it and removed.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A root as it is put into stores.
#[derive(Debug, Clone)]
pub struct RootCertificate {
    /// File of the root, which every user may read.
    pub file: PathBuf,
    pub der: CertificateDer<'static>,
    /// Common name, under which the root stands in lists.
    pub name: String,
}

impl RootCertificate {
    /// Returns a root; `None` if the certificate has no common name, which each of ours has.
    pub fn new(file: PathBuf, der: CertificateDer<'static>) -> Option<RootCertificate> {
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let name = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        Some(RootCertificate { file, der, name })
    }

    /// Returns a name for its file in a folder of roots.
    pub(super) fn file_name(&self, ending: &str) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        };
        format!("{}.{ending}", self.name.chars().map(plain).collect::<String>())
    }
}

/// State of a root in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    NotTrusted,
    /// The store cannot be read, with the reason.
    Unknown(String),
}

/// A place where clients look for roots.
pub trait TrustStore {
    /// Returns the reader of the store: "system", "Chromium", "Firefox".
    fn reader(&self) -> &'static str;

    fn path(&self) -> &Path;

    fn state(&self, root: &RootCertificate) -> TrustState;

    fn install(&self, root: &RootCertificate) -> Result<(), TrustError>;

    /// Removes the root; without effect where it is absent.
    fn remove(&self, root: &RootCertificate) -> Result<(), TrustError>;
}

/// The reason why a store could not be changed or read, with the help for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustError(pub String);

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TrustError {}
