//! PHP of a machine, and its use by the sites of a server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Installed versions of PHP and the sites that use PHP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PhpSummary {
    /// Installed versions that the server can run, the newest first.
    pub installed: Vec<InstalledPhp>,
    /// Uses of PHP, in the order of the sites.
    pub uses: Vec<PhpUse>,
}

/// An installed version of PHP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InstalledPhp {
    /// Version, such as `8.2`.
    pub version: String,
    /// Path of the program.
    pub program: PathBuf,
}

/// PHP of a site. A site has several if its routes use others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PhpUse {
    /// Name of the site.
    pub site: String,
    /// Version as in the configuration, such as `auto`; `None` if the operator runs the php-fpm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Address of the php-fpm.
    pub address: String,
    /// Reason why the php-fpm that the server runs does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}
