//! Reads PEM files with certificates and private keys, with a size limit, and checks that they belong together.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rocknet_config::environment::CertificatePart;
use rocknet_config::model::CertificateFiles;
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use zeroize::{Zeroize, Zeroizing};

use super::certificate::leaf_first;
use super::{Certificate, CertificateError};

/// Maximum size of a file in bytes; a larger file is refused. A chain with its key has a few kilobytes, a bundle of all
/// public roots about 250 kilobytes.
const MAX_FILE: u64 = 1 << 20;
/// Permission bits of other users. A key file with any of them is refused.
const OTHERS: u32 = 0o007;

/// An error in one file: the chain, the key or the OCSP response of a certificate.
#[derive(Debug)]
pub struct PemFileError {
    path: PathBuf,
    part: CertificatePart,
    kind: PemErrorKind,
}

#[derive(Debug)]
enum PemErrorKind {
    Io(io::Error),
    /// The key file is larger than [`MAX_FILE`].
    TooLarge,
    /// Users other than the owner and the group can read, write or execute the file.
    OpenToOthers,
    NoKey,
    Encrypted,
    /// The certificate or the key cannot be used, or they do not belong together.
    Unusable(CertificateError),
}

/// Reads a certificate and its key, and checks that they belong together.
///
/// # Errors
/// Returns the file that cannot be used and the reason.
pub fn load(files: &CertificateFiles) -> Result<Certificate, PemFileError> {
    let fault = |part, kind| PemFileError {
        path: match (part, &files.ocsp) {
            (CertificatePart::Key, _) => files.key.clone(),
            (CertificatePart::Ocsp, Some(path)) => path.clone(),
            _ => files.cert.clone(),
        },
        part,
        kind,
    };
    let of_chain = |kind| fault(CertificatePart::Certificate, kind);
    let of_key = |kind| fault(CertificatePart::Key, kind);
    let chain = read(&files.cert)
        .map_err(PemErrorKind::from)
        .and_then(|bytes| chain(&bytes))
        .map_err(of_chain)?;
    let key_file = read_key(&files.key).map_err(of_key)?;
    let mut key = key(&key_file).map_err(of_key)?;
    let certificate = Certificate::new(chain, &key);
    // rustls has copied the key into its signing key, so the key parsed here is erased.
    key.zeroize();
    let certificate = certificate.map_err(|error| match error {
        CertificateError::Key(_) | CertificateError::Mismatch => of_key(PemErrorKind::Unusable(error)),
        error => of_chain(PemErrorKind::Unusable(error)),
    })?;
    let ocsp = match &files.ocsp {
        None => None,
        Some(path) => Some(read(path).map_err(|error| fault(CertificatePart::Ocsp, error.into()))?),
    };
    Ok(certificate.with_origin(&files.cert).with_ocsp(ocsp))
}

/// Parses the certificates of a PEM text and moves the leaf to the front, because some tools write the chain in
/// reverse.
fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemErrorKind> {
    let mut all = Vec::new();
    for item in CertificateDer::pem_slice_iter(pem) {
        all.push(item.map_err(|error| PemErrorKind::Unusable(CertificateError::Certificate(error.to_string())))?);
    }
    if all.is_empty() {
        return Err(PemErrorKind::Unusable(CertificateError::NoCertificate));
    }
    leaf_first(&mut all);
    Ok(all)
}

/// Parses the first private key of a PEM text.
fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemErrorKind> {
    for item in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        let (kind, mut bytes) =
            item.map_err(|error| PemErrorKind::Unusable(CertificateError::Key(error.to_string())))?;
        match kind {
            SectionKind::PrivateKey => return Ok(PrivatePkcs8KeyDer::from(bytes).into()),
            SectionKind::RsaPrivateKey => return Ok(PrivatePkcs1KeyDer::from(bytes).into()),
            SectionKind::EcPrivateKey => return Ok(PrivateSec1KeyDer::from(bytes).into()),
            _ => bytes.zeroize(),
        }
    }
    let encrypted = memchr::memmem::find(pem, b"ENCRYPTED").is_some();
    Err(if encrypted {
        PemErrorKind::Encrypted
    } else {
        PemErrorKind::NoKey
    })
}

