//! Reads the text of a configuration file and replaces it atomically.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use rocknet_control::config::MAX_TEXT;
use rustix::process::geteuid;

/// Number of leading bytes of a text's SHA-256 digest that form its revision, in hexadecimal.
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
/// Returns the error of the file system, or `InvalidData` if the text is not UTF-8 or is larger than [`MAX_TEXT`].
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
    /// The file does not have the expected text.
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
/// Fails if the file does not have the text `expected`, or if the file system returns an error. The file then keeps
/// its text, unless only the last step failed, which syncs the folder to disk.
pub fn replace(path: &Path, expected: &str, text: &str) -> Result<(), ReplaceError> {
    replace_if(path, text, |path| Ok(read(path)? == expected))
}

/// Replaces the text of a configuration file like [`replace`], but lets the caller compare the text. The file may thus
/// be larger than [`MAX_TEXT`], at which [`replace`] fails. `is_expected` reads the file immediately before the
/// replacement, and returns true if it has the expected text.
///
/// # Errors
///
/// Fails in the same cases as [`replace`], or with the error of `is_expected`.
pub fn replace_if(
    path: &Path,
    text: &str,
    is_expected: impl FnOnce(&Path) -> io::Result<bool>,
) -> Result<(), ReplaceError> {
    let path = path.canonicalize()?;
    let old = fs::metadata(&path)?;
    // Checks write access, because a rename would succeed even if the owner has made the file read-only.
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
    if !is_expected(&path)? {
        return Err(ReplaceError::Changed);
    }
    Ok(new.rename_to(&path)?)
}

/// Creates a configuration file with the mode and group of the file `like`, and with its owner if the process may
/// change the owner of files. After a crash, the file is either missing or complete.
///
/// # Errors
///
/// Fails if the file exists, or if the file system returns an error.
pub fn create(path: &Path, like: &Path, text: &str) -> Result<(), ReplaceError> {
    let pattern = fs::metadata(like)?;
    let new = NewFile::create(path)?;
    let mut file = &new.file;
    file.set_permissions(fs::Permissions::from_mode(pattern.mode() & 0o666))?;
    let created = file.metadata()?;
    if (created.uid(), created.gid()) != (pattern.uid(), pattern.gid()) {
        keep_owner(&new.file, &pattern)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(new.link_to(path)?)
}

/// Removes a configuration file that has the text `expected`.
///
/// # Errors
///
/// Fails if the file does not have the text `expected`, or if the file system returns an error.
pub fn remove(path: &Path, expected: &str) -> Result<(), ReplaceError> {
    // Checks write access, because a removal needs only the permission of the folder, even if the file is read-only.
    OpenOptions::new().append(true).open(path)?;
    if read(path)? != expected {
        return Err(ReplaceError::Changed);
    }
    fs::remove_file(path)?;
    Ok(sync_folder(path)?)
}

/// Reads the text of a configuration file that may be missing.
///
/// # Errors
///
/// Fails in the same cases as [`read`], but a missing file is not an error.
pub fn read_existing(path: &Path) -> io::Result<Option<String>> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Gives a new file the owner and group of the old one.
///
/// # Errors
///
/// Fails if the group of the old file has other rights than all other users, and the process is not in that group.
/// Without this failure, members of the group could lose access to the file, or members of another group could gain it.
fn keep_owner(new: &File, old: &fs::Metadata) -> io::Result<()> {
    if fchown(new, Some(old.uid()), Some(old.gid())).is_ok() {
        return Ok(());
    }
    // Only root may change the owner of a file. Otherwise the new file is owned by the user of the server, who may
    // write the old one.
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

/// New file with a temporary name beside a configuration file, which it then replaces or creates. If it is dropped
/// before a rename, it is removed.
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
        // Processes that edit the same file use different names, even in containers that share the folder. The name
        // does not match an `include` of `*.toml`.
        let mut number = [0; size_of::<u64>()];
        rand::fill(&mut number).map_err(|_| io::Error::other("the system provides no random numbers"))?;
        let number = u64::from_ne_bytes(number);
        name.push(format!("{MARK}{number:0DIGITS$}{END}"));
        let path = beside.with_file_name(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(NewFile { file, path: Some(path) })
    }

    /// Replaces the file `target` with this file, and syncs the folder to disk.
    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        self.path = None;
        sync_folder(target)
    }

    /// Moves the file to `target`, which must not exist.
    fn link_to(self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::hard_link(path, target)?;
        }
        // Removes the temporary name.
        drop(self);
        sync_folder(target)
    }
}

/// Text between the name of a configuration file and the number in the name of a [`NewFile`].
const MARK: &str = ".rocknet-";

/// End of the name of a [`NewFile`].
const END: &str = ".new";

/// Number of digits in the name of a [`NewFile`], enough for the largest number.
const DIGITS: usize = 20;

/// Age at which a [`NewFile`] counts as abandoned. A replacement takes far less than a second. If the process is
/// suspended for longer, the replacement fails and changes nothing.
const ABANDONED_AGE: Duration = Duration::from_secs(10 * 60);

/// Removes old files that killed processes have left beside a configuration file. Such a file has a name that only
/// [`NewFile::create`] generates, and is owned by this user or by the owner of the configuration file.
fn remove_abandoned(beside: &Path) {
    let (Some(folder), Some(name)) = (beside.parent(), beside.file_name()) else {
        return;
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if is_of_new_file(&entry.file_name(), name) && is_abandoned(&entry.path(), beside) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns true if [`NewFile::create`] may have generated the name `found` for the configuration file `beside`.
fn is_of_new_file(found: &OsStr, beside: &OsStr) -> bool {
    let number = found.as_bytes().strip_prefix(beside.as_bytes()).and_then(|rest| {
        let rest = rest.strip_prefix(MARK.as_bytes())?;
        rest.strip_suffix(END.as_bytes())
    });
    number.is_some_and(|number| number.len() == DIGITS && number.iter().all(u8::is_ascii_digit))
}

/// Returns true if a [`NewFile`] is old and was written by this user. A file that root has written may already have the
/// owner of the configuration file `beside`.
fn is_abandoned(path: &Path, beside: &Path) -> bool {
    let (Ok(found), Ok(old)) = (path.symlink_metadata(), fs::metadata(beside)) else {
        return false;
    };
    let is_own = [geteuid().as_raw(), old.uid()].contains(&found.uid());
    let age = found.modified().ok().and_then(|modified| modified.elapsed().ok());
    found.is_file() && is_own && age.is_some_and(|age| age >= ABANDONED_AGE)
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
