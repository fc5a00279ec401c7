//! Temporary folder that is removed at the end of the test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

pub struct Folder(TempDir);

impl Folder {
    /// Creates a folder with these files. Parts of a name before a `/` become folders.
    pub fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(TempDir::new().expect("a temporary folder"));
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a folder");
        }
        fs::write(&path, content).expect("a file");
    }

    /// Creates a sparse file of `size` zeros.
    pub fn sparse(&self, name: &str, size: u64) {
        self.write(name, "");
        fs::OpenOptions::new()
            .write(true)
            .open(self.path(name))
            .and_then(|file| file.set_len(size))
            .expect("a sparse file");
    }

    /// Creates the symbolic link `name`. A relative `target` starts at the folder of the link.
    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(name)).expect("a symbolic link");
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("a file to remove");
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("something to rename");
    }

    /// Sets the modification time of a file, in seconds since 1970.
    pub fn date(&self, name: &str, unix: u64) {
        let file = fs::File::options().write(true).open(self.path(name)).expect("a file");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(unix))
            .expect("its date");
    }
}
