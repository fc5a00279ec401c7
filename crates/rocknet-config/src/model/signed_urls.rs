//! Keys by which signed URLs are verified.

use std::path::PathBuf;

/// Origin of the keys of signed URLs (`auth = { signed = … }`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedUrls {
    /// Key that the server generates and keeps in its state folder.
    Generated,
    /// File with one key on each line.
    File(PathBuf),
}
