//! Settings of PHP.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
        /// Settings of its php-fpm. Sites and routes with equal settings share one.
        settings: Box<PhpSettings>,
        /// Path of the socket. The PHP manager sets it when it plans its pools, before php-fpm starts. It is empty in
        /// the parsed configuration.
        socket: PathBuf,
    },
}

/// Settings of a php-fpm that the server starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhpSettings {
    /// Settings of `php.ini` by name. Names and values are one line each, and no value has both a single quote and one
    /// of the characters `"`, `\` and `$`, so that the pool file can quote it.
    pub ini: BTreeMap<String, String>,
    /// Environment variables of the scripts.
    pub env: BTreeMap<String, String>,
    /// Maximum number of processes; `None`: by the memory of the machine.
    pub workers: Option<u32>,
    /// Time without a request after which a process ends.
    pub idle: Duration,
    /// Time after which a running request is logged; `None`: never.
    pub slow: Option<Duration>,
}

impl Default for PhpSettings {
    fn default() -> PhpSettings {
        PhpSettings {
            ini: BTreeMap::new(),
            env: BTreeMap::new(),
            workers: None,
            idle: Duration::from_secs(10),
            slow: None,
        }
    }
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
