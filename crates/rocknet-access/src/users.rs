//! The users of one place: those of the configuration, and those of a file that is read again when it has changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use rocknet_config::htpasswd::{self, FileFault, Stamp};
use rocknet_config::model::{self, PasswordHash};

/// Time between two looks at a file. Editing it takes longer, and more looks would cost system calls.
const CHECK_INTERVAL_MS: u64 = 1_000;

/// One user that may enter.
#[derive(Debug)]
pub(crate) struct User {
    pub name: Arc<str>,
    pub hash: PasswordHash,
}

/// Result of the lookup of a user name.
pub(crate) enum UserLookup {
    User(Arc<User>),
    /// No user has the name. The hash of another is verified in its place, so that the time does not tell.
    Unknown(Arc<User>),
    /// The file was never readable, so nothing is known.
    Unavailable,
}

#[derive(Debug)]
pub(crate) struct Users {
    configured: Table,
    file: Option<Arc<UserFile>>,
    /// The stand-in where there is no user.
    no_user: Arc<User>,
}

#[derive(Debug, Default)]
struct Table {
    users: HashMap<Box<str>, Arc<User>>,
    /// A user whose hash stands for those of unknown names.
    decoy: Option<Arc<User>>,
}

#[derive(Debug)]
struct UserFile {
    path: PathBuf,
    /// The last version that could be used.
    table: ArcSwapOption<Table>,
    next_check_ms: AtomicU64,
    /// Stamp of the file at the last check; an unchanged file is not read again. `None`: the file was not readable.
    seen: Mutex<Option<Stamp>>,
}

/// The files of one server. Routes that name the same file share it, and so do the configurations before and after a reload:
/// its users are in memory once, and it is read and reported once.
#[derive(Debug, Default)]
pub(crate) struct UserFiles(Mutex<HashMap<PathBuf, Weak<UserFile>>>);

impl UserFiles {
    /// Returns a file as it is now. Blocks on the disk.
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
    /// Reads the file. A file that cannot be used is reported by the check of the configuration and in the log.
    pub fn new(auth: &model::Auth, files: &UserFiles) -> Users {
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

    /// Returns true if the file has to be looked at before a user of it is believed.
    pub fn is_check_due(&self, now_ms: u64) -> bool {
        let due_ms = |file: &Arc<UserFile>| file.next_check_ms.load(Ordering::Relaxed);
        self.file.as_ref().is_some_and(|file| now_ms >= due_ms(file))
    }

    /// Returns true if the caller is the one that has to call [`Users::look`] now: the first in every second.
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

    /// Takes the users of the file, or keeps those of before: half a file must not lock out the users of the other half.
    fn read(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match htpasswd::read(&self.path) {
            Ok((users, stamp)) => {
                *seen = Some(stamp);
                self.table.store(Some(Arc::new(Table::new(users.into_iter()))));
            }
            Err(fault) => {
                *seen = Stamp::of(&self.path).ok();
                self.report(&fault);
            }
        }
    }

    fn report(&self, fault: &FileFault) {
        let effect = match self.table.load().is_some() {
            true => "its users stay those of before",
            false => "none of its users can enter",
        };
        tracing::error!("the password file {} {fault}; {effect}", self.path.display());
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
        // The first by name, so that it is the same one after a reload.
        let decoy = users.values().min_by(|a, b| a.name.cmp(&b.name)).cloned();
        Table { users, decoy }
    }
}

/// Stands in where there is no user at all: argon2id at the cost of `rocknet hash-password`, with a digest that no password
/// is known for.
fn no_user() -> Arc<User> {
    let text = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let hash = PasswordHash::parse(text).expect("a constant that a test reads");
    let name = Arc::from("");
    Arc::new(User { name, hash })
}

#[cfg(test)]
mod tests;
