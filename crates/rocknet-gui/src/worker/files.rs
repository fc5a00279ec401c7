//! Files that this program writes for its user.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Returns true if there is no such file. A link to a missing file, such as one on a disk that is not mounted, counts
/// as a file.
///
/// # Errors
///
/// Fails if the folder is not accessible: the file may exist.
pub fn is_missing(file: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(file) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Replaces a file as a whole: a crash leaves the old text or the new one. Of a symbolic link, such as one to a folder
/// of settings under version control, the target is replaced. Only this account can read the new file.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    replace_with(file, text, false)
}

/// Replaces a file like [`replace`]. The new file has the mode of the old one, which other accounts may read.
pub fn replace_keeping_mode(file: &Path, text: &str) -> io::Result<()> {
    replace_with(file, text, true)
}

fn replace_with(file: &Path, text: &str, keeps_mode: bool) -> io::Result<()> {
    let target = match fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink()) {
        true => fs::canonicalize(file)?,
        false => file.to_owned(),
    };
    let beside = target.with_extension("toml.new");
    // A file that an earlier attempt has left might be open to others.
    let _ = fs::remove_file(&beside);
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    if let (true, Ok(old)) = (keeps_mode, fs::metadata(&target)) {
        new.set_permissions(old.permissions())?;
    }
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&beside, &target)?;
    match target.parent() {
        // The new name is on the disk as well.
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_link_stays_a_link_and_is_no_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("window.toml"), folder.path().join("dotfiles.toml"));
        assert!(is_missing(&link).unwrap());
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(!is_missing(&link).unwrap() && !link.exists());
        // The folder of the target may be missing for now, so nothing takes the place of the link.
        assert!(replace(&link, "a = 1\n").is_err());
        fs::write(&target, "old").unwrap();
        replace(&link, "a = 1\n").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "a = 1\n");
        let mode = || fs::metadata(&target).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        replace_keeping_mode(&link, "a = 1\n").unwrap();
        assert_eq!(mode(), 0o640);
        assert!(is_missing(&target.join("below")).is_err());
    }
}
