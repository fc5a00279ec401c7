//! Programs of the system that stores are changed with: found on the path, run with a deadline, nothing typed into them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::Trouble;
use rocknet_io::program as child;

/// How programs are found and with whose rights they run.
#[derive(Debug, Clone)]
pub struct Tools {
    path: Vec<PathBuf>,
    /// Whether this process is root itself.
    root: bool,
    /// The person behind `sudo`, whose browsers are meant.
    person: Option<String>,
}

/// With whose rights a program is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// The person's whose browser it is.
    Person,
    Root,
}

impl Tools {
    pub fn of_process() -> Tools {
        let root = rocknet_io::privileges::is_root();
        let person = env::var("SUDO_USER")
            .ok()
            .filter(|name| root && name != "root" && !name.is_empty());
        let path = env::var_os("PATH").unwrap_or_default();
        // The sbin folders hold what updates the system's store, and a plain user's path leaves them out.
        let path = env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .collect();
        Tools { path, root, person }
    }

    /// Looks for programs in these folders alone, and runs them as they are.
    pub fn within(path: Vec<PathBuf>) -> Tools {
        Tools {
            path,
            root: true,
            person: None,
        }
    }

    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let file = |folder: &PathBuf| Some(folder.join(program)).filter(|file| file.is_file());
        self.path.iter().find_map(file)
    }

    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }

    /// Runs a program to its end; what it says on failure is in the trouble.
    pub fn run(&self, rights: Rights, program: &str, arguments: &[&str]) -> Result<Output, Trouble> {
        let found = self
            .find(program)
            .ok_or_else(|| Trouble(format!("there is no {program} on this machine")))?;
        let mut command = match (rights, self.root, &self.person) {
            (Rights::Root, false, _) => {
                let sudo = self.find("sudo").ok_or_else(|| {
                    Trouble(format!(
                        "this needs root: run `{program} {}` as root",
                        arguments.join(" ")
                    ))
                })?;
                let mut command = Command::new(sudo);
                command.arg("--").arg(found);
                command
            }
            (Rights::Person, true, Some(person)) => {
                let sudo = self.find("sudo").unwrap_or_else(|| "sudo".into());
                let mut command = Command::new(sudo);
                command.args(["-u", person, "--"]).arg(found);
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
            .map_err(|error| Trouble(format!("{program}: {error}")))?;
        let output =
            child::wait_with_output(running, PATIENCE).map_err(|error| Trouble(format!("{program}: {error}")))?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().next_back().unwrap_or("no reason given").to_owned();
        Err(Trouble(format!("{program} failed: {said}")))
    }
}

/// A person may have to type a password for `sudo`, and gathering all roots anew takes minutes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(300);
