//! Other programs that the window starts, and the file of its settings.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::launch::replace;
use crate::model::Settings;

/// Opens a URL, a folder or a file with the program that the desktop has for it.
///
/// # Errors
///
/// Returns a message if `xdg-open` cannot be started.
pub fn open(target: &str) -> Result<(), String> {
    let mut child = Command::new("xdg-open")
        .arg(target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{target} cannot be opened: xdg-open (package xdg-utils): {error}"))?;
    // Some desktops keep xdg-open as long as the browser runs. The thread only collects its end.
    thread::spawn(move || drop(child.wait()));
    Ok(())
}

/// Installs the certificate of the local CA in the stores of browsers. That of the system
/// needs root's rights, and browsers do not use it.
///
/// # Errors
///
/// Returns the message of `rocknet trust`.
pub fn trust(program: Option<&Path>, config: Option<&Path>) -> Result<(), String> {
    let program = program.ok_or("the program `rocknet` was not found")?;
    let mut command = Command::new(program);
    command.args(["trust", "--browsers"]).stdin(Stdio::null());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let shown = errors
        .lines()
        .find_map(|line| line.strip_prefix("error: "))
        .or(errors.lines().last());
    Err(shown.unwrap_or("rocknet trust has failed").to_owned())
}

/// Writes the file of settings.
///
/// # Errors
///
/// Returns a message if the file cannot be written.
pub fn save_settings(text: &str) -> Result<(), String> {
    let folder = Settings::folder().ok_or("there is no home folder")?;
    let file = folder.join("window.toml");
    fs::create_dir_all(&folder)
        .and_then(|()| replace(&file, text))
        .map_err(|error| format!("{}: {error}", file.display()))
}
