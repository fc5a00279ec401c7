//! Undo that the server has refused, because it would discard edits that are not in the history.

use rocknet_control::config::Undo;

/// Refused undo, for the question whether to discard the edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedUndo {
    /// The same undo, which discards the edits.
    pub(super) undo: Undo,
    /// The edits as a unified diff.
    pub edits: String,
}
