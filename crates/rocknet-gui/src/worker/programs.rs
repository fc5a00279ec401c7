//! Other programs that the window starts, and the file of its settings.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::files::replace;
use super::output::last_error;
use crate::home::settings_folder;
use crate::job::Trouble;

/// Opens a URL, a folder or a file with the program that the desktop has for it.
///
/// # Errors
///
/// Returns a message if `xdg-open` cannot be started.
pub fn open(target: &str) -> Result<(), Trouble> {
    let mut child = Command::new("xdg-open")
        .arg(target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Trouble::NotOpened(target.to_owned(), error.to_string()))?;
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
pub fn trust(program: Option<&Path>, config: Option<&Path>) -> Result<(), Trouble> {
    let program = program.ok_or(Trouble::NoProgram)?;
    let mut command = Command::new(program);
    command.args(["trust", "--browsers"]).stdin(Stdio::null());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    let output = command.output().map_err(|error| Trouble::of(program, &error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(last_error(&output.stderr).map_or_else(|| Trouble::CommandFailed("rocknet trust".to_owned()), Trouble::Text))
}

/// Writes the file of settings.
///
/// # Errors
///
/// Returns a message if the file cannot be written.
pub fn save_settings(text: &str) -> Result<(), Trouble> {
    let folder = settings_folder().ok_or(Trouble::NoHome)?;
    let file = folder.join("window.toml");
    fs::create_dir_all(&folder)
        .and_then(|()| replace(&file, text))
        .map_err(|error| Trouble::of(&file, &error))
}
