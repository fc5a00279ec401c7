//! Certificates in PEM files that the configuration names: read whole, checked, and read again when they change.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use rocknet_config::Severity;
use rocknet_config::environment::{CertificateFault, CertificatePart};
use rocknet_config::model::{CertificateFiles, HostPattern};
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use zeroize::{Zeroize, Zeroizing};

use super::inspection::{self, Inspected, inspect, is_error};
use super::{Certified, KeyError, KeySet};

/// Largest file read: a chain with its key has a few kilobytes, a bundle of all public roots about 250.
const MAX_FILE: u64 = 1 << 20;
/// Rights of others than the owner and the group: a key with any of these is everybody's.
const OTHERS: u32 = 0o007;

/// What to do about files that may not be read any more.
const KEPT: &str = "the certificate that was read at start stays in use; after a renewal restart the server, or let its user \
                    read the file";

/// The certificates of one site, as they stand in its files.
#[derive(Debug)]
pub struct FileSet {
    files: Vec<CertificateFiles>,
    set: ArcSwapOption<KeySet>,
    read: Mutex<LastRead>,
}

#[derive(Debug, Default)]
struct LastRead {
    /// What tells one state of the files from another.
    stamps: Vec<Option<Stamp>>,
    /// When the first of the certificates expires, while that lies ahead.
    expiry: Option<SystemTime>,
    faults: Vec<CertificateFault>,
}

/// The result of reading files that have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reread {
    Replaced,
    /// The files are the same, and a certificate in them has expired meanwhile.
    Expired,
    /// They cannot be used: the set that was read before stays, if there is one.
    Kept,
}

/// A file that was replaced or written has another one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
    mode: u32,
}

/// What is wrong with a file.
#[derive(Debug)]
pub struct FileFault {
    path: PathBuf,
    part: CertificatePart,
    kind: FaultKind,
}

#[derive(Debug)]
enum FaultKind {
    Io(io::Error),
    TooLarge,
    /// Others than its owner and group may read it.
    Open,
    NoKey,
    Encrypted,
    Key(KeyError),
}

impl FileSet {
    /// Reads the files. What is wrong with them is a fault of the set, which then has no certificates.
    pub fn new(files: Vec<CertificateFiles>) -> FileSet {
        let set = FileSet {
            files,
            set: ArcSwapOption::empty(),
            read: Mutex::default(),
        };
        set.look_again(SystemTime::now());
        set
    }

    pub fn set(&self) -> Option<Arc<KeySet>> {
        self.set.load_full()
    }

    /// The error of the last reading: with it the files cannot serve, and a set that was read before stays in use.
    pub fn error(&self) -> Option<String> {
        let read = self.read();
        read.faults.iter().find(|fault| is_error(fault)).map(text)
    }

    /// All faults of the last reading, and the names of a site that the certificates are not for.
    pub fn faults_for(&self, names: &[HostPattern]) -> Vec<CertificateFault> {
        let mut faults = self.read().faults.clone();
        if !faults.iter().any(is_error)
            && let Some(loaded) = self.set()
        {
            faults.extend(loaded.certificates().iter().filter_map(|one| {
                let at = self
                    .files
                    .iter()
                    .position(|files| Some(files.cert.as_path()) == one.origin())?;
                inspection::uncovered(at, &self.files[at].cert, one, names)
            }));
        }
        faults
    }

    /// Reads the files again if one of them has changed or a certificate has expired; those that are broken leave the old
    /// set where it is. `None`: there was no change.
    pub fn look_again(&self, now: SystemTime) -> Option<Reread> {
        let mut read = self.read();
        let stamps: Vec<_> = self.paths().map(stamp).collect();
        let is_unchanged = read.stamps == stamps;
        if is_unchanged && read.expiry.is_none_or(|expiry| now <= expiry) {
            return None;
        }
        read.stamps = stamps;
        let Inspected {
            loaded,
            mut faults,
            is_denied,
        } = inspect(&self.files, now);
        let ends = loaded.iter().flatten().map(Certified::not_after);
        read.expiry = ends.filter(|end| now <= *end).min();
        let reread = match &loaded {
            Some(_) if is_unchanged => Reread::Expired,
            Some(_) => Reread::Replaced,
            None => Reread::Kept,
        };
        if let Some(all) = loaded {
            self.set.store(Some(Arc::new(KeySet::new(all))));
        } else if is_denied && self.set.load().is_some() {
            // Read at start with rights that were given up since: nothing says that the files are broken.
            for fault in &mut faults {
                fault.severity = Severity::Warning;
                fault.help = KEPT.to_owned();
            }
        }
        read.faults = faults;
        Some(reread)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let all = self.files.iter().flat_map(|files| {
            [
                Some(files.cert.as_path()),
                Some(files.key.as_path()),
                files.ocsp.as_deref(),
            ]
        });
        all.flatten()
    }

    fn read(&self) -> MutexGuard<'_, LastRead> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some(Stamp {
        inode: meta.ino(),
        size: meta.size(),
        changed: (meta.ctime(), meta.ctime_nsec()),
        mode: meta.mode(),
    })
}

