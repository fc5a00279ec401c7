//! Sets of certificate files that the configuration names: read whole, inspected, and read again when they change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use rocknet_config::Severity;
use rocknet_config::environment::CertificateFault;
use rocknet_config::model::{CertificateFiles, HostPattern};

use super::inspection::{self, Inspected, inspect, is_error};
use super::{Certificate, CertificateSet};

pub use super::pem::{load, read_any};

/// What to do about files that may not be read any more.
const KEPT: &str = "the certificate that was read at start stays in use; after a renewal restart the server, or let its user \
                    read the file";

/// The certificates of one site, as they stand in its files.
#[derive(Debug)]
pub struct FileSet {
    files: Vec<CertificateFiles>,
    set: ArcSwapOption<CertificateSet>,
    read: Mutex<LastRead>,
}

#[derive(Debug, Default)]
struct LastRead {
    /// State of each file at the last reading.
    stamps: Vec<Option<Stamp>>,
    /// Time at which the first of the certificates expires, while that lies ahead.
    expiry: Option<SystemTime>,
    faults: Vec<CertificateFault>,
}

/// The result of reading files that have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
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

impl FileSet {
    /// Reads the files. What is wrong with them is a fault of the set, which then has no certificates.
    pub fn new(files: Vec<CertificateFiles>) -> FileSet {
        let set = FileSet {
            files,
            set: ArcSwapOption::empty(),
            read: Mutex::default(),
        };
        set.reload_if_changed(SystemTime::now());
        set
    }

    pub fn set(&self) -> Option<Arc<CertificateSet>> {
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
    pub fn reload_if_changed(&self, now: SystemTime) -> Option<Reload> {
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
        let ends = loaded.iter().flatten().map(Certificate::not_after);
        read.expiry = ends.filter(|end| now <= *end).min();
        let reload = match &loaded {
            Some(_) if is_unchanged => Reload::Expired,
            Some(_) => Reload::Replaced,
            None => Reload::Kept,
        };
        if let Some(all) = loaded {
            self.set.store(Some(Arc::new(CertificateSet::new(all))));
        } else if is_denied && self.set.load().is_some() {
            // Read at start with rights that were given up since: nothing says that the files are broken.
            for fault in &mut faults {
                fault.severity = Severity::Warning;
                fault.help = KEPT.to_owned();
            }
        }
        read.faults = faults;
        Some(reload)
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
