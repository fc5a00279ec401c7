//! Creates unnamed files by `O_TMPFILE`.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Creates an unnamed file. Returns `None` if the kernel or the file system does not support unnamed files.
pub(super) fn create_unnamed(folder: &Path) -> Option<io::Result<File>> {
    // O_EXCL: the file can never be given a name.
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    match openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Some(Ok(file.into())),
        // EISDIR: an old kernel treats the call as an attempt to write to a directory. EOPNOTSUPP and EINVAL: the file
        // system does not support the flag.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => None,
        Err(errno) => Some(Err(errno.into())),
    }
}
