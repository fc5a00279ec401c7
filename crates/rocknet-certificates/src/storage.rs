//! Persistent storage of certificates, keys and ACME state as named items. Each item is written in full or not at all.

mod chown;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use self::chown::Owner;

/// The accounts that the mode of an item's file permits to read it. The mode 0700 of the folders keeps other accounts
/// out unless the operator changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The account of the server only: keys and everything that reveals them.
    Owner,
    /// Every account: public data such as the certificate of the local CA.
    Everyone,
}

/// A storage of named items. `/` in a name separates folders. Names consist of constants and results of [`file_name`].
/// A host name from a client contains no `/`, because handshakes accept only letters, digits, `-`, `_` and dots in it.
pub trait Storage: Send + Sync {
    /// Reads an item; `None` if it does not exist.
    ///
    /// # Errors
    /// Returns the error of the file system, or `InvalidData` for an item larger than 1 MiB.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Creates or replaces an item. A reader gets either the old bytes or the new bytes, also after a crash.
    ///
    /// # Errors
    /// Returns the error of the file system. The item is then the old one or, if only the last step failed, the new
    /// one.
    fn write(&self, name: &str, bytes: &[u8], access: Access) -> io::Result<()>;

    /// Removes an item. Succeeds if it does not exist.
    ///
    /// # Errors
    /// Returns the error of the file system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Lists the items of a folder in no particular order. The list is empty if the folder does not exist.
    ///
    /// # Errors
    /// Returns the error of the file system.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Locks `name` until the returned lock is dropped. Returns `None` if this process or another one holds the lock.
    ///
    /// # Errors
    /// Returns the error of the file system.
    fn lock(&self, name: &str) -> io::Result<Option<Lock>>;
}

/// A lock with one holder at a time. The kernel releases it when the process ends.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "closing the file releases the lock")] Option<File>);

impl Lock {
    /// Creates a lock without effect, for storage that no other process uses.
    pub fn unshared() -> Lock {
        Lock(None)
    }
}

/// Returns the item name for a host name, wildcard or address. The item name is a valid file name on every system.
pub fn file_name(name: &str) -> String {
    match name.parse::<std::net::IpAddr>() {
        // No host name contains `+`, and the result for a wildcard begins with `+.`, so the result is unique.
        Ok(address) => format!("+{}", address.to_string().replace(':', "-")),
        Err(_) => name.replace('*', "+"),
    }
}

/// Storage in a folder of the file system.
#[derive(Debug, Clone)]
pub struct FileStorage {
    path: PathBuf,
}

