//! Reads root certificates from PEM files: the authorities that sign the certificates of clients or upstreams.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// Reads the root certificates in PEM files. Fails if a certificate cannot be a root, or if there is no certificate.
pub(super) fn read_all_roots(files: &[PathBuf]) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut store = RootCertStore::empty();
    let mut roots = Vec::new();
    for path in files {
        for root in read_roots(path)? {
            store
                .add(root.clone())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            roots.push(root);
        }
    }
    if roots.is_empty() {
        let names = files.iter().map(|path| path.display().to_string());
        return Err(format!(
            "{}: contains no certificate",
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(roots)
}

/// Reads all certificates of a PEM file.
///
/// # Errors
/// Names the file and the reason why it cannot be read.
pub fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = super::pem::read(path).map_err(|error| describe(&error))?;
    CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| describe(&error))
}
