//! Stored ACME state of a name: the certificate with its key in one item, the order in progress, and recent failures.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

use crate::storage::{Access, Storage, file_name};
use crate::{Certificate, CertificateError, CertificateSet};

/// A certificate as it is served and stored.
#[derive(Clone)]
pub struct StoredCertificate {
    pub certificate: Certificate,
    /// DER of the leaf, which identifies the certificate to its CA.
    pub leaf: CertificateDer<'static>,
}

/// An order that is not yet fulfilled. A process that starts after a crash resumes it.
#[derive(Serialize, Deserialize)]
pub struct PendingOrder {
    /// Directory URL of the CA.
    pub ca: String,
    /// URL of the order.
    pub url: String,
    /// Private key of the certificate, in PEM.
    pub key_pem: String,
}

/// Failures of a name, stored so that frequent restarts do not exceed the CA's rate limits.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct FailureRecord {
    /// Consecutive failures.
    pub count: u32,
    /// Time of the next attempt, in seconds since 1970.
    pub next_try: u64,
    /// Last error; empty if there was no failure.
    pub last: String,
}

/// The reason why a stored certificate cannot be used, or why a certificate or order cannot be saved.
#[derive(Debug)]
pub enum StoredCertificateError {
    Storage(io::Error),
    Pem(rustls_pki_types::pem::Error),
    /// The certificate or its key cannot be used, or they do not belong together.
    Unusable(CertificateError),
    /// The certificate does not cover the name.
    OtherName,
}

impl StoredCertificate {
    /// Parses a key and a chain in PEM, whichever comes first, and checks that the certificate covers `name`.
    ///
    /// # Errors
    /// Returns the reason why the certificate cannot be used.
    pub fn parse(name: &str, pem: &[u8]) -> Result<StoredCertificate, StoredCertificateError> {
        let mut chain = Vec::new();
        for item in CertificateDer::pem_slice_iter(pem) {
            chain.push(item.map_err(StoredCertificateError::Pem)?);
        }
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(StoredCertificateError::Pem)?;
        let leaf = chain
            .first()
            .cloned()
            .ok_or(StoredCertificateError::Unusable(CertificateError::NoCertificate))?;
        let certificate = Certificate::new(chain, &key).map_err(StoredCertificateError::Unusable)?;
        if !certificate.names().iter().any(|own| own == name) {
            return Err(StoredCertificateError::OtherName);
        }
        Ok(StoredCertificate { certificate, leaf })
    }

    /// Loads the certificate of a name; `None` if no certificate is stored.
    ///
    /// # Errors
    /// Returns the reason why the certificate cannot be used.
    pub fn load(storage: &dyn Storage, name: &str) -> Result<Option<StoredCertificate>, StoredCertificateError> {
        match storage
            .read(&certificate_item(name))
            .map_err(StoredCertificateError::Storage)?
        {
            Some(pem) => StoredCertificate::parse(name, &pem).map(Some),
            None => Ok(None),
        }
    }

    /// Checks a certificate from a CA, saves it, and returns it ready for use.
    ///
    /// # Errors
    /// Returns the reason why the certificate cannot be used or saved.
    pub fn save(
        storage: &dyn Storage,
        name: &str,
        key_pem: &str,
        chain_pem: &str,
    ) -> Result<StoredCertificate, StoredCertificateError> {
        let pem = format!("{key_pem}\n{chain_pem}");
        let record = StoredCertificate::parse(name, pem.as_bytes())?;
        // Key and chain are one item, so that no crash can combine one certificate's key with another's chain.
        storage
            .write(&certificate_item(name), pem.as_bytes(), Access::Owner)
            .map_err(StoredCertificateError::Storage)?;
        Ok(record)
    }

    /// Returns the certificate as a set.
    pub fn certificate_set(&self) -> CertificateSet {
        CertificateSet::from(self.certificate.clone())
    }
}

impl PendingOrder {
    /// Loads the order of a name; `None` if no order is stored or it cannot be parsed.
    pub fn load(storage: &dyn Storage, name: &str) -> Option<PendingOrder> {
        let bytes = storage.read(&pending_item(name)).ok().flatten()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Saves the order.
    ///
    /// # Errors
    /// Returns the error of the storage.
    pub fn save(&self, storage: &dyn Storage, name: &str) -> Result<(), StoredCertificateError> {
        let bytes = serde_json::to_vec(self).map_err(|error| StoredCertificateError::Storage(error.into()))?;
        storage
            .write(&pending_item(name), &bytes, Access::Owner)
            .map_err(StoredCertificateError::Storage)
    }

    /// Removes the order. Errors are ignored, because the next attempt queries the state of the order from the CA.
    pub fn remove(storage: &dyn Storage, name: &str) {
        let _ = storage.remove(&pending_item(name));
    }
}

impl FailureRecord {
    /// Loads the failures of a name; the default if no readable record is stored.
    pub fn load(storage: &dyn Storage, name: &str) -> FailureRecord {
        let bytes = storage.read(&failures_item(name)).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Saves the failures, or removes the stored record if there were no failures. Errors are ignored, because they
    /// lose only the record of a failure.
    pub fn save(&self, storage: &dyn Storage, name: &str) {
        if self.last.is_empty() {
            let _ = storage.remove(&failures_item(name));
        } else if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = storage.write(&failures_item(name), &bytes, Access::Owner);
        }
    }

    /// Returns the time of the next attempt. The time is limited to the year 2106, so that a corrupt record causes no
    /// overflow.
    pub fn next_try(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.next_try.min(u64::from(u32::MAX)))
    }
}

/// Returns the host names that have a stored certificate. Wildcards and addresses are left out. Their item names begin
/// with `+`: `+.example.com.pem` for `*.example.com`, and `+192.0.2.1.pem` for an address.
pub fn stored_host_names(storage: &dyn Storage) -> Vec<String> {
    let mut names = storage.names(FOLDER).unwrap_or_default();
    names.retain(|name| name.ends_with(".pem") && !name.starts_with('+'));
    names
        .iter()
        .filter_map(|name| name.strip_suffix(".pem"))
        .map(str::to_owned)
        .collect()
}

/// Folder of the items that contain certificates.
const FOLDER: &str = "acme/certificates";

fn certificate_item(name: &str) -> String {
    format!("{FOLDER}/{}.pem", file_name(name))
}

fn pending_item(name: &str) -> String {
    format!("acme/orders/{}.json", file_name(name))
}

fn failures_item(name: &str) -> String {
    format!("acme/failures/{}.json", file_name(name))
}

impl std::fmt::Display for StoredCertificateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoredCertificateError::Storage(error) => write!(f, "the state folder cannot be read or written: {error}"),
            StoredCertificateError::Pem(error) => write!(f, "the certificate or its key cannot be parsed: {error}"),
            StoredCertificateError::Unusable(error) => error.fmt(f),
            StoredCertificateError::OtherName => f.write_str("the certificate is for other names"),
        }
    }
}

impl std::error::Error for StoredCertificateError {}
