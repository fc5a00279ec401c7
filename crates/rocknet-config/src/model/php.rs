//! Settings of PHP.

use std::fmt;
use std::path::PathBuf;

use super::upstream::Host;

/// FastCGI application that runs PHP scripts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Php {
    /// php-fpm that the operator runs at this address.
    External(Host),
    /// php-fpm that the server starts.
    Managed {
        /// Version of PHP.
        version: PhpVersion,
        /// Path of the socket. The PHP manager sets it when it plans its pools, before php-fpm starts. It is empty in
        /// the parsed configuration.
        socket: PathBuf,
    },
}

/// Selection of one of the installed versions of PHP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhpVersion {
    /// Newest installed version: `auto`.
    Newest,
    /// Newest installed version with these numbers: `8` or `8.2`.
    Of {
        /// Major version.
        major: u8,
        /// Minor version; `None`: any.
        minor: Option<u8>,
    },
}

/// Formats the value as in the configuration.
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
