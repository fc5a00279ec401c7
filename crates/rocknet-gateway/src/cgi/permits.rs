//! Permits that limit the number of running programs, per folder and in total.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rocknet_config::model::{Cgi, MAX_PROGRAMS};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::gateway::error::BackendError;

/// Maximum number of requests of all sites that wait for a permit. Further requests are rejected, because each waiting
/// request holds its connection and its stored body.
const MAX_WAITING: usize = 256;

/// Permits for the programs of one server.
pub struct Permits {
    /// Permits of the whole server.
    all: Arc<Semaphore>,
    /// Number of requests that wait for a permit.
    waiting: AtomicUsize,
    /// Permits of each folder that some route uses.
    by_folder: Mutex<BTreeMap<FolderKey, Weak<Semaphore>>>,
}

impl Default for Permits {
    fn default() -> Permits {
        Permits {
            all: Arc::new(Semaphore::new(MAX_PROGRAMS)),
            waiting: AtomicUsize::new(0),
            by_folder: Mutex::default(),
        }
    }
}

/// Permission to run one program, returned on drop.
pub struct ProgramPermit {
    /// Permit of the folder.
    _own: OwnedSemaphorePermit,
    /// Permit of the server.
    _of_all: OwnedSemaphorePermit,
}

/// Counts a waiting request until it is dropped.
struct WaitingGuard<'p>(&'p AtomicUsize);

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Identifies the permits of a folder: root, folder below the root, and maximum number of concurrent programs.
type FolderKey = (PathBuf, String, usize);

impl Permits {
    /// Waits for a permit of the folder (`own`) and for a permit of the server.
    ///
    /// # Errors
    ///
    /// Returns [`BackendError::Full`] if too many requests wait already.
    pub async fn acquire(&self, own: &Arc<Semaphore>) -> Result<ProgramPermit, BackendError> {
        let Permits { all, waiting, .. } = self;
        let (own, all) = (Arc::clone(own), Arc::clone(all));
        if let (Ok(_own), Ok(_of_all)) = (
            Arc::clone(&own).try_acquire_owned(),
            Arc::clone(&all).try_acquire_owned(),
        ) {
            return Ok(ProgramPermit { _own, _of_all });
        }
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = WaitingGuard(waiting);
        if before >= MAX_WAITING {
            return Err(BackendError::Full);
        }
        // The permit of the folder is acquired first. Otherwise a request that waits for it would hold a permit of the
        // server that other folders could use.
        let _own = own.acquire_owned().await.map_err(|_| BackendError::Full)?;
        let _of_all = all.acquire_owned().await.map_err(|_| BackendError::Full)?;
        Ok(ProgramPermit { _own, _of_all })
    }

    /// Returns the permits of a folder. All routes of all sites that name the folder share them. A reload keeps the
    /// permits unless it changes their number.
    pub fn for_folder(&self, root: &Path, cgi: &Cgi) -> Arc<Semaphore> {
        let key = (root.to_owned(), cgi.folder.clone(), cgi.programs);
        let mut by_folder = self.by_folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = by_folder.get(&key).and_then(Weak::upgrade) {
            return permits;
        }
        by_folder.retain(|_, permits| permits.strong_count() > 0);
        let permits = Arc::new(Semaphore::new(cgi.programs));
        by_folder.insert(key, Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgi::Programs;

    #[test]
    fn routes_of_one_folder_share_its_permits() {
        let processes = Arc::default();
        let programs = |folder: &str, programs: usize| {
            let cgi = Cgi {
                programs,
                ..Cgi::at(folder.to_owned())
            };
            Programs::new(Path::new("/srv/places"), &cgi, None, &processes)
        };
        let (one, same, other) = (programs("/a", 2), programs("/a", 2), programs("/b", 2));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let first = one.acquire().await.expect("a permit");
            let _second = same.acquire().await.expect("a second permit");
            assert_eq!(one.permits.available_permits(), 0);
            assert_eq!(other.permits.available_permits(), 2);
            let waiting = one.acquire();
            tokio::pin!(waiting);
            assert!(is_pending(waiting.as_mut()).await);
            drop(first);
            waiting.await.expect("the permit of the first");
        });
    }

    /// Polls the future once, and returns true if it is not ready.
    async fn is_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