/// A fault in one line, for the log.
pub(super) fn text(fault: &CertificateFault) -> String {
    format!("{}; {}", fault.message, fault.help)
}

/// Reads a certificate and its key, and sees that they belong together.
pub fn load(files: &CertificateFiles) -> Result<Certified, FileFault> {
    let fault = |part, kind| FileFault {
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
        .map_err(FaultKind::from)
        .and_then(|bytes| chain(&bytes))
        .map_err(of_chain)?;
    let key_file = read_key(&files.key).map_err(of_key)?;
    let mut key = key(&key_file).map_err(of_key)?;
    let certified = Certified::new(chain, &key);
    // The library has made its own of it.
    key.zeroize();
    let certified = certified.map_err(|error| match error {
        KeyError::Key(_) | KeyError::Mismatch => of_key(FaultKind::Key(error)),
        error => of_chain(FaultKind::Key(error)),
    })?;
    let ocsp = match &files.ocsp {
        None => None,
        Some(path) => Some(read(path).map_err(|error| fault(CertificatePart::Ocsp, error.into()))?),
    };
    Ok(certified.with_origin(&files.cert).with_ocsp(ocsp))
}

/// The certificates of a text, the leaf first: some tools write the chain the other way round.
fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, FaultKind> {
    let mut all = Vec::new();
    for item in CertificateDer::pem_slice_iter(pem) {
        all.push(item.map_err(|error| FaultKind::Key(KeyError::Certificate(error.to_string())))?);
    }
    if all.is_empty() {
        return Err(FaultKind::Key(KeyError::NoCertificate));
    }
    super::keyset::leaf_first(&mut all);
    Ok(all)
}

/// The first private key of a text.
fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, FaultKind> {
    for item in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        let (kind, mut bytes) = item.map_err(|error| FaultKind::Key(KeyError::Key(error.to_string())))?;
        match kind {
            SectionKind::PrivateKey => return Ok(PrivatePkcs8KeyDer::from(bytes).into()),
            SectionKind::RsaPrivateKey => return Ok(PrivatePkcs1KeyDer::from(bytes).into()),
            SectionKind::EcPrivateKey => return Ok(PrivateSec1KeyDer::from(bytes).into()),
            _ => bytes.zeroize(),
        }
    }
    let encrypted = memchr::memmem::find(pem, b"ENCRYPTED").is_some();
    Err(if encrypted {
        FaultKind::Encrypted
    } else {
        FaultKind::NoKey
    })
}

pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Wiped when it is dropped.
fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, FaultKind> {
    let file = open(path)?;
    let meta = file.metadata()?;
    if meta.permissions().mode() & OTHERS != 0 {
        return Err(FaultKind::Open);
    }
    if meta.len() > MAX_FILE {
        return Err(FaultKind::TooLarge);
    }
    // All of it at once: a buffer that grows would leave copies behind.
    let mut bytes = Zeroizing::new(vec![0; meta.len() as usize]);
    (&file).read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Only regular files: a FIFO would be waited for without end.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    File::open(path)
}

impl From<io::Error> for FaultKind {
    fn from(error: io::Error) -> FaultKind {
        FaultKind::Io(error)
    }
}

impl FileFault {
    pub fn part(&self) -> CertificatePart {
        self.part
    }

    /// Whether this process lacks the right to read the file.
    pub fn is_denied(&self) -> bool {
        matches!(&self.kind, FaultKind::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match &self.kind {
            FaultKind::Io(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "give the user who starts the server the right to read it; run `rocknet check` as that user"
                }
                io::ErrorKind::NotFound => "put the file there, or correct the path",
                _ => "name a regular file that can be read",
            },
            FaultKind::TooLarge | FaultKind::NoKey => {
                "name the PEM file that holds -----BEGIN PRIVATE KEY----- with `key`"
            }
            FaultKind::Open => "chmod 600 the file, and replace the key if others could have read it",
            FaultKind::Encrypted => "decrypt it: openssl pkey -in OLD -out NEW",
            FaultKind::Key(KeyError::NoCertificate) => {
                "name the PEM file that holds -----BEGIN CERTIFICATE----- with `cert`"
            }
            FaultKind::Key(KeyError::Mismatch) => "name the key that the certificate was ordered with",
            FaultKind::Key(_) => "copy the file again, whole, from the first -----BEGIN to the last -----END",
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            FaultKind::Io(error) => write!(f, "cannot be read: {error}"),
            FaultKind::TooLarge => f.write_str("is larger than any key"),
            FaultKind::Open => f.write_str("holds a private key that every user may read, and is refused"),
            FaultKind::NoKey => f.write_str("holds no private key"),
            FaultKind::Encrypted => f.write_str("holds an encrypted key; RockNet has nobody to ask for its password"),
            FaultKind::Key(error) => error.fmt(f),
        }
    }
}

/// For fuzzing: whatever a file holds, it is a key, a chain or a fault.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) -> bool {
    let (chain, key) = (chain(bytes), key(bytes));
    match (chain, key) {
        (Ok(chain), Ok(key)) => Certified::new(chain, &key).is_ok(),
        _ => false,
    }
}
