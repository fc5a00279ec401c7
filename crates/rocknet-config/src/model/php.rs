//! Who runs PHP, as meant.

use std::fmt;
use std::path::PathBuf;

/// Where an application is reached that runs PHP by FastCGI.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Php {
    Unix(PathBuf),
    /// `host` is a name or an address; an IPv6 address is without brackets.
    Tcp {
        host: String,
        port: u16,
    },
    /// One that the server starts itself. Where it listens is settled when it does; before, the path is empty.
    Own {
        version: PhpVersion,
        socket: PathBuf,
    },
}

/// Which of the installed versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhpVersion {
    Newest,
    /// `8`: the newest of them; `8.2`: that one.
    Of {
        major: u8,
        minor: Option<u8>,
    },
}

/// As it is written.
impl fmt::Display for Php {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Php::Unix(path) => write!(f, "unix:{}", path.display()),
            Php::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Php::Tcp { host, port } => write!(f, "{host}:{port}"),
            Php::Own { version, .. } => version.fmt(f),
        }
    }
}

impl fmt::Display for PhpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PhpVersion::Newest => f.write_str("auto"),
            PhpVersion::Of { major, minor: None } => write!(f, "{major}"),
            PhpVersion::Of {
                major,
                minor: Some(minor),
            } => write!(f, "{major}.{minor}"),
        }
    }
}
