//! The places in which programs run: some for each folder, and some for all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rocknet_config::model::{Cgi, MAX_PROGRAMS};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::gateway::trouble::Trouble;

/// Requests that wait for a place, for all sites: longer than that, nobody waits.
const MAX_WAITING: usize = 256;

/// The places of all programs of a server.
pub struct Places {
    all: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Those of each folder, while some route uses it.
    known: Mutex<BTreeMap<Key, Weak<Semaphore>>>,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            all: Arc::new(Semaphore::new(MAX_PROGRAMS)),
            waiting: AtomicUsize::new(0),
            known: Mutex::default(),
        }
    }
}

/// A place, for as long as this lives.
pub struct Permit {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Counts who waits.
struct Waits<'p>(&'p AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A folder, and how many of its programs run at once.
type Key = (PathBuf, String, usize);

impl Places {
    /// Waits for a place among `own`, those of a folder, and among those of the server.
    pub async fn enter(&self, own: &Arc<Semaphore>) -> Result<Permit, Trouble> {
        let Places { all, waiting, .. } = self;
        let (own, all) = (Arc::clone(own), Arc::clone(all));
        if let (Ok(_own), Ok(_of_all)) = (
            Arc::clone(&own).try_acquire_owned(),
            Arc::clone(&all).try_acquire_owned(),
        ) {
            return Ok(Permit { _own, _of_all });
        }
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(waiting);
        if before >= MAX_WAITING {
            return Err(Trouble::Full);
        }
        // The folder's first: whoever waits for that holds nobody up who has another folder.
        let _own = own.acquire_owned().await.map_err(|_| Trouble::Full)?;
        let _of_all = all.acquire_owned().await.map_err(|_| Trouble::Full)?;
        Ok(Permit { _own, _of_all })
    }

    /// The places of a folder: whoever names it has the same, in every site and behind every reload that leaves their number.
    pub fn of(&self, root: &Path, cgi: &Cgi) -> Arc<Semaphore> {
        let key = (root.to_owned(), cgi.folder.clone(), cgi.programs);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = known.get(&key).and_then(Weak::upgrade) {
            return places;
        }
        known.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(cgi.programs));
        known.insert(key, Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgi::Programs;

    #[test]
    fn a_folder_has_its_places_whoever_names_it() {
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
            let first = one.enter().await.expect("a place");
            let _second = same.enter().await.expect("another");
            assert_eq!(one.places.available_permits(), 0);
            assert_eq!(other.places.available_permits(), 2);
            let waiting = one.enter();
            tokio::pin!(waiting);
            assert!(is_pending(waiting.as_mut()).await);
            drop(first);
            waiting.await.expect("the place of the first");
        });
    }

    async fn is_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
