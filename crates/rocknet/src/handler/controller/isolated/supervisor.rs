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

use super::control::{Entry, Report};
use super::locked::lock;
use super::place::Places;
use super::process::{Heard, Process, Running};
use rocknet_io::owned_thread::OwnedThread;

/// Longest time from the start of a process to its being ready, `init` of the library included.
const LOAD: Duration = Duration::from_secs(30);
/// Before one that died is started again. The first time at once: a crash is mostly one, and requests wait meanwhile.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// One that has run so long is started again as if it were the first time.
const STEADY: Duration = Duration::from_secs(10);
/// A call that has not returned so long after its request was given up never will, most likely: a thread that goes round
/// and round has a core for itself.
const STUCK: Duration = Duration::from_secs(5);
/// One that was replaced ends when its other requests have been answered, and after this time in any case.
const RETIRED: Duration = Duration::from_secs(30);
/// For `drop` of the library, when nobody holds it any more.
const END: Duration = Duration::from_secs(5);
/// Between two looks at what nobody tells of: calls that are stuck, and a process whose side somebody else holds open.
const LOOK: Duration = Duration::from_millis(250);
/// More are in no library.
const MAX_CONTROLLERS: usize = 1024;

/// What requests, the holder of the library, and the thread know together.
pub struct Supervised {
    state: watch::Sender<State>,
    pub places: Arc<Places>,
    /// Has the thread look at once.
    bell: UnixStream,
    is_over: AtomicBool,
}

/// How the process is.
#[derive(Clone)]
pub enum State {
    Starting,
    Up(Arc<Process>),
    /// It is not started before a while has passed, and why.
    Down(Arc<str>),
}

impl Supervised {
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Hears of every change from now on.
    pub fn changes(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Has the thread look: something was found that it may not know yet.
    pub fn ring(&self) {
        // A bell that is full has rung.
        let _ = (&self.bell).write(&[1]);
    }

    /// Nobody holds the library any more.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.ring();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// Starts a process for the library, and gives what it has when it is ready, with its thread; the error says why it is not.
pub fn start(path: &Path, image: File) -> Result<(Arc<Supervised>, Vec<Entry>, OwnedThread), String> {
    let told = |error: std::io::Error| format!("no process could be started for it: {error}");
    let (bell, heard) = UnixStream::pair().map_err(told)?;
    for end in [&bell, &heard] {
        end.set_nonblocking(true).map_err(told)?;
    }
    let supervised = Arc::new(Supervised {
        state: watch::Sender::new(State::Starting),
        places: Arc::default(),
        bell,
        is_over: AtomicBool::new(false),
    });
    let supervisor = Supervisor {
        path: path.to_owned(),
        image,
        heard,
        shared: Arc::clone(&supervised),
        current: None,
        retired: None,
        failures: 0,
        due: None,
    };
    let (sender, receiver) = sync_channel(1);
    let run = move || supervisor.run(&sender);
    let thread = OwnedThread::start("rn-isolated", run).map_err(told)?;
    let entries = receiver
        .recv()
        .unwrap_or_else(|_| Err("its thread has ended".to_owned()))?;
    Ok((supervised, entries, thread))
}

struct Supervisor {
    path: PathBuf,
    image: File,
    heard: UnixStream,
    shared: Arc<Supervised>,
    current: Option<Running>,
    /// The one before, until its requests are answered.
    retired: Option<(Running, Instant)>,
    failures: u32,
    /// When the next one is started.
    due: Option<Instant>,
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The processes first.
        self.current = None;
        self.retired = None;
    }
}

impl Supervisor {
    fn run(mut self, started: &SyncSender<Result<Vec<Entry>, String>>) {
        match self.start() {
            Ok((running, entries)) => {
                self.rise(running);
                let _ = started.send(Ok(entries));
            }
            Err(why) => {
                let _ = started.send(Err(why));
                return;
            }
        }
        while !self.shared.is_over() {
            self.wait();
            self.look();
        }
        self.end();
    }

    /// Until there is something to look at.
    fn wait(&mut self) {
        let until = self
            .due
            .map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
        let running = [self.current.as_ref(), self.retired.as_ref().map(|(running, _)| running)];
        wait(&self.heard, running.into_iter().flatten(), until);
    }

    fn look(&mut self) {
        let is_up = match &mut self.current {
            Some(running) => listen(running, |_| {}) && running.is_alive() && is_beyond_doubt(running, &self.shared),
            None => true,
        };
        if !is_up && let Some(mut running) = self.current.take() {
            let status = running.ended();
            self.died(&running, status);
        }
        if let Some((running, until)) = &mut self.retired {
            listen(running, |_| {});
            // Those who still use it hold it as well.
            let is_done = !running.is_alive() || Arc::strong_count(&running.process) == 1 || *until <= Instant::now();
            if is_done {
                self.retired = None;
            }
        }
        if self.current.as_ref().is_some_and(is_stuck) {
            self.replace();
        }
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.due = None;
            match self.start() {
                Ok((running, _)) => {
                    tracing::info!(library = %self.path.display(), "runs again");
                    self.rise(running);
                }
                Err(why) => self.fall(&why),
            }
        }
    }

    fn rise(&mut self, running: Running) {
        self.shared.state.send_replace(State::Up(Arc::clone(&running.process)));
        self.current = Some(running);
    }

