//! One php-fpm (or php-cgi) process: starts it, reads its standard error, restarts it when it ends, and stops it.

mod slow_log;
mod stderr;
mod stop;

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::CONNECT_TIMEOUT;
use super::event::PhpEvent;
use super::installed::{self, Installed, Sapi};
use super::launch;
use super::pool::{self, PhpProgram, Pool};
use super::report::PoolProgress;
use super::{PhpSockets, missing_message};
use crate::accounts::Process;
use slow_log::SlowLog;
use stderr::{Run, StderrTail};

/// Delay before the second restart. The first restart is immediate, because most crashes do not repeat; each later
/// delay is twice as long.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay before a restart.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// Interval between two searches for a version that is not installed.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// Run time after which a process counts as stable. A process also counts as stable after its first response. A stable
/// process that ends is restarted immediately.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// Delay before a replaced process is stopped. Until the workers of the server have loaded the new configuration, they
/// still send requests to its socket.
const RETIRE_DELAY: Duration = Duration::from_secs(1);
/// Maximum wait for the end of a process that has closed its standard error.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll interval for the end of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Poll interval for the end of orphaned worker processes.
const ORPHAN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A php-fpm process of one pool, with its state across restarts.
pub struct FpmProcess {
    /// Number of the pool.
    pub number: u32,
    /// Settings of the pool.
    pub pool: Pool,
    folder: PathBuf,
    socket: PathBuf,
    /// Kept open across restarts, so that requests wait in its backlog. Closed if the next restart is too late for
    /// waiting requests, or if it is not likely to succeed.
    listener: Option<UnixListener>,
    /// True once the running process has sent a response.
    responded: Arc<AtomicBool>,
    /// Groups of processes whose php-fpm has ended unexpectedly, or was replaced or stopped by an operator, and the
    /// deadline at which they are killed. Until then they complete their requests.
    orphans: Vec<(Process, Instant)>,
    stderr_tail: StderrTail,
    sender: Sender<PhpEvent>,
    sockets: Arc<PhpSockets>,
    state: FpmState,
    /// Number of starts. Events carry it, so that an event of an earlier process is not attributed to the current one.
    run: u32,
    sapi: Sapi,
    /// Number of failures since the process last counted as stable.
    failures: u32,
    /// True after it was logged that the program is missing. The search for it is repeated without further messages.
    is_reported_missing: bool,
    /// Time at which the process is stopped, because no configuration uses its pool any more. `None` while the pool is
    /// in use.
    retires_at: Option<Instant>,
}

