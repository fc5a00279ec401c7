//! Replacement for systems without seccomp and Landlock.

use std::path::PathBuf;

use super::SandboxError;

pub(super) fn deny_system_calls(_: bool) -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("seccomp"))
}

pub(super) fn limit_programs() -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("seccomp"))
}

pub(super) fn limit_writes(_: &[PathBuf]) -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("Landlock"))
}

pub(super) fn renounce_privileges() -> Result<(), SandboxError> {
    Err(SandboxError::Unsupported("no_new_privs"))
}

pub(super) fn can_deny_system_calls() -> bool {
    false
}

pub(super) fn can_limit_writes() -> bool {
    false
}
