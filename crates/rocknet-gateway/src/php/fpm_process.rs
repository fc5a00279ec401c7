//! One php-fpm (or php-cgi) process: starts it, reads its standard error, restarts it when it ends, and stops it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::CONNECT_TIMEOUT;
use super::event::PhpEvent;
use super::installed::{self, Installed, Sapi};
use super::pool::{self, PhpProgram, Pool};
use super::report::PoolProgress;
use super::{PhpSockets, lock, missing_message};
use crate::accounts::Process;

/// Delay before the second restart. The first restart is immediate, because most crashes do not repeat; each later
/// delay is twice as long.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(250);
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// Interval between two searches for a version that is not installed.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// Run time after which a process counts as stable. A process also counts as stable after its first response. A stable
/// process that ends is restarted immediately.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// Number of the last lines on standard error that are reported when a process ends.
const STDERR_TAIL: usize = 6;
/// Maximum length of a line on standard error in bytes; a longer line is split.
const MAX_LINE: u64 = 1024;

/// A php-fpm process of one pool, with its state across restarts.
pub struct FpmProcess {
    /// Number of the pool.
    pub number: u32,
    /// Settings of the pool.
    pub pool: Pool,
    folder: PathBuf,
    socket: PathBuf,
    /// Kept open across restarts, so that requests wait in its backlog. Closed if requests would not wait until the
    /// next restart, or if that restart is not likely to succeed.
    listener: Option<UnixListener>,
    /// Set by the first response of the running process.
    responded: Arc<AtomicBool>,
    /// Groups of processes whose php-fpm has ended unexpectedly or was replaced, and the deadline at which they are
    /// killed. Until then they complete their requests.
    orphans: Vec<(Process, Instant)>,
    stderr_tail: Arc<Mutex<VecDeque<String>>>,
    sender: Sender<PhpEvent>,
    sockets: Arc<PhpSockets>,
    state: FpmState,
    /// Number of starts. Events carry it, so that an event of an earlier process is not attributed to the current one.
    run: u32,
    sapi: Sapi,
    /// Number of failures since the process last counted as stable.
    failures: u32,
    /// Time at which the process is stopped, because no configuration uses its pool any more.
    retires_at: Option<Instant>,
}

enum FpmState {
    /// The process is not running and is to be started at this time.
    Waiting(Instant),
    Running {
        process: Process,
        since: Instant,
        /// True once the process accepts requests.
        ready: bool,
    },
    /// The process was signalled to end, and is killed at this time.
    Ending {
        process: Process,
        at: Instant,
    },
    Gone,
}

impl FpmProcess {
    /// Creates the process of a pool; the first [`FpmProcess::tick`] starts it. `folder`: run folder of the server.
    pub fn new(
        number: u32,
        pool: Pool,
        folder: &Path,
        sender: Sender<PhpEvent>,
        sockets: Arc<PhpSockets>,
    ) -> FpmProcess {
        let socket = pool::socket(folder, number);
        FpmProcess {
            number,
            pool,
            folder: folder.to_owned(),
            responded: sockets.responded(&socket),
            socket,
            listener: None,
            orphans: Vec::new(),
            stderr_tail: Arc::default(),
            sender,
            sockets,
            state: FpmState::Waiting(Instant::now()),
            run: 0,
            sapi: Sapi::Fpm,
            failures: 0,
            retires_at: None,
        }
    }

    /// Returns whether the process has ended and is not restarted.
    pub fn is_gone(&self) -> bool {
        matches!(self.state, FpmState::Gone)
    }

    /// Returns the time by which [`FpmProcess::tick`] has to be called; `None` if only an event requires a call.
    pub fn due(&self) -> Option<Instant> {
        let by_state = match self.state {
            FpmState::Waiting(at) => Some(at),
            FpmState::Ending { .. } => Some(Instant::now() + POLL_INTERVAL),
            FpmState::Running { .. } | FpmState::Gone => None,
        };
        let orphans = (!self.orphans.is_empty()).then(|| Instant::now() + ORPHAN_POLL_INTERVAL);
        by_state.into_iter().chain(self.retires_at).chain(orphans).min()
    }

