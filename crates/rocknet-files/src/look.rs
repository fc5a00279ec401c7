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

pub struct Look {
    waits: bool,
    missing: RefCell<Vec<Missing>>,
}

/// What a look would have had to wait for.
#[derive(Debug)]
pub enum Missing {
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
    Else,
}

impl Look {
    /// May wait for the disk.
    pub fn patient() -> Look {
        Look {
            waits: true,
            missing: RefCell::default(),
        }
    }

    /// Takes a look that waits for nothing; what it found, unless something was missing: all that it came across.
    pub fn from_memory<T>(take: impl FnOnce(&Look) -> T) -> Result<T, Vec<Missing>> {
        let look = Look {
            waits: false,
            missing: RefCell::default(),
        };
        let found = take(&look);
        let missing = look.missing.into_inner();
        if missing.is_empty() { Ok(found) } else { Err(missing) }
    }

    /// Whether something is missing: what is found does not count.
    pub fn lacks(&self) -> bool {
        !self.missing.borrow().is_empty()
    }

    fn note(&self, missing: Missing) {
        self.missing.borrow_mut().push(missing);
    }

    pub fn root(&self, tree: &Tree) -> io::Result<Arc<Root>> {
        if self.waits {
            return tree.root();
        }
        tree.root_in_memory().ok_or_else(|| {
            self.note(Missing::Else);
            io::ErrorKind::WouldBlock.into()
        })
    }

    pub fn open(&self, root: &Arc<Root>, relative: &[u8], symlinks: Symlinks) -> Result<OpenedFile, OpenError> {
        if self.waits {
            return root.open_file(relative, symlinks);
        }
        root.open_cached(relative, symlinks).inspect_err(|error| {
            if let OpenError::WouldBlock = error {
                self.note(Missing::Names {
                    root: Arc::clone(root),
                    relative: relative.to_vec(),
                    symlinks,
                });
            }
        })
    }

    /// Opens what is most likely not there.
    pub fn open_if_there(&self, root: &Arc<Root>, relative: &[u8], symlinks: Symlinks) -> Option<OpenedFile> {
        if self.waits && !root.may_contain(relative) {
            return None;
        }
        self.open(root, relative, symlinks).ok()
    }

    /// All that was there when it was opened: a file may grow while it is read.
    pub fn read(&self, opened: OpenedFile) -> io::Result<Vec<u8>> {
        let (size, inode) = (opened.meta.size, opened.meta.inode);
        if self.waits {
            return file::read_at_most(&opened.file, size as usize);
        }
        match file::read_at_most_resident(&opened.file, size as usize)? {
            Some(content) => Ok(content),
            None => {
                self.note(Missing::Content {
                    file: Arc::new(opened.file),
                    inode,
                    length: size,
                });
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }

    /// The folder of a site without links in its path.
    pub fn whole(&self, tree: &Tree) -> io::Result<PathBuf> {
        if self.waits {
            return tree.folder().canonicalize();
        }
        self.note(Missing::Else);
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Missing {
    /// Has the loop of this thread bring it. `None`: a thread has to wait for it.
    pub fn bring(&self) -> Option<ReadAhead> {
        match self {
            Missing::Names {
                root,
                relative,
                symlinks,
            } => root.prefetch_names(relative, *symlinks),
            Missing::Content { file, length, .. } => read_ahead(file, 0, *length),
            Missing::Else => None,
        }
    }

    /// Whether it was brought in vain: this is missing still.
    pub fn is_still(&self, before: &Missing) -> bool {
        match (self, before) {
            (Missing::Names { relative, .. }, Missing::Names { relative: before, .. }) => relative == before,
            (Missing::Content { inode, .. }, Missing::Content { inode: before, .. }) => inode == before,
            _ => false,
        }
    }
}
