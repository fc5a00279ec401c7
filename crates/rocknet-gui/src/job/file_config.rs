//! Configuration as its files have it, read without a server.

use std::path::PathBuf;

use rocknet_control::SiteKind;

/// Configuration that a stopped server would load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileConfig {
    /// Main file.
    pub file: PathBuf,
    /// Websites, in the order of the files.
    pub sites: Vec<FileSite>,
    /// Errors and warnings, in the order of the files.
    pub findings: Vec<FileFinding>,
}

/// Website of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSite {
    pub name: String,
    pub root: Option<PathBuf>,
    pub kind: SiteKind,
    /// Version of PHP as the file has it; empty without PHP.
    pub php: String,
    pub is_disabled: bool,
}

/// Error or warning about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFinding {
    pub is_error: bool,
    /// Name of the file, with the line; only the name without a line.
    pub place: String,
    pub message: String,
    /// Remedy; may be empty.
    pub help: String,
}
