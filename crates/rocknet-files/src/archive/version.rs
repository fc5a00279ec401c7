//! Detects files that change or are replaced between the scan of their folder and the end of their transfer.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

/// State of a file when its folder was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    /// Time of the last change: seconds and nanoseconds.
    modified: (i64, i64),
    /// Time at which the file was created; `None` if the file system does not store it. It differs if the inode of a
    /// removed file is used again.
    created: Option<SystemTime>,
}

impl FileVersion {
    /// Returns the state of an open file.
    ///
    /// # Errors
    ///
    /// Fails if the attributes of the file cannot be read.
    pub fn of(file: &File) -> io::Result<FileVersion> {
        let meta = file.metadata()?;
        Ok(FileVersion {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            created: meta.created().ok(),
        })
    }

    /// Checks that the first bytes of an open file, up to the size of this version, are those of this version. A file
    /// that became longer is taken for one to which bytes were appended, as to a log.
    ///
    /// # Errors
    ///
    /// Fails if the file was replaced, changed or became shorter.
    pub fn check(&self, file: &File) -> io::Result<()> {
        let now = FileVersion::of(file)?;
        let identity = |version: &FileVersion| (version.device, version.inode, version.created);
        let why = match () {
            () if identity(&now) != identity(self) => "the file was replaced by another one",
            () if now.size < self.size => "the file became shorter",
            () if now.size == self.size && now.modified != self.modified => "the file was changed",
            () => return Ok(()),
        };
        Err(io::Error::other(why))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_may_only_grow() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let checked = |version: &FileVersion| {
            let file = File::open(&path).expect("a file");
            version.check(&file).map_err(|error| error.to_string())
        };
        fs::write(&path, "12345").expect("a file");
        let version = FileVersion::of(&File::open(&path).expect("a file")).expect("a version");
        assert_eq!(checked(&version), Ok(()));
        let mut file = File::options().append(true).open(&path).expect("a file");
        file.write_all(b"6").expect("written");
        assert_eq!(checked(&version), Ok(()));
        file.set_len(4).expect("shortened");
        assert_eq!(checked(&version), Err("the file became shorter".to_owned()));
        file.set_len(5).expect("of the same length");
        let later = SystemTime::now() + Duration::from_secs(5);
        file.set_modified(later).expect("a time");
        assert_eq!(checked(&version), Err("the file was changed".to_owned()));
        let other = folder.path().join("other");
        fs::write(&other, "longer than before").expect("a file");
        fs::rename(&other, &path).expect("renamed");
        let replaced = Err("the file was replaced by another one".to_owned());
        assert_eq!(checked(&version), replaced);
    }
}
