//! Remedy for logs that the account of the server cannot write: makes the account the owner of the folder, if the
//! folder holds nothing but logs.
//!
//! A folder above it may belong to a user, who can rename entries at any moment. Therefore every step works on an open
//! descriptor and follows no symbolic link.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rocknet_io::privileges::User;
use rustix::fs::{CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, fchown, fstat, openat};

use super::access;
use super::verdict::Check;

/// Maximum number of entries of a folder whose owner is changed. A folder with more is not that of a log alone.
const MAX_ENTRIES: usize = 1_000;

/// Flags that follow no link, acquire no controlling terminal, and do not wait for the other end of a FIFO.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Endings of compressed logs.
const COMPRESSED: [&[u8]; 4] = [b".gz", b".xz", b".zst", b".bz2"];

/// Adds the command for the account `user` to a check about these log files in one folder. Adds the repair if it is
/// safe. `logs`: all log files of the configuration.
pub(super) fn add_remedy(check: Check, user: Option<&User>, files: &[&Path], logs: &[&Path]) -> Check {
    let Some(folder) = files.first().and_then(|file| file.parent()) else {
        return check;
    };
    // `None` is the account of this process. The operator knows its name, so the message suffices without a command.
    let Some(user) = user else { return check };
    let name = &user.name;
    let shown = access::quoted(folder);
    let names: Vec<PathBuf> = logs
        .iter()
        .filter(|log| log.parent() == Some(folder))
        .map(|log| (*log).to_owned())
        .collect();
    let is_only_for_logs = Logs::open(folder, &names).is_ok();
    let command = if is_only_for_logs {
        format!("sudo chown -R {name} {shown}")
    } else {
        // The folder belongs to other programs too, so only the logs are given to the account.
        let commands = files.iter().map(|file| match file.exists() {
            true => format!("sudo chown {name} {}", access::quoted(file)),
            false => format!("sudo install -o {name} -m 640 /dev/null {}", access::quoted(file)),
        });
        commands.collect::<Vec<_>>().join(" && ")
    };
    let found = format!("{}: `{command}`", check.found);
    let check = Check { found, ..check }.command(command);
    if !is_only_for_logs {
        return check;
    }
    let (user, folder) = (user.clone(), folder.to_owned());
    check.fix(format!("give {shown} with its logs to {name}"), move || {
        let logs = Logs::open(&folder, &names)?;
        let given = logs.give(Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        given.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(format!("{} belongs to {}", folder.display(), user.name))
    })
}

/// An open folder that holds nothing but logs.
struct Logs {
    folder: OwnedFd,
    /// Names of the entries.
    entries: Vec<Vec<u8>>,
}

impl Logs {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// A message if another account than root can change the folder, a part of its path is a link, or it holds anything
    /// but these logs and their rotated files.
    fn open(folder: &Path, logs: &[PathBuf]) -> Result<Logs, String> {
        let shown = folder.display();
        let failed = |error: io::Error| format!("{shown}: {error}");
        let names: Vec<&[u8]> = logs
            .iter()
            .filter_map(|log| Some(log.file_name()?.as_bytes()))
            .collect();
        let opened = open_folder(folder).map_err(failed)?;
        let found = fstat(&opened).map_err(|error| failed(error.into()))?;
        if found.st_uid != 0 || found.st_mode & 0o022 != 0 {
            return Err(format!("{shown} can be changed by other accounts than root"));
        }
        let mut entries = Vec::new();
        for entry in Dir::read_from(&opened).map_err(|error| failed(error.into()))? {
            let entry = entry.map_err(|error| failed(error.into()))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let is_log = names.iter().any(|log| is_log_name(name, log));
            if !is_log || entries.len() == MAX_ENTRIES || open_log(&opened, name).is_err() {
                return Err(format!(
                    "{shown} holds more than logs, such as {}",
                    String::from_utf8_lossy(name)
                ));
            }
            entries.push(name.to_owned());
        }
        Ok(Logs {
            folder: opened,
            entries,
        })
    }

    /// Gives the logs and then their folder to an account.
    fn give(&self, uid: Uid, gid: Gid) -> io::Result<()> {
        for name in &self.entries {
            fchown(open_log(&self.folder, name)?, Some(uid), Some(gid))?;
        }
        Ok(fchown(&self.folder, Some(uid), Some(gid))?)
    }
}

/// Opens a folder part by part, so that no part of its path is a link.
fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let mut opened = openat(CWD, "/", FLAGS | OFlags::DIRECTORY, Mode::empty())?;
    for part in folder.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => opened = openat(&opened, name, FLAGS | OFlags::DIRECTORY, Mode::empty())?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(opened)
}

