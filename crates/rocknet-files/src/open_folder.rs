//! Keeps the folders of sites open while they are used, up to a limit that does not depend on the number of sites.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rocknet_io::confined_fs::{Root, stat_cached};
use rocknet_io::descriptors;

use rocknet_handler::clock::uptime_ms;

/// Divisor of the process's descriptor limit: open folders use at most 1/16, half of the share of cached files.
const DESCRIPTOR_SHARE: u64 = 16;
/// Maximum number of open folders regardless of the descriptor limit. A lookup on a thread of the blocking pool opens a
/// closed folder again, and cached responses need no open folder. Therefore only folders that are used continuously are
/// worth a descriptor.
const MAX_OPEN_FOLDERS: u64 = 2048;
/// Minimum number of open folders, enough for the sites of a small server.
const MIN_OPEN_FOLDERS: u64 = 16;

/// Time in milliseconds for which non-blocking lookups rely on a check that a folder has not been replaced. With this
/// time and the maximum age of cached entries, a change is visible within a second.
const CHECKED_FOR_MS: u64 = 40;

/// A folder that is opened when it is used.
pub struct Folder {
    path: PathBuf,
    state: Arc<FolderState>,
    folders: Arc<OpenFolders>,
}

/// Part of a folder that [`OpenFolders`] uses too, to close the folder.
#[derive(Default)]
struct FolderState {
    /// `None` while the folder is closed.
    root: Mutex<Option<OpenRoot>>,
    /// Set when the folder is used, and cleared when it is the oldest open folder and another folder is opened.
    used: AtomicBool,
    /// Time of the last non-blocking check that the folder has not been replaced, in milliseconds of uptime.
    checked_ms: AtomicU64,
}

/// The open folder, with its identity to detect a replacement. Releases are often switched by renaming a folder or
/// changing a symbolic link, and the open descriptor would still refer to the old folder.
struct OpenRoot {
    root: Arc<Root>,
    device: u64,
    inode: u64,
}