/// Reads a regular file of at most `MAX_FILE` bytes. A larger file is an error, because certificates after the limit
/// would be missing without notice.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MAX_FILE)
}

/// Reads a regular file of at most `max` bytes.
pub(crate) fn read_up_to(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let message = format!("it is larger than {} MiB", max >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a file with a private key. The returned bytes are erased when they are dropped.
fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, PemErrorKind> {
    let file = open(path)?;
    let meta = file.metadata()?;
    if meta.permissions().mode() & OTHERS != 0 {
        return Err(PemErrorKind::OpenToOthers);
    }
    if meta.len() > MAX_FILE {
        return Err(PemErrorKind::TooLarge);
    }
    // The buffer is allocated in full, because a growing buffer would leave copies of the key in freed memory.
    let mut bytes = Zeroizing::new(vec![0; meta.len() as usize]);
    (&file).read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Opens regular files only, because opening a FIFO could block indefinitely.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::open(path)
}

impl From<io::Error> for PemErrorKind {
    fn from(error: io::Error) -> PemErrorKind {
        PemErrorKind::Io(error)
    }
}

impl PemFileError {
    /// Returns the kind of the file that has the error.
    pub fn part(&self) -> CertificatePart {
        self.part
    }

    /// Returns true if the process lacks the right to read the file.
    pub fn is_denied(&self) -> bool {
        matches!(&self.kind, PemErrorKind::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Returns advice for the operator.
    pub fn help(&self) -> &'static str {
        match &self.kind {
            PemErrorKind::Io(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "give the user who starts the server the right to read it; run `rocknet check` as that user"
                }
                io::ErrorKind::NotFound => "put the file there, or correct the path",
                _ => "name a regular file of at most 1 MiB that can be read",
            },
            PemErrorKind::TooLarge | PemErrorKind::NoKey => {
                "set `key` to the PEM file that contains -----BEGIN PRIVATE KEY-----"
            }
            PemErrorKind::OpenToOthers => "chmod 600 the file, and replace the key if others could have read it",
            PemErrorKind::Encrypted => "decrypt it: openssl pkey -in OLD -out NEW",
            PemErrorKind::Unusable(CertificateError::NoCertificate) => {
                "set `cert` to the PEM file that contains -----BEGIN CERTIFICATE-----"
            }
            PemErrorKind::Unusable(CertificateError::Mismatch) => "name the key that the certificate was ordered with",
            PemErrorKind::Unusable(_) => "copy the file again, whole, from the first -----BEGIN to the last -----END",
        }
    }
}

impl fmt::Display for PemFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            PemErrorKind::Io(error) => write!(f, "cannot be read: {error}"),
            PemErrorKind::TooLarge => f.write_str("is larger than any key"),
            PemErrorKind::OpenToOthers => {
                f.write_str("contains a private key that every user can access, and is refused")
            }
            PemErrorKind::NoKey => f.write_str("contains no private key"),
            PemErrorKind::Encrypted => {
                f.write_str("contains an encrypted key, and RockNet cannot prompt for a password")
            }
            PemErrorKind::Unusable(error) => error.fmt(f),
        }
    }
}

/// Parses arbitrary bytes as a chain and a key, for fuzzing. Returns true if both can be parsed and belong together.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) -> bool {
    let (chain, key) = (chain(bytes), key(bytes));
    match (chain, key) {
        (Ok(chain), Ok(key)) => Certificate::new(chain, &key).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_refused_instead_of_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roots.pem");
        for (size, is_read) in [(MAX_FILE, true), (MAX_FILE + 1, false)] {
            fs::write(&path, vec![b'\n'; size as usize]).unwrap();
            assert_eq!(read(&path).is_ok(), is_read, "{size}");
        }
    }
}
