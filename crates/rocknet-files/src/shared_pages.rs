//! Content of files that are served for many paths (error pages, fallbacks), shared by all these paths.
//!
//! Without sharing, each path that a client makes up would have its own copy until its response has been sent, even if
//! the cache evicts the entry. A client that opens many streams and reads nothing would keep a copy for each stream in
//! memory.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::entry::FileIdentity;

/// Maximum number of files per tree. A tree has one fallback and a few error pages; `try` can add more files.
const MAX_PAGES: usize = 16;

/// Shared content of the files of one tree.
#[derive(Default)]
pub struct SharedPages(Mutex<Vec<(FileIdentity, Bytes)>>);

impl SharedPages {
    /// Returns the content of a file, if the file is unchanged since it was read.
    pub fn get(&self, identity: &FileIdentity) -> Option<Bytes> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, content) = pages.iter().find(|(known, _)| known == identity)?;
        Some(content.clone())
    }

    /// Stores the content of a file and replaces its earlier content. If there are `MAX_PAGES` files, removes the
    /// oldest.
    pub fn insert(&self, identity: FileIdentity, content: &Bytes) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(known, _)| (known.device, known.inode) != (identity.device, identity.inode));
        if pages.len() >= MAX_PAGES {
            pages.remove(0);
        }
        pages.push((identity, content.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64, size: u64) -> FileIdentity {
        FileIdentity {
            device: 1,
            inode,
            size,
            modified_ns: 0,
        }
    }

    #[test]
    fn a_file_has_one_copy_and_the_oldest_file_is_removed() {
        let (pages, content) = (SharedPages::default(), Bytes::from_static(b"x"));
        pages.insert(identity(0, 1), &content);
        assert_eq!(pages.get(&identity(0, 1)), Some(content.clone()));
        pages.insert(identity(0, 2), &content);
        assert_eq!(pages.get(&identity(0, 1)), None, "the file has changed");
        for inode in 1..MAX_PAGES as u64 {
            pages.insert(identity(inode, 1), &content);
        }
        assert!(pages.get(&identity(0, 2)).is_some());
        pages.insert(identity(100, 1), &content);
        assert!(pages.get(&identity(0, 2)).is_none() && pages.get(&identity(1, 1)).is_some());
    }
}
