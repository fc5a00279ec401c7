//! Who trusts the local CA: stores of roots of the system and of browsers, into which it is put and looked for.
//!
//! Nothing is taken on a tool's word: after each change the store itself is read.

mod command;
mod home;
mod nss;
mod system;

use std::fmt;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

pub use command::Tools;
pub use home::Home;
pub use nss::Nss;
pub use system::System;

/// A root as it is put into stores.
#[derive(Debug, Clone)]
pub struct Root {
    /// The file it lies in, readable by everybody.
    pub file: PathBuf,
    pub der: CertificateDer<'static>,
    /// Its own common name, under which people find it in lists.
    pub name: String,
}

impl Root {
    /// None if the certificate says no name of itself: none of ours.
    pub fn new(file: PathBuf, der: CertificateDer<'static>) -> Option<Root> {
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let name = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        Some(Root { file, der, name })
    }

    /// The name of a file for it among those of others.
    fn file_name(&self, ending: &str) -> String {
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

/// What was found in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Trusted,
    NotTrusted,
    /// It cannot be looked at, and why.
    Unknown(String),
}

/// A place where clients look for roots.
pub trait TrustStore {
    /// Who reads it: "system", "Chromium", "Firefox".
    fn reader(&self) -> &'static str;

    fn path(&self) -> &Path;

    fn look(&self, root: &Root) -> Found;

    fn install(&self, root: &Root) -> Result<(), Trouble>;

    /// Takes the root out; one that is not there is out.
    fn remove(&self, root: &Root) -> Result<(), Trouble>;
}

/// Why a store could not be changed or read, in words that say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

/// The store of this system, if it has one that we know.
pub fn system_store(tools: &Tools) -> Option<Box<dyn TrustStore>> {
    let system = System::find(Path::new("/"), tools)?;
    Some(Box::new(system))
}

/// The stores of this person's browsers.
pub fn browser_stores(home: &Home, tools: &Tools) -> Vec<Box<dyn TrustStore>> {
    let all = Nss::find_all(home, tools).into_iter();
    all.map(|store| Box::new(store) as Box<dyn TrustStore>).collect()
}
