//! Unnamed files by `O_TMPFILE`.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// `None`: the file system, or the kernel, has none.
pub(super) fn create_unnamed(folder: &Path) -> Option<io::Result<File>> {
    // O_EXCL: nothing can give the file a name later.
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    match openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Some(Ok(file.into())),
        // Old kernels take it for an attempt to write to a folder.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => None,
        Err(errno) => Some(Err(errno.into())),
    }
}
