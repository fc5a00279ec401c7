//! PHP, as meant.

use std::fmt;
use std::path::PathBuf;

use super::upstream::Host;

/// The application that runs PHP by FastCGI.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Php {
    /// A php-fpm that the operator runs.
    External(Host),
    /// A php-fpm that the server starts. Its socket is chosen at that time; before, the path is empty.
    Managed { version: PhpVersion, socket: PathBuf },
}

/// One of the installed versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhpVersion {
    Newest,
    /// `8`: the newest of them; `8.2`: that one.
    Of {
        major: u8,
        minor: Option<u8>,
    },
}

/// Formats the value as it is written.
impl fmt::Display for Php {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Php::External(host) => host.fmt(f),
            Php::Managed { version, .. } => version.fmt(f),
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
