//! Violation of a rule of wording, with its line.

/// A rule of wording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// The first words of a doc comment.
    Opening,
    /// Words in comments.
    Idiom,
    /// The length of a sentence in a comment.
    Length,
    /// The width of a line that is a comment.
    Width,
    /// Words in messages.
    Message,
    /// Names of types, which `names.rs` checks.
    TypeName,
}

/// A violation of a rule of wording in one file.
#[derive(PartialEq, Eq, Debug)]
pub struct Finding {
    pub rule: Rule,
    pub line: usize,
    pub text: String,
}
