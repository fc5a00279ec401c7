//! Certificate files named in the configuration: read, inspected, and read again when they change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use rocknet_config::Severity;
use rocknet_config::environment::CertificateFinding;
use rocknet_config::model::{CertificateFiles, HostPattern};

use super::inspection::{self, Inspected, inspect, is_error};
use super::{Certificate, CertificateSet};

pub use super::pem::{load, read_any};

/// Help text for files that the process can no longer read.
const KEPT: &str = "the certificate read at start stays in use; after a renewal, restart the server, or give its user \
                    the right to read the file";

/// Certificates read from a list of files. Sites with the same list share one set.
#[derive(Debug)]
pub struct FileSet {
    files: Vec<CertificateFiles>,
    set: ArcSwapOption<CertificateSet>,
    last_read: Mutex<LastRead>,
}

/// Result of the last read of the files.
#[derive(Debug, Default)]
struct LastRead {
    /// Stamps of the files at the last read; `None` for a file that could not be examined.
    stamps: Vec<Option<Stamp>>,
    /// Earliest time in the future at which a certificate of the set expires, if there is such a time.
    expiry: Option<SystemTime>,
    findings: Vec<CertificateFinding>,
}

/// The result of reading files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The files have changed, and the new certificates are in use.
    Replaced,
    /// The files are unchanged, but a certificate has expired since the last read.
    Expired,
    /// The files cannot be used. The previous set stays in use, if there is one.
    Kept,
}

/// Identifies a version of a file. The stamp changes when the file is replaced or written, or its mode changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    /// Time of the last change of content or attributes (ctime), in seconds and nanoseconds.
    changed: (i64, i64),
    mode: u32,
}

impl FileSet {
    /// Reads the files. If one has an error, the set has no certificates; see [`FileSet::findings_for`].
    pub fn new(files: Vec<CertificateFiles>) -> FileSet {
        let set = FileSet {
            files,
            set: ArcSwapOption::empty(),
            last_read: Mutex::default(),
        };
        set.reload_if_changed(SystemTime::now());
        set
    }

    /// Returns the certificates of the last successful read; `None` if no read has succeeded.
    pub fn certificate_set(&self) -> Option<Arc<CertificateSet>> {
        self.set.load_full()
    }

    /// Returns the first error of the last read, if any. The files are then unusable, and a previous set stays in use.
    pub fn error(&self) -> Option<String> {
        let read = self.last_read();
        read.findings.iter().find(|finding| is_error(finding)).map(one_line)
    }

    /// Returns all findings of the last read. If the files are usable, a warning for each certificate lists the entries
    /// of `names` that the certificate does not cover.
    pub fn findings_for(&self, names: &[HostPattern]) -> Vec<CertificateFinding> {
        let mut findings = self.last_read().findings.clone();
        if !findings.iter().any(is_error)
            && let Some(loaded) = self.certificate_set()
        {
            findings.extend(loaded.certificates().iter().filter_map(|one| {
                let at = self
                    .files
                    .iter()
                    .position(|files| Some(files.cert.as_path()) == one.origin())?;
                inspection::uncovered(at, &self.files[at].cert, one, names)
            }));
        }
        findings
    }

    /// Reads the files again if one has changed or a certificate has expired. If a file has an error, the previous set
    /// stays in use. Returns `None` if nothing has changed.
    pub fn reload_if_changed(&self, now: SystemTime) -> Option<Reload> {
        let mut read = self.last_read();
        // Taken before the files are read, so that the next call detects a change during the read.
        let stamps: Vec<_> = self.paths().map(stamp).collect();
        let is_unchanged = read.stamps == stamps;
        if is_unchanged && read.expiry.is_none_or(|expiry| now <= expiry) {
            return None;
        }
        read.stamps = stamps;
        let Inspected {
            loaded,
            mut findings,
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
            // The server read the files when it started, with privileges that it has dropped since. The missing
            // permission therefore does not mean that the files are broken.
            for finding in &mut findings {
                finding.severity = Severity::Warning;
                finding.help = KEPT.to_owned();
            }
        }
        read.findings = findings;
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

    fn last_read(&self) -> MutexGuard<'_, LastRead> {
        self.last_read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some(Stamp {
        inode: meta.ino(),
        size: meta.size(),
        changed: (meta.ctime(), meta.ctime_nsec()),
        mode: meta.mode(),
    })
}

/// Formats a finding as one line for the log.
fn one_line(finding: &CertificateFinding) -> String {
    format!("{}; {}", finding.message, finding.help)
}
