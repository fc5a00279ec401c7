//! A private MariaDB with its data and socket in a temporary folder and without a port. It runs as an unprivileged
//! user, and is stopped and deleted when dropped.

use super::folder::open_folder;
use crate::Failure;
use crate::command::output;
use crate::packages::is_root;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// User of the database if root starts it, because MariaDB refuses to run as root.
const USER: &str = "nobody";
/// Timeout for MariaDB to accept connections. It usually needs a second, but far more on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

pub struct Database {
    child: Child,
    folder: tempfile::TempDir,
}

impl Database {
    /// Creates a database, runs the SQL of `setup`, and waits until it accepts connections.
    pub fn start(setup: &str) -> Result<Self, Failure> {
        let folder = open_folder()?;
        let data = folder.path().join("data");
        let init = folder.path().join("setup.sql");
        fs::create_dir(&data)?;
        fs::write(&init, setup)?;
        let user = is_root().then(|| format!("--user={USER}"));
        if user.is_some() {
            output(Command::new("chown").arg(USER).args([folder.path(), &data]))?;
        }
        output(
            Command::new("mariadb-install-db")
                .args(["--no-defaults", "--skip-test-db", "--skip-name-resolve"])
                .arg(format!("--datadir={}", data.display()))
                .args(&user),
        )?;
        let log = folder.path().join("log");
        let child = Command::new("mariadbd")
            .args(["--no-defaults", "--skip-networking"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", folder.path().join("socket").display()))
            .arg(format!("--pid-file={}", folder.path().join("pid").display()))
            .arg(format!("--init-file={}", init.display()))
            .args(&user)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut database = Self { child, folder };
        let started = Instant::now();
        // MariaDB accepts connections only after its setup, so every client finds the complete data.
        while UnixStream::connect(database.socket()).is_err() {
            if database.child.try_wait()?.is_some() || started.elapsed() > START_TIMEOUT {
                return Err(format!("MariaDB did not start:\n{}", fs::read_to_string(log)?).into());
            }
            thread::sleep(POLL);
        }
        Ok(database)
    }

    /// Returns the path of the database's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The data are deleted, so MariaDB need not shut down cleanly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
