//! Checks by owners and modes whether an account can reach files in a folder. Used by `rocknet doctor`.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rocknet_io::privileges::User;

/// Maximum number of files and folders visited; further ones are not checked. A state folder has a few for each site.
const MAX_VISITED: usize = 10_000;

/// Permission to read a file, as a bit in one digit of a mode.
const READ: u32 = 0o4;
/// Permission to write a file, or to replace the entries of a folder.
const WRITE: u32 = 0o2;
/// Permission to open the entries of a folder.
const ENTER: u32 = 0o1;

/// Returns a file below `folder` that the account can read or write, or a folder whose entries it can replace. The
/// parents of `folder` are checked too. `None` if there is no such file or folder. Blocks on the disk.
///
/// # Errors
///
/// Returns the error of the system if an entry cannot be read.
pub fn reachable(folder: &Path, user: &User) -> io::Result<Option<PathBuf>> {
    let folder = fs::canonicalize(folder)?;
    let mut above: Vec<&Path> = folder.ancestors().skip(1).collect();
    above.reverse();
    for path in above {
        let found = fs::metadata(path)?;
        // In a folder with the sticky bit, only the owner of an entry can replace it.
        if may(user, &found, WRITE) && found.mode() & 0o1000 == 0 {
            return Ok(Some(path.to_owned()));
        }
        if !may(user, &found, ENTER) {
            return Ok(None);
        }
    }
    let mut to_visit = vec![folder];
    let mut visited = 0;
    while let Some(path) = to_visit.pop() {
        visited += 1;
        if visited > MAX_VISITED {
            break;
        }
        let found = path.symlink_metadata()?;
        // A link has no permissions of its own, and a target below `folder` is visited itself.
        if found.is_symlink() {
            continue;
        }
        if may(user, &found, WRITE) || found.is_file() && may(user, &found, READ) {
            return Ok(Some(path));
        }
        if found.is_dir() && may(user, &found, ENTER) {
            for entry in fs::read_dir(&path)? {
                to_visit.push(entry?.path());
            }
        }
    }
    Ok(None)
}

/// Returns whether the user has the permission `what` ([`READ`], [`WRITE`] or [`ENTER`]) for the file or folder.
fn may(user: &User, found: &Metadata, what: u32) -> bool {
    let shift = if found.uid() == user.uid {
        6
    } else if user.gid == found.gid() || user.groups.contains(&found.gid()) {
        3
    } else {
        0
    };
    found.mode() >> shift & what != 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn owners_and_modes_decide_what_is_reachable() {
        let folder = tempfile::tempdir().unwrap();
        let chmod = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        chmod(folder.path(), 0o755);
        let (state, local) = (folder.path().join("state"), folder.path().join("state/local"));
        fs::create_dir_all(&local).unwrap();
        let key = local.join("ca.key");
        fs::write(&key, "key").unwrap();
        let other = User {
            name: "x".into(),
            uid: 4242,
            gid: 4242,
            groups: vec![4242],
            home: None,
        };
        let group = fs::metadata(&key).unwrap().gid();
        let member = User {
            groups: vec![group],
            ..other.clone()
        };
        // Modes of `state`, of `local` and of the key, and the path that each of the two accounts can reach.
        for (folder, inner, file, by_other, by_member) in [
            (0o700, 0o755, 0o644, None, None),
            (0o755, 0o755, 0o600, None, None),
            (0o755, 0o755, 0o644, Some(&key), Some(&key)),
            (0o755, 0o755, 0o640, None, Some(&key)),
            (0o711, 0o733, 0o600, Some(&local), Some(&local)),
            (0o777, 0o700, 0o600, Some(&state), Some(&state)),
            (0o701, 0o700, 0o666, None, None),
        ] {
            chmod(&state, folder);
            chmod(&local, inner);
            chmod(&key, file);
            for (user, expected) in [(&other, by_other), (&member, by_member)] {
                let found = reachable(&state, user).unwrap();
                let real = expected.map(|path| fs::canonicalize(path).unwrap());
                assert_eq!(found, real, "{folder:o} {inner:o} {file:o}");
            }
        }
        chmod(&state, 0o700);
        chmod(folder.path(), 0o777);
        let above = reachable(&state, &other).unwrap();
        assert_eq!(above, Some(fs::canonicalize(folder.path()).unwrap()));
    }
}
