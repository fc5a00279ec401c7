//! The PHP that RockNet starts itself: which versions are installed, and a php-fpm of each that sites want, looked after
//! from the start to the end of the server.
//!
//! ```text
//! Config ─▶ manager.rs: settles which and where ─▶ supervisor.rs, a thread ─▶ fpm_process.rs: one php-fpm, started again if it ends
//!                          │                          │
//!                     installed.rs                run_folder.rs: sockets and pool files, and what a dead server left
//! ```

mod event;
mod fpm_process;
mod installed;
mod manager;
mod pool;
mod run_folder;
mod sockets;
mod supervisor;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_config::Config;
use rocknet_config::model::{Php, PhpVersion, Settings};

pub use self::installed::{Installed, Sapi, all as installed, choose};
pub use self::manager::PhpManager;
pub use self::sockets::PhpSockets;

/// Longest wait for a connection to php-fpm: a server that is full has a place in that time, or is too slow for those who
/// ask.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Versions that a configuration wants RockNet to start and that are not installed, each told with what helps.
pub fn missing(config: &Config) -> Vec<String> {
    let wanted = versions(config);
    if wanted.is_empty() {
        return Vec::new();
    }
    let found = installed();
    let missing = wanted.into_iter().filter(|version| choose(&found, *version).is_none());
    missing.map(|version| missing_message(version, &found)).collect()
}

fn missing_message(version: PhpVersion, found: &[Installed]) -> String {
    let versions: Vec<_> = found.iter().map(Installed::version).collect();
    let package = match version {
        PhpVersion::Of { minor: Some(_), .. } => format!("php{version}-fpm"),
        _ => "php-fpm".to_owned(),
    };
    match versions.as_slice() {
        [] => format!("php = \"{version}\": no PHP is installed here; `apt install {package}` brings it"),
        _ => format!(
            "php = \"{version}\": that version is not installed here (there is {}); `apt install {package}` brings it",
            versions.join(", ")
        ),
    }
}

/// Each version that some site or route wants RockNet to start.
fn versions(config: &Config) -> Vec<PhpVersion> {
    let mut all: Vec<PhpVersion> = wanted(config).into_iter().map(|(version, _)| version).collect();
    all.dedup();
    all
}

/// The same with the user whom scripts run as there, where a site names one.
fn wanted(config: &Config) -> Vec<(PhpVersion, Option<String>)> {
    let mut all: Vec<_> = settings(config)
        .filter_map(|settings| match settings.php {
            Some(Php::Managed { version, .. }) => Some((version, settings.user.clone())),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether RockNet has to start any.
pub fn is_wanted(config: &Config) -> bool {
    !versions(config).is_empty()
}

fn settings(config: &Config) -> impl Iterator<Item = &Settings> {
    config.sites.iter().flat_map(|site| {
        let routes = site.routes.iter().map(|route| &route.settings);
        std::iter::once(&site.settings).chain(routes)
    })
}

fn settings_mut(config: &mut Config) -> impl Iterator<Item = &mut Settings> {
    config.sites.iter_mut().flat_map(|site| {
        let routes = site.routes.iter_mut().map(|route| &mut route.settings);
        std::iter::once(&mut site.settings).chain(routes)
    })
}

/// Nothing that can panic runs while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
