//! Lists a directory, at once or in steps: its files, its subdirectories, and its links to any file or directory that
//! the link policy permits.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, Dir};
use rustix::io::Errno;

use super::{Meta, OpenError, Symlinks, meta};

/// Name in a directory with the attributes of the file; for a link, the attributes of its target.
#[derive(Clone, Debug)]
pub struct DirEntry {
    /// The file name without its directory.
    pub name: OsString,
    /// Attributes of the file.
    pub meta: Meta,
}

/// Contents of a directory.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The entries, in no particular order.
    pub entries: Vec<DirEntry>,
    /// True if the directory contains more names than the requested maximum.
    pub truncated: bool,
}

/// A directory that is read in steps.
pub struct OpenDirectory {
    stream: Dir,
    /// Validated path below the root.
    pub(super) relative: Vec<u8>,
    /// Symbolic links that are followed.
    pub(super) symlinks: Symlinks,
}

impl OpenDirectory {
    /// Starts reading an open directory.
    pub(super) fn new(directory: OwnedFd, relative: &[u8], symlinks: Symlinks) -> Result<OpenDirectory, OpenError> {
        Ok(OpenDirectory {
            stream: Dir::new(directory)?,
            relative: relative.to_vec(),
            symlinks,
        })
    }
}

/// Reads at most `max_names` further names, and appends those of files and directories to `entries`. Returns the number
/// of names read. `stat_target` follows the link with the given name, and returns the attributes of its target.
pub(super) fn read(
    directory: &mut OpenDirectory,
    max_names: usize,
    entries: &mut Vec<DirEntry>,
    stat_target: impl Fn(&OpenDirectory, &[u8]) -> Result<Meta, OpenError>,
) -> Result<usize, OpenError> {
    let mut seen = 0;
    while seen < max_names
        && let Some(entry) = directory.stream.read()
    {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        // Names that are left out count too, so that a directory with a million sockets takes no longer than others.
        seen += 1;
        let meta = match rustix::fs::statat(directory.stream.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if meta::is_link(&stat) => stat_target(directory, name),
            Ok(stat) => Meta::from_stat(&stat),
            // The file was removed after its name had been read.
            Err(Errno::NOENT) => continue,
            Err(errno) => Err(errno.into()),
        };
        match meta {
            Ok(meta) => entries.push(DirEntry {
                name: OsString::from_vec(name.to_vec()),
                meta,
            }),
            Err(error @ (OpenError::Resources | OpenError::Io(_))) => return Err(error),
            // A special file, or a link that is dangling or must not be followed.
            Err(_) => {}
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use crate::confined_fs::tests::{TestTree, fifo};
    use crate::confined_fs::{FileKind, Symlinks};

    #[test]
    fn lists_only_files_folders_and_links_that_may_be_followed() {
        let tree = TestTree::new();
        tree.link("sub/inside", "../file");
        tree.link("sub/inside_directory", "..");
        tree.link("sub/outside", "../../outside/secret");
        tree.link("sub/dangling", "none");
        fifo(&tree.root().join("sub/fifo"));
        for root in tree.with_both_lookups() {
            let mut listing = root.list(b"/sub/", Symlinks::Inside, 100).unwrap();
            listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
            let found: Vec<_> = listing
                .entries
                .iter()
                .map(|entry| {
                    (
                        entry.name.to_str().unwrap(),
                        entry.meta.kind,
                        (entry.meta.kind == FileKind::File).then_some(entry.meta.size),
                    )
                })
                .collect();
            let expected = [
                ("deep", FileKind::Directory, None),
                ("inside", FileKind::File, Some(4)),
                ("inside_directory", FileKind::Directory, None),
                ("page", FileKind::File, Some(4)),
            ];
            assert_eq!(found, expected);
            assert!(!listing.truncated);
            let mut directory = root.open_directory(b"sub", Symlinks::Inside).unwrap();
            let mut entries = Vec::new();
            let counts = [4, 3, 4, 4].map(|max| root.read_directory(&mut directory, max, &mut entries).unwrap());
            assert_eq!((counts, entries.len()), ([4, 3, 0, 0], expected.len()));
            // The directory has seven names, including those that are left out.
            for (max, truncated) in [(0, true), (6, true), (7, false)] {
                let listing = root.list(b"sub", Symlinks::Inside, max).unwrap();
                assert_eq!(
                    (listing.truncated, listing.entries.len() <= max),
                    (truncated, true),
                    "at most {max}"
                );
            }
            for (path, expected) in [
                ("file", "NotFound"),
                ("none", "NotFound"),
                ("sub/outside", "Escapes"),
                ("..", "Escapes"),
            ] {
                let error = root.list(path.as_bytes(), Symlinks::Inside, 100).unwrap_err();
                assert_eq!(format!("{error:?}"), expected, "{path:?}");
            }
        }
    }
}
