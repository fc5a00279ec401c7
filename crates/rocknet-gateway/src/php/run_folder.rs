//! The run folder of one server below the state folder, with the sockets of its PHP.
//!
//! The server locks a file in its run folder; the system releases the lock when the server ends. A folder whose lock is
//! free belongs to a killed server: the PHP of that server is ended, and the folder is removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

/// Name of the parent of all run folders, below the state folder.
pub const FOLDER: &str = "php";
/// Name of the lock file in a run folder.
const LOCK: &str = "lock";
/// Time after which a signalled process is killed. Also the age from which a folder without a lock file is removed.
const GRACE: Duration = Duration::from_secs(2);
/// Poll interval for the end of processes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of consecutive scans without a result after which all processes are assumed to have ended.
const EMPTY_SCANS: u32 = 2;

/// A locked run folder. It is removed on drop.
pub struct RunFolder {
    path: PathBuf,
    /// Holds the lock until the folder has been removed.
    _lock: File,
}

impl RunFolder {
    /// Creates a run folder below the state folder, and removes the run folders of killed servers. Blocks while PHP of
    /// a killed server is ended.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the folder or its lock cannot be created.
    pub fn make(state: &Path) -> io::Result<RunFolder> {
        let all = state.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        clear(&all);
        let mut number = 0u32;
        let path = loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // The processes of a killed server are found by this name, so a later server with the same process ID must
            // not get the same name. The time makes the names differ.
            let name = format!("{}-{number}-{:x}", std::process::id(), now.subsec_nanos());
            let path = all.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                // Another server in this process created the same name at the same time.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number = number.wrapping_add(1),
                Err(error) => return Err(error),
            }
        };
        let lock = lock_file(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(RunFolder { path, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Opens the lock file of a run folder, and creates it if it does not exist.
fn lock_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(folder.join(LOCK))
}

/// Removes the run folders of killed servers.
fn clear(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        // A folder that another server has just created has no lock file yet, so a new folder without one is skipped.
        if !path.join(LOCK).exists() && !is_old(&path) {
            continue;
        }
        let Ok(lock) = lock_file(&path) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        end_processes_of(&path);
        if fs::remove_dir_all(&path).is_ok() {
            tracing::info!("removed the run folder {} of a killed server", path.display());
        }
    }
}

/// Returns true if the folder was not changed for longer than [`GRACE`].
fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path)
        .ok()
        .and_then(|found| found.modified().ok()?.elapsed().ok());
    age.is_some_and(|age| age > GRACE)
}

/// Ends every process that was started for a run folder: first by SIGTERM, after [`GRACE`] by SIGKILL. Processes are
/// found by their command lines. A process that is being started has no command line for a moment, so one scan without
/// a result is not enough. Gives up after twice [`GRACE`].
fn end_processes_of(folder: &Path) {
    let (start, mut empty_scans, mut signalled) = (Instant::now(), 0, Vec::new());
    while empty_scans < EMPTY_SCANS && start.elapsed() < 2 * GRACE {
        let processes = processes_of(folder);
        empty_scans = if processes.is_empty() { empty_scans + 1 } else { 0 };
        for pid in processes {
            if start.elapsed() >= GRACE {
                let _ = kill_process(pid, Signal::KILL);
            } else if !signalled.contains(&pid) {
                if signalled.is_empty() {
                    tracing::warn!("PHP processes of a killed server are still running and will be ended");
                }
                let _ = kill_process(pid, Signal::TERM);
                signalled.push(pid);
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the PHP processes whose command line contains the path of the folder or the name of its pools.
fn processes_of(folder: &Path) -> Vec<Pid> {
    let Some(pool) = folder.file_name().map(|name| pool_name(&name.to_string_lossy())) else {
        return Vec::new();
    };
    let names = [folder.as_os_str().as_encoded_bytes(), pool.as_bytes()];
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let is_named = names.iter().any(|name| is_in(&line, name));
        (is_named && line.starts_with(b"php")).then_some(pid)
    });
    processes.collect()
}

/// Returns whether the command line contains the name. A longer name that begins with it does not count.
fn is_in(line: &[u8], name: &[u8]) -> bool {
    let mut found = memchr::memmem::find_iter(line, name);
    found.any(|at| !line.get(at + name.len()).is_some_and(u8::is_ascii_alphanumeric))
}

/// Returns the name of the pools of the run folder `name`. php-fpm shows it in the titles of its processes.
pub fn pool_name(name: &str) -> String {
    format!("rocknet-{name}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn each_server_has_its_own_folder_and_removes_it() {
        let state = tempfile::tempdir().unwrap();
        let (one, two) = (
            RunFolder::make(state.path()).unwrap(),
            RunFolder::make(state.path()).unwrap(),
        );
        assert_ne!(one.path(), two.path());
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let kept = one.path().to_owned();
        drop(two);
        assert!(kept.join(LOCK).exists());
        drop(one);
        assert_eq!(fs::read_dir(state.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_of_a_killed_server_are_ended() {
        let state = tempfile::tempdir().unwrap();
        let stale = state.path().join(FOLDER).join("77-1");
        fs::create_dir_all(&stale).unwrap();
        fs::write(stale.join(LOCK), "").unwrap();
        let start = |name: &str, argument: String| {
            let mut command = Command::new("sleep");
            command.args(["1000", "0"]).stdin(Stdio::null());
            // The argument is part of the process name, because sleep accepts only times.
            command.arg0(format!("{name} {argument}"));
            command.spawn().unwrap()
        };
        let mut php = start("php-fpm: master process", format!("({}/1.conf)", stale.display()));
        let mut process = start("php-fpm: pool", "rocknet-77-1".to_owned());
        // Folder of another server. Its name begins with the name of the killed server's folder.
        let mut other = start("php-fpm: master process", format!("({}0/1.conf)", stale.display()));
        let mut editor = start("vi", format!("{}/1.conf", stale.display()));
        let made = RunFolder::make(state.path()).unwrap();
        assert!(!stale.exists());
        let ended = [&mut php, &mut process].map(|child| {
            let has_ended = (0..500).any(|_| {
                let has_ended = child.try_wait().unwrap().is_some();
                if !has_ended {
                    thread::sleep(POLL_INTERVAL);
                }
                has_ended
            });
            // Killed here, so that it does not outlive a failing test.
            let _ = child.kill();
            has_ended
        });
        assert_eq!(ended, [true, true]);
        for child in [&mut other, &mut editor] {
            assert!(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
        drop(made);
    }
}
