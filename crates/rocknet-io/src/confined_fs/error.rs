//! Errors of lookups below a root, grouped by how the caller has to react.

use std::error::Error;
use std::fmt;
use std::io;

use rustix::io::Errno;

/// Error of a lookup below a root.
#[derive(Debug)]
pub enum OpenError {
    /// No file that can be served: the name does not exist or is invalid, a link is dangling or circular, or the file
    /// is a FIFO, socket or device.
    NotFound,
    /// Access is forbidden by file permissions or, under [`Symlinks::Owner`](super::Symlinks::Owner), by a link to a
    /// file of another owner.
    Forbidden,
    /// The path or one of its links leads out of the root, or the path contains `..`.
    Escapes,
    /// The process or the system has no descriptor or memory left, or a lookup by `walk.rs` would keep too many
    /// directories open. It is therefore unknown whether the file exists. The response is 503.
    Resources,
    /// The lookup might block, for example on the disk; the caller repeats it where blocking is allowed. Returned by
    /// `open_cached` only.
    WouldBlock,
    /// The disk or file system failed.
    Io(io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            // ELOOP: circular links. ENAMETOOLONG, EINVAL, EILSEQ: no file of this file system can have this name.
            // ENXIO, ENODEV: a socket, or a device without a driver.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NXIO
            | Errno::NODEV
            | Errno::INVAL
            | Errno::ILSEQ => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden,
            Errno::XDEV => Self::Escapes,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS => Self::Resources,
            other => Self::Io(other.into()),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::Forbidden => f.write_str("forbidden by file permissions, or by a link to a file of another owner"),
            Self::Escapes => f.write_str("the path leads outside the root"),
            Self::Resources => f.write_str(
                "out of file descriptors or memory (raise the limit of open files), or the path is too deep",
            ),
            Self::WouldBlock => f.write_str("not in memory"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use crate::confined_fs::Symlinks;
    use crate::confined_fs::tests::{TestTree, outcome};
    use crate::isolated_test::in_own_process;

    /// This test runs in its own process, because the limit applies to the whole process.
    #[test]
    fn running_out_of_descriptors_is_not_reported_as_a_missing_file() {
        if !in_own_process("confined_fs::error::tests::running_out_of_descriptors_is_not_reported_as_a_missing_file") {
            return;
        }
        let tree = TestTree::new();
        // The kernel refuses an absolute link, so the walk over open directories repeats the lookup.
        tree.link("absolute", tree.root().join("sub/page"));
        // The first root uses the lookups of the kernel, the second one only the walk.
        let roots = tree.with_both_lookups();
        let limit = getrlimit(Resource::Nofile);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(0),
                maximum: limit.maximum,
            },
        )
        .unwrap();
        let outcomes: Vec<_> = roots
            .iter()
            .flat_map(|root| {
                // `outcome` returns the content of an opened file, or the name of the error.
                let open = |path: &[u8], symlinks| outcome(root.open_file(path, symlinks));
                let listed = root
                    .list(b"sub", Symlinks::Inside, 10)
                    .map(|_| ())
                    .map_err(|error| format!("{error:?}"));
                [
                    open(b"file", Symlinks::Inside),
                    open(b"file", Symlinks::Owner),
                    open(b"file", Symlinks::All),
                    open(b"absolute", Symlinks::Inside),
                    // A root without cached lookups, such as the second one, returns `WouldBlock`.
                    outcome(root.open_cached(b"file", Symlinks::All)).replace("WouldBlock", "Resources"),
                    listed.unwrap_err(),
                ]
            })
            .collect();
        setrlimit(Resource::Nofile, limit).unwrap();
        assert_eq!(outcomes, ["Resources"; 12]);
        // The file can be opened again once the limit is restored.
        assert_eq!(outcome(roots[0].open_file(b"file", Symlinks::Inside)), "file");
    }
}
