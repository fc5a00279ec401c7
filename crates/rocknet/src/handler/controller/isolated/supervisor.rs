//! The supervisor thread of one library, which is the parent of the library's process. The thread restarts a process
//! that dies, replaces a process whose calls do not return, and ends the process once the library is no longer used.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::watch;

use super::control::{ChildReport, ControllerEntry};
use super::lock::lock;
use super::permits::CallPermits;
use super::process::{ChildProcess, ProcessEvent, ProcessHandle};
use rocknet_io::owned_thread::OwnedThread;

/// Maximum time from the start of a process until it is ready, including `init` of the library.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before the second restart. The first restart is immediate, because most crashes are isolated events and
/// requests wait.
const MIN_RESTART_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay before a restart. The delay doubles with each failure.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// Running time after which a process counts as stable, so that the next restart is immediate again.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// Time after which an abandoned call counts as stuck. It will most likely never return, and a thread in an endless
/// loop occupies a core.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// Maximum time for a replaced process to finish its other requests.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for `drop` of the library after its last use.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Poll interval for conditions without an event: stuck calls, and a process whose socket another process holds open.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of controllers of a library; further controllers are ignored.
const MAX_CONTROLLERS: usize = 1024;

/// State shared by requests, the owner of the library, and the supervisor thread.
pub struct SupervisedProcess {
    state: watch::Sender<ProcessState>,
    /// Permits for calls in the process.
    pub permits: Arc<CallPermits>,
    /// Wakes the thread.
    wake_sender: UnixStream,
    is_stopping: AtomicBool,
}

/// State of the process.
#[derive(Clone)]
pub enum ProcessState {
    /// The process is being started.
    Starting,
    /// The process accepts requests.
    Running(Arc<ProcessHandle>),
    /// The process failed for this reason and is restarted after a delay.
    Down(Arc<str>),
}

impl SupervisedProcess {
    /// Returns the current state.
    pub fn state(&self) -> ProcessState {
        self.state.borrow().clone()
    }

    /// Subscribes to all changes from now on.
    pub fn changes(&self) -> watch::Receiver<ProcessState> {
        self.state.subscribe()
    }

    /// Wakes the supervisor thread, so that it checks the process for a condition that has no event of its own.
    pub fn wake(&self) {
        // An error is ignored. If the socket buffer is full, the bytes in it already wake the thread.
        let _ = (&self.wake_sender).write(&[1]);
    }

    /// Ends the process and the thread. Called when the library is no longer used, or when the server stops.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

/// Starts a process for the library. Returns the shared state, the controllers and the thread once it is ready.
///
/// # Errors
///
/// The message is the reason why the process is not ready.
pub fn start(path: &Path, image: File) -> Result<(Arc<SupervisedProcess>, Vec<ControllerEntry>, OwnedThread), String> {
    let cannot_start = |error: std::io::Error| format!("no process could be started for the library: {error}");
    let (wake_sender, wake_receiver) = UnixStream::pair().map_err(cannot_start)?;
    for end in [&wake_sender, &wake_receiver] {
        end.set_nonblocking(true).map_err(cannot_start)?;
    }
    let supervised = Arc::new(SupervisedProcess {
        state: watch::Sender::new(ProcessState::Starting),
        permits: Arc::default(),
        wake_sender,
        is_stopping: AtomicBool::new(false),
    });
    let supervisor = Supervisor {
        path: path.to_owned(),
        image,
        wake_receiver,
        shared: Arc::clone(&supervised),
        current: None,
        retired: None,
        failures: 0,
        restart_at: None,
    };
    let (sender, receiver) = sync_channel(1);
    let run = move || supervisor.run(&sender);
    let thread = OwnedThread::start("rn-isolated", run).map_err(cannot_start)?;
    let entries = receiver
        .recv()
        .unwrap_or_else(|_| Err("the supervisor thread of the library has ended".to_owned()))?;
    Ok((supervised, entries, thread))
}

/// State of the supervisor thread.
struct Supervisor {
    /// Configured path of the library, for messages.
    path: PathBuf,
    /// Private copy of the library, which each process loads.
    image: File,
    /// End of the socket pair at which other threads wake the supervisor.
    wake_receiver: UnixStream,
    /// State that the workers see, with the other end of the socket pair.
    shared: Arc<SupervisedProcess>,
    /// The process that gets new requests; `None` until it is started or restarted.
    current: Option<ChildProcess>,
    /// The replaced process, until its requests have finished, and the time at which it is killed.
    retired: Option<(ChildProcess, Instant)>,
    /// Number of failed or ended processes since the last one that was stable.
    failures: u32,
    /// Time of the next restart; `None` if no restart is scheduled.
    restart_at: Option<Instant>,
}

impl Supervisor {
    /// Starts the first process, sends the result to `started`, and supervises the process until it is to stop.
    fn run(mut self, started: &SyncSender<Result<Vec<ControllerEntry>, String>>) {
        match self.start() {
            Ok((running, entries)) => {
                self.set_running(running);
                let _ = started.send(Ok(entries));
            }
            Err(why) => {
                let _ = started.send(Err(why));
                return;
            }
        }
        while !self.shared.is_stopping() {
            self.wait();
            self.check();
        }
        self.end();
    }

