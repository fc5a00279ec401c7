//! Keys of cookies, kept in the state folder so that sessions survive a restart.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_config::model::Priority;
use rocknet_handler::services::Services;
use rocknet_oidc::{KeyRing, LOGIN_TIME_S};

use crate::certificates::storage::{Access, FileStorage, Storage};

/// Path of the file with the keys in the state folder.
const ITEM: &str = "oidc/keys";

/// Keys of cookies of a server.
#[derive(Default)]
pub struct CookieKeys {
    state: Mutex<KeyState>,
    /// True while a job replaces the newest key.
    is_rotating: AtomicBool,
}

#[derive(Default)]
struct KeyState {
    /// `None` until the keys are needed for the first time.
    ring: Option<Arc<KeyRing>>,
    /// Folder in which the keys are kept; `None` if they last as long as the process.
    storage: Option<FileStorage>,
    /// True if the newest key was created in memory, and a job still has to store it.
    is_unstored: bool,
}

impl CookieKeys {
    /// Reads the keys from the state folder, or stores new ones there. Does nothing after a call that has succeeded.
    pub fn open_store(&self, folder: &Path) {
        let mut state = self.state();
        if state.storage.is_some() {
            return;
        }
        let storage = FileStorage::new(folder);
        match load(&storage, None, unix_s()) {
            Ok(ring) => {
                *state = KeyState {
                    ring: ring.or(state.ring.take()),
                    storage: Some(storage),
                    is_unstored: false,
                }
            }
            Err(error) => {
                tracing::warn!(
                    "sessions of `oidc` last until the next restart, because {ITEM} in the state folder cannot be \
                     used: {error}"
                );
            }
        }
    }

    /// Returns the keys; `None` if the system has no random numbers.
    pub fn ring(&self) -> Option<Arc<KeyRing>> {
        let mut state = self.state();
        if state.ring.is_none() {
            state.ring = KeyRing::random(unix_s()).map(Arc::new);
        }
        state.ring.clone()
    }

    /// Returns the keys for a new cookie; `None` if the system has no random numbers. If the newest key is old enough,
    /// a job replaces it in the background.
    pub fn ring_for_sealing(self: &Arc<Self>, services: &Rc<Services>) -> Option<Arc<KeyRing>> {
        let now = unix_s();
        let (ring, is_due) = self.unexpired_ring(now)?;
        if !is_due || self.is_rotating.swap(true, Ordering::Relaxed) {
            return Some(ring);
        }
        let keys = Arc::clone(self);
        let submitted = services.pool.run_in_background(Priority::Low, move || keys.rotate(now));
        if submitted.is_err() {
            self.is_rotating.store(false, Ordering::Relaxed);
        }
        Some(ring)
    }

    /// Returns the keys, and true if [`CookieKeys::rotate`] is due. A newest key that expires before a login could end
    /// is replaced in memory at once, because its cookie could not be opened. A server that was unused for weeks has
    /// such a key.
    fn unexpired_ring(&self, now: u64) -> Option<(Arc<KeyRing>, bool)> {
        let mut ring = self.ring()?;
        let mut state = self.state();
        if ring.is_expired(now + LOGIN_TIME_S) {
            // Another worker may have replaced the key since.
            ring = state.ring.clone()?;
        }
        if ring.is_expired(now + LOGIN_TIME_S) {
            ring = Arc::new(ring.rotated(now)?);
            state.ring = Some(Arc::clone(&ring));
            state.is_unstored = true;
        }
        let is_due = ring.is_rotation_due(now) || state.is_unstored;
        Some((ring, is_due))
    }

