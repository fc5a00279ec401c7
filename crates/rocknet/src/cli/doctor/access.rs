//! Finds the folder or file that denies an account a right that it needs. The kernel decides, by modes, access control
//! lists and security modules.

use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rocknet_io::privileges::{self, User};
use rustix::fs::Access;

/// A right that an account needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    pub path: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// List a folder and open its entries.
    ReadFolder,
    /// Create and replace entries of a folder.
    WriteFolder,
    /// Read a file.
    ReadFile,
    /// Append to a file, or create it.
    WriteLog,
}

impl Need {
    pub(super) fn read_folder(path: &Path) -> Need {
        Need::new(path, Kind::ReadFolder)
    }

    pub(super) fn write_folder(path: &Path) -> Need {
        Need::new(path, Kind::WriteFolder)
    }

    pub(super) fn read_file(path: &Path) -> Need {
        Need::new(path, Kind::ReadFile)
    }

    pub(super) fn write_log(path: &Path) -> Need {
        Need::new(path, Kind::WriteLog)
    }

    fn new(path: &Path, kind: Kind) -> Need {
        // Links are resolved before the rights of the account are taken, because only root can resolve all of them. The
        // account needs rights to the folders above the target of a link.
        let path = path
            .canonicalize()
            .unwrap_or_else(|_| match (path.parent(), path.file_name()) {
                // A log file may not exist yet.
                (Some(parent), Some(name)) => parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name),
                _ => path.to_owned(),
            });
        Need { path, kind }
    }

    /// Returns the rights that are needed for the path itself.
    fn rights(&self) -> Access {
        match self.kind {
            Kind::ReadFolder => Access::READ_OK | Access::EXEC_OK,
            Kind::WriteFolder => Access::WRITE_OK | Access::EXEC_OK,
            Kind::ReadFile => Access::READ_OK,
            Kind::WriteLog => Access::WRITE_OK,
        }
    }
}

/// Folder or file that denies a right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocked {
    pub path: PathBuf,
    /// Rights that are needed there, as `chmod` names them.
    letters: &'static str,
    /// User ID and group ID of the owner, and mode; `None` if they cannot be read.
    owner_and_mode: Option<(u32, u32, u32)>,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} denies {}", self.path.display(), self.letters)?;
        match self.owner_and_mode {
            Some((uid, gid, mode)) => write!(f, ", owner {uid}:{gid}, mode {mode:03o}"),
            None => Ok(()),
        }
    }
}

/// Returns for each need the path that denies it to the account, or `None` if it is met or if the path does not exist.
/// `user`: `None` for the account of this process; another account requires root.
///
/// # Errors
///
/// A message for the operator.
pub(super) fn first_blocked(user: Option<&User>, needs: &[Need]) -> Result<Vec<Option<Blocked>>, String> {
    let all = || needs.iter().map(blocked).collect();
    match user {
        Some(user) => privileges::with_rights_of(user, all).map_err(|error| error.to_string()),
        None => Ok(all()),
    }
}

/// Returns the path that denies a need to the calling thread.
fn blocked(need: &Need) -> Option<Blocked> {
    let mut above: Vec<&Path> = need.path.ancestors().skip(1).collect();
    above.reverse();
    for folder in above {
        if is_denied(folder, Access::EXEC_OK) {
            return Some(Blocked::new(folder, "x"));
        }
    }
    if need.kind == Kind::WriteLog && rustix::fs::access(&need.path, Access::EXISTS).is_err() {
        let folder = need.path.parent()?;
        return is_denied(folder, Access::WRITE_OK).then(|| Blocked::new(folder, "wx"));
    }
    let letters = match need.kind {
        Kind::ReadFolder => "rx",
        Kind::WriteFolder => "wx",
        Kind::ReadFile => "r",
        Kind::WriteLog => "w",
    };
    is_denied(&need.path, need.rights()).then(|| Blocked::new(&need.path, letters))
}

/// Returns true if the system denies the rights. Other errors, such as a missing file, are reported elsewhere.
fn is_denied(path: &Path, rights: Access) -> bool {
    // `access` uses the real IDs, which are those of the account.
    let result = rustix::fs::access(path, rights).map_err(io::Error::from);
    let denied = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    result.is_err_and(|error| denied.contains(&error.kind()))
}

impl Blocked {
    fn new(path: &Path, letters: &'static str) -> Blocked {
        let found = fs::metadata(path).ok();
        Blocked {
            path: path.to_owned(),
            letters,
            owner_and_mode: found.map(|found| (found.uid(), found.gid(), found.mode() & 0o7777)),
        }
    }
}

