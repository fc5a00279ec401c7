//! Positions in the files of a configuration.

use std::path::PathBuf;

/// Position of a key or table: its file and line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceSpan {
    /// Absolute path of the file; empty in a configuration that was built in memory.
    pub file: PathBuf,
    /// Line number, counted from 1; 0 in a configuration that was built in memory.
    pub line: usize,
}