    /// Stores a new key, and uses it from now on.
    fn rotate(&self, now: u64) {
        let (storage, ring) = {
            let state = self.state();
            (state.storage.clone(), state.ring.clone())
        };
        // The newest key may have been replaced in memory already.
        let next = ring.and_then(|ring| match ring.is_rotation_due(now) {
            true => ring.rotated(now).map(Arc::new),
            false => Some(ring),
        });
        // `load` stores the new key, unless another process has stored one.
        let rotated = match storage.map(|storage| load(&storage, next.as_ref(), now)) {
            Some(Ok(stored)) => stored,
            Some(Err(error)) => {
                tracing::warn!(
                    "the new key of `oidc` lasts until the next restart, because {ITEM} in the state folder \
                                cannot be replaced: {error}"
                );
                next
            }
            None => next,
        };
        if rotated.is_some() {
            let mut state = self.state();
            state.ring = rotated;
            state.is_unstored = false;
        }
        self.is_rotating.store(false, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, KeyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the stored keys. If the newest one is too old, the newest key of `next` is added and stored. If there are no
/// keys, or if they are damaged, `next` itself is stored. Without `next`, the new key is random. Returns `None` if the
/// system has no random numbers.
fn load(storage: &FileStorage, next: Option<&Arc<KeyRing>>, now: u64) -> std::io::Result<Option<Arc<KeyRing>>> {
    let stored = storage.read(ITEM)?;
    let ring = stored.as_deref().and_then(KeyRing::parse);
    if stored.is_some() && ring.is_none() {
        tracing::warn!("{ITEM} in the state folder was damaged and is replaced; users have to log in again");
    }
    match ring {
        Some(ring) if !ring.is_rotation_due(now) => Ok(Some(Arc::new(ring))),
        Some(ring) => {
            let added = next.map_or_else(|| ring.rotated(now), |next| ring.with_newest_of(next, now));
            store(storage, added.map(Arc::new))
        }
        None => store(storage, next.cloned().or_else(|| KeyRing::random(now).map(Arc::new))),
    }
}

fn store(storage: &FileStorage, ring: Option<Arc<KeyRing>>) -> std::io::Result<Option<Arc<KeyRing>>> {
    if let Some(ring) = &ring {
        storage.write(ITEM, &ring.to_stored(), Access::Owner)?;
    }
    Ok(ring)
}

/// Returns the Unix time in seconds.
fn unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_survive_a_restart_and_are_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = CookieKeys::default();
        keys.open_store(folder.path());
        let ring = keys.ring().expect("keys");
        let sealed = ring.seal("x", b"a").expect("a value");
        let file = std::fs::metadata(folder.path().join(ITEM)).expect("a file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        let next = CookieKeys::default();
        next.open_store(folder.path());
        let opened = next.ring().expect("keys").open("x", &sealed, unix_s());
        assert_eq!(opened.as_deref(), Some(&b"a"[..]));
        // Rotation keeps what was sealed.
        next.rotate(unix_s() + 30 * 24 * 60 * 60);
        let rotated = next.ring().expect("keys");
        assert!(rotated.open("x", &sealed, unix_s()).is_some());
        let sealed = rotated.seal("x", b"b").expect("a value");
        assert!(ring.open("x", &sealed, unix_s()).is_none());
        let third = CookieKeys::default();
        third.open_store(folder.path());
        assert!(third.ring().expect("keys").open("x", &sealed, unix_s()).is_some());
    }

    #[test]
    fn a_server_that_was_unused_for_weeks_seals_with_a_new_key() {
        const DAY_S: u64 = 24 * 60 * 60;
        let folder = tempfile::tempdir().expect("a folder");
        let keys = CookieKeys::default();
        keys.open_store(folder.path());
        let start = unix_s();
        let is_due = |age| keys.unexpired_ring(start + age).map(|(_, is_due)| is_due);
        assert_eq!(is_due(6 * DAY_S), Some(false));
        assert_eq!(is_due(8 * DAY_S), Some(true));
        // The newest key expires while the login is in progress, or has expired.
        let ring = keys.ring().expect("keys");
        for age in [45 * DAY_S - LOGIN_TIME_S / 2, 100 * DAY_S] {
            let now = start + age;
            keys.state().ring = Some(Arc::clone(&ring));
            let (sealing, is_due) = keys.unexpired_ring(now).expect("keys");
            assert!(is_due, "the key is not stored");
            let sealed = sealing.seal("x", b"a").expect("a value");
            let end = now + LOGIN_TIME_S;
            assert!(keys.ring().expect("keys").open("x", &sealed, end).is_some());
            // A second login before the key is stored uses the same key.
            let (second, _) = keys.unexpired_ring(now).expect("keys");
            assert!(second.open("x", &sealed, end).is_some());
            keys.rotate(now);
            assert_eq!(keys.unexpired_ring(now).map(|(_, is_due)| is_due), Some(false));
            let next = CookieKeys::default();
            next.open_store(folder.path());
            for keys in [&keys, &next] {
                assert!(keys.ring().expect("keys").open("x", &sealed, end).is_some());
            }
        }
    }

    #[test]
    fn damaged_and_unusable_files_are_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = FileStorage::new(folder.path());
        storage.write(ITEM, b"junk", Access::Owner).expect("written");
        let keys = CookieKeys::default();
        keys.open_store(folder.path());
        assert!(keys.ring().is_some());
        let stored = storage.read(ITEM).expect("readable").expect("a file");
        assert!(KeyRing::parse(&stored).is_some());
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        let keys = CookieKeys::default();
        keys.open_store(&file);
        assert!(keys.ring().is_some());
    }
}
