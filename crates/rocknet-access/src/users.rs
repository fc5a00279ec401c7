//! Users of a route: users of the configuration, and users of a password file that is read again when it changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use rocknet_config::htpasswd::{self, PasswordFileError, Stamp};
use rocknet_config::model::{self, PasswordHash};

/// Minimum interval between checks of the file. Editing the file takes longer than this, and more frequent checks would
/// cost more system calls.
const CHECK_INTERVAL_MS: u64 = 1_000;

/// User with the hash of the password.
#[derive(Debug)]
pub(crate) struct User {
    pub name: Arc<str>,
    pub hash: PasswordHash,
}

/// Result of the lookup of a user name.
pub(crate) enum UserLookup {
    User(Arc<User>),
    /// The name is unknown. The hash of this decoy is verified instead, so that the time does not reveal that the name
    /// is unknown.
    Unknown(Arc<User>),
    /// No valid version of the file has been read yet, so its users are unknown.
    Unavailable,
}

/// Users of one route.
#[derive(Debug)]
pub(crate) struct Users {
    configured: Table,
    file: Option<Arc<UserFile>>,
    /// Decoy if neither the configuration nor the file has users.
    no_user: Arc<User>,
}

/// Users by name.
#[derive(Debug, Default)]
struct Table {
    users: HashMap<Box<str>, Arc<User>>,
    /// Decoy: a user whose hash is verified for unknown names.
    decoy: Option<Arc<User>>,
}

/// A password file with the users that were read from it.
#[derive(Debug)]
struct UserFile {
    path: PathBuf,
    /// Users of the last valid version of the file; `None` before the first one.
    table: ArcSwapOption<Table>,
    /// Time from which the next request checks the file, in milliseconds of the monotonic clock that callers read.
    next_check_ms: AtomicU64,
    /// Stamp of the file when it was last read; an unchanged file is not read again. `None` if the file did not exist,
    /// or its metadata could not be read.
    seen: Mutex<Option<Stamp>>,
}

/// Password files of one server. A file is shared by all routes that use it, and by the configurations before and after
/// a reload. Its users are therefore stored once, and the file is read and its errors are reported once.
#[derive(Debug, Default)]
pub(crate) struct UserFiles(Mutex<HashMap<PathBuf, Weak<UserFile>>>);

impl UserFiles {
    /// Returns the shared state of a file, and reads the file if it has changed. Blocks on the disk.
    fn open(&self, path: &Path) -> Arc<UserFile> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(path).and_then(Weak::upgrade) {
            file.check_file();
            return file;
        }
        files.retain(|_, file| file.strong_count() > 0);
        let file = Arc::new(UserFile::new(path));
        files.insert(path.to_owned(), Arc::downgrade(&file));
        file
    }
}

impl Users {
    /// Reads the password file. An invalid file is reported by the check of the configuration and in the log.
    pub fn new(auth: &model::PasswordAuth, files: &UserFiles) -> Users {
        let configured = auth
            .users
            .iter()
            .map(|(name, hash)| (name.as_str().into(), hash.clone()));
        Users {
            configured: Table::new(configured),
            file: auth.file.as_deref().map(|path| files.open(path)),
            no_user: no_user(),
        }
    }

    /// Looks up a user name.
    pub fn find(&self, name: &str) -> UserLookup {
        if let Some(user) = self.configured.users.get(name) {
            return UserLookup::User(Arc::clone(user));
        }
        let mut decoy = self.configured.decoy.clone();
        if let Some(file) = &self.file {
            let table = file.table.load();
            let Some(table) = &*table else {
                return UserLookup::Unavailable;
            };
            if let Some(user) = table.users.get(name) {
                return UserLookup::User(Arc::clone(user));
            }
            decoy = decoy.or_else(|| table.decoy.clone());
        }
        UserLookup::Unknown(decoy.unwrap_or_else(|| Arc::clone(&self.no_user)))
    }

    /// Returns true if the file must be checked before a user from it is accepted.
    pub fn is_check_due(&self, now_ms: u64) -> bool {
        let due_ms = |file: &Arc<UserFile>| file.next_check_ms.load(Ordering::Relaxed);
        self.file.as_ref().is_some_and(|file| now_ms >= due_ms(file))
    }

    /// Returns true to the first caller in each second. That caller must then call [`Users::check_file`].
    pub fn claim_check(&self, now_ms: u64) -> bool {
        let Some(file) = &self.file else { return false };
        let due_ms = file.next_check_ms.load(Ordering::Relaxed);
        let next_ms = now_ms.saturating_add(CHECK_INTERVAL_MS);
        now_ms >= due_ms
            && (file.next_check_ms)
                .compare_exchange(due_ms, next_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Reads the file again if it has changed. Blocks on the disk.
    pub fn check_file(&self) {
        if let Some(file) = &self.file {
            file.check_file();
        }
    }
}

impl UserFile {
    fn new(path: &Path) -> UserFile {
        let file = UserFile {
            path: path.to_owned(),
            table: ArcSwapOption::empty(),
            next_check_ms: AtomicU64::new(0),
            seen: Mutex::new(None),
        };
        file.read();
        file
    }

    fn check_file(&self) {
        let stamp = Stamp::of(&self.path).ok();
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp != seen {
            self.read();
        }
    }

    /// Reads the users of the file. An invalid file leaves the previous users in place, because a half-written file
    /// must not lock out the users in its missing half.
    fn read(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match htpasswd::read(&self.path) {
            Ok((users, stamp)) => {
                *seen = Some(stamp);
                self.table.store(Some(Arc::new(Table::new(users.into_iter()))));
            }
            Err(error) => {
                *seen = Stamp::of(&self.path).ok();
                self.report(&error);
            }
        }
    }

    fn report(&self, error: &PasswordFileError) {
        let effect = match self.table.load().is_some() {
            true => "its previous users stay in effect",
            false => "none of its users can log in",
        };
        tracing::error!("the password file {} {error}; {effect}", self.path.display());
    }
}

impl Table {
    fn new(users: impl Iterator<Item = (Box<str>, PasswordHash)>) -> Table {
        let users: HashMap<Box<str>, Arc<User>> = users
            .map(|(name, hash)| {
                let user = User {
                    name: Arc::from(&*name),
                    hash,
                };
                (name, Arc::new(user))
            })
            .collect();
        // The decoy is the first user by name, so that a reload selects the same user.
        let decoy = users.values().min_by(|a, b| a.name.cmp(&b.name)).cloned();
        Table { users, decoy }
    }
}

/// Returns the decoy for a route without users: argon2id at the cost of `rocknet hash-password`, with a digest for
/// which no password is known.
fn no_user() -> Arc<User> {
    let text = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let hash = PasswordHash::parse(text).expect("the hash is a constant, and a test parses it");
    let name = Arc::from("");
    Arc::new(User { name, hash })
}

#[cfg(test)]
mod tests;