    /// Schedules a graceful stop after [`RETIRE_DELAY`], because workers may still use the previous configuration.
    pub fn retire(&mut self) {
        self.retires_at.get_or_insert_with(|| Instant::now() + RETIRE_DELAY);
    }

    /// Starts, checks or kills processes as their times require.
    pub fn tick(&mut self) {
        if self.retires_at.take_if(|at| *at <= Instant::now()).is_some() {
            self.end(self.pool.drain_timeout, true);
        }
        self.orphans.retain_mut(|(process, at)| {
            // A replaced php-fpm is a member of its group until it is waited for.
            let _ = process.try_wait();
            let is_over = *at <= Instant::now();
            if is_over {
                let _ = process.signal_group(Signal::KILL);
            }
            !is_over && process.group_has_members()
        });
        match &mut self.state {
            FpmState::Waiting(at) if *at <= Instant::now() => self.start(),
            FpmState::Running { process, .. } => {
                if let Ok(Some(status)) = process.try_wait() {
                    self.ended(status);
                }
            }
            FpmState::Ending { process, at } => {
                let is_over = matches!(process.try_wait(), Ok(Some(_)));
                if is_over || *at <= Instant::now() {
                    // Kills the whole group, because worker processes survive their php-fpm.
                    process.kill();
                    self.clean_up();
                }
            }
            FpmState::Waiting(_) | FpmState::Gone => {}
        }
        self.publish();
    }

    /// Publishes the progress of a pool that exists.
    fn publish(&self) {
        let (pid, is_ready) = match &self.state {
            FpmState::Gone => return,
            FpmState::Running { process, ready, .. } => (process.id(), *ready),
            FpmState::Waiting(_) | FpmState::Ending { .. } => (None, false),
        };
        let starts = self.run;
        self.sockets
            .set_progress(&self.socket, PoolProgress { pid, is_ready, starts });
    }

    /// Starts a new process at once, for an operator. The old one completes its requests; new requests wait in the
    /// backlog of the socket, which stays open. A php-cgi has no graceful stop, so its requests are cut.
    pub fn restart(&mut self) {
        match std::mem::replace(&mut self.state, FpmState::Waiting(Instant::now())) {
            FpmState::Running { process, .. } => {
                tracing::info!("PHP {} is restarted by request", self.pool.program.version());
                self.drain(process);
            }
            FpmState::Waiting(_) => {}
            ending => self.state = ending,
        }
    }

    fn start(&mut self) {
        let installed = match &self.pool.program {
            PhpProgram::Found(installed) => installed.clone(),
            PhpProgram::Missing(version) => {
                let found = installed::all();
                let Some(installed) = installed::choose(&found, *version) else {
                    // Logged once, not at each search: `failures` is set to 1 below.
                    if self.failures == 0 {
                        tracing::error!("{}", missing_message(*version, &found));
                    }
                    self.sockets
                        .set_failure(&self.socket, Some(missing_message(*version, &found)));
                    self.failures = 1;
                    self.state = FpmState::Waiting(Instant::now() + SEARCH_INTERVAL);
                    return;
                };
                installed.clone()
            }
        };
        lock(&self.stderr_tail).clear();
        self.responded.store(false, Ordering::Relaxed);
        self.run = self.run.wrapping_add(1);
        self.sapi = installed.sapi;
        match self.launch(&installed) {
            Ok(process) => {
                let since = Instant::now();
                let ready = false;
                self.state = FpmState::Running { process, since, ready };
                if installed.sapi == Sapi::Cgi {
                    // php-cgi does not report readiness, and accepts requests immediately.
                    self.on_ready(self.run);
                }
            }
            Err(error) => {
                let why = format!("{} cannot be started: {error}", installed.program.display());
                self.failed(&why, false);
            }
        }
    }