    /// Waits for the next event.
    fn wait(&mut self) {
        let timeout = self.restart_at.map_or(POLL_INTERVAL, |restart_at| {
            restart_at.saturating_duration_since(Instant::now()).min(POLL_INTERVAL)
        });
        let running = [self.current.as_ref(), self.retired.as_ref().map(|(running, _)| running)];
        wait(&self.wake_receiver, running.into_iter().flatten(), timeout);
    }

    /// Acts on the end of a process, on a stuck call, and on a restart that is due.
    fn check(&mut self) {
        let is_up = match &mut self.current {
            Some(running) => {
                drain_reports(running, |_| {}) && running.is_alive() && is_confirmed_alive(running, &self.shared)
            }
            // Without a process, no end has to be handled.
            None => true,
        };
        if !is_up && let Some(mut running) = self.current.take() {
            let status = running.wait_for_end();
            self.handle_exit(&running, status);
        }
        if let Some((running, until)) = &mut self.retired {
            drain_reports(running, |_| {});
            // Requests that use the process hold a reference to it.
            let is_done = !running.is_alive() || Arc::strong_count(&running.process) == 1 || *until <= Instant::now();
            if is_done {
                self.retired = None;
            }
        }
        if self.current.as_ref().is_some_and(is_stuck) {
            self.replace();
        }
        if self.restart_at.is_some_and(|restart_at| restart_at <= Instant::now()) {
            self.restart_at = None;
            match self.start() {
                Ok((running, _)) => {
                    tracing::info!(library = %self.path.display(), "the process of the library was restarted");
                    self.set_running(running);
                }
                Err(why) => self.schedule_restart(&why),
            }
        }
    }

    fn set_running(&mut self, running: ChildProcess) {
        self.shared
            .state
            .send_replace(ProcessState::Running(Arc::clone(&running.process)));
        self.current = Some(running);
    }

    /// Records that no process runs, and schedules the restart after a delay that grows with each failure.
    fn schedule_restart(&mut self, why: &str) {
        // The exponent is bounded, so that the shift cannot overflow.
        let delay = match self.failures {
            0 => Duration::ZERO,
            failures => MIN_RESTART_DELAY
                .saturating_mul(1 << (failures - 1).min(16))
                .min(MAX_RESTART_DELAY),
        };
        self.failures = self.failures.saturating_add(1);
        let (library, ms) = (self.path.display(), delay.as_millis());
        tracing::error!(%library, "the process of the library does not run: {why}; it is restarted in {ms} ms");
        self.restart_at = Some(Instant::now() + delay);
        self.shared.state.send_replace(match delay.is_zero() {
            true => ProcessState::Starting,
            false => ProcessState::Down(why.into()),
        });
    }

    /// Schedules the restart of a process that has ended.
    fn handle_exit(&mut self, running: &ChildProcess, status: ExitStatus) {
        if running.since.elapsed() >= STABLE_AFTER {
            self.failures = 0;
        }
        self.schedule_restart(&format!("it ended ({status})"));
    }

    /// Starts another process for new requests. The old process finishes its requests. If no other process can be
    /// started, the old one is killed, and a restart is scheduled.
    fn replace(&mut self) {
        let library = self.path.display();
        tracing::error!(%library, "a controller has not returned {} s after its request was abandoned: its process is \
            replaced by another", STUCK_AFTER.as_secs());
        match self.start() {
            Ok((running, _)) => {
                let previous = self.current.take();
                self.set_running(running);
                if let Some(running) = previous {
                    running.process.close();
                    // Drops, and thereby kills, a process that was retired earlier.
                    self.retired = Some((running, Instant::now() + RETIRE_TIMEOUT));
                }
            }
            Err(why) => {
                self.current = None;
                self.schedule_restart(&why);
            }
        }
    }

