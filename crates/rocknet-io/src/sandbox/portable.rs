//! Replacement for systems without seccomp and Landlock.

use std::path::PathBuf;

use super::SandboxError;

/// Fails, because the system has no seccomp.
pub(super) fn deny_system_calls(_: bool) -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("seccomp"))
}

/// Fails, because the system has no seccomp.
pub(super) fn limit_programs() -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("seccomp"))
}

/// Fails, because the system has no Landlock.
pub(super) fn limit_writes(_: &[PathBuf]) -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("Landlock"))
}

/// Fails, because the system has no `no_new_privs`.
pub(super) fn renounce_privileges() -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("no_new_privs"))
}

/// Returns false, because the system has no seccomp.
pub(super) fn can_deny_system_calls() -> bool {
    false
}

/// Returns false, because the system has no Landlock.
pub(super) fn can_limit_writes() -> bool {
    false
}