impl FileStorage {
    /// Creates a storage in this folder. The folder itself is created by the first write.
    pub fn new(path: impl Into<PathBuf>) -> FileStorage {
        FileStorage { path: path.into() }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates RockNet's own folders and changes their owner to an account and their mode to 0700. Call this function
    /// as root, before the process changes to that account.
    ///
    /// A storage folder that is a symbolic link, or that also contains other entries, may belong to the system.
    /// Therefore it keeps its owner and mode.
    ///
    /// # Errors
    /// Returns the error of the file system. Also returns an error if an account other than root and the given one
    /// could replace entries of the folder.
    pub fn chown(&self, uid: u32, gid: u32) -> io::Result<()> {
        make_folder(&self.path)?;
        let owner = Owner::new(uid, gid);
        if self.holds_only_own_folders()? {
            owner.chown_folder(&self.path)?;
        } else {
            self.refuse_writable_by_others(uid)?;
        }
        OWN_FOLDERS.iter().try_for_each(|own| owner.chown_tree(&self.path, own))
    }

    /// Returns true if the folder is no link and contains only [`OWN_FOLDERS`].
    fn holds_only_own_folders(&self) -> io::Result<bool> {
        if self.path.symlink_metadata()?.is_symlink() {
            return Ok(false);
        }
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            // A process that was killed in `check_writable` may have left its probe file.
            let is_ours = OWN_FOLDERS.iter().any(|own| name == *own) || name.as_encoded_bytes().starts_with(b".probe.");
            if !is_ours {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns an error if an account other than root and `uid` could replace entries of the folder.
    fn refuse_writable_by_others(&self, uid: u32) -> io::Result<()> {
        /// Mode bit of a folder in which only the owner of an entry can replace the entry.
        const STICKY: u32 = 0o1000;
        let found = fs::metadata(&self.path)?;
        let why = if found.uid() != 0 && found.uid() != uid {
            format!("it belongs to another account (uid {})", found.uid())
        } else if found.mode() & 0o022 != 0 && found.mode() & STICKY == 0 {
            format!("other accounts can write to it (mode {:o})", found.mode() & 0o7777)
        } else {
            return Ok(());
        };
        let help = "set `state` in [server] to a folder that only RockNet uses";
        Err(io::Error::other(format!(
            "{why}, so private keys in it could be replaced; {help}"
        )))
    }

    /// Checks that this process can write to the folder. Creates the folder if it does not exist, and leaves no file in
    /// it.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn check_writable(&self) -> io::Result<()> {
        make_folder(&self.path)?;
        let probe = self.path.join(format!(".probe.{}.tmp", std::process::id()));
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&probe)?;
        fs::remove_file(probe)
    }
}

impl Storage for FileStorage {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.path.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        let read = file.take(MAX_ITEM_BYTES + 1).read_to_end(&mut bytes)?;
        if read as u64 > MAX_ITEM_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the file is larger than 1 MiB",
            ));
        }
        Ok(Some(bytes))
    }

    fn write(&self, name: &str, bytes: &[u8], access: Access) -> io::Result<()> {
        let target = self.path.join(name);
        let (Some(folder), Some(file)) = (target.parent(), target.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        make_folder(folder)?;
        let temporary = folder.join(format!(".{}.{}.tmp", file.to_string_lossy(), std::process::id()));
        let written = write_whole(&temporary, bytes, access).and_then(|()| fs::rename(&temporary, &target));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        // The rename is durable only after the folder itself is synchronized.
        File::open(folder)?.sync_all()?;
        remove_leftovers(folder);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            // Temporary files are skipped. Names that are not UTF-8 are skipped too, because RockNet does not create
            // them.
            if let Ok(name) = entry?.file_name().into_string()
                && !name.starts_with('.')
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self, name: &str) -> io::Result<Option<Lock>> {
        let path = self.path.join(format!("{name}.lock"));
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(Some(file)))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Creates a folder with mode 0700, and its parents.
fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

/// Creates or replaces a file and synchronizes it with the disk.
fn write_whole(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mode = match access {
        Access::Owner => 0o600,
        Access::Everyone => 0o644,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // The mode is set explicitly, because the umask or an older file could have caused another mode.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes temporary files of processes that were killed during a write.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let old = |found: fs::Metadata| {
            let age = found
                .modified()
                .ok()
                .and_then(|at| SystemTime::now().duration_since(at).ok());
            age.is_some_and(|age| age > LEFTOVER_AGE)
        };
        if name.starts_with('.') && name.ends_with(".tmp") && entry.metadata().is_ok_and(old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Mode of the state folder and its subfolders.
const PRIVATE: u32 = 0o700;

/// Folders that RockNet creates in the state folder.
pub const OWN_FOLDERS: [&str; 9] = [
    "acme",
    "admin",
    "bans",
    "local",
    "oidc",
    "php",
    "quic",
    "responses",
    "urls",
];

/// Maximum size of an item in bytes. A chain with its key has a few KiB.
const MAX_ITEM_BYTES: u64 = 1 << 20;

/// Age after which a temporary file is removed. No write takes that long, so the process that created the file has
/// ended.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

#[cfg(test)]
pub mod memory;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_wildcards_and_addresses_become_file_names() {
        for (name, expected) in [
            ("example.com", "example.com"),
            ("*.example.com", "+.example.com"),
            ("127.0.0.1", "+127.0.0.1"),
            ("::1", "+--1"),
        ] {
            assert_eq!(file_name(name), expected);
        }
    }

    #[test]
    fn items_are_replaced_listed_and_removed_and_their_mode_follows_their_access() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path().join("state"));
        assert_eq!(storage.read("a/b").unwrap(), None);
        assert!(storage.names("a").unwrap().is_empty());
        storage.write("a/b", b"one", Access::Owner).unwrap();
        storage.write("a/b", b"two", Access::Owner).unwrap();
        storage.write("a/c", b"three", Access::Everyone).unwrap();
        assert_eq!(storage.read("a/b").unwrap().as_deref(), Some(&b"two"[..]));
        let mode = |name: &str| fs::metadata(storage.path().join(name)).unwrap().mode() & 0o777;
        assert_eq!((mode("a/b"), mode("a/c")), (0o600, 0o644));
        let mut names = storage.names("a").unwrap();
        names.sort();
        assert_eq!(names, ["b", "c"]);
        storage.remove("a/b").unwrap();
        storage.remove("a/b").unwrap();
        assert_eq!(storage.read("a/b").unwrap(), None);
    }

    #[test]
    fn temporary_files_of_a_killed_writer_are_ignored_and_later_removed() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        let (old, new) = (folder.path().join(".b.1.tmp"), folder.path().join(".b.2.tmp"));
        fs::write(&old, "torn").unwrap();
        fs::write(&new, "torn").unwrap();
        let long_ago = SystemTime::now() - 2 * LEFTOVER_AGE;
        File::options()
            .write(true)
            .open(&old)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        assert!(storage.names("").unwrap().is_empty());
        storage.write("b", b"whole", Access::Owner).unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn a_lock_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        let first = storage.lock("x").unwrap();
        assert!(first.is_some() && storage.lock("x").unwrap().is_none());
        drop(first);
        assert!(storage.lock("x").unwrap().is_some());
    }

    #[test]
    fn only_own_folders_change_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let owner = |name: &str| {
            folder
                .path()
                .join(name)
                .symlink_metadata()
                .map(|found| found.uid())
                .unwrap()
        };
        let storage = FileStorage::new(folder.path());
        storage.write("local/ca.pem", b"x", Access::Everyone).unwrap();
        storage.write("other/file", b"x", Access::Owner).unwrap();
        fs::hard_link(folder.path().join("other/file"), folder.path().join("local/hard")).unwrap();
        std::os::unix::fs::symlink("../other/file", folder.path().join("local/soft")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("local/socket")).unwrap();
        let me = owner("other");
        // Only root can change the owner of a file.
        let is_root = rustix::process::geteuid().is_root();
        if !is_root {
            rocknet_testing::skip(rocknet_testing::Need::Root, "only root can change the owner of a file");
        }
        let to = if is_root { 4242 } else { me };
        storage.chown(to, rustix::process::getegid().as_raw()).unwrap();
        for name in ["local", "local/ca.pem", "acme"] {
            assert_eq!(owner(name), to, "{name}");
        }
        for name in [".", "other", "other/file", "local/hard", "local/soft", "local/socket"] {
            assert_eq!(owner(name), me, "{name}");
        }
    }

    #[test]
    fn a_folder_without_other_entries_gets_mode_0700_and_a_folder_writable_by_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (me, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let chmod = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let ours = folder.path().join("ours");
        fs::create_dir_all(ours.join("local")).unwrap();
        chmod(&ours, 0o777);
        chmod(&ours.join("local"), 0o755);
        FileStorage::new(&ours).chown(me, group).unwrap();
        assert_eq!((mode(&ours), mode(&ours.join("local"))), (0o700, 0o700));
        let shared = folder.path().join("shared");
        fs::create_dir_all(shared.join("other")).unwrap();
        for (bits, good) in [(0o755, true), (0o1777, true), (0o775, false), (0o757, false)] {
            chmod(&shared, bits);
            let result = FileStorage::new(&shared).chown(me, group);
            assert_eq!(result.is_ok(), good, "{bits:o}: {result:?}");
            assert_eq!(mode(&shared), bits);
        }
        if me == 0 {
            chmod(&shared, 0o755);
            std::os::unix::fs::lchown(&shared, Some(4242), None).unwrap();
            let refused = FileStorage::new(&shared).chown(33, 33).unwrap_err().to_string();
            assert!(refused.contains("uid 4242") && refused.contains("`state`"), "{refused}");
        }
    }

    #[test]
    fn a_file_above_the_size_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        for (size, good) in [(MAX_ITEM_BYTES, true), (MAX_ITEM_BYTES + 1, false)] {
            fs::write(folder.path().join("x"), vec![0; usize::try_from(size).unwrap()]).unwrap();
            assert_eq!(storage.read("x").is_ok(), good, "{size}");
        }
    }
}