    /// Starts a process, and waits until it has reported its controllers.
    fn start(&mut self) -> Result<(ChildProcess, Vec<ControllerEntry>), String> {
        let running = ChildProcess::start(&self.image, &self.path);
        let mut running = running.map_err(|error| format!("no process could be started for the library: {error}"))?;
        let deadline = Instant::now() + LOAD_TIMEOUT;
        let (mut entries, mut refused, mut is_ready) = (Vec::new(), None, false);
        loop {
            let is_open = drain_reports(&mut running, |report| match report {
                ChildReport::Controller(entry) if entries.len() < MAX_CONTROLLERS => entries.push(entry),
                ChildReport::Ready => is_ready = true,
                ChildReport::Refused(why) => refused = Some(why),
                ChildReport::Controller(_) | ChildReport::Log(..) => {}
            });
            if let Some(why) = refused {
                return Err(why);
            }
            if is_ready {
                return Ok((running, entries));
            }
            if !is_open {
                return Err(format!(
                    "its process ended while it was loaded ({})",
                    running.wait_for_end()
                ));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "the library was not loaded within {} s",
                    LOAD_TIMEOUT.as_secs()
                ));
            }
            if self.shared.is_stopping() {
                return Err("the library is no longer used".to_owned());
            }
            wait(&self.wake_receiver, std::iter::once(&running), left.min(POLL_INTERVAL));
        }
    }

    /// Closes the channel to the process, waits for its exit, and kills it after `STOP_TIMEOUT`.
    fn end(&mut self) {
        if let Some(running) = &mut self.current {
            running.process.close();
            let until = Instant::now() + STOP_TIMEOUT;
            // Reads and logs the last log lines of the process.
            while running.is_alive() && Instant::now() < until {
                drain_reports(running, |_| {});
                wait_for_output(running, STOP_POLL_INTERVAL);
            }
            // Kills the process if it is still alive, and logs its remaining output.
            running.end(STOP_POLL_INTERVAL);
        }
    }
}

/// Poll interval for a process that is about to end.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Returns true if the process is alive. After a lost connection, first waits for the process to exit. If the process
/// is still alive after this wait, notifies waiting requests.
fn is_confirmed_alive(running: &mut ChildProcess, shared: &SupervisedProcess) -> bool {
    if !running.process.is_suspect() {
        return true;
    }
    let is_alive = running.stays_alive();
    if is_alive {
        running.process.set_suspect(false);
        shared
            .state
            .send_replace(ProcessState::Running(Arc::clone(&running.process)));
    }
    is_alive
}

/// Returns true if a call was abandoned at least `STUCK_AFTER` ago and has not returned. Removes the calls that have
/// returned.
fn is_stuck(running: &ChildProcess) -> bool {
    let mut abandoned = lock(running.process.abandoned());
    abandoned.retain(|call| {
        // Without requested events, `poll` reports only a closed connection or an error.
        let mut poll_fds = [PollFd::new(&call.connection, PollFlags::empty())];
        let polled = poll(&mut poll_fds, Some(&Timespec::default()));
        polled.is_ok() && !poll_fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    });
    abandoned.iter().any(|call| call.since.elapsed() >= STUCK_AFTER)
}

/// Passes the available reports of a process to `report`, and logs its output. Returns false if the process has closed
/// the channel or sent an invalid message.
fn drain_reports(running: &mut ChildProcess, mut report: impl FnMut(ChildReport)) -> bool {
    /// Maximum reports per call, because a process can log without end.
    const MAX_MESSAGES: usize = 2048;
    if running.output().is_some_and(is_readable) {
        running.forward_output();
    }
    for _ in 0..MAX_MESSAGES {
        match running.next_event() {
            Some(ProcessEvent::Idle) => return true,
            Some(ProcessEvent::Logged) => {}
            Some(ProcessEvent::Report(message)) => report(message),
            None => return false,
        }
    }
    true
}

/// Returns true if a read from `output` would not block.
fn is_readable(output: impl std::os::fd::AsFd) -> bool {
    let mut poll_fds = [PollFd::new(&output, PollFlags::IN)];
    matches!(poll(&mut poll_fds, Some(&Timespec::default())), Ok(ready) if ready > 0)
}

/// Waits until the thread is woken, a process reports something, or the timeout has passed.
fn wait<'r>(wake_receiver: &UnixStream, processes: impl Iterator<Item = &'r ChildProcess>, timeout: Duration) {
    let mut poll_fds = vec![PollFd::new(wake_receiver, PollFlags::IN)];
    for running in processes {
        // The socket of a closed process is not polled, because it would always be ready.
        if !running.process.is_closed() {
            poll_fds.push(PollFd::new(running.control(), PollFlags::IN));
        }
        if let Some(output) = running.output() {
            poll_fds.push(PollFd::new(output, PollFlags::IN));
        }
    }
    let timeout = Timespec::try_from(timeout).unwrap_or_default();
    let _ = poll(&mut poll_fds, Some(&timeout));
    if poll_fds[0].revents().contains(PollFlags::IN) {
        // Discards the bytes that woke the thread.
        let _ = { wake_receiver }.read(&mut [0; 64]);
    }
}

/// Waits for output of a process. Its control channel is closed, so it has no other events.
fn wait_for_output(running: &ChildProcess, timeout: Duration) {
    match running.output() {
        Some(output) => {
            let timeout = Timespec::try_from(timeout).unwrap_or_default();
            let _ = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&timeout));
        }
        None => thread::sleep(timeout),
    }
}
