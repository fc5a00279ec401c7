//! Result of a translation, and the error of a file that cannot be translated.

use crate::directive::SyntaxError;
use crate::note::Note;

/// Result of a translation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The RockNet configuration, with comments.
    pub toml: String,
    /// Notes about directives, in the order of their lines. The lines of an included file follow all lines of the file
    /// that includes it.
    pub notes: Vec<Note>,
    /// Number of written lines with a setting or the header of a rule; 0 if nothing was translated.
    pub settings: usize,
}

/// Reason why a file cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Name of the file.
    pub file: String,
    /// Line of the file, counted from 1; `None` if the error concerns the whole file.
    pub line: Option<usize>,
    /// Description of the problem.
    pub message: String,
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ImportError {}

impl From<SyntaxError> for ImportError {
    fn from(error: SyntaxError) -> ImportError {
        ImportError {
            // The caller sets the name.
            file: String::new(),
            line: Some(error.line),
            message: error.message,
        }
    }
}
