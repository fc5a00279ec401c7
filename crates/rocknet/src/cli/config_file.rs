//! The configuration file: reads its text and replaces it atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use rocknet_control::config::MAX_TEXT;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Number of leading bytes of the SHA-256 digest of a text that form its revision, written in hexadecimal.
const REVISION_BYTES: usize = 16;

/// Returns the revision of a text.
pub fn revision(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    digest.as_ref()[..REVISION_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reads the text of a configuration file.
///
/// # Errors
///
/// Returns the error of the file system, or `InvalidData` for a text that is not UTF-8 or is larger than [`MAX_TEXT`].
pub fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_TEXT as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_TEXT {
        let message = format!("it is larger than {} KiB: edit it by hand", MAX_TEXT / 1024);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reason why a text was not replaced.
#[derive(Debug)]
pub enum ReplaceError {
    /// The file has another text than the expected one.
    Changed,
    /// The file cannot be written.
    Io(io::Error),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> ReplaceError {
        ReplaceError::Io(error)
    }
}

/// Replaces the text `expected` of a configuration file. After a crash, the file has either the old text or the new
/// one. The file keeps its mode and group, and its owner if the process may change the owner of files. A symbolic link
/// is followed and kept.
///
/// The text of the file is compared with `expected` immediately before the replacement. An edit by another program is
/// lost only if it is written in the microseconds between the comparison and the replacement.
///
/// # Errors
///
/// Fails if the file has another text, or with the error of the file system. The file then keeps its text, unless only
/// the last step failed, which writes the folder to the disk.
pub fn replace(path: &Path, expected: &str, text: &str) -> Result<(), ReplaceError> {
    let path = path.canonicalize()?;
    let old = fs::metadata(&path)?;
    // A rename would succeed although the owner has made the file read-only.
    OpenOptions::new().append(true).open(&path)?;
    let new = NewFile::create(&path)?;
    let mut file = &new.file;
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
    let created = file.metadata()?;
    if (created.uid(), created.gid()) != (old.uid(), old.gid()) {
        keep_owner(&new.file, &old)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if read(&path)? != expected {
        return Err(ReplaceError::Changed);
    }
    Ok(new.rename_to(&path)?)
}

/// Gives a new file the owner and group of the old one.
///
/// # Errors
///
/// Fails if the process is not in the group of the old file, and this group has other rights than all other users.
/// Members of the group could otherwise not read the new file, or members of another group could.
fn keep_owner(new: &File, old: &fs::Metadata) -> io::Result<()> {
    if fchown(new, Some(old.uid()), Some(old.gid())).is_ok() {
        return Ok(());
    }
    // Only root may give files away. Otherwise the new file belongs to the user of the server, who may write the old
    // one.
    let (of_group, of_others) = (old.mode() >> 3 & 7, old.mode() & 7);
    match fchown(new, None, Some(old.gid())) {
        Err(error) if of_group != of_others => {
            let gid = old.gid();
            let message = format!("its group {gid} cannot be kept, because the server is not in it: {error}");
            Err(io::Error::new(error.kind(), message))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// File beside the configuration file that replaces it. The new file is removed if it is dropped before the rename.
struct NewFile {
    file: File,
    /// Path of the new file; `None` after the rename.
    path: Option<PathBuf>,
}

impl NewFile {
    /// Creates the file in the folder of the configuration file `beside`.
    fn create(beside: &Path) -> io::Result<NewFile> {
        remove_abandoned(beside);
        let mut name = beside.file_name().unwrap_or_default().to_owned();
        // Two processes that edit the same file use different names. The name does not match an `include` of `*.toml`.
        name.push(format!(".{}.new", std::process::id()));
        let path = beside.with_file_name(name);
        // A crashed process that had the same id may have left a file.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(NewFile { file, path: Some(path) })
    }

    /// Replaces the file `target` by this file, and writes the folder to the disk.
    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        self.path = None;
        let folder = target.parent().unwrap_or(Path::new("/"));
        File::open(folder)?.sync_all()
    }
}

/// Removes the files that killed processes have left beside a configuration file. A process that this one cannot see,
/// because it runs in another container, fails with an error and without a change if its file is removed.
fn remove_abandoned(beside: &Path) {
    let (Some(folder), Some(name)) = (beside.parent(), beside.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let process = found.to_str().and_then(|found| {
            let number = found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".new")?;
            Pid::from_raw(number.parse().ok()?)
        });
        if process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        assert!(matches!(replace(&link, "other", "new"), Err(ReplaceError::Changed)));
        assert_eq!(read(&file).unwrap(), "old");
        replace(&link, "old", "new").unwrap();
        assert_eq!(read(&file).unwrap(), "new");
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        // No temporary file is left beside the file and the link.
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn files_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, "old").unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let of = |name: &str| folder.path().join(name);
        let abandoned = of(&format!("a.toml.{}.new", child.id()));
        // Process 1 runs, `x` and `0` are no process IDs, and `b.toml.1.new` belongs to another file.
        let kept = [
            of("a.toml.1.new"),
            of("a.toml.x.new"),
            of("a.toml.0.new"),
            of("b.toml.1.new"),
        ];
        for path in kept.iter().chain([&abandoned]) {
            fs::write(path, "part").unwrap();
        }
        replace(&file, "old", "new").unwrap();
        assert!(!abandoned.exists());
        assert!(kept.iter().all(|path| path.exists()));
    }

    #[test]
    fn texts_that_cannot_be_edited_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        for (bytes, expected) in [
            (vec![b'#'; MAX_TEXT + 1], "larger than 256 KiB"),
            (vec![0xff], "not UTF-8"),
        ] {
            fs::write(&file, bytes).unwrap();
            let error = read(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        fs::write(&file, vec![b'#'; MAX_TEXT]).unwrap();
        assert_eq!(read(&file).unwrap().len(), MAX_TEXT);
        fs::remove_file(&file).unwrap();
        let missing = replace(&file, "", "x").unwrap_err();
        assert!(matches!(missing, ReplaceError::Io(error) if error.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn revisions_differ_if_texts_do() {
        assert_eq!(revision("a"), revision("a"));
        assert_ne!(revision("a"), revision("b"));
        assert_eq!(revision("").len(), 2 * REVISION_BYTES);
    }
}
