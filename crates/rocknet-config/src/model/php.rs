//! Who runs PHP, as meant.

use std::fmt;
use std::path::PathBuf;

use super::{Host, Settings};

/// Where an application is reached that runs PHP by FastCGI.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Php {
    /// A php-fpm that somebody else looks after.
    At(Host),
    /// One that the server starts itself. Where it listens is settled when it does; before, the path is empty.
    Own { version: PhpVersion, socket: PathBuf },
}

impl Settings {
    /// Returns whether RockNet starts programs for requests here: CGI programs, or a php-fpm of its own.
    pub fn runs_programs(&self) -> bool {
        self.cgi.is_some() || matches!(self.php, Some(Php::Own { .. }))
    }
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
            Php::At(host) => host.fmt(f),
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
