//! Blocking and non-blocking lookups on disk. A non-blocking lookup uses only data in the kernel's caches.
//!
//! If a non-blocking lookup needs the disk, it records the missing data and fails. Once this data has been read ahead,
//! the lookup is repeated from the beginning and proceeds further. Because a lookup is repeated instead of suspended,
//! both kinds share one implementation, and a worker itself never waits for the disk: the blocking pool reads ahead.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocknet_io::confined_fs::{FileKind, OpenError, OpenedFile, Root, Symlinks};
use rocknet_io::file;
use rocknet_io::read_ahead::{ReadAhead, read_ahead};

use crate::tree::Tree;

/// Access to the disk that either blocks or fails instead of blocking.
pub struct DiskLookup {
    /// True if the lookup may block on the disk.
    blocks: bool,
    /// Root that is used for every tree; with `None`, the folder that is at the path of the tree now.
    root: Option<Arc<Root>>,
    /// Data that a non-blocking lookup has found missing so far.
    pending: RefCell<Vec<PendingRead>>,
}

/// Data that a non-blocking lookup needs from the disk.
#[derive(Debug)]
pub enum PendingRead {
    /// Names on the path of a file.
    Names {
        root: Arc<Root>,
        relative: Vec<u8>,
        symlinks: Symlinks,
    },
    /// Content of a file.
    Content { file: Arc<File>, inode: u64, length: u64 },
    /// Data that cannot be read ahead.
    Unavailable,
}

impl DiskLookup {
    /// Creates a lookup that may block on the disk.
    pub fn blocking() -> DiskLookup {
        DiskLookup {
            blocks: true,
            root: None,
            pending: RefCell::default(),
        }
    }

    /// Creates a lookup that may block on the disk and uses this root, even if the folder of the tree was replaced
    /// since. Only trees of that folder may be looked up.
    pub fn blocking_in(root: Arc<Root>) -> DiskLookup {
        DiskLookup {
            root: Some(root),
            ..DiskLookup::blocking()
        }
    }

    /// Runs `work` with a lookup that does not block.
    ///
    /// # Errors
    ///
    /// Returns the data that the lookup needs from the disk. The result of `work` is then discarded.
    pub fn non_blocking<T>(work: impl FnOnce(&DiskLookup) -> T) -> Result<T, Vec<PendingRead>> {
        let lookup = DiskLookup {
            blocks: false,
            root: None,
            pending: RefCell::default(),
        };
        let found = work(&lookup);
        let pending = lookup.pending.into_inner();
        if pending.is_empty() { Ok(found) } else { Err(pending) }
    }

    /// Returns true if the lookup needs data from the disk and must not block. Its results are then invalid.
    pub fn would_block(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    fn record(&self, pending: PendingRead) {
        self.pending.borrow_mut().push(pending);
    }

    /// Returns the open folder of a tree.
    pub fn root(&self, tree: &Tree) -> io::Result<Arc<Root>> {
        if let Some(root) = &self.root {
            return Ok(Arc::clone(root));
        }
        if self.blocks {
            return tree.root();
        }
        tree.root_non_blocking().ok_or_else(|| {
            self.record(PendingRead::Unavailable);
            io::ErrorKind::WouldBlock.into()
        })
    }

    /// Opens a file or folder below the root.
    pub fn open(&self, root: &Arc<Root>, relative: &[u8], symlinks: Symlinks) -> Result<OpenedFile, OpenError> {
        if self.blocks {
            return root.open_file(relative, symlinks);
        }
        root.open_cached(relative, symlinks).inspect_err(|error| {
            if let OpenError::WouldBlock = error {
                self.record(PendingRead::Names {
                    root: Arc::clone(root),
                    relative: relative.to_vec(),
                    symlinks,
                });
            }
        })
    }

    /// Returns whether a path below the root leads to a file or a folder. Permission to read it is not required.
    pub fn kind(&self, root: &Arc<Root>, relative: &[u8], symlinks: Symlinks) -> Result<FileKind, OpenError> {
        if self.blocks {
            return root.stat(relative, symlinks).map(|meta| meta.kind);
        }
        // Without permission to read the file, this call returns `WouldBlock`, and a blocking lookup decides.
        self.open(root, relative, symlinks).map(|opened| opened.meta.kind)
    }

    /// Opens a file that most likely does not exist; `None` if it does not exist or cannot be opened. A blocking lookup
    /// first checks by a single system call whether the file may exist.
    pub fn open_if_exists(&self, root: &Arc<Root>, relative: &[u8], symlinks: Symlinks) -> Option<OpenedFile> {
        if self.blocks && !root.may_contain(relative) {
            return None;
        }
        self.open(root, relative, symlinks).ok()
    }

    /// Reads the content of a file up to the length that it had when it was opened, because the file may grow
    /// meanwhile.
    pub fn read(&self, opened: OpenedFile) -> io::Result<Vec<u8>> {
        let (size, inode) = (opened.meta.size, opened.meta.inode);
        if self.blocks {
            return file::read_at_most(&opened.file, size as usize);
        }
        match file::read_at_most_resident(&opened.file, size as usize)? {
            Some(content) => Ok(content),
            None => {
                self.record(PendingRead::Content {
                    file: Arc::new(opened.file),
                    inode,
                    length: size,
                });
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }

    /// Returns the path of a site's folder without symbolic links.
    pub fn canonical_root(&self, tree: &Tree) -> io::Result<PathBuf> {
        self.canonicalize(tree.folder())
    }

    /// Returns a path without symbolic links. A non-blocking lookup fails, because no system call resolves a path only
    /// in the caches.
    pub fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        if self.blocks {
            return path.canonicalize();
        }
        self.record(PendingRead::Unavailable);
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl PendingRead {
    /// Starts reading the data ahead on the event loop of this thread. Returns `None` if this is impossible, so that a
    /// thread of the blocking pool has to read the data.
    pub fn read_ahead(&self) -> Option<ReadAhead> {
        match self {
            PendingRead::Names {
                root,
                relative,
                symlinks,
            } => root.prefetch_names(relative, *symlinks),
            PendingRead::Content { file, length, .. } => read_ahead(file, 0, *length),
            PendingRead::Unavailable => None,
        }
    }

    /// Returns true if `before` was the same data, so that reading it ahead had no effect.
    pub fn is_same_as(&self, before: &PendingRead) -> bool {
        match (self, before) {
            (PendingRead::Names { relative, .. }, PendingRead::Names { relative: before, .. }) => relative == before,
            (PendingRead::Content { inode, .. }, PendingRead::Content { inode: before, .. }) => inode == before,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocking_lookups_resolve_paths() {
        let root = Path::new("/");
        assert_eq!(DiskLookup::blocking().canonicalize(root).unwrap(), root);
        let found = DiskLookup::non_blocking(|lookup| lookup.canonicalize(root));
        let pending = found.expect_err("the lookup would block");
        assert!(matches!(pending[..], [PendingRead::Unavailable]), "{pending:?}");
    }
}
