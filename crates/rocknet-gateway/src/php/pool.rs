//! Settings of a pool: one php-fpm or php-cgi, with its listening socket, which outlives it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocknet_config::model::{PhpSettings, PhpVersion};

use super::installed::Installed;

/// Backlog of the listening socket, equal to the default of php-fpm.
const BACKLOG: i32 = 511;

/// Settings of a pool. Sites whose settings are equal share a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Program that the pool runs.
    pub program: PhpProgram,
    /// Account of its scripts, if the site names one.
    pub user: Option<String>,
    /// Settings of the sites and routes that use it.
    pub settings: PhpSettings,
    /// True if PHP shows its errors in its responses.
    pub dev: bool,
    /// Largest request body in bytes that any site accepts. The limits of PHP are set to this size, so that PHP rejects
    /// no request body that RockNet accepts.
    pub body_size: u64,
    /// Maximum time for requests in flight to complete when this pool is replaced or its php-fpm has ended.
    pub drain_timeout: Duration,
}

impl Pool {
    /// Returns the first part of the pool's name in logs and reports: the version, such as `8.2`, with the account if a
    /// site names one, as in `8.2@alice`. If `settings` differ from the defaults, `pool_names.rs` adds a site to it.
    pub fn base_name(&self) -> String {
        let version = self.program.version();
        match &self.user {
            Some(user) => format!("{version}@{user}"),
            None => version,
        }
    }
}

/// Program of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhpProgram {
    /// An installed program.
    Found(Installed),
    /// A version that is not installed. It is searched for repeatedly, because it may be installed while the server
    /// runs.
    Missing(PhpVersion),
}

impl PhpProgram {
    /// Returns the version, such as `8.2`; for a missing program, the version as the configuration writes it.
    pub fn version(&self) -> String {
        match self {
            PhpProgram::Found(installed) => installed.version(),
            PhpProgram::Missing(version) => version.to_string(),
        }
    }
}

/// Binds a Unix socket at `path` to which only the account of this process may connect.
///
/// # Errors
///
/// Returns the error of the system.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    // An earlier listener may have left its file.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    // Replaces the backlog that the standard library has set.
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Returns the path of the socket of the pool with this number.
pub fn socket(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number}.sock"))
}
