//! Why a file could not be opened, told by who can mend it.

use std::error::Error;
use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why a look-up below a root gave no file.
#[derive(Debug)]
pub enum OpenError {
    /// Nothing is there that could be served: no such name, a link to nowhere, or a FIFO, socket or device.
    NotFound,
    /// The operator's permissions (or a link between owners) forbid it.
    Forbidden,
    /// The path leads out of the root.
    Escapes,
    /// The process or the system has no descriptor or memory left; the file may well exist. To be answered with 503.
    Resources,
    /// The answer is not in memory; ask again where waiting is allowed. Given by `open_cached` alone.
    WouldBlock,
    /// The disk or file system failed.
    Io(io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            // ELOOP: links in a circle. ENAMETOOLONG: no file system here could hold it. ENXIO, ENODEV: a socket, or a
            // device without a driver. EINVAL, EILSEQ: a name that this file system cannot hold.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NXIO
            | Errno::NODEV
            | Errno::INVAL
            | Errno::ILSEQ => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::XDEV => Self::Escapes,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS => Self::Resources,
            other => Self::Io(other.into()),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::Forbidden => f.write_str("the server's user may not read it"),
            Self::Escapes => f.write_str("the path leads out of the root"),
            Self::Resources => f.write_str("out of file descriptors or memory; raise the limit of open files"),
            Self::WouldBlock => f.write_str("not in memory"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