    fn launch(&mut self, installed: &Installed) -> io::Result<Process> {
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => pool::listen(&self.socket)?,
        };
        let passed = self.listener.insert(listener).try_clone()?;
        let pool_id = (self.number, self.folder.as_path());
        let (launch, stderr) = pool::launch(&self.pool, installed, pool_id, passed.into())?;
        let process = launch.start()?;
        self.read_stderr(stderr, installed);
        Ok(process)
    }

    /// Reads standard error of the process to the end, on a separate thread.
    fn read_stderr(&self, stderr: PipeReader, installed: &Installed) {
        let (tail, sender) = (Arc::clone(&self.stderr_tail), self.sender.clone());
        let (number, run) = (self.number, self.run);
        let version = installed.version();
        let read = move || {
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            loop {
                line.clear();
                match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                    Ok(read) if read > 0 => {}
                    _ => break,
                }
                let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
                log_line(&version, &text);
                if text.contains(NOTICE) {
                    if text.ends_with(READY) {
                        let _ = sender.send(PhpEvent::Ready(number, run));
                    }
                    continue;
                }
                let mut tail = lock(&tail);
                if tail.len() == STDERR_TAIL {
                    tail.pop_front();
                }
                tail.push_back(text);
            }
            let _ = sender.send(PhpEvent::StderrClosed(number, run));
        };
        // Without the thread no output is read, and the end of the process is noticed at the next check.
        let _ = thread::Builder::new().name(format!("rn-php-{number}")).spawn(read);
    }

    /// Called when the process of this run accepts requests.
    pub fn on_ready(&mut self, run: u32) {
        if run != self.run {
            return;
        }
        let version = self.pool.program.version();
        if let FpmState::Running { ready, .. } = &mut self.state {
            *ready = true;
            self.sockets.set_failure(&self.socket, None);
            tracing::info!("PHP {version} is ready");
        }
    }

    /// Called when the process of this run has closed its standard error, most likely because it ends. Waits for its
    /// end up to [`EXIT_TIMEOUT`].
    pub fn on_stderr_closed(&mut self, run: u32) {
        if run != self.run {
            return;
        }
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while let FpmState::Running { process, .. } = &mut self.state
            && Instant::now() < deadline
        {
            match process.try_wait() {
                Ok(Some(status)) => return self.ended(status),
                _ => thread::sleep(POLL_INTERVAL),
            }
        }
        self.tick();
    }

    fn ended(&mut self, status: ExitStatus) {
        let mut was_ready = false;
        if let FpmState::Running { process, since, ready } = std::mem::replace(&mut self.state, FpmState::Gone) {
            was_ready = ready;
            if ready && (since.elapsed() >= STABLE_AFTER || self.responded.load(Ordering::Relaxed)) {
                self.failures = 0;
            }
            self.drain(process);
        }
        let tail: Vec<String> = lock(&self.stderr_tail).iter().cloned().collect();
        let output = if tail.is_empty() {
            String::new()
        } else {
            format!(": {}", tail.join("; "))
        };
        self.failed(&format!("it ended ({status}){output}"), was_ready);
    }

    /// Signals the processes of an ended or replaced php-fpm to complete their requests and to accept no others.
    fn drain(&mut self, process: Process) {
        let is_signalled = self.is_fpm() && process.signal_group(Signal::QUIT).is_ok();
        if is_signalled && self.orphans.len() < MAX_ORPHANS {
            self.orphans.push((process, Instant::now() + self.pool.drain_timeout));
        } else {
            let _ = process.signal_group(Signal::KILL);
        }
    }

    /// Logs a failure and schedules the restart. `was_ready`: true if the process accepted requests. The restarted
    /// process then most likely accepts requests too.
    fn failed(&mut self, why: &str, was_ready: bool) {
        let delay = restart_delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        let version = self.pool.program.version();
        let when = match delay.as_millis() {
            0 => "immediately".to_owned(),
            ms => format!("in {ms} ms"),
        };
        tracing::error!("PHP {version} is not running: {why}; it will be restarted {when}");
        // Requests wait in the backlog if the restart is soon; otherwise they fail immediately.
        let may_wait = delay.is_zero() || was_ready && delay <= CONNECT_TIMEOUT;
        if !may_wait {
            self.sockets
                .set_failure(&self.socket, Some(format!("PHP {version} is not running: {why}")));
            self.close();
        }
        self.state = FpmState::Waiting(Instant::now() + delay);
    }

    /// Closes the listener and removes its socket file. Connections in the backlog are reset.
    fn close(&mut self) {
        if self.listener.take().is_some() {
            let _ = std::fs::remove_file(&self.socket);
        }
    }

    /// Returns true for php-fpm, which ends its own worker processes. php-cgi has no graceful stop, and may lose track
    /// of a worker process.
    fn is_fpm(&self) -> bool {
        self.sapi == Sapi::Fpm
    }

    /// Signals the process to end: once its requests are complete if `gracefully`, otherwise immediately. The process
    /// is killed after `within`. php-cgi always ends immediately, and is killed after [`CGI_STOP_TIMEOUT`] at the
    /// latest.
    pub fn end(&mut self, within: Duration, gracefully: bool) {
        self.sockets.set_failure(&self.socket, None);
        let is_fpm = self.is_fpm();
        let at = Instant::now() + if is_fpm { within } else { within.min(CGI_STOP_TIMEOUT) };
        for (_, until) in &mut self.orphans {
            *until = at.min(*until);
        }
        self.state = match std::mem::replace(&mut self.state, FpmState::Gone) {
            FpmState::Running { process, .. } => {
                let _ = match (is_fpm, gracefully) {
                    (true, true) => process.signal(Signal::QUIT),
                    (true, false) => process.signal(Signal::TERM),
                    (false, _) => process.signal_group(Signal::TERM),
                };
                FpmState::Ending { process, at }
            }
            FpmState::Ending { process, at: before } => FpmState::Ending {
                process,
                at: before.min(at),
            },
            FpmState::Waiting(_) | FpmState::Gone => FpmState::Gone,
        };
        if self.is_gone() {
            self.clean_up();
        }
    }

    fn clean_up(&mut self) {
        self.state = FpmState::Gone;
        self.retires_at = None;
        self.close();
        self.sockets.forget(&self.socket);
        for (process, _) in self.orphans.drain(..) {
            let _ = process.signal_group(Signal::KILL);
        }
    }
}

