//! Lists the files and folders of a directory, and the links to files and folders that may be followed.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, Dir};
use rustix::io::Errno;

use super::{Meta, OpenError, meta};

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

/// Reads at most `max_entries` names of `directory`. `stat_target` returns the attributes of the target of the link
/// with the given name.
pub(super) fn read(
    directory: OwnedFd,
    max_entries: usize,
    stat_target: impl Fn(&[u8]) -> Result<Meta, OpenError>,
) -> Result<Listing, OpenError> {
    let mut stream = Dir::new(directory)?;
    let mut listing = Listing::default();
    let mut seen = 0;
    while let Some(entry) = stream.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        // Names that are left out count too, so that a directory with a million sockets takes no longer than others.
        if seen == max_entries {
            listing.truncated = true;
            break;
        }
        seen += 1;
        let meta = match rustix::fs::statat(stream.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if meta::is_link(&stat) => stat_target(name),
            Ok(stat) => Meta::from_stat(&stat),
            // The file was removed after its name had been read.
            Err(Errno::NOENT) => continue,
            Err(errno) => Err(errno.into()),
        };
        match meta {
            Ok(meta) => listing.entries.push(DirEntry {
                name: OsString::from_vec(name.to_vec()),
                meta,
            }),
            Err(error @ (OpenError::Resources | OpenError::Io(_))) => return Err(error),
            // A special file, or a link that is dangling or must not be followed.
            Err(_) => {}
        }
    }
    Ok(listing)
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