enum FpmState {
    /// The process is not running and is to be started at this time.
    Waiting(Instant),
    Running {
        process: Process,
        /// Time of the start.
        since: Instant,
        /// True once the process accepts requests.
        ready: bool,
    },
    /// The process was signalled to end, and is killed at this time.
    Ending { process: Process, at: Instant },
    /// An operator has stopped the process; requests fail until it is started again.
    Stopped,
    /// The process has ended and is not restarted.
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
            stderr_tail: StderrTail::default(),
            sender,
            sockets,
            state: FpmState::Waiting(Instant::now()),
            run: 0,
            sapi: Sapi::Fpm,
            failures: 0,
            is_reported_missing: false,
            retires_at: None,
        }
    }

    /// Returns the name of the pool for operators.
    fn name(&self) -> String {
        self.sockets.name(&self.socket).unwrap_or_else(|| self.pool.base_name())
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
            FpmState::Running { .. } | FpmState::Stopped | FpmState::Gone => None,
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
            // `true`: once its requests are complete.
            self.end(self.pool.drain_timeout, true);
        }
        self.orphans.retain_mut(|(process, at)| {
            // A replaced or stopped php-fpm is a member of its group until it is reaped.
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
            FpmState::Waiting(_) | FpmState::Stopped | FpmState::Gone => {}
        }
        self.publish();
    }

    /// Publishes the progress of the pool, unless the process is gone.
    fn publish(&self) {
        let (pid, is_ready) = match &self.state {
            FpmState::Gone => return,
            FpmState::Running { process, ready, .. } => (process.id(), *ready),
            FpmState::Waiting(_) | FpmState::Ending { .. } | FpmState::Stopped => (None, false),
        };
        let progress = PoolProgress {
            pid,
            is_ready,
            is_stopped: matches!(self.state, FpmState::Stopped),
            starts: self.run,
        };
        self.sockets.set_progress(&self.socket, progress);
    }

    /// Starts a new process at once, for an operator, even if an operator has stopped the pool before. The old process
    /// completes its requests; new requests wait in the backlog of the socket, which stays open. A php-cgi has no
    /// graceful stop, so its requests are aborted.
    pub fn restart(&mut self) {
        match std::mem::replace(&mut self.state, FpmState::Waiting(Instant::now())) {
            FpmState::Running { process, .. } => {
                tracing::info!("PHP {} is restarted by request", self.name());
                self.drain(process);
            }
            FpmState::Waiting(_) => {}
            FpmState::Stopped => {
                tracing::info!("PHP {} is started by request", self.name());
                // Requests wait for the new process from now on.
                self.sockets.set_failure(&self.socket, None);
                self.failures = 0;
            }
            // A process that is ending or gone is not restarted.
            ending => self.state = ending,
        }
    }

    /// Starts the process at once, for an operator, if an operator has stopped it, or if it has failed and waits for
    /// its next start. A process that runs goes on.
    pub fn resume(&mut self) {
        if !matches!(self.state, FpmState::Running { .. }) {
            self.restart();
        }
    }

    /// Ends the process once its requests are complete, for an operator. Other requests fail at once, with a reason
    /// that names the command to start it again. A php-cgi has no graceful stop, so its requests are aborted.
    pub fn halt(&mut self) {
        match std::mem::replace(&mut self.state, FpmState::Stopped) {
            FpmState::Running { process, .. } => self.drain(process),
            FpmState::Waiting(_) => {}
            // A process that is stopped already, is ending or is gone stays as it is.
            other => {
                self.state = other;
                return;
            }
        }
        let name = self.name();
        tracing::info!("PHP {name} is stopped by request");
        let reason = format!("PHP {name} was stopped by request; `rocknet php --start {name}` starts it");
        self.sockets.set_failure(&self.socket, Some(reason));
        self.close();
    }

    /// Starts the process. If its program is missing or cannot be started, schedules the next attempt.
    fn start(&mut self) {
        let installed = match &self.pool.program {
            PhpProgram::Found(installed) => installed.clone(),
            PhpProgram::Missing(version) => {
                let found = installed::all();
                let Some(installed) = installed::choose(&found, *version) else {
                    if !std::mem::replace(&mut self.is_reported_missing, true) {
                        tracing::error!("{}", missing_message(*version, &found));
                    }
                    self.sockets
                        .set_failure(&self.socket, Some(missing_message(*version, &found)));
                    self.state = FpmState::Waiting(Instant::now() + SEARCH_INTERVAL);
                    return;
                };
                self.is_reported_missing = false;
                installed.clone()
            }
        };
        self.stderr_tail.clear();
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
                // `false`: no process accepted requests.
                self.failed(&why, false);
            }
        }
    }

    /// Starts the program with the listening socket, and a thread that reads its standard error.
    fn launch(&mut self, installed: &Installed) -> io::Result<Process> {
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => pool::listen(&self.socket)?,
        };
        let passed = self.listener.insert(listener).try_clone()?;
        let pool_id = (self.number, self.folder.as_path());
        let (launch, stderr_pipe) = launch::launch(&self.pool, installed, pool_id, passed.into())?;
        let process = launch.start()?;
        let run = Run {
            pool: self.number,
            number: self.run,
        };
        let tail = self.stderr_tail.clone();
        let slow_log = SlowLog::new(self.name(), self.socket.clone(), Arc::clone(&self.sockets));
        stderr::read(stderr_pipe, run, slow_log, tail, self.sender.clone());
        Ok(process)
    }

    /// Called when the process of this run accepts requests.
    pub fn on_ready(&mut self, run: u32) {
        if run != self.run {
            return;
        }
        let name = self.name();
        if let FpmState::Running { ready, .. } = &mut self.state {
            *ready = true;
            self.sockets.set_failure(&self.socket, None);
            tracing::info!("PHP {name} is ready");
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

    /// Schedules a restart after an unexpected end. The worker processes complete their requests.
    fn ended(&mut self, status: ExitStatus) {
        let mut was_ready = false;
        if let FpmState::Running { process, since, ready } = std::mem::replace(&mut self.state, FpmState::Gone) {
            was_ready = ready;
            if ready && (since.elapsed() >= STABLE_AFTER || self.responded.load(Ordering::Relaxed)) {
                self.failures = 0;
            }
            self.drain(process);
        }
        let mut output = self.stderr_tail.text();
        if !output.is_empty() {
            output.insert_str(0, ": ");
        }
        self.failed(&format!("it ended ({status}){output}"), was_ready);
    }

    /// Logs a failure and schedules the restart. `was_ready`: true if the process accepted requests. The restarted
    /// process then most likely accepts requests too.
    fn failed(&mut self, why: &str, was_ready: bool) {
        let delay = restart_delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        let name = self.name();
        let when = match delay.as_millis() {
            0 => "immediately".to_owned(),
            ms => format!("in {ms} ms"),
        };
        tracing::error!("PHP {name} is not running: {why}; it will be restarted {when}");
        // Requests wait in the backlog if the restart is immediate, or if it is soon and will probably succeed.
        // Otherwise they fail at once.
        let may_wait = delay.is_zero() || was_ready && delay <= CONNECT_TIMEOUT;
        if !may_wait {
            self.sockets
                .set_failure(&self.socket, Some(format!("PHP {name} is not running: {why}")));
            self.close();
        }
        self.state = FpmState::Waiting(Instant::now() + delay);
    }
}

/// Returns the delay before a restart after this number of earlier failures.
fn restart_delay(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        failures => FIRST_RESTART_DELAY
            // The bound keeps the shift valid. Delays of later failures exceed the maximum anyway.
            .saturating_mul(1 << (failures - 1).min(16))
            .min(MAX_RESTART_DELAY),
    }
}

#[cfg(test)]
mod tests;
