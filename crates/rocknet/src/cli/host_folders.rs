//! Detects new and removed folders below a root with `{host}`, so that they are served without a command.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rocknet_config::model::HostFolders;
use rocknet_config::{Config, ProcessEnvironment, host_folders};

/// Interval between two checks.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Age of a folder's last change from which its time proves that it has not changed since. File systems count time in
/// steps of up to two seconds.
const SETTLED: Duration = Duration::from_secs(4);

/// Times of the last changes of the folders, as of the last check.
#[derive(Default)]
pub struct HostFolderWatch(RefCell<BTreeMap<PathBuf, SystemTime>>);

impl HostFolderWatch {
    /// Returns true if the folders on disk differ from those of the configuration. A folder whose time has not changed
    /// since the last check is not read again, unless the configuration names a folder in the folder of each host.
    pub fn has_changed(&self, config: &Config) -> bool {
        config.host_folders.iter().any(|folders| self.differs(folders))
    }

    fn differs(&self, folders: &HostFolders) -> bool {
        let parent = host_folders::parent(&folders.pattern);
        let Ok(modified) = std::fs::metadata(&parent).and_then(|meta| meta.modified()) else {
            return false;
        };
        let known = self.0.borrow_mut().insert(parent, modified);
        let is_settled = modified.elapsed().is_ok_and(|age| age > SETTLED);
        let has_folders_below = !folders.pattern.ends_with("{host}");
        if known == Some(modified) && is_settled && !has_folders_below {
            return false;
        }
        host_folders::find(&folders.pattern, &ProcessEnvironment).is_ok_and(|hosts| hosts != folders.hosts)
    }
}
