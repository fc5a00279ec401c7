//! Folders and files that are still to be reworded.

/// Folders, or the files directly in a folder (`folder/*.rs`), with violations of the prose rules.
pub const PROSE: &[&str] = &[];

/// Crates with violations of the rule of type names.
pub const TYPE_NAMES: &[&str] = &[];
