//! Stored ACME state of a name for reports, read without the thread of the issuer.

use super::super::Certificate;
use super::super::storage::Storage;
use super::persistence::{FailureRecord, StoredCertificate};

/// Stored certificate of a name, and the last failure to get one.
#[derive(Clone)]
pub struct StoredState {
    /// The certificate; `None` if none is stored, or if it cannot be used.
    pub certificate: Option<Certificate>,
    /// Reason why the last attempt failed, or why the stored certificate cannot be used.
    pub error: Option<String>,
}

/// Reads the stored state of a name. Blocks on the disk.
pub fn stored_state(storage: &dyn Storage, name: &str) -> StoredState {
    let failure = FailureRecord::load(storage, name).last;
    let failure = (!failure.is_empty()).then_some(failure);
    match StoredCertificate::load(storage, name) {
        Ok(stored) => StoredState {
            certificate: stored.map(|stored| stored.certificate),
            error: failure,
        },
        Err(error) => StoredState {
            certificate: None,
            error: Some(error.to_string()),
        },
    }
}
