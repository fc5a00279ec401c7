//! A folder that is requested as an archive.

use std::sync::Arc;

use rocknet_config::model::ZipLimits;
use rocknet_handler::client::Client;

use crate::tree::Tree;

/// A folder that is requested as an archive.
pub struct ArchiveRequest {
    /// File tree that lists the folder.
    pub tree: Arc<Tree>,
    /// Decoded path of the folder in URLs, with a slash at both ends.
    pub path: Arc<str>,
    /// Path of the folder below the root of the tree.
    pub relative: Vec<u8>,
    /// Limits of the archive.
    pub limits: ZipLimits,
    /// Client that requests it.
    pub client: Client,
}