    /// There is none, and none is started before a pause is over.
    fn fall(&mut self, why: &str) {
        let pause = match self.failures {
            0 => Duration::ZERO,
            failures => FIRST_PAUSE
                .saturating_mul(1 << (failures - 1).min(16))
                .min(LONGEST_PAUSE),
        };
        self.failures = self.failures.saturating_add(1);
        let (library, ms) = (self.path.display(), pause.as_millis());
        tracing::error!(%library, "its process does not run: {why}. It is started again in {ms} ms");
        self.due = Some(Instant::now() + pause);
        self.shared.state.send_replace(match pause.is_zero() {
            true => State::Starting,
            false => State::Down(why.into()),
        });
    }

    fn died(&mut self, running: &Running, status: ExitStatus) {
        if running.since.elapsed() >= STEADY {
            self.failures = 0;
        }
        self.fall(&format!("it ended ({status})"));
    }

    /// Another one takes its requests from now on; those that it has are answered there.
    fn replace(&mut self) {
        let library = self.path.display();
        tracing::error!(%library, "a controller has not returned {} s after its request was given up: its process is \
            replaced by another", STUCK.as_secs());
        match self.start() {
            Ok((running, _)) => {
                let before = self.current.take();
                self.rise(running);
                if let Some(running) = before {
                    running.process.close();
                    // One that was left over from before ends now.
                    self.retired = Some((running, Instant::now() + RETIRED));
                }
            }
            Err(why) => {
                self.current = None;
                self.fall(&why);
            }
        }
    }

    /// A process that is ready, and what its library has.
    fn start(&mut self) -> Result<(Running, Vec<Entry>), String> {
        let running = Running::start(&self.image, &self.path);
        let mut running = running.map_err(|error| format!("no process could be started for it: {error}"))?;
        let deadline = Instant::now() + LOAD;
        let (mut entries, mut refused, mut is_ready) = (Vec::new(), None, false);
        loop {
            let goes_on = listen(&mut running, |report| match report {
                Report::Controller(entry) if entries.len() < MAX_CONTROLLERS => entries.push(entry),
                Report::Ready => is_ready = true,
                Report::Refused(why) => refused = Some(why),
                Report::Controller(_) | Report::Log(..) => {}
            });
            if let Some(why) = refused {
                return Err(why);
            }
            if is_ready {
                return Ok((running, entries));
            }
            if !goes_on {
                return Err(format!("its process ended while it was loaded ({})", running.ended()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("it was not loaded within {} s", LOAD.as_secs()));
            }
            if self.shared.is_over() {
                return Err("nobody wants it any more".to_owned());
            }
            wait(&self.heard, std::iter::once(&running), left.min(LOOK));
        }
    }

    /// All of it ends: in an orderly way, where that does not take long.
    fn end(&mut self) {
        if let Some(running) = &mut self.current {
            running.process.close();
            let until = Instant::now() + END;
            // What it says last is still heard.
            while running.is_alive() && Instant::now() < until {
                listen(running, |_| {});
                wait_for_output(running, LAST_LOOK);
            }
            running.end(LAST_LOOK);
        }
    }
}

/// Between two looks at one that is about to end.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// Whether a process lives though a connection to it was lost. Those who wait to know are told.
fn is_beyond_doubt(running: &mut Running, shared: &Supervised) -> bool {
    if !running.process.is_doubted() {
        return true;
    }
    let is_alive = running.stays_alive();
    if is_alive {
        running.process.doubt(false);
        shared.state.send_replace(State::Up(Arc::clone(&running.process)));
    }
    is_alive
}

/// Whether a call has been given up long ago and has not returned. Those that have are forgotten.
fn is_stuck(running: &Running) -> bool {
    let mut abandoned = lock(running.process.abandoned());
    abandoned.retain(|call| {
        let mut look = [PollFd::new(&call.connection, PollFlags::empty())];
        let looked = poll(&mut look, Some(&Timespec::default()));
        looked.is_ok() && !look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    });
    abandoned.iter().any(|call| call.since.elapsed() >= STUCK)
}

/// Hears all that it has said. False: it says nothing more.
fn listen(running: &mut Running, mut report: impl FnMut(Report)) -> bool {
    /// Lines for the log may come for ever.
    const AT_ONCE: usize = 2048;
    if running.output().is_some_and(is_readable) {
        running.pass_on();
    }
    for _ in 0..AT_ONCE {
        match running.hear() {
            Some(Heard::Nothing) => return true,
            Some(Heard::Line) => {}
            Some(Heard::Report(said)) => report(said),
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
fn wait<'r>(bell: &UnixStream, all: impl Iterator<Item = &'r Running>, patience: Duration) {
    let mut look = vec![PollFd::new(bell, PollFlags::IN)];
    for running in all {
        // One that was closed from here would be told of for ever.
        if !running.process.is_closed() {
            look.push(PollFd::new(running.control(), PollFlags::IN));
        }
        if let Some(output) = running.output() {
            look.push(PollFd::new(output, PollFlags::IN));
        }
    }
    let patience = Timespec::try_from(patience).unwrap_or_default();
    let _ = poll(&mut look, Some(&patience));
    if look[0].revents().contains(PollFlags::IN) {
        let _ = { bell }.read(&mut [0; 64]);
    }
}

/// Its side of the control is closed, so that this alone may tell something.
fn wait_for_output(running: &Running, patience: Duration) {
    match running.output() {
        Some(output) => {
            let patience = Timespec::try_from(patience).unwrap_or_default();
            let _ = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&patience));
        }
        None => thread::sleep(patience),
    }
}
