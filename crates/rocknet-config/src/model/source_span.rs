//! Places in the files of a configuration.

use std::path::PathBuf;

/// File and line of a key or table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceSpan {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
}
