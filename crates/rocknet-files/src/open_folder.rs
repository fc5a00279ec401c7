//! The folders of sites, held open as long as they are in use: no more than a bound, however many sites there are.

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

/// Of the process's descriptors, the part that folders may hold open: 1/16, half of what cached files may.
const DESCRIPTOR_SHARE: u64 = 16;
/// Open folders at most, however many descriptors there are. One is opened again on a thread of the pool, as part of a
/// look at the disk, and answers from the cache need none: only what is asked for all the time is worth a descriptor.
const MAX_OPEN_FOLDERS: u64 = 2048;
/// Open folders at least: the sites of a small server.
const MIN_OPEN_FOLDERS: u64 = 16;

/// For so long a folder that was in its place is taken to be there still by those who look at many files and wait for nothing.
/// With the age that answers may have, a change shows within a second.
const CHECKED_FOR_MS: u64 = 40;

/// A folder, opened when it is asked for.
pub struct Folder {
    path: PathBuf,
    state: Arc<FolderState>,
    folders: Arc<OpenFolders>,
}

#[derive(Default)]
struct FolderState {
    root: Mutex<Option<OpenRoot>>,
    /// Since it last was the oldest of all.
    used: AtomicBool,
    /// When it last was seen to be in its place, in milliseconds of uptime, by who could not wait.
    checked_ms: AtomicU64,
}

/// The folder as it was opened, and what tells whether another was put in its place: a release is often switched by
/// renaming a folder or turning a link, and the open descriptor would show the old one for ever.
struct OpenRoot {
    root: Arc<Root>,
    device: u64,
    inode: u64,
}

impl Folder {
    /// `all`: the folders among which it is counted.
    pub fn new(path: &Path, folders: &Arc<OpenFolders>) -> Folder {
        Folder {
            path: path.to_path_buf(),
            state: Arc::default(),
            folders: Arc::clone(folders),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open folder: the one that is there now, which may come later than the server. May wait for the disk.
    pub fn root(&self) -> io::Result<Arc<Root>> {
        // Asked before it is opened: if it is replaced in between, the next call sees that.
        let there = fs::metadata(&self.path);
        self.state.used.store(true, Ordering::Relaxed);
        let mut state = lock(&self.state.root);
        let (device, inode) = there
            .map(|there| (there.dev(), there.ino()))
            .inspect_err(|_| *state = None)?;
        if let Some(open) = state
            .as_ref()
            .filter(|open| open.device == device && open.inode == inode)
        {
            return Ok(Arc::clone(&open.root));
        }
        let is_first = state.is_none();
        let root = Arc::new(Root::open(&self.path).inspect_err(|_| *state = None)?);
        *state = Some(OpenRoot {
            root: Arc::clone(&root),
            device,
            inode,
        });
        // Others may be closed for it, and no two folders are locked at once.
        drop(state);
        if is_first {
            self.folders.add(&self.state);
        }
        Ok(root)
    }

    /// As [`Folder::root`], if it is open and the kernel can say from memory that it is still the one. Waits for nothing.
    pub fn root_non_blocking(&self) -> Option<Arc<Root>> {
        self.state.used.store(true, Ordering::Relaxed);
        let state = self.state.root.try_lock().ok()?;
        let open = state.as_ref().filter(|open| open.root.has_cached_lookup())?;
        let now = uptime_ms();
        if now.saturating_sub(self.state.checked_ms.load(Ordering::Relaxed)) >= CHECKED_FOR_MS {
            let there = stat_cached(&self.path)?;
            if (open.device, open.inode) != (there.device, there.inode) {
                return None;
            }
            self.state.checked_ms.store(now, Ordering::Relaxed);
        }
        Some(Arc::clone(&open.root))
    }
}

/// How many folders are held open at most, by the limits of the process as they are now.
pub fn most_open_folders() -> usize {
    let most = (descriptors::limit() / DESCRIPTOR_SHARE).clamp(MIN_OPEN_FOLDERS, MAX_OPEN_FOLDERS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// The open folders of one server, in the order in which they were opened. Every open one is here; one that was closed for
/// an error may be, too.
pub struct OpenFolders {
    order: Mutex<VecDeque<Weak<FolderState>>>,
    most: usize,
}

impl OpenFolders {
    /// `most`: open at once.
    pub fn new(most: usize) -> OpenFolders {
        OpenFolders {
            order: Mutex::default(),
            most,
        }
    }

    /// Second chance: where there is no room, the oldest is closed that was not used since it last was the oldest. Who
    /// is reading in it keeps it open until that is done.
    fn add(&self, new: &Arc<FolderState>) {
        let mut closing = Vec::new();
        let mut order = lock(&self.order);
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

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_open_than_may_be_and_those_in_use_stay() {
        const MOST: usize = 4;
        let folders = Arc::new(OpenFolders::new(MOST));
        let place = tempfile::tempdir().expect("a folder");
        let folder = |number: usize| {
            let path = place.path().join(number.to_string());
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
        assert!(is_open(&favourite), "used folders the time, and closed");
        for other in others.iter().rev().chain(&others) {
            assert!(other.root().is_ok(), "opened again");
        }
        drop(others);
        assert!(lock(&folders.order).len() <= MOST);
    }

    #[test]
    fn a_folder_in_its_place_is_noticed() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("site");
        let folder = Folder::new(&path, &Arc::new(OpenFolders::new(1)));
        assert_eq!(
            folder.root().map(drop).map_err(|error| error.kind()),
            Err(io::ErrorKind::NotFound)
        );
        fs::create_dir(&path).expect("a folder");
        let first = folder.root().expect("open");
        assert!(Arc::ptr_eq(&first, &folder.root().expect("open")));
        fs::rename(&path, place.path().join("old")).expect("renamed");
        fs::create_dir(&path).expect("a folder");
        assert!(!Arc::ptr_eq(&first, &folder.root().expect("open")));
    }
}
