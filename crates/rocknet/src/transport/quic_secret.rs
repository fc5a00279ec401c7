//! Secret of the QUIC keys, kept in the state folder so that the keys survive a restart.
//!
//! With the same keys, a server that was killed and started again resets the old connections of its clients at once
//! (RFC 9000 §10.3). It also accepts the address validation tokens that it issued before (RFC 9000 §8.1.3).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rocknet_quic::{Forwarding, SECRET_LENGTH, SharedKeys};

use crate::certificates::storage::{Access, FileStorage, Storage};

/// Path of the file with the secret in the state folder.
const ITEM: &str = "quic/secret";

/// QUIC keys of a server. They are loaded when HTTP/3 is served for the first time: without HTTPS, the state folder may
/// not even exist.
pub struct QuicKeys {
    state_folder: PathBuf,
    /// Number of this process in its connection IDs. Processes that serve a port at the same time have different
    /// numbers.
    generation: u16,
    /// Inboxes of all workers with a UDP socket, for datagrams that other workers have received.
    forwarding: Forwarding,
    /// Keys; empty before the first call of [`QuicKeys::get`].
    loaded: OnceLock<SharedKeys>,
    /// Warning about the load of the keys that has not been logged yet.
    warning: Mutex<Option<String>>,
}

impl QuicKeys {
    /// Creates the keys of a server without loading them. `generation`: number of this process in its connection IDs.
    pub fn new(state_folder: &Path, generation: u16) -> QuicKeys {
        QuicKeys {
            state_folder: state_folder.to_owned(),
            generation,
            forwarding: Forwarding::default(),
            loaded: OnceLock::new(),
            warning: Mutex::default(),
        }
    }

    /// Returns the keys, which are loaded by the first call.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random bytes.
    pub fn get(&self) -> io::Result<GenerationKeys<'_>> {
        let keys = match self.loaded.get() {
            Some(keys) => keys,
            None => {
                let StoredKeys { keys, warning } = load(&FileStorage::new(&self.state_folder))?;
                *self.warning() = warning;
                self.loaded.get_or_init(|| keys)
            }
        };
        Ok(GenerationKeys {
            keys,
            generation: self.generation,
            forwarding: &self.forwarding,
        })
    }

    /// Returns the inboxes of all workers with a UDP socket.
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// Returns the number of this process in its connection IDs.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    fn warning(&self) -> MutexGuard<'_, Option<String>> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the warning about the load of the keys, once. At the start of the server, the keys are loaded before the
    /// logs are open.
    pub fn log_warning(&self) {
        if let Some(warning) = self.warning().take() {
            tracing::warn!("{warning}");
        }
    }
}

/// Loaded keys, with the number of this process and the inboxes of its workers.
#[derive(Clone, Copy)]
pub struct GenerationKeys<'a> {
    /// Keys, which are the same for all processes of a server.
    pub keys: &'a SharedKeys,
    /// Number of this process in its connection IDs.
    pub generation: u16,
    /// Inboxes of all workers with a UDP socket.
    pub forwarding: &'a Forwarding,
}

/// QUIC keys, with a warning about their stored secret.
struct StoredKeys {
    keys: SharedKeys,
    /// Warning for the log: an unusable secret was replaced, or the keys will not survive a restart. `None` if neither
    /// is the case.
    warning: Option<String>,
}

/// Returns the keys whose secret is stored. If no secret is stored, or the stored one has a wrong length, a new secret
/// is created and stored. If the storage cannot be used, the keys last as long as the process.
///
/// # Errors
///
/// Fails if the system has no random bytes.
fn load(storage: &dyn Storage) -> io::Result<StoredKeys> {
    let mut warning = None;
    match storage.read(ITEM) {
        Ok(Some(bytes)) => match bytes.try_into() {
            Ok(secret) => {
                let keys = SharedKeys::new(&secret)?;
                return Ok(StoredKeys { keys, warning });
            }
            Err(_) => {
                warning = Some(format!(
                    "{ITEM} in the state folder did not have {SECRET_LENGTH} bytes and was replaced"
                ));
            }
        },
        Ok(None) => {}
        // A file that cannot be read is not replaced, because it may belong to another account.
        Err(error) => {
            let keys = SharedKeys::random()?;
            let warning = Some(format!(
                "QUIC keys last until the next restart, because {ITEM} in the state folder cannot be read: {error}"
            ));
            return Ok(StoredKeys { keys, warning });
        }
    }
    let secret = SharedKeys::random_secret()?;
    if let Err(error) = storage.write(ITEM, &secret, Access::Owner) {
        warning = Some(format!(
            "QUIC keys last until the next restart, because {ITEM} in the state folder cannot be written: {error}"
        ));
    }
    let keys = SharedKeys::new(&secret)?;
    Ok(StoredKeys { keys, warning })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Returns the stored secret.
    fn stored(storage: &FileStorage) -> Vec<u8> {
        storage.read(ITEM).expect("a readable file").expect("a file")
    }

    #[test]
    fn the_secret_is_created_once_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = FileStorage::new(folder.path());
        assert_eq!(load(&storage).expect("keys").warning, None);
        let first = stored(&storage);
        assert_eq!(first.len(), SECRET_LENGTH);
        let file = std::fs::metadata(folder.path().join(ITEM)).expect("a file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        assert_eq!(load(&storage).expect("keys").warning, None);
        assert_eq!(stored(&storage), first);
        let other = tempfile::tempdir().expect("a folder");
        let other = FileStorage::new(other.path());
        load(&other).expect("keys");
        assert_ne!(stored(&other), first);
    }

    #[test]
    fn keys_are_loaded_when_they_are_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = QuicKeys::new(folder.path(), 0);
        assert!(!folder.path().join(ITEM).exists());
        keys.get().expect("keys");
        let secret = stored(&FileStorage::new(folder.path()));
        keys.get().expect("keys");
        assert_eq!(stored(&FileStorage::new(folder.path())), secret);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = FileStorage::new(folder.path());
        for damaged in [&b""[..], b"short", &[7; SECRET_LENGTH + 1]] {
            storage.write(ITEM, damaged, Access::Owner).expect("written");
            let warning = load(&storage).expect("keys").warning.expect("a warning");
            assert!(warning.contains("was replaced"), "{warning}");
            assert_eq!(stored(&storage).len(), SECRET_LENGTH, "{damaged:?}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        // The path of the state folder is a file.
        let path = folder.path().join("state");
        std::fs::write(&path, "").expect("a file");
        let warning = load(&FileStorage::new(&path))
            .expect("keys")
            .warning
            .expect("a warning");
        assert!(warning.contains("last until the next restart"), "{warning}");
    }
}
