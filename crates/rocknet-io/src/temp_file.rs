//! Temporary files without a name. The system frees them when their last descriptor is closed, even if SIGKILL ends
//! the process.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::io::Errno;

#[cfg(target_os = "linux")]
#[path = "temp_file/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "temp_file/portable.rs"]
mod system;

#[cfg(test)]
mod tests;

/// Maximum number of names tried. Each name has 64 random bits, so a second one is needed only if an attacker guesses
/// the first.
const TRIES: usize = 8;

/// Creates an unnamed file in `folder` for reading and writing. Blocks on the disk.
///
/// If the file system does not support unnamed files, the file is created under a random name, exclusively and with
/// mode 0600, and unlinked immediately.
///
/// # Errors
///
/// Fails if the folder does not exist or cannot be written, or if the disk or the descriptors are exhausted.
pub fn create_unnamed(folder: &Path) -> io::Result<File> {
    match system::create_unnamed(folder) {
        Some(result) => result,
        None => create_and_unlink(folder),
    }
}

/// Creates a file under a name that does not exist, and unlinks it.
fn create_and_unlink(folder: &Path) -> io::Result<File> {
    let mut last_error = ErrorKind::AlreadyExists.into();
    for number in 0..TRIES {
        let name = format!(".rocknet-{:016x}", RandomState::new().hash_one(number));
        let path = folder.join(name);
        // `create_new` is O_EXCL: it follows no symbolic link and opens no existing file.
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match created {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last_error = error,
            Err(error) => return Err(error),
        }
    }
    Err(last_error)
}

/// Returns whether a write failed because the disk or the user's quota is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT))
}

/// Returns whether a file could not be opened because descriptors or memory are exhausted.
pub fn is_resource_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
}