impl Drop for FpmProcess {
    fn drop(&mut self) {
        if let FpmState::Running { process, .. } | FpmState::Ending { process, .. } = &mut self.state {
            process.kill();
        }
        self.clean_up();
    }
}

/// Time after which a signalled php-cgi is killed with its worker processes.
const CGI_STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before a replaced process is stopped. Workers start to use a new configuration in their next iteration.
const RETIRE_DELAY: Duration = Duration::from_secs(1);
/// Maximum wait for the end of a process that has closed its standard error.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll interval for the end of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Poll interval for the end of orphaned worker processes.
const ORPHAN_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of ended php-fpm processes whose worker processes may complete their requests. Beyond this number the
/// worker processes are killed, because so many unexpected ends are not accidents.
const MAX_ORPHANS: usize = 16;
/// Mark of a php-fpm message of level notice.
const NOTICE: &str = "] NOTICE: ";
/// End of the message by which php-fpm reports that it accepts requests.
const READY: &str = "ready to handle connections";

/// Returns the delay before a restart after this number of earlier failures.
fn restart_delay(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        failures => FIRST_RESTART_DELAY
            .saturating_mul(1 << (failures - 1).min(16))
            .min(MAX_RESTART_DELAY),
    }
}

/// Logs a line of php-fpm: a notice, debug message or empty line at level debug, a warning as such, any other line as
/// an error.
fn log_line(version: &str, line: &str) {
    let is = |word: &str| line.contains(word);
    if is(NOTICE) || is("] DEBUG: ") || line.is_empty() {
        tracing::debug!(php = version, "{line}");
    } else if is("] WARNING: ") {
        tracing::warn!(php = version, "{line}");
    } else {
        tracing::error!(php = version, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, channel};

    use rocknet_proto::fastcgi::{self, Params};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn process(folder: &Path, sapi: Sapi, program: PathBuf) -> (FpmProcess, Receiver<PhpEvent>) {
        let (sender, events) = channel();
        let installed = Installed {
            major: 8,
            minor: 2,
            sapi,
            program,
        };
        let pool = Pool {
            program: PhpProgram::Found(installed),
            user: None,
            dev: false,
            body_size: 1 << 20,
            drain_timeout: TIMEOUT,
        };
        (FpmProcess::new(1, pool, folder, sender, Arc::default()), events)
    }

    #[test]
    fn the_last_lines_of_stderr_are_reported_and_the_process_is_restarted() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("php-fpm8.2");
        let script = "#!/bin/sh\necho \"[x] ERROR: unable to bind\" >&2\necho \"[x] ERROR: FPM initialization failed\" >&2\nexit 78\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (mut process, events) = self::process(folder.path(), Sapi::Fpm, program);
        // The first failure may be an accident, so requests fail only after the second.
        for is_reported in [false, true] {
            process.tick();
            assert!(matches!(events.recv_timeout(TIMEOUT), Ok(PhpEvent::StderrClosed(1, _))));
            assert!(UnixStream::connect(&process.socket).is_ok());
            process.on_stderr_closed(process.run);
            assert_eq!(process.sockets.failure(&process.socket).is_some(), is_reported);
        }
        assert!(UnixStream::connect(&process.socket).is_err());
        let failure = process.sockets.failure(&process.socket).unwrap();
        let expected = "unable to bind; [x] ERROR: FPM initialization failed";
        assert!(failure.contains(expected) && failure.contains("78"), "{failure}");
        let due = process.due().unwrap();
        assert!(due > Instant::now() && due <= Instant::now() + FIRST_RESTART_DELAY);
        process.end(TIMEOUT, false);
        assert!(process.is_gone());
        assert_eq!(process.sockets.failure(&process.socket), None);
        // A program that cannot be started.
        let (mut none, _events) = self::process(folder.path(), Sapi::Fpm, folder.path().join("none"));
        none.tick();
        none.tick();
        assert!(
            none.sockets
                .failure(&none.socket)
                .unwrap()
                .contains("cannot be started")
        );
    }

    #[test]
    fn php_cgi_serves_scripts_if_there_is_no_php_fpm() {
        let program = PathBuf::from("/usr/bin/php-cgi8.2");
        assert!(
            program.exists(),
            "php-cgi, which `cargo xtask test` installs (php8.2-cgi)"
        );
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("a.php")] {
            if !path.exists() {
                std::fs::write(
                    &path,
                    "<?php echo ini_get('post_max_size'), getenv('HTTP_A'); error_log('oh');",
                )
                .unwrap();
            }
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (mut process, events) = self::process(folder.path(), Sapi::Cgi, program);
        process.tick();
        let mut request = Vec::new();
        fastcgi::begin(&mut request, false);
        let mut params = Params::new(&mut request);
        let script = folder.path().join("a.php");
        for (name, value) in [
            ("REQUEST_METHOD", "GET"),
            ("SCRIPT_FILENAME", script.to_str().unwrap()),
            ("REDIRECT_STATUS", "200"),
            ("HTTP_A", "!"),
        ] {
            params.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        params.finish();
        fastcgi::stdin_end(&mut request);
        let mut stream = UnixStream::connect(&process.socket).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(&request).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let (mut records, mut at, mut out, mut err) = (fastcgi::ResponseReader::new(), 0, Vec::new(), Vec::new());
        while at < bytes.len() {
            let received = records.receive(&bytes[at..]).unwrap();
            match received.event {
                fastcgi::RecordEvent::Stdout(range) => out.extend_from_slice(&bytes[at..][range]),
                fastcgi::RecordEvent::Stderr(range) => err.extend_from_slice(&bytes[at..][range]),
                fastcgi::RecordEvent::End(_) | fastcgi::RecordEvent::More => {}
            }
            at += received.consumed;
        }
        assert!(out.ends_with(b"\r\n\r\n1048576!"), "{}", String::from_utf8_lossy(&out));
        assert!(
            err.starts_with(b"PHP message: oh") || err.starts_with(b"oh"),
            "{}",
            String::from_utf8_lossy(&err)
        );
        process.end(TIMEOUT, true);
        while !process.is_gone() {
            process.tick();
            thread::sleep(POLL_INTERVAL);
        }
        // All processes that held its standard error have ended.
        assert!(matches!(events.recv_timeout(TIMEOUT), Ok(PhpEvent::StderrClosed(1, _))));
        assert!(UnixStream::connect(&process.socket).is_err());
    }

    #[test]
    fn restart_delays_grow_to_a_bound() {
        let seen: Vec<u128> = [0, 1, 2, 3, 7, 8, 9, u32::MAX]
            .map(|n| restart_delay(n).as_millis())
            .into();
        assert_eq!(seen, [0, 250, 500, 1000, 16_000, 30_000, 30_000, 30_000]);
    }
}
