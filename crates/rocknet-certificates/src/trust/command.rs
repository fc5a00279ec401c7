//! Programs of the system that stores are changed with: found on the path, run with a deadline, nothing typed into them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::TrustError;
use rocknet_io::program as child;

/// How programs are found and with whose rights they run.
#[derive(Debug, Clone)]
pub struct Tools {
    path: Vec<PathBuf>,
    /// Whether this process is root itself.
    is_root: bool,
    /// The person behind `sudo`, whose browsers are meant.
    sudo_user: Option<String>,
}

/// With whose rights a program is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAs {
    /// The person's whose browser it is.
    User,
    Root,
}

impl Tools {
    pub fn of_process() -> Tools {
        let is_root = rocknet_io::privileges::is_root();
        let sudo_user = env::var("SUDO_USER")
            .ok()
            .filter(|name| is_root && name != "root" && !name.is_empty());
        let path = env::var_os("PATH").unwrap_or_default();
        // The sbin folders hold what updates the system's store, and a plain user's path leaves them out.
        let path = env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .collect();
        Tools {
            path,
            is_root,
            sudo_user,
        }
    }

    /// Looks for programs in these folders alone, and runs them as they are.
    pub fn within(path: Vec<PathBuf>) -> Tools {
        Tools {
            path,
            is_root: true,
            sudo_user: None,
        }
    }

    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let file = |folder: &PathBuf| Some(folder.join(program)).filter(|file| file.is_file());
        self.path.iter().find_map(file)
    }

    pub fn sudo_user(&self) -> Option<&str> {
        self.sudo_user.as_deref()
    }

    /// Runs a program to its end; what it says on failure is in the trouble.
    pub fn run(&self, rights: RunAs, program: &str, arguments: &[&str]) -> Result<Output, TrustError> {
        let found = self
            .find(program)
            .ok_or_else(|| TrustError(format!("there is no {program} on this machine")))?;
        let mut command = match (rights, self.is_root, &self.sudo_user) {
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
        let output = child::wait_with_output(running, TIMEOUT).map_err(|error| TrustError(format!("{program}: {error}")))?;
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

/// A person may have to type a password for `sudo`, and gathering all roots anew takes minutes on a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(300);
