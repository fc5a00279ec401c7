//! Steps of a change of the system, printed or carried out in order.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::super::Failure;

/// Steps in order, and notes for the operator.
#[derive(Default)]
pub struct Plan {
    steps: Vec<Step>,
    notes: Vec<String>,
}

/// Step of a plan.
pub enum Step {
    /// Copies a program from the first path to the second one.
    Copy(PathBuf, PathBuf),
    /// Writes a text to a file that every account can read.
    Write(PathBuf, String),
    /// Creates a symbolic link at the first path that leads to the second. Replaces an existing link.
    Link(PathBuf, PathBuf),
    /// Removes a file or a link. A missing file is not an error.
    Remove(PathBuf),
    /// Runs a command: a program and its arguments, at least one word.
    Run(Vec<String>),
}

impl Plan {
    pub fn add(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Adds a step that runs a command.
    pub fn add_command(&mut self, command: &[&str]) {
        self.add(Step::Run(command.iter().map(|word| (*word).to_owned()).collect()));
    }

    /// Adds a line that is printed after the steps.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Carries out the steps in order, and calls `done` after each. Stops at the first error.
    pub fn carry_out(&self, done: impl Fn(&Step)) -> Result<(), Failure> {
        for step in &self.steps {
            step.carry_out()
                .map_err(|error| Failure::Failed(format!("cannot {step}: {error}")))?;
            done(step);
        }
        Ok(())
    }

    /// Returns the notes as lines.
    pub fn notes(&self) -> String {
        self.notes.iter().map(|note| format!("{note}\n")).collect()
    }

    /// Returns the steps and notes for programs.
    pub fn summary(&self) -> PlanSummary<'_> {
        PlanSummary {
            steps: self.steps.iter().map(Step::to_string).collect(),
            notes: &self.notes,
        }
    }
}

/// Steps and notes as JSON.
#[derive(Serialize)]
pub struct PlanSummary<'p> {
    steps: Vec<String>,
    notes: &'p [String],
}

impl Step {
    fn carry_out(&self) -> io::Result<()> {
        match self {
            Step::Copy(from, to) => replace(to, 0o755, &fs::read(from)?),
            Step::Write(path, text) => replace(path, 0o644, text.as_bytes()),
            Step::Link(path, target) => link(path, target),
            Step::Remove(path) => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Step::Run(words) => run(words),
        }
    }
}

/// Creates a link to `target` beside `path` and renames it to `path`, because an existing link cannot be changed.
fn link(path: &Path, target: &Path) -> io::Result<()> {
    let new = beside(path)?;
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(target, &new)?;
    fs::rename(&new, path)
}

/// Returns the path of the new file that will replace `path`. Creates its folder.
fn beside(path: &Path) -> io::Result<PathBuf> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.new")))
}

/// Writes a file beside `path` and renames it to `path`, because a program that is running cannot be overwritten.
fn replace(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let new = beside(path)?;
    fs::write(&new, bytes)?;
    fs::set_permissions(&new, Permissions::from_mode(mode))?;
    fs::rename(&new, path)
}

/// Runs a command and returns its error output as the error.
fn run(words: &[String]) -> io::Result<()> {
    let output = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(text.trim().to_owned()))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        f.write_str(&self.notes())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Copy(from, to) => write!(f, "copy {} to {}", from.display(), to.display()),
            Step::Write(path, _) => write!(f, "write {}", path.display()),
            Step::Link(path, target) => write!(f, "link {} to {}", path.display(), target.display()),
            Step::Remove(path) => write!(f, "remove {}", path.display()),
            Step::Run(words) => write!(f, "run {}", words.join(" ")),
        }
    }
}
