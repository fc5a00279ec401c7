//! An environment for loading the configuration that records which paths this account may not examine. A finding about
//! such a path says nothing about the server, which may run under another account.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rocknet::certificates::ServerEnvironment;
use rocknet_config::Finding;
use rocknet_config::environment::{CertificateFinding, Environment, FileKind, PasswordFileFinding};
use rocknet_config::model::{CertificateFiles, HostPattern};
use rocknet_io::privileges;

/// Environment of a starting server, with a record of the paths that this account may not examine.
#[derive(Default)]
pub(super) struct RecordingEnvironment {
    server: ServerEnvironment<'static>,
    denied: RefCell<BTreeSet<PathBuf>>,
}

impl RecordingEnvironment {
    /// Returns the path of a finding if this account may not examine it. Messages contain the path.
    pub(super) fn denied_path(&self, finding: &Finding) -> Option<PathBuf> {
        let denied = self.denied.borrow();
        let named = denied.iter().filter(|path| names(&finding.message, path));
        // The longest path is the right one, because a path that contains a space can begin with another path.
        named.max_by_key(|path| path.as_os_str().len()).cloned()
    }

    /// Returns the path of the first error about a path that this account may not examine; `None` without such an
    /// error, or if the path belongs to this account.
    pub(super) fn path_of_others(&self, findings: &[Finding]) -> Option<PathBuf> {
        let own = privileges::effective_uid();
        // A path below a closed folder has an unknown owner.
        let is_own = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.uid() == own);
        let mut errors = findings.iter().filter(|finding| finding.is_error());
        errors
            .find_map(|error| self.denied_path(error))
            .filter(|path| !is_own(path))
    }

    /// Records a path if an access to it was denied.
    fn record<T>(&self, path: &Path, result: &io::Result<T>) {
        if matches!(result, Err(error) if error.kind() == io::ErrorKind::PermissionDenied) {
            self.denied.borrow_mut().insert(path.to_owned());
        }
    }

    /// Records the files that cannot be opened.
    fn record_files<'p>(&self, files: impl IntoIterator<Item = &'p PathBuf>) {
        for file in files {
            match fs::metadata(file) {
                // Opening a FIFO would wait for its other end.
                Ok(found) if found.is_file() => self.record(file, &File::open(file)),
                Ok(_) => {}
                // The folder of the file is closed to this account.
                result => self.record(file, &result),
            }
        }
    }
}

impl Environment for RecordingEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        self.server.variable(name)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let result = self.server.read(path);
        self.record(path, &result);
        result
    }

    fn matching(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let result = self.server.matching(pattern);
        self.record(pattern, &result);
        result
    }

    fn folders(&self, parent: &Path) -> io::Result<Vec<String>> {
        let result = self.server.folders(parent);
        self.record(parent, &result);
        result
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let kind = self.server.kind(path);
        if kind.is_none() {
            self.record(path, &fs::metadata(path));
        }
        kind
    }

    fn current_dir(&self) -> PathBuf {
        self.server.current_dir()
    }

    fn inner(&self) -> Option<&dyn Environment> {
        Some(&self.server)
    }

    fn certificate_findings(&self, files: &[CertificateFiles], names: &[HostPattern]) -> Vec<CertificateFinding> {
        self.record_files(
            files
                .iter()
                .flat_map(|files| [Some(&files.cert), Some(&files.key), files.ocsp.as_ref()])
                .flatten(),
        );
        let mut findings = self.server.certificate_findings(files, names);
        // The check of certificates reports their validity.
        findings.retain(|finding| !finding.is_about_validity);
        findings
    }

    fn password_file_findings(&self, file: &Path) -> Vec<PasswordFileFinding> {
        self.record_files([&file.to_owned()]);
        self.server.password_file_findings(file)
    }

    fn url_key_findings(&self, file: &Path) -> Vec<PasswordFileFinding> {
        self.record_files([&file.to_owned()]);
        self.server.url_key_findings(file)
    }

    fn ca_certificates_error(&self, files: &[PathBuf]) -> Option<String> {
        self.record_files(files);
        self.server.ca_certificates_error(files)
    }

    fn revocation_lists_error(&self, files: &[PathBuf]) -> Option<String> {
        self.record_files(files);
        self.server.revocation_lists_error(files)
    }
}

/// Returns true if a message contains a path as a whole, and not only as the beginning or end of another path.
fn names(message: &str, path: &Path) -> bool {
    let path = path.to_string_lossy();
    let ends = |rest: &str| {
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let rest = rest.trim_start_matches(['.', ',', ':', ';', ')', ']', '"', '\'', '`']);
        rest.is_empty() || rest.starts_with(char::is_whitespace)
    };
    message.match_indices(&*path).any(|(at, found)| {
        let before = message[..at].chars().next_back();
        let begins = before.is_none_or(|last| last.is_whitespace() || "([\"'`=:".contains(last));
        begins && ends(&message[at + found.len()..])
    })
}

#[cfg(test)]
mod tests {
    use rocknet_config::{Code, Severity};

    use super::*;

    fn finding(message: &str) -> Finding {
        Finding {
            severity: Severity::Error,
            code: Code::BadValue,
            message: message.to_owned(),
            help: None,
            location: None,
            related: Vec::new(),
        }
    }

    #[test]
    fn a_finding_names_a_whole_path() {
        let environment = RecordingEnvironment::default();
        for path in ["/srv/a", "/srv/a b/c", "/srv/a b"] {
            environment.denied.borrow_mut().insert(path.into());
        }
        for (message, expected) in [
            ("/srv/a does not exist", Some("/srv/a")),
            ("`root`: /srv/a/ is closed", Some("/srv/a")),
            ("cannot read \"/srv/a\": it is closed", Some("/srv/a")),
            ("the file is /srv/a.", Some("/srv/a")),
            ("cannot read /srv/a: Permission denied", Some("/srv/a")),
            ("cannot read /srv/a b: Permission denied", Some("/srv/a b")),
            ("cannot read /srv/a b/c", Some("/srv/a b/c")),
            ("/srv/ab does not exist", None),
            ("/srv/a.toml does not exist", None),
            ("/srv/a/b does not exist", None),
            ("/mnt/srv/a does not exist", None),
            ("the site has no root", None),
        ] {
            let found = environment.denied_path(&finding(message));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{message}");
        }
    }

    #[test]
    fn a_faulty_file_with_keys_of_urls_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("keys");
        std::fs::write(&file, "nonsense\n").expect("a file");
        let findings = RecordingEnvironment::default().url_key_findings(&file);
        assert!(!findings.is_empty());
    }
}
