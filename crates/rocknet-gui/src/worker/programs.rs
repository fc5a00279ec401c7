//! Other programs that the window starts, and the file of its settings.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::files::replace;
use super::output::last_error;
use crate::home::settings_folder;
use crate::job::{Report, Trouble};

/// Time after which the end of a program that was started is no longer a failure to start. Some desktops keep xdg-open
/// as long as the browser runs.
const SOON: Duration = Duration::from_secs(30);

/// Opens a URL, a folder or a file with the program that the desktop has for it. A failure of `xdg-open`, such as
/// without a browser, is reported to `late`.
///
/// # Errors
///
/// Returns a message if `xdg-open` cannot be started.
pub fn open(target: &str, late: Sender<Report>) -> Result<(), Trouble> {
    open_by("xdg-open".as_ref(), target, late)
}

fn open_by(program: &Path, target: &str, late: Sender<Report>) -> Result<(), Trouble> {
    let child = Command::new(program)
        .arg(target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Trouble::NotOpened(target.to_owned(), error.to_string()))?;
    let target = target.to_owned();
    report_failure(child, late, |code| Trouble::OpenerFailed(target, code));
    Ok(())
}

/// Collects the end of a program in a thread, and reports its failure if it ends soon.
pub fn report_failure(mut child: Child, late: Sender<Report>, trouble: impl FnOnce(i32) -> Trouble + Send + 'static) {
    let began = Instant::now();
    thread::spawn(move || {
        let status = child.wait().ok();
        if let Some(code) = status.and_then(|status| status.code()).filter(|code| *code != 0)
            && began.elapsed() < SOON
        {
            // The receiver is gone only if the program ends.
            let _ = late.send(Report::Failed(trouble(code)));
        }
    });
}

/// Installs the certificate of the local CA in the stores of browsers. The store of the system is left out, because a
/// change needs root's rights, and browsers do not use it.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::worker::fake_programs::script;

    /// Maximum wait for the end of a program, and for its thread.
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn a_desktop_without_a_browser_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("xdg-open");
        let url = "http://a.localhost/";
        let missing = open_by(&program, url, channel().0);
        assert!(matches!(missing, Err(Trouble::NotOpened(target, _)) if target == url));
        script(folder.path(), "xdg-open", "[ \"$1\" = http://b.localhost/ ] || exit 3");
        let (late, reports) = channel();
        open_by(&program, url, late).unwrap();
        let failed = Report::Failed(Trouble::OpenerFailed(url.to_owned(), 3));
        assert_eq!(reports.recv_timeout(TIMEOUT), Ok(failed));
        // A success ends the thread without a report.
        let (late, reports) = channel();
        open_by(&program, "http://b.localhost/", late).unwrap();
        assert_eq!(
            reports.recv_timeout(TIMEOUT),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
        );
    }
}
