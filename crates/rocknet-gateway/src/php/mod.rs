//! The php-fpm processes that RockNet runs itself: one for each version and account that sites name, supervised until
//! the server ends.
//!
//! ```text
//! Config ─▶ manager.rs: plans pools ─▶ supervisor.rs, a thread ─▶ fpm_process.rs: runs one php-fpm
//!             ├─ installed.rs: finds PHP                            └─ launch.rs, pool_file.rs: its command line
//!             └─ run_folder.rs: folder of the sockets, cleanup after a killed server
//! ```

mod event;
mod fpm_process;
mod info;
mod installed;
mod launch;
mod manager;
mod pool;
mod pool_file;
mod pool_names;
mod report;
mod run_folder;
mod sockets;
mod supervisor;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_config::Config;
use rocknet_config::model::{Php, PhpSettings, PhpVersion, Settings};

pub use self::info::{OpcacheSettings, PhpInfo};
pub use self::installed::{Installed, Sapi, all as installed, choose};
pub use self::manager::PhpManager;
pub use self::report::PoolReport;
pub use self::sockets::PhpSockets;

/// Timeout for connecting to php-fpm. If its backlog stays full for this time, php-fpm is too slow for its load.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns a message with a remedy for each version that RockNet should run itself but that is not installed.
pub fn missing(config: &Config) -> Vec<String> {
    let wanted = versions(config);
    if wanted.is_empty() {
        return Vec::new();
    }
    let found = installed();
    let missing = wanted.into_iter().filter(|version| choose(&found, *version).is_none());
    missing.map(|version| missing_message(version, &found)).collect()
}

/// Returns the message for a version that is not installed.
fn missing_message(version: PhpVersion, found: &[Installed]) -> String {
    let versions: Vec<_> = found.iter().map(Installed::version).collect();
    let package = match version {
        PhpVersion::Of { minor: Some(_), .. } => format!("php{version}-fpm"),
        _ => "php-fpm".to_owned(),
    };
    match versions.as_slice() {
        [] => format!("php = \"{version}\": no PHP is installed; install it (`apt install {package}`)"),
        _ => format!(
            "php = \"{version}\": that version is not installed (found: {}); install it (`apt install {package}`)",
            versions.join(", ")
        ),
    }
}

/// Returns each version that RockNet should run itself for some site or route.
fn versions(config: &Config) -> Vec<PhpVersion> {
    let mut all: Vec<PhpVersion> = wanted(config).into_iter().map(|wanted| wanted.version).collect();
    // Equal versions are adjacent, because `wanted` is sorted.
    all.dedup();
    all
}

/// PHP that RockNet should run itself for some site or route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedPhp {
    /// Version, as the configuration writes it.
    pub version: PhpVersion,
    /// Account of the scripts, if the site names one.
    pub user: Option<String>,
    /// Settings of php-fpm.
    pub settings: PhpSettings,
}

impl WantedPhp {
    /// Returns the PHP that RockNet should run for a site or route, if any.
    fn of(settings: &Settings) -> Option<WantedPhp> {
        match &settings.php {
            Some(Php::Managed {
                version, settings: php, ..
            }) => Some(WantedPhp {
                version: *version,
                user: settings.user.clone(),
                settings: (**php).clone(),
            }),
            _ => None,
        }
    }
}

/// Returns every PHP that RockNet should run itself, each once, in the order of their versions.
pub fn wanted(config: &Config) -> Vec<WantedPhp> {
    let mut all: Vec<_> = settings(config).filter_map(WantedPhp::of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns whether the configuration requires RockNet to run PHP itself.
pub fn is_wanted(config: &Config) -> bool {
    !versions(config).is_empty()
}

/// Returns the settings of all sites and routes.
fn settings(config: &Config) -> impl Iterator<Item = &Settings> {
    config.sites.iter().flat_map(|site| {
        let routes = site.routes.iter().map(|route| &route.settings);
        std::iter::once(&site.settings).chain(routes)
    })
}

/// Returns the settings of all sites and routes for a change.
fn settings_mut(config: &mut Config) -> impl Iterator<Item = &mut Settings> {
    config.sites.iter_mut().flat_map(|site| {
        let routes = site.routes.iter_mut().map(|route| &mut route.settings);
        std::iter::once(&mut site.settings).chain(routes)
    })
}

/// Locks the mutex. Poisoning is ignored, because no code that can panic runs while it is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
