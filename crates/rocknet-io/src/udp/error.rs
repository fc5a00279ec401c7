//! Error of the last system call, from `errno`.

use std::io;

use rustix::io::Errno;

pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
