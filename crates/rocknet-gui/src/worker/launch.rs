//! Starting a server as a child process. It goes on when the window is closed, because its websites are in use.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_config::edit::{self, Editor};

use super::connection::Places;
use super::files::{is_missing, replace, replace_keeping_mode};
use super::folders;
use super::options::Options;
use super::output::{self, ERROR, error_of, tail};
use super::ports;
use crate::job::{EndingCause, StartFailure, Trouble};
use crate::words::Language;

/// Maximum time until a started server replies. Certificates are created at the first start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum time until a stopped server has ended: requests in progress are completed first, by default in 10 seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(50);

/// Port of the first page, unless another program holds it.
const FIRST_PORT: u16 = 8080;

/// Number of lines of the output that a failure shows.
pub const LINES_SHOWN: usize = 5;

/// Starts servers.
pub struct Launcher {
    program: Option<PathBuf>,
    child: Option<Child>,
    /// Exit status of the last child process, until it is taken.
    exit: Option<ExitStatus>,
    /// True from the moment at which the first configuration was written until a start has succeeded.
    is_first: bool,
    /// Maximum time until a stopped server has ended.
    pub stop_timeout: Duration,
    /// Language of the first page.
    language: Language,
}

/// Port of the first page that was taken, the program that holds it, and the port in its place.
type MovedPort = (u16, String, u16);

impl Launcher {
    /// Finds the program.
    pub fn new(options: &Options) -> Launcher {
        let beside = || {
            let own = std::env::current_exe().ok()?;
            Some(own.parent()?.join("rocknet")).filter(|path| path.is_file())
        };
        let on_path = || {
            let folders = std::env::var_os("PATH")?;
            std::env::split_paths(&folders)
                .map(|folder| folder.join("rocknet"))
                .find(|path| path.is_file())
        };
        Launcher {
            program: options.program.clone().or_else(beside).or_else(on_path),
            child: None,
            exit: None,
            is_first: false,
            stop_timeout: STOP_TIMEOUT,
            language: options.language,
        }
    }

    /// Returns the program `rocknet`; `None` if it was not found.
    pub fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Shortens the output of the server that uses a configuration, if it is long. A file of another account stays as
    /// it is.
    pub fn bound_output(&self, config: &Path) {
        let _ = output::bound(&output::output_path(config));
    }

    /// Returns true once after the first start, for which the configuration was written.
    pub fn take_first(&mut self) -> bool {
        std::mem::take(&mut self.is_first)
    }

    /// Takes a child process that runs the server.
    pub fn adopt(&mut self, child: Child) {
        self.child = Some(child);
        self.exit = None;
    }

    /// Collects the end of a child process, so that no zombie is left.
    pub fn reap(&mut self) {
        if let Some(child) = &mut self.child
            && let Some(exit) = child.try_wait().transpose()
        {
            self.exit = exit.ok();
            self.child = None;
        }
    }

    /// Returns true if the last server is a child process, until its exit status is taken.
    pub fn has_child(&self) -> bool {
        self.child.is_some() || self.exit.is_some()
    }

    /// Forgets the exit status of the last child process, because another server has taken its place, or because it was
    /// stopped on purpose.
    pub fn forget_exit(&mut self) {
        self.exit = None;
    }

    /// Returns the cause of the end of the last child process: the inner `None` for an orderly end. `None`: it has not
    /// ended yet.
    pub fn take_exit(&mut self) -> Option<Option<EndingCause>> {
        self.reap();
        let exit = self.exit.take()?;
        let code = exit.code().map_or(EndingCause::Unknown, EndingCause::Code);
        let cause = exit.signal().map_or(code, EndingCause::Signal);
        Some(Some(cause).filter(|_| !exit.success()))
    }

