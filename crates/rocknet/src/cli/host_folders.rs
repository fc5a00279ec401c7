//! Detects new and removed folders below a root with `{host}`, so that they are served without a command.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use rocknet_config::host_folders::{self, FoundHosts};
use rocknet_config::model::HostFolders;
use rocknet_config::{Config, ProcessEnvironment};

/// Interval between two checks.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Age of a folder's last change from which its time proves that it has not changed since. File systems count time in
/// steps of up to two seconds.
const SETTLED: Duration = Duration::from_secs(4);

/// Minimum time between two reloads for new folders, because each prepares the whole configuration.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Time after which the same change is tried again, if the configuration could not be reloaded.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// State of the folders as of the last check.
#[derive(Default)]
pub struct HostFolderWatch {
    /// Times of the last changes of folders that were found equal to the configuration.
    equal: RefCell<BTreeMap<PathBuf, SystemTime>>,
    /// Hosts of the last change that was reported, and its time.
    reported: RefCell<Option<(Vec<FoundHosts>, Instant)>>,
}

impl HostFolderWatch {
    /// Returns true if the folders on disk differ from those of the configuration, and this change was not reported
    /// within the last minute. Changes are reported at intervals of at least ten seconds.
    pub fn has_new_change(&self, config: &Config) -> bool {
        if config.host_folders.is_empty() {
            return false;
        }
        let found: Vec<Option<FoundHosts>> = config
            .host_folders
            .iter()
            .map(|folders| self.changed(folders))
            .collect();
        if found.iter().all(Option::is_none) {
            return false;
        }
        let found: Vec<FoundHosts> = found.into_iter().map(Option::unwrap_or_default).collect();
        let mut reported = self.reported.borrow_mut();
        if let Some((last, at)) = &*reported {
            let interval = if *last == found {
                RETRY_INTERVAL
            } else {
                RELOAD_INTERVAL
            };
            if at.elapsed() < interval {
                return false;
            }
        }
        *reported = Some((found, Instant::now()));
        true
    }

    /// Returns the hosts on disk if they differ from those of the configuration. A folder that was equal and whose time
    /// has not changed since is not read again, unless the root names a folder in the folder of each host.
    fn changed(&self, folders: &HostFolders) -> Option<FoundHosts> {
        let parent = host_folders::parent(&folders.pattern);
        let modified = std::fs::metadata(&parent).and_then(|meta| meta.modified()).ok()?;
        let has_folders_below = !folders.pattern.ends_with(HostFolders::HOST);
        let mut equal = self.equal.borrow_mut();
        if equal.get(&parent) == Some(&modified) && !has_folders_below {
            return None;
        }
        equal.remove(&parent);
        let found = host_folders::find(&folders.pattern, &ProcessEnvironment).ok()?;
        if found.hosts != folders.hosts {
            return Some(found);
        }
        if modified.elapsed().is_ok_and(|age| age > SETTLED) {
            equal.insert(parent, modified);
        }
        None
    }
}
