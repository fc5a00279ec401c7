//! Folders below which a server and its programs change files.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rocknet_config::Config;
use rocknet_config::host_folders;
use rocknet_config::model::{Listen, LogTarget};

use super::super::control;
use super::super::launch::ConfigSource;

/// A folder below which files may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritableFolder {
    pub path: PathBuf,
    /// Key of the configuration, or another reason, for messages.
    pub needed_for: String,
}

/// Folders for temporary files of any program, and for sessions of PHP on Debian.
const OF_PROGRAMS: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/var/lib/php/sessions"];

/// Returns the folders below which a server with this configuration changes files, without duplicates. `state` is the
/// state folder of the server.
pub fn of(config: &Config, state: &Path, source: &ConfigSource) -> Vec<WritableFolder> {
    let mut found = FolderList::default();
    found.add(state, STATE);
    if let ConfigSource::File(file) = source {
        found.add_parent(file, "the configuration file");
    }
    if let Some(socket) = control::socket(config, state) {
        found.add_parent(&socket, CONTROL_SOCKET);
    }
    let server = &config.server;
    for (folder, key) in [
        (&server.qlog, "server.qlog"),
        (&server.spool.folder, "server.spool.folder"),
        (&config.cache.responses_folder, "cache.responses_folder"),
    ] {
        if let Some(folder) = folder {
            found.add(folder, key);
        }
    }
    if let Some(folder) = std::env::var_os("TMPDIR") {
        found.add(Path::new(&folder), "TMPDIR");
    }
    found.add_log(&config.log.errors, "log.errors");
    found.add_log(&config.log.access.target, "log.access");
    for site in &config.sites {
        found.add_log(&site.access.target, "access");
        for listen in &site.listen {
            if let Listen::Unix(socket) = listen {
                found.add_parent(socket, "listen");
            }
        }
        // Programs such as PHP scripts may write below their root. The server itself only reads roots.
        let routes = site.routes.iter().map(|route| &route.settings);
        for settings in routes
            .chain([&site.settings])
            .filter(|settings| settings.runs_programs())
        {
            if let Some(root) = &settings.root {
                found.add(root, ROOT);
            }
        }
    }
    for folders in &config.host_folders {
        // Folders of hosts that are added later may have programs too.
        if folders.runs_programs {
            found.add(&host_folders::parent(&folders.pattern), ROOT);
        }
    }
    for folder in &server.sandbox_write {
        found.add(folder, "server.sandbox_write");
    }
    let of_programs = OF_PROGRAMS.iter().map(Path::new).filter(|folder| folder.is_dir());
    of_programs.for_each(|folder| found.add(folder, "temporary files"));
    found.0
}

/// Creates the state folder if it does not exist, because Landlock rules apply to existing folders only.
///
/// # Errors
///
/// A message that names the folder.
pub fn create(folders: &[WritableFolder]) -> Result<(), String> {
    let missing = folders
        .iter()
        .filter(|folder| folder.needed_for == STATE && !folder.path.exists());
    for folder in missing {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder.path)
            .map_err(|error| format!("the state folder {}: {error}", folder.path.display()))?;
    }
    Ok(())
}

/// Returns the canonical paths of the folders. Roots that do not exist are left out, because their sites are not
/// served. A missing folder of the control socket is left out too, because the server starts without the socket.
///
/// # Errors
///
/// A message that names any other folder that does not exist.
pub fn existing(folders: &[WritableFolder]) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for WritableFolder { path, needed_for } in folders {
        match path.canonicalize() {
            Ok(path) => all.push(path),
            Err(_) if needed_for == ROOT || needed_for == CONTROL_SOCKET => {}
            Err(error) => {
                return Err(format!(
                    "the sandbox cannot permit changes below {} ({needed_for}): {error}",
                    path.display()
                ));
            }
        }
    }
    Ok(all)
}

// Values of `WritableFolder::needed_for` by which `create` and `existing` recognize a folder.
const STATE: &str = "state";
const ROOT: &str = "root";
const CONTROL_SOCKET: &str = "admin.socket";

/// Folders without duplicates, each with the reason for which it was first added.
#[derive(Default)]
struct FolderList(Vec<WritableFolder>);

impl FolderList {
    fn add(&mut self, path: &Path, needed_for: &str) {
        // Relative paths are relative to the working directory, which does not change.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if !self.0.iter().any(|known| known.path == path) {
            self.0.push(WritableFolder {
                path,
                needed_for: needed_for.to_owned(),
            });
        }
    }

    /// Adds the folder that contains a file.
    fn add_parent(&mut self, file: &Path, needed_for: &str) {
        if let Some(folder) = std::path::absolute(file).ok().as_deref().and_then(Path::parent) {
            self.add(folder, needed_for);
        }
    }

    /// Adds the folder of a log, if the log is a file.
    fn add_log(&mut self, target: &LogTarget, key: &str) {
        if let LogTarget::File(file) = target {
            self.add_parent(file, key);
        }
    }
}
