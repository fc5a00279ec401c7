//! Changes the owner of the storage folders, as root, before the process changes its account.
//!
//! From the second start on, the account already owns these folders, and its processes can rename entries at any
//! moment. Therefore each step works on an open descriptor, and follows no symbolic link below the storage folder.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, mkdirat, open, openat};
use rustix::io::Errno;

/// Maximum folder depth. RockNet creates three levels.
const MAX_DEPTH: u32 = 16;

/// Flags that follow no link, acquire no controlling terminal, and do not wait for the other end of a FIFO.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The account that becomes the owner.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    uid: Uid,
    gid: Gid,
}

impl Owner {
    pub(super) fn new(uid: u32, gid: u32) -> Owner {
        Owner {
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
        }
    }

    /// Changes the owner of the folder at `path`, which must not be a link, and sets mode 0700.
    pub(super) fn chown_folder(self, path: &Path) -> io::Result<()> {
        let folder = open(path, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
        self.chown(&folder)?;
        Ok(fchmod(&folder, Mode::RWXU)?)
    }

    /// Creates the folder `name` in `path` if it does not exist, and changes the owner of its whole tree. A symbolic
    /// link with that name is neither changed nor followed, because it leads to another place.
    pub(super) fn chown_tree(self, path: &Path, name: &str) -> io::Result<()> {
        let top = open(
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        match mkdirat(&top, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = match openat(&top, name, FLAGS | OFlags::DIRECTORY, Mode::empty()) {
            Ok(folder) => folder,
            // The flags require a folder and do not follow links, so opening a link or a file fails with these errors.
            Err(Errno::LOOP | Errno::NOTDIR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        fchmod(&folder, Mode::RWXU)?;
        self.chown_contents(&folder, MAX_DEPTH)
    }

    /// Changes the owner of an open folder and everything in it. `depth` is the number of levels that may follow.
    fn chown_contents(self, folder: &OwnedFd, depth: u32) -> io::Result<()> {
        self.chown(folder)?;
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match openat(folder, name, FLAGS, Mode::empty()) {
                Ok(found) => self.chown_entry(&found, depth)?,
                // The entry is a link, or it was removed meanwhile, or it is a socket, which cannot be opened (Linux:
                // `ENXIO`, macOS: `EOPNOTSUPP`). A socket keeps its owner: the account can replace it, because it owns
                // the folder. A change by name would be unsafe, because the account could put another file in its
                // place.
                Err(Errno::LOOP | Errno::NOENT | Errno::NXIO | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Changes the owner of an open entry of a folder, with its contents if it is a folder.
    fn chown_entry(self, found: &OwnedFd, depth: u32) -> io::Result<()> {
        let stat = fstat(found)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth == 0 => Err(io::Error::other(format!(
                "folders are nested more than {MAX_DEPTH} levels deep"
            ))),
            FileType::Directory => self.chown_contents(found, depth - 1),
            // A file with a second hard link keeps its owner, because the file may also be stored outside the folder.
            FileType::RegularFile if stat.st_nlink == 1 => self.chown(found),
            _ => Ok(()),
        }
    }

    /// Changes the owner of an open file or folder, unless it is right already.
    fn chown(self, found: impl AsFd) -> io::Result<()> {
        let stat = fstat(found.as_fd())?;
        if (stat.st_uid, stat.st_gid) == (self.uid.as_raw(), self.gid.as_raw()) {
            return Ok(());
        }
        Ok(fchown(found, Some(self.uid), Some(self.gid))?)
    }
}