    /// Starts a server with the configuration of the user. A missing configuration is written first. If another program
    /// holds the port of the first page, the next free port is used.
    ///
    /// # Errors
    ///
    /// Returns the reason, with the last lines of the output.
    pub fn start(&mut self, places: &Places) -> Result<Option<MovedPort>, StartFailure> {
        let failure = |reason: Trouble| StartFailure {
            reason,
            ..StartFailure::default()
        };
        let Some(program) = self.program.clone() else {
            // The default reason is that the program is missing.
            return Err(StartFailure::default());
        };
        let config = places.config().ok_or_else(|| failure(Trouble::NoHome))?;
        let is_first = is_missing(&config).map_err(|error| failure(Trouble::of(&config, &error)))?;
        if is_first {
            write_first_config(&config, self.language).map_err(|error| failure(Trouble::of(&config, &error)))?;
            self.is_first = true;
        }
        let mut moved = None;
        let mut port = FIRST_PORT;
        loop {
            match self.attempt(&program, &config, places) {
                Ok(()) => return Ok(moved),
                Err(failure) => {
                    let Some(holder) = holder_of(&failure, port).filter(|_| is_first) else {
                        return Err(with_port(failure, &config));
                    };
                    let Some(free) = ports::next_free(port, &ports::of_config(&config)) else {
                        return Err(failure);
                    };
                    if move_first_page(&config, port, free).is_err() {
                        return Err(failure);
                    }
                    let first = moved.map_or((FIRST_PORT, holder), |(first, holder, _)| (first, holder));
                    moved = Some((first.0, first.1, free));
                    port = free;
                }
            }
        }
    }

    /// Adds a free port to the failure of a unit that uses the configuration of the user.
    pub fn offer_port(&self, places: &Places, failure: StartFailure) -> StartFailure {
        match places.config() {
            Some(config) => with_port(failure, &config),
            None => failure,
        }
    }

    /// Replaces a port in the configuration of the user.
    ///
    /// # Errors
    ///
    /// Fails if the file does not use the port any more, or cannot be written.
    pub fn move_port(&self, places: &Places, from: u16, to: u16) -> Result<(), StartFailure> {
        let config = places.config().unwrap_or_default();
        let moved = ports::moved(&config, from, to).ok_or(io::ErrorKind::InvalidData.into());
        moved
            .and_then(|text| replace_keeping_mode(&config, &text))
            .map_err(|error: io::Error| StartFailure {
                reason: Trouble::of(&config, &error),
                ..StartFailure::default()
            })
    }

