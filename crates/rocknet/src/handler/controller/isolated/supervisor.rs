//! The thread that looks after the process of one library. It is its parent: started again when it dies, replaced when
//! calls do not return, and ended when nobody holds the library any more.

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

/// Longest time from the start of a process to its being ready, `init` of the library included.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Before one that died is started again. The first time at once: a crash is mostly one, and requests wait meanwhile.
const MIN_RESTART_DELAY: Duration = Duration::from_millis(100);
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// One that has run so long is started again as if it were the first time.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// A call that has not returned so long after its request was given up never will, most likely: a thread that goes round
/// and round has a core for itself.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// One that was replaced ends when its other requests have been answered, and after this time in any case.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// For `drop` of the library, when nobody holds it any more.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks at what nobody tells of: calls that are stuck, and a process whose side somebody else holds open.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// More are in no library.
const MAX_CONTROLLERS: usize = 1024;

/// What requests, the holder of the library, and the thread know together.
pub struct SupervisedProcess {
    state: watch::Sender<ProcessState>,
    pub permits: Arc<CallPermits>,
    /// Has the thread look at once.
    wake_sender: UnixStream,
    is_stopping: AtomicBool,
}

/// How the process is.
#[derive(Clone)]
pub enum ProcessState {
    Starting,
    Running(Arc<ProcessHandle>),
    /// It is not started before a while has passed, and why.
    Down(Arc<str>),
}

impl SupervisedProcess {
    pub fn state(&self) -> ProcessState {
        self.state.borrow().clone()
    }

    /// Hears of every change from now on.
    pub fn changes(&self) -> watch::Receiver<ProcessState> {
        self.state.subscribe()
    }

    /// Has the thread look: something was found that it may not know yet.
    pub fn wake(&self) {
        // A bell that is full has rung.
        let _ = (&self.wake_sender).write(&[1]);
    }

    /// Nobody holds the library any more.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

/// Starts a process for the library, and gives what it has when it is ready, with its thread; the error says why it is not.
pub fn start(path: &Path, image: File) -> Result<(Arc<SupervisedProcess>, Vec<ControllerEntry>, OwnedThread), String> {
    let cannot_start = |error: std::io::Error| format!("no process could be started for it: {error}");
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
        .unwrap_or_else(|_| Err("its thread has ended".to_owned()))?;
    Ok((supervised, entries, thread))
}

struct Supervisor {
    path: PathBuf,
    image: File,
    wake_receiver: UnixStream,
    shared: Arc<SupervisedProcess>,
    current: Option<ChildProcess>,
    /// The one before, until its requests are answered.
    retired: Option<(ChildProcess, Instant)>,
    failures: u32,
    /// When the next one is started.
    restart_at: Option<Instant>,
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The processes first.
        self.current = None;
        self.retired = None;
    }
}

impl Supervisor {
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

    /// Until there is something to look at.
    fn wait(&mut self) {
        let until = self.restart_at.map_or(POLL_INTERVAL, |restart_at| {
            restart_at.saturating_duration_since(Instant::now()).min(POLL_INTERVAL)
        });
        let running = [self.current.as_ref(), self.retired.as_ref().map(|(running, _)| running)];
        wait(&self.wake_receiver, running.into_iter().flatten(), until);
    }

