//! Errors that occur while a process limits itself (sandbox), worded for operators.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reason why a limit was not set.
#[derive(Debug)]
pub enum SandboxError {
    /// The kernel or the processor architecture lacks this feature.
    Unsupported(&'static str),
    /// The process may gain privileges by set-user-ID programs, so only root may set limits. `renounce_privileges`
    /// removes the obstacle.
    MayGainPrivileges,
    /// The process has as many layers of Landlock rules as the kernel permits. Each upgrade of the server adds a layer,
    /// because the new process inherits the layers of the old one and sets the limits again.
    TooManyLayers,
    /// The system call with this name failed.
    System(&'static str, io::Error),
    /// Changes below this folder cannot be permitted, usually because it cannot be opened.
    Folder(PathBuf, io::Error),
}

#[cfg(target_os = "linux")]
impl SandboxError {
    /// Returns the error of the last system call, which is named `call`.
    pub(super) fn last(call: &'static str) -> SandboxError {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Only Landlock has this error.
            Some(libc::E2BIG) => SandboxError::TooManyLayers,
            // seccomp fails with EACCES, and Landlock with EPERM.
            Some(libc::EACCES | libc::EPERM) => SandboxError::MayGainPrivileges,
            _ => SandboxError::System(call, error),
        }
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxError::Unsupported(what) => write!(f, "this system lacks {what}"),
            SandboxError::MayGainPrivileges => f.write_str(
                "programs may gain privileges by set-user-ID files: start the server as root, or set \
                 `NoNewPrivileges=yes` in its unit",
            ),
            SandboxError::TooManyLayers => f.write_str(
                "every upgrade adds a layer of Landlock rules, and the kernel permits no further layer: restart the server",
            ),
            SandboxError::System(call, error) => write!(f, "{call}: {error}"),
            SandboxError::Folder(folder, error) => write!(f, "{}: {error}", folder.display()),
        }
    }
}

impl Error for SandboxError {}