impl Folder {
    /// Creates a closed folder. `folders` counts the folder while it is open.
    pub fn new(path: &Path, folders: &Arc<OpenFolders>) -> Folder {
        Folder {
            path: path.to_path_buf(),
            state: Arc::default(),
            folders: Arc::clone(folders),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder that is at the path now, and opens it if necessary. The folder may be created after the
    /// server has started. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder does not exist or cannot be opened.
    pub fn root(&self) -> io::Result<Arc<Root>> {
        // The identity is queried before the folder is opened. If the folder is replaced in between, the next call
        // detects the replacement.
        let meta = fs::metadata(&self.path);
        self.state.used.store(true, Ordering::Relaxed);
        let mut state = lock(&self.state.root);
        let (device, inode) = meta
            .map(|meta| (meta.dev(), meta.ino()))
            .inspect_err(|_| *state = None)?;
        if let Some(open) = state
            .as_ref()
            .filter(|open| open.device == device && open.inode == inode)
        {
            return Ok(Arc::clone(&open.root));
        }
        let was_closed = state.is_none();
        let root = Arc::new(Root::open(&self.path).inspect_err(|_| *state = None)?);
        *state = Some(OpenRoot {
            root: Arc::clone(&root),
            device,
            inode,
        });
        // `add` may close other folders, and a thread must not lock two folders at the same time.
        drop(state);
        if was_closed {
            self.folders.add(&self.state);
        }
        Ok(root)
    }

    /// Like [`Folder::root`], but does not block. Returns `None` unless the folder is open and the kernel's caches show
    /// that it has not been replaced.
    pub fn root_non_blocking(&self) -> Option<Arc<Root>> {
        self.state.used.store(true, Ordering::Relaxed);
        let state = self.state.root.try_lock().ok()?;
        let open = state.as_ref().filter(|open| open.root.has_cached_lookup())?;
        let now = uptime_ms();
        if now.saturating_sub(self.state.checked_ms.load(Ordering::Relaxed)) >= CHECKED_FOR_MS {
            let meta = stat_cached(&self.path)?;
            if (open.device, open.inode) != (meta.device, meta.inode) {
                return None;
            }
            self.state.checked_ms.store(now, Ordering::Relaxed);
        }
        Some(Arc::clone(&open.root))
    }
}

/// Returns the maximum number of open folders, derived from the current descriptor limit of the process.
pub fn most_open_folders() -> usize {
    let most = (descriptors::limit() / DESCRIPTOR_SHARE).clamp(MIN_OPEN_FOLDERS, MAX_OPEN_FOLDERS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// The open folders of one server in the order in which they are considered for closing. Can also contain folders that
/// were closed after an error.
pub struct OpenFolders {
    order: Mutex<VecDeque<Weak<FolderState>>>,
    /// Maximum number of open folders.
    most: usize,
}

impl OpenFolders {
    /// Creates an empty set. `most` is the maximum number of open folders.
    pub fn new(most: usize) -> OpenFolders {
        OpenFolders {
            order: Mutex::default(),
            most,
        }
    }

    /// Adds a folder, and closes others by the second-chance algorithm: the oldest folder is closed unless it was used
    /// since it last was the oldest. Lookups in progress keep their descriptor.
    fn add(&self, new: &Arc<FolderState>) {
        let mut closing = Vec::new();
        let mut order = lock(&self.order);
        // Each folder is passed over at most once, even if all folders are in use.
        let mut chances = order.len();
        while order.len() >= self.most
            && let Some(oldest) = order.pop_front()
        {
            let Some(state) = oldest.upgrade() else { continue };
            if chances > 0 && state.used.swap(false, Ordering::Relaxed) {
                chances -= 1;
                order.push_back(oldest);
            } else {
                closing.push(state);
            }
        }
        order.push_back(Arc::downgrade(new));
        drop(order);
        for state in closing {
            *lock(&state.root) = None;
        }
    }
}

/// Locks a mutex. Poisoning is ignored, because no code that can panic runs while the mutex is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_folders_are_bounded_and_used_ones_stay_open() {
        const MOST: usize = 4;
        let folders = Arc::new(OpenFolders::new(MOST));
        let parent = tempfile::tempdir().expect("a folder");
        let folder = |number: usize| {
            let path = parent.path().join(number.to_string());
            fs::create_dir(&path).expect("a folder");
            Folder::new(&path, &folders)
        };
        let is_open = |folder: &Folder| lock(&folder.state.root).is_some();
        let favourite = folder(0);
        let others: Vec<Folder> = (1..=20).map(folder).collect();
        for other in &others {
            favourite.root().expect("open");
            let was_open = is_open(&favourite);
            other.root().expect("open");
            assert!(was_open && is_open(other));
            let open = others
                .iter()
                .chain([&favourite])
                .filter(|folder| is_open(folder))
                .count();
            assert!(open <= MOST, "{open} are open");
        }
        assert!(is_open(&favourite), "a folder that is used continuously was closed");
        for other in others.iter().rev().chain(&others) {
            assert!(other.root().is_ok(), "opened again");
        }
        drop(others);
        assert!(lock(&folders.order).len() <= MOST);
    }

    #[test]
    fn a_replaced_folder_is_detected() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("site");
        let folder = Folder::new(&path, &Arc::new(OpenFolders::new(1)));
        assert_eq!(
            folder.root().map(drop).map_err(|error| error.kind()),
            Err(io::ErrorKind::NotFound)
        );
        fs::create_dir(&path).expect("a folder");
        let first = folder.root().expect("open");
        assert!(Arc::ptr_eq(&first, &folder.root().expect("open")));
        fs::rename(&path, parent.path().join("old")).expect("renamed");
        fs::create_dir(&path).expect("a folder");
        assert!(!Arc::ptr_eq(&first, &folder.root().expect("open")));
    }
}