    /// Starts the program, and waits until it replies or has ended.
    fn attempt(&mut self, program: &Path, config: &Path, places: &Places) -> Result<(), StartFailure> {
        let (mut output, path) = output::output_file(config).map_err(|error| StartFailure {
            reason: error.to_string().into(),
            ..StartFailure::default()
        })?;
        let failure = |reason: Option<Trouble>| failure_of(reason, tail(&path).lines().map(str::to_owned).collect());
        let spawned = output.flush().and_then(|()| output.try_clone()).and_then(|errors| {
            Command::new(program)
                .args(["run", "--config"])
                .arg(config)
                .stdin(Stdio::null())
                .stdout(output)
                .stderr(errors)
                // Ctrl+C in the terminal of the window does not end the server.
                .process_group(0)
                .spawn()
        });
        let mut child = spawned.map_err(|error| failure(Some(Trouble::of(program, &error))))?;
        let mut places = places.again();
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Ok(Some(_)) = child.try_wait() {
                return Err(failure(None));
            }
            if places.reply() {
                self.adopt(child);
                return Ok(());
            }
            if Instant::now() >= deadline {
                // The process goes on, and is reaped once it ends.
                self.child = Some(child);
                return Err(failure(Some(Trouble::NoReply)));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits until a server that was started by other means replies.
    ///
    /// # Errors
    ///
    /// Fails if it does not reply in time.
    pub fn wait_for_reply(&self, places: &Places) -> Result<(), StartFailure> {
        let mut places = places.again();
        let deadline = Instant::now() + START_TIMEOUT;
        while !places.reply() {
            if Instant::now() >= deadline {
                return Err(StartFailure {
                    reason: Trouble::NoReply,
                    ..StartFailure::default()
                });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Waits until the server that is stopping has ended. Returns false if it has not ended in time.
    pub fn wait_for_end(&mut self, places: &Places) -> bool {
        let deadline = Instant::now() + self.stop_timeout;
        let mut places = places.last();
        while Instant::now() < deadline {
            self.reap();
            if self.child.is_none() && places.connect().is_err() {
                self.forget_exit();
                return true;
            }
            thread::sleep(PAUSE);
        }
        false
    }
}

/// Returns the failure of a start. `reason`: without one, it is read from the lines of the output. The lines after the
/// first error are shown, because they have its position in the file. Without an error, or if few lines follow it, the
/// last lines are shown.
fn failure_of(reason: Option<Trouble>, lines: Vec<String>) -> StartFailure {
    let last = lines.len().saturating_sub(LINES_SHOWN);
    let error = lines.iter().position(|line| line.starts_with(ERROR));
    let start = error.map_or(last, |error| last.min(error + 1));
    StartFailure {
        reason: reason.unwrap_or_else(|| self::reason(&lines)),
        lines: lines.into_iter().skip(start).take(LINES_SHOWN).collect(),
        port: None,
    }
}

/// Returns the message of the first error in the output, or its last line.
fn reason(lines: &[String]) -> Trouble {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    error_of(&lines).map_or(Trouble::ProgramEnded, |message| message.to_owned().into())
}

/// Returns the program that holds the port, if that is why the start has failed; an empty text if it is not known.
fn holder_of(failure: &StartFailure, port: u16) -> Option<String> {
    let (_, rest) = failure.reason.message().split_once(&format!("port {port} is in use"))?;
    let named = rest.strip_prefix(" by ").and_then(|rest| rest.split(';').next());
    Some(named.unwrap_or_default().to_owned())
}

/// Adds a free port to a failure whose cause is a port of the configuration that another program holds.
fn with_port(failure: StartFailure, config: &Path) -> StartFailure {
    let offer = || {
        let taken = ports::taken(failure.reason.message())?;
        let free = ports::next_free(taken, &ports::of_config(config))?;
        ports::moved(config, taken, free).map(|_| (taken, free))
    };
    StartFailure {
        port: offer(),
        ..failure
    }
}

/// Writes the configuration of the first start: the first page, in development mode.
fn write_first_config(config: &Path, language: Language) -> io::Result<()> {
    let folder = folders::first_page(language)?;
    let text = format!(
        "# Configuration of RockNet. The RockNet window edits this file and keeps your comments.\n[server]\nmode = \
         \"dev\"\n\n# The first page. Remove it when you have websites of your own.\n[site.\":{FIRST_PORT}\"]\nroot = \
         {}\n",
        edit::text(&folder.to_string_lossy())
    );
    if let Some(folder) = config.parent() {
        fs::create_dir_all(folder)?;
    }
    replace(config, &text)
}

/// Gives the first page another port.
fn move_first_page(config: &Path, from: u16, to: u16) -> io::Result<()> {
    let text = fs::read_to_string(config)?;
    let mut editor = Editor::new(&text).map_err(|_| io::ErrorKind::InvalidData)?;
    editor
        .rename_site(&format!(":{from}"), &format!(":{to}"))
        .map_err(|_| io::ErrorKind::NotFound)?;
    replace_keeping_mode(config, &editor.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(line: &str) -> StartFailure {
        let lines = vec![
            "warning: x".to_owned(),
            line.to_owned(),
            "2026 INFO stopping".to_owned(),
        ];
        failure_of(None, lines)
    }

    #[test]
    fn a_failed_start_shows_the_error_and_its_place() {
        let output = "warning: x\nerror: unknown key `rot`\n --> rocknet.toml:2:1\n  |\n2 | rot = 1\n  | ^^^\n  help: did \
                      you mean `root`?\n\n1 error, no warnings";
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        let failure = failure_of(None, lines.clone());
        assert_eq!(failure.reason.message(), "unknown key `rot`");
        assert_eq!(failure.lines, lines[2..7]);
        let failure = failure_of(Some(Trouble::NoReply), vec!["1".to_owned(); 9]);
        assert_eq!((failure.reason, failure.lines.len()), (Trouble::NoReply, LINES_SHOWN));
    }

    #[test]
    fn the_holder_of_a_port_is_read_from_the_message() {
        let taken = failure("error: cannot start: port 8080 is in use by nginx (pid 7); stop it or choose another");
        assert_eq!(holder_of(&taken, 8080).as_deref(), Some("nginx (pid 7)"));
        assert_eq!(holder_of(&taken, 808), None);
        let unknown = failure("error: cannot start: port 8080 is in use; stop it");
        assert_eq!(holder_of(&unknown, 8080).as_deref(), Some(""));
        assert_eq!(holder_of(&failure("error: other"), 8080), None);
    }

    #[test]
    fn the_first_page_moves_and_comments_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rocknet.toml");
        fs::write(&file, "# mine\n[site.\":8080\"] # first\nroot = \"/x\"\n").unwrap();
        move_first_page(&file, 8080, 8099).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "# mine\n[site.\":8099\"] # first\nroot = \"/x\"\n");
        assert!(move_first_page(&file, 1, 2).is_err());
    }
}