    fn check(&mut self) {
        let is_up = match &mut self.current {
            Some(running) => {
                drain_reports(running, |_| {}) && running.is_alive() && is_confirmed_alive(running, &self.shared)
            }
            None => true,
        };
        if !is_up && let Some(mut running) = self.current.take() {
            let status = running.wait_for_end();
            self.handle_exit(&running, status);
        }
        if let Some((running, until)) = &mut self.retired {
            drain_reports(running, |_| {});
            // Those who still use it hold it as well.
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
                    tracing::info!(library = %self.path.display(), "runs again");
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

    /// There is none, and none is started before a pause is over.
    fn schedule_restart(&mut self, why: &str) {
        let delay = match self.failures {
            0 => Duration::ZERO,
            failures => MIN_RESTART_DELAY
                .saturating_mul(1 << (failures - 1).min(16))
                .min(MAX_RESTART_DELAY),
        };
        self.failures = self.failures.saturating_add(1);
        let (library, ms) = (self.path.display(), delay.as_millis());
        tracing::error!(%library, "its process does not run: {why}. It is started again in {ms} ms");
        self.restart_at = Some(Instant::now() + delay);
        self.shared.state.send_replace(match delay.is_zero() {
            true => ProcessState::Starting,
            false => ProcessState::Down(why.into()),
        });
    }

    fn handle_exit(&mut self, running: &ChildProcess, status: ExitStatus) {
        if running.since.elapsed() >= STABLE_AFTER {
            self.failures = 0;
        }
        self.schedule_restart(&format!("it ended ({status})"));
    }

    /// Another one takes its requests from now on; those that it has are answered there.
    fn replace(&mut self) {
        let library = self.path.display();
        tracing::error!(%library, "a controller has not returned {} s after its request was given up: its process is \
            replaced by another", STUCK_AFTER.as_secs());
        match self.start() {
            Ok((running, _)) => {
                let previous = self.current.take();
                self.set_running(running);
                if let Some(running) = previous {
                    running.process.close();
                    // One that was left over from before ends now.
                    self.retired = Some((running, Instant::now() + RETIRE_TIMEOUT));
                }
            }
            Err(why) => {
                self.current = None;
                self.schedule_restart(&why);
            }
        }
    }

    /// A process that is ready, and what its library has.
    fn start(&mut self) -> Result<(ChildProcess, Vec<ControllerEntry>), String> {
        let running = ChildProcess::start(&self.image, &self.path);
        let mut running = running.map_err(|error| format!("no process could be started for it: {error}"))?;
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
                return Err(format!("it was not loaded within {} s", LOAD_TIMEOUT.as_secs()));
            }
            if self.shared.is_stopping() {
                return Err("nobody wants it any more".to_owned());
            }
            wait(&self.wake_receiver, std::iter::once(&running), left.min(POLL_INTERVAL));
        }
    }

    /// All of it ends: in an orderly way, where that does not take long.
    fn end(&mut self) {
        if let Some(running) = &mut self.current {
            running.process.close();
            let until = Instant::now() + STOP_TIMEOUT;
            // What it says last is still heard.
            while running.is_alive() && Instant::now() < until {
                drain_reports(running, |_| {});
                wait_for_output(running, STOP_POLL_INTERVAL);
            }
            running.end(STOP_POLL_INTERVAL);
        }
    }
}

/// Between two looks at one that is about to end.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Whether a process lives though a connection to it was lost. Those who wait to know are told.
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

/// Whether a call has been given up long ago and has not returned. Those that have are forgotten.
fn is_stuck(running: &ChildProcess) -> bool {
    let mut abandoned = lock(running.process.abandoned());
    abandoned.retain(|call| {
        let mut look = [PollFd::new(&call.connection, PollFlags::empty())];
        let looked = poll(&mut look, Some(&Timespec::default()));
        looked.is_ok() && !look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    });
    abandoned.iter().any(|call| call.since.elapsed() >= STUCK_AFTER)
}

/// Hears all that it has said. False: it says nothing more.
fn drain_reports(running: &mut ChildProcess, mut report: impl FnMut(ChildReport)) -> bool {
    /// Lines for the log may come for ever.
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

fn is_readable(output: impl std::os::fd::AsFd) -> bool {
    let mut look = [PollFd::new(&output, PollFlags::IN)];
    matches!(poll(&mut look, Some(&Timespec::default())), Ok(ready) if ready > 0)
}

/// Until the bell rings, one of these says something, or the time is over.
fn wait<'r>(wake_sender: &UnixStream, all: impl Iterator<Item = &'r ChildProcess>, timeout: Duration) {
    let mut look = vec![PollFd::new(wake_sender, PollFlags::IN)];
    for running in all {
        // One that was closed from here would be told of for ever.
        if !running.process.is_closed() {
            look.push(PollFd::new(running.control(), PollFlags::IN));
        }
        if let Some(output) = running.output() {
            look.push(PollFd::new(output, PollFlags::IN));
        }
    }
    let timeout = Timespec::try_from(timeout).unwrap_or_default();
    let _ = poll(&mut look, Some(&timeout));
    if look[0].revents().contains(PollFlags::IN) {
        let _ = { wake_sender }.read(&mut [0; 64]);
    }
}

/// Its side of the control is closed, so that this alone may tell something.
fn wait_for_output(running: &ChildProcess, timeout: Duration) {
    match running.output() {
        Some(output) => {
            let timeout = Timespec::try_from(timeout).unwrap_or_default();
            let _ = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&timeout));
        }
        None => thread::sleep(timeout),
    }
}
