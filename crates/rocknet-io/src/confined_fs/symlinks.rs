//! Policy that decides which symbolic links are followed, and the result of reading a link.

/// Policy for symbolic links below a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Follows links whose target is inside the root, if the path to the target does not leave the root on the way. The
    /// target of an absolute link must begin with the path of the root.
    #[default]
    Inside,
    /// Follows links whose target, wherever it is, has the same owner as the link.
    Owner,
    /// Follows all links, wherever they lead.
    All,
}

/// Result of examining a name without following it.
pub(super) enum LinkTarget {
    /// A link, with its target and the user ID of its owner.
    Link { target: Vec<u8>, uid: u32 },
    /// Anything other than a link.
    NotALink,
}
