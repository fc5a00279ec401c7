//! Stores of roots: how each is read, and a root is put into it and removed.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A root as it is put into stores.
#[derive(Debug, Clone)]
pub struct Root {
    /// File of the root, which every user may read.
    pub file: PathBuf,
    pub der: CertificateDer<'static>,
    /// Common name, under which the root stands in lists.
    pub name: String,
}

impl Root {
    /// Returns a root; `None` if the certificate has no common name, which each of ours has.
    pub fn new(file: PathBuf, der: CertificateDer<'static>) -> Option<Root> {
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let name = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        Some(Root { file, der, name })
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
pub enum Found {
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

    fn look(&self, root: &Root) -> Found;

    fn install(&self, root: &Root) -> Result<(), Trouble>;

    /// Removes the root; without effect where it is absent.
    fn remove(&self, root: &Root) -> Result<(), Trouble>;
}

/// The reason why a store could not be changed or read, with the help for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}