/// Returns the command that grants a right: to the account alone if the system has `setfacl`, or else by the mode. A
/// file to read may be private, so its mode is opened at most to the group of the account. `user`: `None` for the
/// account of this process, whose name is not known here. For a file to read, the command then only shows its rights.
pub(super) fn command(user: Option<&User>, need: &Need, blocked: &Blocked) -> String {
    let path = quoted(&blocked.path);
    let letters = blocked.letters;
    let has_acl = ["/usr/bin/setfacl", "/bin/setfacl"]
        .iter()
        .any(|tool| Path::new(tool).exists());
    if let Some(user) = user.filter(|user| has_acl && is_plain(&user.name)) {
        return format!("sudo setfacl -m u:{}:{letters} {path}", user.name);
    }
    // A private file must not be opened to every account of the machine.
    if need.kind == Kind::ReadFile && blocked.path == need.path {
        return match user {
            Some(user) => format!("sudo chgrp {} {path} && sudo chmod g+r {path}", user.gid),
            None => format!("ls -l {path}"),
        };
    }
    let class = match (user, blocked.owner_and_mode) {
        (Some(user), Some((uid, _, _))) if user.uid == uid => 'u',
        (Some(user), Some((_, gid, _))) if user.gid == gid || user.groups.contains(&gid) => 'g',
        _ => 'o',
    };
    format!("sudo chmod {class}+{letters} {path}")
}

/// Returns true for a name that needs no quotes in a command.
fn is_plain(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

/// Returns a path as a word of a command.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    if is_plain(&text) {
        return text.into_owned();
    }
    // A shell reads `$'…'` with escape sequences, so that a control character does not reach the terminal.
    if text.chars().any(char::is_control) {
        let mut escaped = String::from("$'");
        for letter in text.chars() {
            match letter {
                '\'' | '\\' => escaped.extend(['\\', letter]),
                letter if letter.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in letter.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(escaped, "\\x{byte:02x}");
                    }
                }
                letter => escaped.push(letter),
            }
        }
        escaped.push('\'');
        return escaped;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::test_account;
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_closed_folder_is_found_for_another_account() {
        let Some(user) = test_account::account() else { return };
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (site, log) = (top.join("home/site"), top.join("home/site/a.log"));
        fs::create_dir_all(&site).unwrap();
        let denies = |home, www, need: Need| {
            set_mode(&top, 0o755);
            set_mode(&top.join("home"), home);
            set_mode(&site, www);
            let found = first_blocked(Some(&user), &[need]).unwrap().pop().flatten();
            found.map(|found| (found.path, found.letters))
        };
        let home = top.join("home");
        assert_eq!(denies(0o755, 0o755, Need::read_folder(&site)), None);
        assert_eq!(denies(0o750, 0o755, Need::read_folder(&site)), Some((home, "x")));
        assert_eq!(
            denies(0o711, 0o711, Need::read_folder(&site)),
            Some((site.clone(), "rx"))
        );
        assert_eq!(
            denies(0o711, 0o755, Need::write_folder(&site)),
            Some((site.clone(), "wx"))
        );
        assert_eq!(denies(0o711, 0o755, Need::write_log(&log)), Some((site.clone(), "wx")));
        assert_eq!(denies(0o711, 0o777, Need::write_log(&log)), None);
        fs::write(&log, "").unwrap();
        set_mode(&log, 0o644);
        assert_eq!(denies(0o711, 0o777, Need::write_log(&log)), Some((log.clone(), "w")));
        assert_eq!(denies(0o711, 0o777, Need::read_file(&log)), None);
        set_mode(&log, 0o600);
        assert_eq!(denies(0o711, 0o777, Need::read_file(&log)), Some((log.clone(), "r")));
        assert_eq!(denies(0o711, 0o777, Need::read_file(&site.join("missing"))), None);
    }

    #[test]
    fn commands_grant_the_right_to_the_class_of_the_account() {
        let user = |uid, gid| User {
            name: "x;y".into(),
            uid,
            gid,
            groups: vec![gid],
            home: None,
        };
        let blocked = Blocked {
            path: "/srv/it's".into(),
            letters: "rx",
            owner_and_mode: Some((1, 2, 0o700)),
        };
        let need = Need::read_folder(Path::new("/srv/it's"));
        for (user, expected) in [
            (None, 'o'),
            (Some(user(1, 9)), 'u'),
            (Some(user(9, 2)), 'g'),
            (Some(user(9, 9)), 'o'),
        ] {
            let command = command(user.as_ref(), &need, &blocked);
            assert_eq!(command, format!(r"sudo chmod {expected}+rx '/srv/it'\''s'"));
        }
        // A file to read is opened at most to a group.
        let need = Need::read_file(&blocked.path);
        let blocked = Blocked {
            letters: "r",
            ..blocked
        };
        for (user, expected) in [
            (None, r"ls -l '/srv/it'\''s'"),
            (
                Some(user(9, 7)),
                r"sudo chgrp 7 '/srv/it'\''s' && sudo chmod g+r '/srv/it'\''s'",
            ),
        ] {
            assert_eq!(command(user.as_ref(), &need, &blocked), expected);
        }
        assert_eq!(quoted(Path::new("/srv/a.b")), "/srv/a.b");
        assert_eq!(quoted(Path::new("/srv/a b")), "'/srv/a b'");
        assert_eq!(
            quoted(Path::new("/a\u{1b}[2J'\\\u{9b}\n")),
            r"$'/a\x1b[2J\'\\\xc2\x9b\x0a'"
        );
    }
}
