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
}

/// As it is written.
impl fmt::Display for Php {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Php::Unix(path) => write!(f, "unix:{}", path.display()),
            Php::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Php::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}
