//! Runs other programs in the root of the checkout. Errors contain the command.

use crate::{Failure, repository};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{env, fs, thread};

/// Time without output after which a command is checked for its end.
const OUTPUT_PAUSE: Duration = Duration::from_secs(1);

/// Returns a command that starts in the root of the checkout.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repository::root());
    command
}

/// Returns the cargo that started this program, or the one on the path.
pub fn cargo() -> Command {
    let mut cargo = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Cargo would rebuild crates that read this variable, because its value is the folder of xtask.
    cargo.env_remove("CARGO_MANIFEST_DIR");
    cargo
}

/// Runs `command` with its output shown. An error contains the command.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed ({status})", shown(command)).into())
    }
}

/// Runs `command` with its output shown, and passes each line of stdout to `line`. An error contains the command.
///
/// `command` may leave behind a program that keeps the output open. The function does not wait for that program.
pub fn run_by_lines(command: &mut Command, mut line: impl FnMut(&str)) -> Result<(), Failure> {
    let failed = |command: &Command, error| format!("{}: {error}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(command, error))?;
    let mut output = BufReader::new(child.stdout.take().ok_or("stdout is not a pipe")?);
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        while output.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0)
            && sender.send(std::mem::take(&mut bytes)).is_ok()
        {}
    });
    loop {
        match lines.recv_timeout(OUTPUT_PAUSE) {
            Ok(bytes) => {
                std::io::stdout().write_all(&bytes)?;
                line(String::from_utf8_lossy(&bytes).trim_end());
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let status = child.wait().map_err(|error| failed(command, error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed ({status})", shown(command)).into())
    }
}

/// Runs `command` and returns what it printed on stdout and stderr. An error contains the command.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("`{}` failed ({})\n{text}", shown(command), output.status).into())
    }
}

/// Runs `command` and returns what it printed on stdout. An error contains the command and what it printed on stderr.
pub fn output_alone(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", shown(command)))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{}` failed ({})\n{text}", shown(command), output.status).into())
    }
}

/// Formats the command as typed in a shell.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Finds `program` on the path. The `sbin` folders are searched too, because servers are installed there, and the
/// path of an ordinary user lacks them.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]);
    folders
        .map(|folder| folder.join(program))
        .find(|file| fs::metadata(file).is_ok_and(|found| found.is_file()))
}
