//! Symbolic links: which of them are followed, and where one leads.

/// Which symbolic links below a root are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that stay inside the root.
    #[default]
    Inside,
    /// Those whose target, wherever it is, belongs to the owner of the link.
    Owner,
    /// All of them, wherever they lead.
    All,
}

/// A name looked at without following it.
pub(super) enum LinkTarget {
    Link { target: Vec<u8>, uid: u32 },
    NotALink,
}
