//! Detects new and removed folders below a root with `{host}`, so that they are served without a command.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rocknet_config::ProcessEnvironment;
use rocknet_config::host_folders::{self, FoundHosts};
use rocknet_config::model::HostFolders;
use tokio::sync::mpsc::Sender;

use super::event::Event;

/// Interval between two checks. If nothing has changed, most checks read only the times of a few folders.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Age that the last change of a folder must exceed before its time is stored for comparison. File systems count time
/// in steps of up to two seconds, so two changes within one step have the same time. This age exceeds one step.
const SETTLED: Duration = Duration::from_secs(4);

/// Minimum time between two reloads for new folders, because each prepares the whole configuration.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Time after which the same change is tried again, if the configuration could not be reloaded.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Checks the folders on a thread of its own, because a listing of a network file system can take long.
#[derive(Clone, Default)]
pub struct HostFolderWatch(Arc<Watch>);

#[derive(Default)]
struct Watch {
    /// State of the folders. The thread of a check keeps it locked, so a failed lock shows that a check is in progress.
    state: Mutex<FolderState>,
    /// True if the last reported change was not handled.
    is_postponed: AtomicBool,
}

impl HostFolderWatch {
    /// Starts a check, unless the previous one is still in progress. Sends [`Event::HostFoldersChanged`] if the folders
    /// on disk differ from those of the configuration.
    pub fn start_check(&self, configured: &[HostFolders], events: &Sender<Event>) {
        // A check that has panicked is not in progress.
        let is_busy = || matches!(self.0.state.try_lock(), Err(TryLockError::WouldBlock));
        if configured.is_empty() || is_busy() {
            return;
        }
        let (watch, configured, events) = (Arc::clone(&self.0), configured.to_vec(), events.clone());
        let check = move || {
            let mut state = watch.state.lock().unwrap_or_else(PoisonError::into_inner);
            if watch.is_postponed.swap(false, Ordering::Relaxed) {
                state.reported = None;
            }
            if state.has_new_change(&configured) {
                let _ = events.blocking_send(Event::HostFoldersChanged);
            }
        };
        // Without a thread, the next check finds the same change.
        let _ = thread::Builder::new().name("rn-folders".to_owned()).spawn(check);
    }

    /// Records that the last reported change was not handled, so that the next check reports it again without delay.
    pub fn postpone(&self) {
        self.0.is_postponed.store(true, Ordering::Relaxed);
    }
}

/// State of the folders as of the last check.
#[derive(Default)]
struct FolderState {
    /// Times of the last changes of folders that were found equal to the configuration.
    equal: BTreeMap<PathBuf, SystemTime>,
    /// Hosts of the last change that was reported, and its time.
    reported: Option<(Vec<FoundHosts>, Instant)>,
}

impl FolderState {
    /// Returns true if the folders on disk differ from those of the configuration, and this change was not reported
    /// within the last minute. Changes are reported at intervals of at least ten seconds.
    fn has_new_change(&mut self, configured: &[HostFolders]) -> bool {
        let found: Vec<Option<FoundHosts>> = configured.iter().map(|folders| self.changed(folders)).collect();
        if found.iter().all(Option::is_none) {
            return false;
        }
        let found: Vec<FoundHosts> = found.into_iter().map(Option::unwrap_or_default).collect();
        if let Some((last, at)) = &self.reported {
            let interval = if *last == found {
                RETRY_INTERVAL
            } else {
                RELOAD_INTERVAL
            };
            if at.elapsed() < interval {
                return false;
            }
        }
        self.reported = Some((found, Instant::now()));
        true
    }

    /// Returns the hosts on disk if they differ from those of the configuration; `None` if not, or if the folder cannot
    /// be read. A folder that was equal and whose time has not changed since is not read again. An exception is a root
    /// such as `/srv/{host}/public`: a new `public` does not change the time of `/srv`.
    fn changed(&mut self, folders: &HostFolders) -> Option<FoundHosts> {
        let parent = host_folders::parent(&folders.pattern);
        let modified = std::fs::metadata(&parent).and_then(|meta| meta.modified()).ok()?;
        let has_folders_below = !folders.pattern.ends_with(HostFolders::HOST);
        if self.equal.get(&parent) == Some(&modified) && !has_folders_below {
            return None;
        }
        self.equal.remove(&parent);
        let found = host_folders::find(&folders.pattern, &ProcessEnvironment).ok()?;
        if found.hosts != folders.hosts {
            return Some(found);
        }
        if modified.elapsed().is_ok_and(|age| age > SETTLED) {
            self.equal.insert(parent, modified);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Waits for the end of the check that was started, and returns whether it reported a change.
    fn finished(watch: &HostFolderWatch, events: &mut Receiver<Event>) -> bool {
        // The thread of the check holds a reference until it has sent its event.
        while Arc::strong_count(&watch.0) > 1 {
            thread::yield_now();
        }
        matches!(events.try_recv(), Ok(Event::HostFoldersChanged))
    }

    #[test]
    fn changes_are_reported_once_unless_they_were_postponed_and_from_another_thread() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("a.test")).expect("a folder");
        let configured = |hosts: &[&str]| HostFolders {
            pattern: folder.path().join(HostFolders::HOST),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            runs_programs: false,
        };
        let (sender, mut events) = channel(4);
        let watch = HostFolderWatch::default();
        for (hosts, expected, is_postponed) in [
            (&["a.test"][..], false, false),
            (&[], true, false),
            (&[], false, true),
            (&[], true, false),
            (&[], false, false),
            (&["a.test"], false, false),
        ] {
            watch.start_check(&[configured(hosts)], &sender);
            assert_eq!(finished(&watch, &mut events), expected, "{hosts:?}");
            if is_postponed {
                watch.postpone();
            }
        }
        // A check in progress is not joined by a second one.
        let busy = watch.0.state.lock().expect("not poisoned");
        watch.start_check(&[configured(&["b.test"])], &sender);
        assert_eq!(Arc::strong_count(&watch.0), 1);
        drop(busy);
        // A panic of a check ends no later ones.
        let state = HostFolderWatch(Arc::clone(&watch.0));
        let panicked = thread::spawn(move || {
            let _busy = state.0.state.lock();
            panic!("for the test");
        });
        assert!(panicked.join().is_err() && watch.0.state.is_poisoned());
        watch.postpone();
        watch.start_check(&[configured(&[])], &sender);
        assert!(finished(&watch, &mut events));
    }
}
