//! Replacement for systems without sealed files: files in the temporary folder that are unlinked immediately.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Creates an empty file, and removes its name.
pub(super) fn create() -> io::Result<File> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = std::env::temp_dir().join(format!(".rocknet-{}-{number}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&name)?;
    fs::remove_file(&name)?;
    Ok(file)
}

/// Does nothing, because the system cannot seal files: each receiver of the descriptor can change the content.
#[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
pub(super) fn seal(_: &File) -> io::Result<()> {
    Ok(())
}

/// Returns the path by which a process can open its own descriptor `number`.
pub(super) fn path(number: i32) -> PathBuf {
    format!("/dev/fd/{number}").into()
}
