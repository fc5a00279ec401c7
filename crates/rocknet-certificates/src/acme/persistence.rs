//! What is kept of a name: its certificate with the key in one piece, and an order under way with the key it is for.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

use crate::storage::{Access, Storage, file_name};
use crate::{Certificate, CertificateError, CertificateSet};

/// A certificate as it is served and kept.
#[derive(Clone)]
pub struct StoredCertificate {
    pub certificate: Certificate,
    /// The leaf itself, by which its CA knows it.
    pub leaf: CertificateDer<'static>,
}

/// An order that was placed and not yet fetched: with it a process that was killed is followed by one that goes on.
#[derive(Serialize, Deserialize)]
pub struct PendingOrder {
    /// The directory of the CA.
    pub ca: String,
    pub url: String,
    pub key_pem: String,
}

/// What went wrong with a name, kept so that a server that is started again and again does not wear out its CA.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct FailureRecord {
    pub count: u32,
    /// Seconds since 1970.
    pub next_try: u64,
    /// In the CA's words or ours.
    pub last: String,
}

/// Why a certificate is of no use.
#[derive(Debug)]
pub enum StoredCertificateError {
    Storage(io::Error),
    Pem(rustls_pki_types::pem::Error),
    Key(CertificateError),
    /// It is for other names.
    OtherName,
}

impl StoredCertificate {
    /// `pem`: key and chain, in any order.
    pub fn parse(name: &str, pem: &[u8]) -> Result<StoredCertificate, StoredCertificateError> {
        let mut chain = Vec::new();
        for item in CertificateDer::pem_slice_iter(pem) {
            chain.push(item.map_err(StoredCertificateError::Pem)?);
        }
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(StoredCertificateError::Pem)?;
        let leaf = chain
            .first()
            .cloned()
            .ok_or(StoredCertificateError::Key(CertificateError::NoCertificate))?;
        let certificate = Certificate::new(chain, &key).map_err(StoredCertificateError::Key)?;
        if !certificate.names().iter().any(|own| own == name) {
            return Err(StoredCertificateError::OtherName);
        }
        Ok(StoredCertificate { certificate, leaf })
    }

    pub fn load(storage: &dyn Storage, name: &str) -> Result<Option<StoredCertificate>, StoredCertificateError> {
        match storage
            .read(&certificate_item(name))
            .map_err(StoredCertificateError::Storage)?
        {
            Some(pem) => StoredCertificate::parse(name, &pem).map(Some),
            None => Ok(None),
        }
    }

    /// Checks what a CA sent, keeps it, and gives it back ready to serve.
    pub fn save(
        storage: &dyn Storage,
        name: &str,
        key_pem: &str,
        chain_pem: &str,
    ) -> Result<StoredCertificate, StoredCertificateError> {
        let pem = format!("{key_pem}\n{chain_pem}");
        let record = StoredCertificate::parse(name, pem.as_bytes())?;
        // One piece, so that no crash leaves the key of one and the chain of another.
        storage
            .write(&certificate_item(name), pem.as_bytes(), Access::Owner)
            .map_err(StoredCertificateError::Storage)?;
        Ok(record)
    }

    pub fn set(&self) -> CertificateSet {
        CertificateSet::from(self.certificate.clone())
    }
}

impl PendingOrder {
    pub fn load(storage: &dyn Storage, name: &str) -> Option<PendingOrder> {
        let bytes = storage.read(&pending_item(name)).ok().flatten()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub fn save(&self, storage: &dyn Storage, name: &str) -> Result<(), StoredCertificateError> {
        let bytes = serde_json::to_vec(self).map_err(|error| StoredCertificateError::Storage(error.into()))?;
        storage
            .write(&pending_item(name), &bytes, Access::Owner)
            .map_err(StoredCertificateError::Storage)
    }

    /// What cannot be removed is found useless later.
    pub fn remove(storage: &dyn Storage, name: &str) {
        let _ = storage.remove(&pending_item(name));
    }
}

impl FailureRecord {
    pub fn load(storage: &dyn Storage, name: &str) -> FailureRecord {
        let bytes = storage.read(&failures_item(name)).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// A disk that does not take it costs no more than the memory of a failure.
    pub fn save(&self, storage: &dyn Storage, name: &str) {
        if self.last.is_empty() {
            let _ = storage.remove(&failures_item(name));
        } else if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = storage.write(&failures_item(name), &bytes, Access::Owner);
        }
    }

    pub fn next_try(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.next_try.min(u64::from(u32::MAX)))
    }
}

/// The names that have a certificate in the storage, as files are called.
pub fn stored_names(storage: &dyn Storage) -> Vec<String> {
    let mut names = storage.names(FOLDER).unwrap_or_default();
    names.retain(|name| name.ends_with(".pem"));
    names
        .iter()
        .filter_map(|name| name.strip_suffix(".pem"))
        .map(str::to_owned)
        .collect()
}

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
            StoredCertificateError::Storage(error) => write!(f, "the state folder: {error}"),
            StoredCertificateError::Pem(error) => write!(f, "no certificate with a key: {error}"),
            StoredCertificateError::Key(error) => error.fmt(f),
            StoredCertificateError::OtherName => f.write_str("the certificate is for other names"),
        }
    }
}

impl std::error::Error for StoredCertificateError {}
