//! Folders for programs that give up root.

use crate::Failure;
use std::os::unix::fs::PermissionsExt;

/// A new folder that other users of the machine may look into, but not change: programs that give up root run in it.
pub fn open_folder() -> Result<tempfile::TempDir, Failure> {
    let everyone = std::fs::Permissions::from_mode(0o755);
    Ok(tempfile::Builder::new().permissions(everyone).tempdir()?)
}
