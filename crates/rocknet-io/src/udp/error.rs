//! Error of the last system call, from `errno`.

use std::io;

use rustix::io::Errno;

/// Returns the error of the last system call of this thread, which must have failed.
pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
