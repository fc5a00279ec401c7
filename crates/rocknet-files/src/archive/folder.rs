//! A folder of an archive, and the folders above it.

use std::sync::Arc;

use rocknet_io::confined_fs::Meta;

use crate::tree::Tree;

/// A folder to read.
pub struct ArchiveFolder {
    /// Tree that lists the folder.
    pub tree: Arc<Tree>,
    /// Decoded path in URLs, with a slash at both ends.
    pub path: String,
    /// Path below the root.
    pub relative: Vec<u8>,
    /// Path in the archive, with a slash at the end.
    pub name: String,
    /// Number of folders above it in the archive.
    pub depth: usize,
    /// Time of the last change, in seconds since 1970-01-01T00:00:00Z.
    pub modified_unix: i64,
    /// Identity of the folder, and of the folders above it.
    pub above: Arc<Above>,
}

impl ArchiveFolder {
    /// Returns the total length of the three paths in bytes.
    pub fn path_bytes(&self) -> usize {
        self.path.len() + self.relative.len() + self.name.len()
    }
}

/// Identity of a folder, and of the folders above it. Following a symbolic link to one of them would never end.
pub struct Above {
    device: u64,
    inode: u64,
    parent: Option<Arc<Above>>,
}

impl Above {
    /// Returns the identity of a folder below `parent`.
    pub fn of(meta: &Meta, parent: Option<Arc<Above>>) -> Above {
        Above {
            device: meta.device,
            inode: meta.inode,
            parent,
        }
    }

    /// Returns true if the attributes are those of the folder, or of a folder above it.
    pub fn contains(&self, meta: &Meta) -> bool {
        let mut folder = Some(self);
        while let Some(above) = folder {
            if (above.device, above.inode) == (meta.device, meta.inode) {
                return true;
            }
            folder = above.parent.as_deref();
        }
        false
    }
}

/// Joins the path of a folder below the root with a name.
pub fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder {
        b"." | b"" => name.to_vec(),
        folder => [folder, b"/", name].concat(),
    }
}
