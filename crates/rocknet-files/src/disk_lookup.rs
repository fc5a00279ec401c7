//! A look at the disk: one that waits for it, or one that goes by what the kernel has in memory and ends where that ends.
//!
//! A look is always taken from its beginning. One that lacked something tells what; when that has been brought, the next
//! gets further. So there is one way to find and to load, and a worker can go it without a thread.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rocknet_io::confined_fs::{OpenError, OpenedFile, Root, Symlinks};
use rocknet_io::file;
use rocknet_io::read_ahead::{ReadAhead, read_ahead};

use crate::tree::Tree;

pub struct DiskLookup {
    blocks: bool,
    pending: RefCell<Vec<PendingRead>>,
}

/// What a look would have had to wait for.
#[derive(Debug)]
pub enum PendingRead {
    /// The way to a file.
    Names {
        root: Arc<Root>,
        relative: Vec<u8>,
        symlinks: Symlinks,
    },
    Content {
        file: Arc<File>,
        inode: u64,
        length: u64,
    },
    /// Nothing that could be brought by itself.
    Unavailable,
}

impl DiskLookup {
    /// May wait for the disk.
    pub fn blocking() -> DiskLookup {
        DiskLookup {
            blocks: true,
            pending: RefCell::default(),
        }
    }

    /// Takes a look that waits for nothing; what it found, unless something was missing: all that it came across.
    pub fn non_blocking<T>(take: impl FnOnce(&DiskLookup) -> T) -> Result<T, Vec<PendingRead>> {
        let lookup = DiskLookup {
            blocks: false,
            pending: RefCell::default(),
        };
        let found = take(&lookup);
        let pending = lookup.pending.into_inner();
        if pending.is_empty() { Ok(found) } else { Err(pending) }
    }

    /// Whether something is missing: what is found does not count.
    pub fn would_block(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    fn record(&self, pending: PendingRead) {
        self.pending.borrow_mut().push(pending);
    }

    pub fn root(&self, tree: &Tree) -> io::Result<Arc<Root>> {
        if self.blocks {
            return tree.root();
        }
        tree.root_non_blocking().ok_or_else(|| {
            self.record(PendingRead::Unavailable);
            io::ErrorKind::WouldBlock.into()
        })
    }

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

    /// Opens what is most likely not there.
    pub fn open_if_exists(&self, root: &Arc<Root>, relative: &[u8], symlinks: Symlinks) -> Option<OpenedFile> {
        if self.blocks && !root.may_contain(relative) {
            return None;
        }
        self.open(root, relative, symlinks).ok()
    }

    /// All that was there when it was opened: a file may grow while it is read.
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

    /// The folder of a site without links in its path.
    pub fn canonical_root(&self, tree: &Tree) -> io::Result<PathBuf> {
        if self.blocks {
            return tree.folder().canonicalize();
        }
        self.record(PendingRead::Unavailable);
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl PendingRead {
    /// Has the loop of this thread bring it. `None`: a thread has to wait for it.
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

    /// Whether it was brought in vain: this is missing still.
    pub fn is_same_as(&self, before: &PendingRead) -> bool {
        match (self, before) {
            (PendingRead::Names { relative, .. }, PendingRead::Names { relative: before, .. }) => relative == before,
            (PendingRead::Content { inode, .. }, PendingRead::Content { inode: before, .. }) => inode == before,
            _ => false,
        }
    }
}
