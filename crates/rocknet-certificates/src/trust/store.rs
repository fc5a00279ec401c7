//! Interface of trust stores: reading their state, installing a root certificate, and removing it.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A root certificate to be installed.
#[derive(Debug, Clone)]
pub struct RootCertificate {
    /// File with the certificate, readable by every user.
    pub file: PathBuf,
    /// The certificate in DER.
    pub der: CertificateDer<'static>,
    /// Common name, under which stores list the certificate.
    pub name: String,
}

impl RootCertificate {
    /// Creates a root from its file and DER. Returns `None` if the certificate has no common name; roots of RockNet
    /// always have one.
    pub fn new(file: PathBuf, der: CertificateDer<'static>) -> Option<RootCertificate> {
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let name = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        Some(RootCertificate { file, der, name })
    }

    /// Returns the file name under which a folder of roots stores the certificate.
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

/// The state of a root certificate in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustState {
    /// The store contains the root and trusts it.
    Trusted,
    /// The store does not trust the root.
    NotTrusted,
    /// The store cannot be read; contains the reason.
    Unknown(String),
}

/// A store in which clients look for root certificates.
pub trait TrustStore {
    /// Returns the name of the software that reads the store: "system", "Chromium" or "Firefox".
    fn reader(&self) -> &'static str;

    /// Returns the file or folder of the store.
    fn path(&self) -> &Path;

    /// Returns the state of the root in the store.
    fn state(&self, root: &RootCertificate) -> TrustState;

    /// Installs the root.
    ///
    /// # Errors
    /// Returns the reason why the store cannot be changed or read.
    fn install(&self, root: &RootCertificate) -> Result<(), TrustError>;

    /// Removes the root. Does nothing if it is not installed.
    ///
    /// # Errors
    /// Returns the reason why the store cannot be changed or read.
    fn remove(&self, root: &RootCertificate) -> Result<(), TrustError>;
}

/// The reason why a store cannot be changed or read. Some reasons include advice for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustError(pub String);

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TrustError {}
