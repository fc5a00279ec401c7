//! The machine as a configuration sees it, with certificates loaded as the server loads them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rocknet_config::environment::{CertificateFault, Environment, Kind, PasswordFileFault, System};
use rocknet_config::model::{CertificateFiles, HostPattern};

use super::Keeper;
use super::files::FileSet;
use super::settings::roots;

/// The machine, with certificates loaded as the server loads them.
pub struct Disk<'k> {
    keeper: Option<&'k Keeper>,
}

impl Disk<'static> {
    /// Returns an environment that reads files as a server that starts now would.
    pub fn new() -> Disk<'static> {
        Disk { keeper: None }
    }
}

impl Default for Disk<'static> {
    fn default() -> Self {
        Disk::new()
    }
}

impl<'k> Disk<'k> {
    /// Returns an environment that reads files as a running server does, which may have read some with rights that it has
    /// given up since.
    pub fn of(keeper: &'k Keeper) -> Disk<'k> {
        Disk { keeper: Some(keeper) }
    }
}

impl Environment for Disk<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        System.variable(name)
    }

    fn read(&self, path: &Path) -> std::io::Result<String> {
        System.read(path)
    }

    fn matching(&self, pattern: &Path) -> std::io::Result<Vec<PathBuf>> {
        System.matching(pattern)
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        System.kind(path)
    }

    fn current_dir(&self) -> PathBuf {
        System.current_dir()
    }

    fn certificate_faults(&self, files: &[CertificateFiles], names: &[HostPattern]) -> Vec<CertificateFault> {
        let held = self.keeper.and_then(|keeper| keeper.held(files));
        match held {
            Some(set) => {
                set.look_again(SystemTime::now());
                set.faults_for(names)
            }
            None => FileSet::new(files.to_vec()).faults_for(names),
        }
    }

    fn password_file_faults(&self, file: &Path) -> Vec<PasswordFileFault> {
        rocknet_config::htpasswd::inspect(file)
    }

    fn authorities_fault(&self, files: &[PathBuf]) -> Option<String> {
        roots(files).err()
    }
}
