//! What is kept of a name: its certificate with the key in one piece, and an order under way with the key it is for.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

use crate::storage::{Access, Storage, file_name};
use crate::{Certified, KeyError, KeySet};

/// A certificate as it is served and kept.
#[derive(Clone)]
pub struct Record {
    pub certified: Certified,
    /// The leaf itself, by which its CA knows it.
    pub leaf: CertificateDer<'static>,
}

/// An order that was placed and not yet fetched: with it a process that was killed is followed by one that goes on.
#[derive(Serialize, Deserialize)]
pub struct Pending {
    /// The directory of the CA.
    pub ca: String,
    pub url: String,
    pub key_pem: String,
}

/// What went wrong with a name, kept so that a server that is started again and again does not wear out its CA.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct Failures {
    pub count: u32,
    /// Seconds since 1970.
    pub next_try: u64,
    /// In the CA's words or ours.
    pub last: String,
}

/// Why a certificate is of no use.
#[derive(Debug)]
pub enum RecordError {
    Storage(io::Error),
    Pem(rustls_pki_types::pem::Error),
    Key(KeyError),
    /// It is for other names.
    OtherName,
}

impl Record {
    /// `pem`: key and chain, in any order.
    pub fn parse(name: &str, pem: &[u8]) -> Result<Record, RecordError> {
        let mut chain = Vec::new();
        for item in CertificateDer::pem_slice_iter(pem) {
            chain.push(item.map_err(RecordError::Pem)?);
        }
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(RecordError::Pem)?;
        let leaf = chain
            .first()
            .cloned()
            .ok_or(RecordError::Key(KeyError::NoCertificate))?;
        let certified = Certified::new(chain, &key).map_err(RecordError::Key)?;
        if !certified.names().iter().any(|own| own == name) {
            return Err(RecordError::OtherName);
        }
        Ok(Record { certified, leaf })
    }

    pub fn load(storage: &dyn Storage, name: &str) -> Result<Option<Record>, RecordError> {
        match storage.read(&certificate(name)).map_err(RecordError::Storage)? {
            Some(pem) => Record::parse(name, &pem).map(Some),
            None => Ok(None),
        }
    }

    /// Checks what a CA sent, keeps it, and gives it back ready to serve.
    pub fn keep(storage: &dyn Storage, name: &str, key_pem: &str, chain_pem: &str) -> Result<Record, RecordError> {
        let pem = format!("{key_pem}\n{chain_pem}");
        let record = Record::parse(name, pem.as_bytes())?;
        // One piece, so that no crash leaves the key of one and the chain of another.
        storage
            .write(&certificate(name), pem.as_bytes(), Access::Owner)
            .map_err(RecordError::Storage)?;
        Ok(record)
    }

    pub fn set(&self) -> KeySet {
        KeySet::from(self.certified.clone())
    }
}

impl Pending {
    pub fn load(storage: &dyn Storage, name: &str) -> Option<Pending> {
        let bytes = storage.read(&pending(name)).ok().flatten()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub fn keep(&self, storage: &dyn Storage, name: &str) -> Result<(), RecordError> {
        let bytes = serde_json::to_vec(self).map_err(|error| RecordError::Storage(error.into()))?;
        storage
            .write(&pending(name), &bytes, Access::Owner)
            .map_err(RecordError::Storage)
    }

    /// What cannot be removed is found useless later.
    pub fn forget(storage: &dyn Storage, name: &str) {
        let _ = storage.remove(&pending(name));
    }
}

impl Failures {
    pub fn load(storage: &dyn Storage, name: &str) -> Failures {
        let bytes = storage.read(&failures(name)).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// A disk that does not take it costs no more than the memory of a failure.
    pub fn keep(&self, storage: &dyn Storage, name: &str) {
        if self.last.is_empty() {
            let _ = storage.remove(&failures(name));
        } else if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = storage.write(&failures(name), &bytes, Access::Owner);
        }
    }

    pub fn next_try(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.next_try.min(u64::from(u32::MAX)))
    }
}

/// The names that have a certificate in the storage, as files are called.
pub fn kept(storage: &dyn Storage) -> Vec<String> {
    let mut names = storage.names(FOLDER).unwrap_or_default();
    names.retain(|name| name.ends_with(".pem"));
    names
        .iter()
        .filter_map(|name| name.strip_suffix(".pem"))
        .map(str::to_owned)
        .collect()
}

const FOLDER: &str = "acme/certificates";

fn certificate(name: &str) -> String {
    format!("{FOLDER}/{}.pem", file_name(name))
}

fn pending(name: &str) -> String {
    format!("acme/orders/{}.json", file_name(name))
}

fn failures(name: &str) -> String {
    format!("acme/failures/{}.json", file_name(name))
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RecordError::Storage(error) => write!(f, "the state folder: {error}"),
            RecordError::Pem(error) => write!(f, "no certificate with a key: {error}"),
            RecordError::Key(error) => error.fmt(f),
            RecordError::OtherName => f.write_str("the certificate is for other names"),
        }
    }
}

impl std::error::Error for RecordError {}
