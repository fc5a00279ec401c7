//! Remedy for logs that the account of the server cannot write: gives it the folder, if the folder holds nothing else.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown};
use std::path::{Path, PathBuf};

use rocknet_io::privileges::User;

use super::access;
use super::verdict::Check;

/// Maximum number of entries of a folder whose owner is changed. A folder with more is not that of a log alone.
const MAX_ENTRIES: usize = 1_000;

/// Mode of a folder that is created.
const MODE: u32 = 0o750;

/// Adds the command for the account `user` to a check about these log files in one folder. Adds the repair if it is
/// safe.
pub(super) fn add_remedy(check: Check, user: Option<&User>, files: &[&Path]) -> Check {
    let Some(folder) = files.first().and_then(|file| file.parent()) else {
        return check;
    };
    // Without another account, the one that runs this program is meant, whose name the operator knows.
    let Some(user) = user else { return check };
    let name = &user.name;
    let shown = access::quoted(folder);
    let is_only_for_logs = is_safe(folder, files).is_ok();
    let command = match (folder.exists(), is_only_for_logs) {
        (false, _) => format!("sudo install -d -o {name} -m {MODE:o} {shown}"),
        (true, true) => format!("sudo chown -R {name} {shown}"),
        // The folder belongs to other programs too, so only the log is given to the account.
        (true, false) => match files.first() {
            Some(file) if file.exists() => format!("sudo chown {name} {}", access::quoted(file)),
            Some(file) => format!("sudo install -o {name} -m 640 /dev/null {}", access::quoted(file)),
            None => return check,
        },
    };
    let found = format!("{}: `{command}`", check.found);
    let check = Check { found, ..check }.command(command);
    if !is_only_for_logs {
        return check;
    }
    let (user, folder) = (user.clone(), folder.to_owned());
    let files: Vec<PathBuf> = files.iter().map(|file| (*file).to_owned()).collect();
    check.fix(format!("give {shown} with its logs to {name}"), move || {
        give(&folder, &files, &user)
    })
}

/// Returns an error unless the folder belongs to root, is no link, and holds nothing but these logs and their rotated
/// files.
fn is_safe(folder: &Path, files: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>, String> {
    let shown = folder.display();
    let found = folder.symlink_metadata().map_err(|error| format!("{shown}: {error}"))?;
    if !found.is_dir() || found.uid() != 0 {
        return Err(format!("{shown} is a link, or belongs to another account than root"));
    }
    let names: Vec<&OsStr> = files.iter().filter_map(|file| file.as_ref().file_name()).collect();
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{shown}: {error}"))? {
        let entry = entry.map_err(|error| format!("{shown}: {error}"))?;
        let own = entry.file_name();
        let is_log = names.iter().any(|name| own.as_bytes().starts_with(name.as_bytes()));
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        // A second name of a file could be that of another account's.
        let is_single = entry.metadata().is_ok_and(|found| found.nlink() == 1);
        if !is_log || !is_file || !is_single || entries.len() == MAX_ENTRIES {
            return Err(format!(
                "{shown} holds more than logs, such as {}",
                own.to_string_lossy()
            ));
        }
        entries.push(entry.path());
    }
    Ok(entries)
}

/// Gives a folder and its logs to an account.
fn give(folder: &Path, files: &[PathBuf], user: &User) -> Result<String, String> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if !folder.exists() {
        let made = fs::DirBuilder::new().mode(MODE).create(folder);
        made.map_err(|error| failed(folder, &error))?;
    }
    for path in is_safe(folder, files)?.iter().map(PathBuf::as_path).chain([folder]) {
        lchown(path, Some(user.uid), Some(user.gid)).map_err(|error| failed(path, &error))?;
    }
    Ok(format!("{} belongs to {}", folder.display(), user.name))
}

#[cfg(test)]
mod tests {
    use super::super::test_account;
    use super::*;

    #[test]
    fn only_folders_of_logs_alone_change_their_owner() {
        let Some(user) = test_account::account() else { return };
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("log");
        let log = folder.join("error.log");
        fs::create_dir(&folder).unwrap();
        for name in ["error.log", "error.log.1"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        let files = [log.clone()];
        fs::write(folder.join("other"), "x").unwrap();
        assert!(give(&folder, &files, &user).unwrap_err().contains("such as other"));
        fs::remove_file(folder.join("other")).unwrap();
        fs::hard_link(&log, top.path().join("second")).unwrap();
        assert!(give(&folder, &files, &user).is_err());
        assert_eq!(fs::metadata(&log).unwrap().uid(), 0);
        fs::remove_file(top.path().join("second")).unwrap();
        give(&folder, &files, &user).unwrap();
        for path in [&folder, &log, &folder.join("error.log.1")] {
            assert_eq!(fs::metadata(path).unwrap().uid(), 4242, "{}", path.display());
        }
        // The folder no longer belongs to root.
        assert!(is_safe(&folder, &files).is_err());
    }
}
