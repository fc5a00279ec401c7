//! Access to the files below a listed folder, as far as routes and rules decide about it.

/// Decides which of the files below a folder the route of the folder itself would send.
///
/// A file of the folder may belong to a route with other guards, and a rule may redirect or refuse requests for it. The
/// server implements this trait, because a tree knows no other route.
pub trait PathAccess: Send {
    /// Returns true if a request of the same client for this path would reach the same tree, with the same path.
    /// `path`: decoded path below the folder, with a leading slash.
    fn reaches_tree(&self, path: &str) -> bool;
}