/// Opens a log. Fails for everything but a file with one name, because a second name could be that of a file of another
/// account.
fn open_log(folder: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let file = openat(folder, OsStr::from_bytes(name), FLAGS, Mode::empty())?;
    let Stat { st_mode, st_nlink, .. } = fstat(&file)?;
    if FileType::from_raw_mode(st_mode) != FileType::RegularFile || st_nlink != 1 {
        return Err(io::Error::other("it is no file with a single name"));
    }
    Ok(file)
}

/// Returns true if a file is the log or one of its rotated files: `error.log`, `error.log.1`, `error.log-20260131.gz`.
fn is_log_name(name: &[u8], log: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(log) else {
        return false;
    };
    let compressed = COMPRESSED.iter().find_map(|ending| rest.strip_suffix(*ending));
    match compressed.unwrap_or(rest) {
        [] => true,
        [b'.' | b'-', number @ ..] => {
            !number.is_empty() && number.iter().all(|byte| byte.is_ascii_digit() || b"-_".contains(byte))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use rocknet_control::doctor::DoctorVerdict;

    use super::super::test_account;
    use super::*;

    /// Creates a folder with logs of these names, and returns its path.
    fn folder(top: &Path, names: &[&str]) -> PathBuf {
        let folder = top.canonicalize().unwrap().join("log");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        for name in names {
            fs::write(folder.join(name), "x").unwrap();
        }
        folder
    }

    /// Carries out the repair that is offered for the first of these logs of a folder.
    fn repair(folder: &Path, logs: &[&str], user: &User) -> Result<String, String> {
        let logs: Vec<PathBuf> = logs.iter().map(|log| folder.join(log)).collect();
        let logs: Vec<&Path> = logs.iter().map(PathBuf::as_path).collect();
        let check = add_remedy(Check::bad("x", "x", "x"), Some(user), &logs[..1], &logs);
        assert_eq!(check.verdict, DoctorVerdict::Bad);
        let fix = check.fix.ok_or("no repair is offered")?;
        (fix.apply)()
    }

    #[test]
    fn only_folders_of_logs_alone_change_their_owner() {
        let Some(user) = test_account::account() else { return };
        let top = tempfile::tempdir().unwrap();
        let names = ["error.log", "error.log.1", "access.log", "access.log-20260131.gz"];
        let folder = folder(top.path(), &names);
        let give = || repair(&folder, &["error.log", "access.log"], &user);
        for other in ["other", "error.login", "error.log.key", "error.log.d", ".error.log"] {
            fs::write(folder.join(other), "x").unwrap();
            assert!(give().is_err(), "{other}");
            fs::remove_file(folder.join(other)).unwrap();
        }
        let log = folder.join("error.log");
        fs::hard_link(&log, top.path().join("second")).unwrap();
        assert!(give().is_err());
        fs::remove_file(top.path().join("second")).unwrap();
        // Other accounts could replace the entries, as those of /tmp.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(give().is_err());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(fs::metadata(&log).unwrap().uid(), 0);
        give().unwrap();
        for path in names.iter().map(|name| folder.join(name)).chain([folder.clone()]) {
            assert_eq!(fs::metadata(&path).unwrap().uid(), 4242, "{}", path.display());
        }
        // The folder no longer belongs to root.
        assert!(give().is_err());
    }

    #[test]
    fn a_folder_that_is_replaced_by_a_link_keeps_its_owner() {
        let Some(user) = test_account::account() else { return };
        let top = tempfile::tempdir().unwrap();
        let folder = folder(top.path(), &["error.log"]);
        let log = folder.join("error.log");
        let check = add_remedy(Check::bad("x", "x", "x"), Some(&user), &[&log], &[&log]);
        let fix = check.fix.expect("a repair");
        let moved = folder.with_file_name("elsewhere");
        fs::rename(&folder, &moved).unwrap();
        symlink(&moved, &folder).unwrap();
        assert!((fix.apply)().is_err());
        // A link above the folder is not followed either.
        fs::remove_file(&folder).unwrap();
        fs::rename(&moved, &folder).unwrap();
        let above = folder.parent().unwrap();
        symlink(above, above.join("link")).unwrap();
        assert!(Logs::open(&above.join("link/log"), std::slice::from_ref(&log)).is_err());
        assert!(Logs::open(&folder, std::slice::from_ref(&log)).is_ok());
        assert_eq!(fs::metadata(&log).unwrap().uid(), 0);
    }
}
