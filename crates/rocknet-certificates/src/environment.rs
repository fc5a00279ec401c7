//! The [`Environment`] of configuration checks: this machine, with certificates loaded as the server loads them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rocknet_config::environment::{CertificateFinding, Environment, FileKind, PasswordFileFinding, ProcessEnvironment};
use rocknet_config::model::{CertificateFiles, HostPattern};

use super::CertificateManager;
use super::client_trust::read_revocation_lists;
use super::files::FileSet;
use super::roots::read_all_roots;

/// The file system and environment variables of this machine, with certificates loaded as the server loads them.
pub struct ServerEnvironment<'m> {
    manager: Option<&'m CertificateManager>,
}

impl ServerEnvironment<'static> {
    /// Returns an environment that reads files as a starting server would.
    pub fn new() -> ServerEnvironment<'static> {
        ServerEnvironment { manager: None }
    }
}

impl Default for ServerEnvironment<'static> {
    fn default() -> Self {
        ServerEnvironment::new()
    }
}

impl<'m> ServerEnvironment<'m> {
    /// Returns an environment that reuses the certificate files of a running server. The server may have read some of
    /// them with privileges that it has dropped since.
    pub fn with_manager(manager: &'m CertificateManager) -> ServerEnvironment<'m> {
        ServerEnvironment { manager: Some(manager) }
    }
}

impl Environment for ServerEnvironment<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        ProcessEnvironment.variable(name)
    }

    fn read(&self, path: &Path) -> std::io::Result<String> {
        ProcessEnvironment.read(path)
    }

    fn matching(&self, pattern: &Path) -> std::io::Result<Vec<PathBuf>> {
        ProcessEnvironment.matching(pattern)
    }

    fn folders(&self, parent: &Path) -> std::io::Result<Vec<String>> {
        ProcessEnvironment.folders(parent)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        ProcessEnvironment.kind(path)
    }

    fn current_dir(&self) -> PathBuf {
        ProcessEnvironment.current_dir()
    }

    fn inner(&self) -> Option<&dyn Environment> {
        Some(&ProcessEnvironment)
    }

    fn certificate_findings(&self, files: &[CertificateFiles], names: &[HostPattern]) -> Vec<CertificateFinding> {
        let loaded = self.manager.and_then(|manager| manager.loaded_files(files));
        match loaded {
            Some(set) => {
                set.reload_if_changed(SystemTime::now());
                set.findings_for(names)
            }
            None => FileSet::new(files.to_vec()).findings_for(names),
        }
    }

    fn password_file_findings(&self, file: &Path) -> Vec<PasswordFileFinding> {
        rocknet_config::htpasswd::inspect(file)
    }

    fn url_key_findings(&self, file: &Path) -> Vec<PasswordFileFinding> {
        rocknet_config::url_keys::inspect(file)
    }

    fn ca_certificates_error(&self, files: &[PathBuf]) -> Option<String> {
        read_all_roots(files).err()
    }

    fn revocation_lists_error(&self, files: &[PathBuf]) -> Option<String> {
        read_revocation_lists(files).err()
    }

    fn lacks_log_folder(&self, file: &Path) -> bool {
        let folder = file.parent().map(std::fs::metadata);
        // Other errors say nothing about the server, which may run as another user.
        matches!(folder, Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound)
    }

    fn controllers_error(&self) -> Option<&'static str> {
        // A static program has no dynamic loader.
        cfg!(all(unix, target_feature = "crt-static"))
            .then_some("this program is linked statically and cannot load shared libraries")
    }
}
