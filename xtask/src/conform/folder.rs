//! Folders for programs that drop root privileges.

use crate::Failure;
use std::os::unix::fs::PermissionsExt;

/// Creates a folder that other users may read but not change, for programs that drop root privileges.
pub fn open_folder() -> Result<tempfile::TempDir, Failure> {
    let everyone = std::fs::Permissions::from_mode(0o755);
    Ok(tempfile::Builder::new().permissions(everyone).tempdir()?)
}
