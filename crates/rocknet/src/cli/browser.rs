//! Opens URLs in the browser of the user.

use std::process::{Command, Stdio};
use std::thread;

use super::print_warning;

/// Opens a URL. If the program that opens URLs cannot be started, a warning is printed.
pub fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    match command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
    {
        // A thread waits for the process, so that it does not become a zombie.
        Ok(mut child) => drop(thread::Builder::new().spawn(move || child.wait())),
        Err(error) => print_warning(format_args!("the browser cannot be opened: {program}: {error}")),
    }
}
