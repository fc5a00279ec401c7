//! Replacement for systems other than Linux: dropping privileges fails, and the message advises to start without them.

use std::io;

use super::{PrivilegeError, User};

/// Fails, because dropping privileges is not implemented for this system.
pub(super) fn drop_to(user: &User) -> Result<(), PrivilegeError> {
    let advice = format!(
        "not implemented for this system; start the server as `{}` instead",
        user.name
    );
    Err(PrivilegeError::System(
        "setuid",
        io::Error::new(io::ErrorKind::Unsupported, advice),
    ))
}

/// Fails, because threads of these systems have no rights of their own.
pub(super) fn with_rights_of<T: Send>(_: &User, _: impl FnOnce() -> T + Send) -> Result<T, PrivilegeError> {
    Err(PrivilegeError::System("setuid", io::ErrorKind::Unsupported.into()))
}

/// Fails, because the system has no capabilities.
pub(super) fn prepare_account_helper() -> Result<(), PrivilegeError> {
    Err(PrivilegeError::System("capset", io::ErrorKind::Unsupported.into()))
}

/// Returns `None`, because the system has no capabilities.
pub(super) fn capabilities() -> Option<String> {
    None
}

/// Does nothing, because programs inherit no capabilities on these systems.
#[allow(clippy::unnecessary_wraps)] // Linux returns an error
pub(super) fn stop_inheritance() -> Result<(), PrivilegeError> {
    Ok(())
}
