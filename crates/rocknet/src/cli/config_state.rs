//! Compares the files of the configuration on disk with what the server has loaded, for `GET /api/config/state`.
//!
//! Clients repeat the request each second, so an unchanged configuration costs only a look at the times of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocknet::certificates::ServerEnvironment;
use rocknet_config::{Config, Environment, ProcessEnvironment, Report, WatchedFiles};
use rocknet_control::api::ApiError;
use rocknet_control::config::ConfigState;
use rocknet_control::explanation::ConfigPosition;

use super::config_file::revision;

/// Maximum number of errors whose positions are listed, so that the repeated response stays small.
const MAX_ERRORS: usize = 100;

/// Time for which errors are not checked again while the files stay the same. The errors depend on more than these
/// files, such as on the folders of sites, and the check of a large configuration takes long.
const ERRORS_FOR: Duration = Duration::from_secs(5);

/// Last result of a comparison. The main loop and the threads of requests share it.
#[derive(Clone, Default)]
pub struct StateCache(Arc<Mutex<Option<Compared>>>);

/// A result, with the files that it was made of.
struct Compared {
    watched: WatchedFiles,
    loaded: BTreeMap<PathBuf, String>,
    state: ConfigState,
    at: Instant,
}

impl StateCache {
    /// Returns the state of the configuration. `main`: main file. `loaded`: revisions of the loaded files. `serving`:
    /// loaded configuration.
    ///
    /// # Errors
    ///
    /// Fails with status 500 if the process may not read the main file. A server that was started as root may have
    /// read it before it dropped its rights.
    pub fn state(
        &self,
        main: &Path,
        loaded: BTreeMap<PathBuf, String>,
        serving: &Config,
    ) -> Result<ConfigState, ApiError> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*cached
            && last.loaded == loaded
            && (last.state.errors.is_empty() || last.at.elapsed() < ERRORS_FOR)
            && last.watched.are_unchanged()
        {
            return Ok(last.state.clone());
        }
        if let Err(error) = File::open(main)
            && error.kind() == ErrorKind::PermissionDenied
        {
            return Err(ApiError::new(500, format!("cannot read {}: {error}", main.display())));
        }
        let watched = WatchedFiles::default();
        let state = compare(main, &watched, &loaded, serving);
        *cached = Some(Compared {
            watched,
            loaded,
            state: state.clone(),
            at: Instant::now(),
        });
        Ok(state)
    }
}

/// Compares the files with the loaded configuration. `watched` records the files.
fn compare(main: &Path, watched: &WatchedFiles, loaded: &BTreeMap<PathBuf, String>, serving: &Config) -> ConfigState {
    let mut state = ConfigState {
        file: main.to_owned(),
        ..ConfigState::default()
    };
    let files = rocknet_config::files(main, watched);
    if files.is_empty() {
        // The names of sites are unknown, so no site is listed as removed.
        state.not_loaded = vec![main.to_owned()];
        state.unreadable = ProcessEnvironment.read(main).err().map(|error| error.to_string());
        return state;
    }
    let is_loaded = |file: &PathBuf| {
        let text = ProcessEnvironment.read(file);
        text.is_ok_and(|text| loaded.get(file).is_some_and(|known| *known == revision(&text)))
    };
    state.not_loaded = files.iter().filter(|file| !is_loaded(file)).cloned().collect();
    let is_missing = |file: &&PathBuf| !files.contains(file);
    state.not_loaded.extend(loaded.keys().filter(is_missing).cloned());
    state.is_loaded = state.not_loaded.is_empty();
    if state.is_loaded {
        return state;
    }
    let environment = ServerEnvironment::new();
    let config = match rocknet_config::check(main, &environment) {
        Ok(loaded) => loaded.config,
        Err(report) => {
            state.errors = positions(main, &report);
            rocknet_config::load_despite_errors(main, &environment).unwrap_or_default()
        }
    };
    let (now, before) = (names(&config), names(serving));
    state.added = now.difference(&before).map(|&name| name.to_owned()).collect();
    // A file that is not TOML lacks all sites after the error. With errors, no site is therefore listed as removed.
    if state.errors.is_empty() {
        state.removed = before.difference(&now).map(|&name| name.to_owned()).collect();
    }
    state
}

/// Returns the names of the sites of a configuration, disabled ones included.
fn names(config: &Config) -> BTreeSet<&str> {
    let disabled = config.disabled_sites.iter().map(|site| &*site.name);
    config.sites.iter().map(|site| &*site.name).chain(disabled).collect()
}

/// Returns the positions of the errors of a report. An error without a position has that of the main file, line 0.
fn positions(main: &Path, report: &Report) -> Vec<ConfigPosition> {
    let errors = report.findings.iter().filter(|finding| finding.is_error());
    let position = |finding: &rocknet_config::Finding| {
        let location = finding.location.as_ref();
        ConfigPosition {
            file: location.map_or_else(|| main.to_owned(), |at| at.file.clone()),
            line: location.map_or(0, |at| at.line),
        }
    };
    errors.map(position).take(MAX_ERRORS).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn errors_are_checked_again_after_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("rocknet.toml");
        let root = folder.path().join("later");
        fs::write(&main, "[site.\"a.test\"]\nroot = \"later\"\n").unwrap();
        // A file that was changed a moment ago is always read again.
        let hour_ago = SystemTime::now() - Duration::from_secs(3_600);
        let file = File::options().append(true).open(&main).unwrap();
        file.set_modified(hour_ago).unwrap();
        let states = StateCache::default();
        let errors = || {
            let state = states.state(&main, BTreeMap::new(), &Config::default()).unwrap();
            (state.errors.len(), state.added)
        };
        let expected = vec!["a.test".to_owned()];
        assert_eq!(errors(), (1, expected.clone()));
        fs::create_dir(&root).unwrap();
        assert_eq!(errors(), (1, expected.clone()), "the last result is used");
        let mut cached = states.0.lock().unwrap();
        let last = cached.as_mut().unwrap();
        last.at = last.at.checked_sub(ERRORS_FOR).unwrap();
        drop(cached);
        assert_eq!(errors(), (0, expected));
    }
}
