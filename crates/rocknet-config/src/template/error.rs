//! The error of a text that is not a template.

/// A reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The part of the text that is wrong, and why.
    pub message: String,
    /// The remedy.
    pub help: String,
}
