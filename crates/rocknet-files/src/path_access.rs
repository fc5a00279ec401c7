//! Access to the files below a listed folder, as far as routes and rules decide about it.

use std::sync::Arc;

use crate::tree::Tree;

/// Decides which files below a listed folder the client would also get if it requested them.
///
/// A file of the folder may belong to a route with other guards, and a rule may redirect or refuse requests for it. The
/// server implements this trait, because a tree knows no other route.
pub trait PathAccess: Send {
    /// Returns the tree that a request of the same client for this path would reach, with the same path. Returns `None`
    /// if a guard may refuse the request, or if something other than a tree responds. `path`: decoded path of the
    /// site, which must be below the listed folder.
    fn tree_at(&self, path: &str) -> Option<Arc<Tree>>;
}
