//! Finds external programs that change trust stores, and runs them with a timeout and without standard input.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::TrustError;
use rocknet_io::program as child;

/// Finds programs and runs them as the right user.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Folders in which programs are looked for, in this order.
    path: Vec<PathBuf>,
    /// True if this process runs as root.
    is_root: bool,
    /// User who called `sudo` and whose browser stores are changed; `None` if the process was not started by `sudo`.
    sudo_user: Option<String>,
}

/// The user that a program runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAs {
    /// The user whose browser stores are changed.
    User,
    Root,
}

impl Tools {
    /// Reads the `PATH`, the privileges and `SUDO_USER` of this process.
    pub fn of_process() -> Tools {
        let is_root = rocknet_io::privileges::is_root();
        let sudo_user = env::var("SUDO_USER")
            .ok()
            .filter(|name| is_root && name != "root" && !name.is_empty());
        let path = env::var_os("PATH").unwrap_or_default();
        // The sbin folders contain the tools that update the system's store. The `PATH` of a normal user omits these
        // folders.
        let path = env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .collect();
        Tools {
            path,
            is_root,
            sudo_user,
        }
    }

    /// Creates tools that look for programs only in these folders and run them without `sudo`. For tests.
    pub fn within(path: Vec<PathBuf>) -> Tools {
        Tools {
            path,
            is_root: true,
            sudo_user: None,
        }
    }

    /// Returns the first file with that name on the `PATH`, if any.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let file = |folder: &PathBuf| Some(folder.join(program)).filter(|file| file.is_file());
        self.path.iter().find_map(file)
    }

    /// Returns the user who called `sudo`, if any.
    pub fn sudo_user(&self) -> Option<&str> {
        self.sudo_user.as_deref()
    }

    /// Runs a program as root or as the user, by `sudo` if necessary, and waits until it ends, at most 300 s.
    ///
    /// # Errors
    /// Returns the last line of the program's standard error, or the reason why the program did not run.
    pub fn run(&self, run_as: RunAs, program: &str, arguments: &[&str]) -> Result<Output, TrustError> {
        let found = self
            .find(program)
            .ok_or_else(|| TrustError(format!("{program} is not installed")))?;
        let mut command = match (run_as, self.is_root, &self.sudo_user) {
            (RunAs::Root, false, _) => {
                let sudo = self.find("sudo").ok_or_else(|| {
                    TrustError(format!(
                        "this needs root: run `{program} {}` as root",
                        arguments.join(" ")
                    ))
                })?;
                let mut command = Command::new(sudo);
                command.arg("--").arg(found);
                command
            }
            (RunAs::User, true, Some(user)) => {
                let sudo = self.find("sudo").unwrap_or_else(|| "sudo".into());
                let mut command = Command::new(sudo);
                command.args(["-u", user, "--"]).arg(found);
                command
            }
            _ => Command::new(found),
        };
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = command
            .spawn()
            .map_err(|error| TrustError(format!("{program}: {error}")))?;
        let output =
            child::wait_with_output(running, TIMEOUT).map_err(|error| TrustError(format!("{program}: {error}")))?;
        if output.status.success() {
            return Ok(output);
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message
            .trim()
            .lines()
            .next_back()
            .unwrap_or("no reason given")
            .to_owned();
        Err(TrustError(format!("{program} failed: {message}")))
    }
}

/// Timeout of a program. `sudo` may prompt for a password, and rebuilding the system's certificate bundle takes minutes
/// on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);
