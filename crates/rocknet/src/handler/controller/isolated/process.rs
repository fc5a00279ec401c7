//! One process that runs a library: started and listened to, and the connections to it.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rocknet_controller::host::frame::ServerMessage;
use rocknet_io::child::{bind_to_thread, signal_group};
use rocknet_io::fd_channel::{self, FdChannel};
use rustix::process::Signal;

use super::control::{self, Report};
use super::locked::lock;
use super::place::{AT_ONCE, Place};
use super::program::{WORD, program};
use crate::handler::controller::draft;

/// Connections kept for the next requests, each a thread of the process that waits: as many as there may be calls. With fewer,
/// those beyond make a connection and a thread for each request, which cost more than all the rest of it.
const MAX_IDLE: usize = AT_ONCE;
/// Bytes of a line that the process writes to its outputs, and lines of each second: a library that prints for every
/// request is not to fill the disk.
const MAX_LINE: usize = 2 * 1024;
const LINES_A_SECOND: u32 = 100;
/// What is read of its outputs at once.
const READ: usize = 4 * 1024;
/// A process that has closed its side is gone a moment later, or is killed.
const LAST_MOMENT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);
/// One that has lost a connection and lives on for so long has closed it for another reason.
const DOUBT: Duration = Duration::from_millis(200);

/// What requests know of it.
pub struct Process {
    control: FdChannel,
    idle: Mutex<Vec<UnixStream>>,
    /// Calls that nobody waits for any more, but which have not returned.
    abandoned: Mutex<Vec<Abandoned>>,
    /// It takes no more requests.
    is_closed: AtomicBool,
    /// A connection was lost: most likely it is about to end, and whoever asks next waits until that is known.
    is_doubted: AtomicBool,
}

/// A call that was given up.
pub struct Abandoned {
    pub connection: UnixStream,
    pub since: Instant,
    /// The thread is taken for as long as the call lasts.
    _place: Place,
}

impl Process {
    /// A connection that nobody uses; new, where none was kept.
    pub fn connection(&self) -> io::Result<UnixStream> {
        if self.is_closed() {
            return Err(ErrorKind::NotConnected.into());
        }
        loop {
            let Some(kept) = lock(&self.idle).pop() else { break };
            // Closed meanwhile: the process has ended.
            if matches!((&kept).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock) {
                return Ok(kept);
            }
        }
        let (ours, theirs) = fd_channel::stream_pair()?;
        ours.set_nonblocking(true)?;
        control::serve(&self.control, theirs.as_fd())?;
        Ok(ours)
    }

    /// Keeps a connection whose request is over.
    pub fn keep(&self, connection: UnixStream) {
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE && !self.is_closed() {
            idle.push(connection);
        }
    }

    /// The call on this connection is not waited for any more.
    pub fn abandon(&self, connection: UnixStream, place: Place) {
        // What it says when it returns finds nobody; that the process closes it then tells that it has.
        let _ = connection.shutdown(std::net::Shutdown::Read);
        // What it said just before that is lost as well, and then it waits for more to be wanted. It hears that more is, and
        // that nobody listens, whatever it waits for: no controller is asked twice, and no content seems to end.
        let mut word = Vec::new();
        if ServerMessage::Give.write(&mut word).is_ok() {
            let _ = (&connection).write(&word);
        }
        let since = Instant::now();
        lock(&self.abandoned).push(Abandoned {
            connection,
            since,
            _place: place,
        });
    }

    pub fn abandoned(&self) -> &Mutex<Vec<Abandoned>> {
        &self.abandoned
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::Acquire)
    }

    pub fn doubt(&self, is_doubted: bool) {
        self.is_doubted.store(is_doubted, Ordering::Release);
    }

    /// Takes no more requests; the process ends behind those that it has.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.control.shut_down();
        lock(&self.idle).clear();
    }
}

/// What its parent knows of it.
pub struct Running {
    child: Child,
    /// Its outputs, until they end.
    output: Option<PipeReader>,
    lines: Lines,
    pub since: Instant,
    pub process: Arc<Process>,
}

impl Running {
    /// To be called on a thread that lives longer than the process, which ends with it.
    pub fn start(library: impl AsFd, name: &Path) -> io::Result<Running> {
        let program =
            program().ok_or_else(|| io::Error::new(ErrorKind::NotFound, "this program cannot run libraries"))?;
        let (control, input) = FdChannel::pair()?;
        let (output, writer) = io::pipe()?;
        let mut command = Command::new(program);
        // The last word is for whoever looks at a list of processes.
        command.arg0("rocknet").arg(WORD).arg(name);
        command
            .stdin(input)
            .stdout(writer.try_clone()?)
            .stderr(OwnedFd::from(writer));
        bind_to_thread(&mut command, None, Signal::KILL);
        let child = command.spawn()?;
        // With it go the ends that are the child's.
        drop(command);
        let running = Running {
            child,
            output: Some(output),
            lines: Lines::new(name),
            since: Instant::now(),
            process: Arc::new(Process {
                control,
                idle: Mutex::default(),
                abandoned: Mutex::default(),
                is_closed: AtomicBool::new(false),
                is_doubted: AtomicBool::new(false),
            }),
        };
        // One that has gone at once is told by how it ended.
        let _ = control::load(&running.process.control, library.as_fd(), &name.to_string_lossy());
        Ok(running)
    }

    pub fn control(&self) -> &FdChannel {
        &self.process.control
    }

    pub fn output(&self) -> Option<&PipeReader> {
        self.output.as_ref()
    }

    /// What it says next; `None`: nothing more, ever. Lines for the log go there.
    pub fn hear(&mut self) -> Option<Heard> {
        match Report::recv(&self.process.control) {
            Ok(Some(Report::Log(level, line))) => {
                draft::log(level, &line);
                Some(Heard::Line)
            }
            Ok(Some(report)) => Some(Heard::Report(report)),
            Ok(None) => None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(Heard::Nothing),
            Err(_) => None,
        }
    }

    /// Passes on what it has written to its outputs, which is not waited for: something is there, or the end.
    pub fn pass_on(&mut self) {
        let mut buffer = [0; READ];
        match self.output.as_mut().map(|output| output.read(&mut buffer)) {
            Some(Ok(read)) if read > 0 => self.lines.add(&buffer[..read]),
            Some(_) => self.output = None,
            None => {}
        }
    }

    /// Whether it still lives after a moment.
    pub fn stays_alive(&mut self) -> bool {
        self.ends_within(DOUBT);
        self.is_alive()
    }

    fn ends_within(&mut self, moment: Duration) {
        let until = Instant::now() + moment;
        while self.is_alive() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    /// Whether it lives.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Has it end now, if it does not within a moment, and tells how it did. What it started ends with it.
    pub fn end(&mut self, moment: Duration) -> ExitStatus {
        self.ends_within(moment);
        let _ = signal_group(self.child.id(), Signal::KILL);
        let status = self.child.wait();
        self.process.close();
        lock(&self.process.abandoned).clear();
        self.last_words();
        status.unwrap_or_default()
    }

    /// How it ended, of one that has closed its side.
    pub fn ended(&mut self) -> ExitStatus {
        self.end(LAST_MOMENT)
    }

    /// What is left in the pipe. Somebody else may still hold its other end, so nothing is waited for.
    fn last_words(&mut self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        const MOST: usize = 16;
        for _ in 0..MOST {
            let Some(output) = &self.output else { return };
            let mut look = [PollFd::new(output, PollFlags::IN)];
            if !matches!(poll(&mut look, Some(&Timespec::default())), Ok(ready) if ready > 0) {
                return;
            }
            self.pass_on();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_alive() {
            self.end(Duration::ZERO);
        }
        self.process.close();
    }
}

/// What was heard.
pub enum Heard {
    Nothing,
    /// It is in the log already.
    Line,
    Report(Report),
}

/// The outputs of the process, line by line in the log.
struct Lines {
    library: String,
    line: Vec<u8>,
    second: Instant,
    count: u32,
}

impl Lines {
    fn new(name: &Path) -> Lines {
        Lines {
            library: name.display().to_string(),
            line: Vec::new(),
            second: Instant::now(),
            count: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.tell(),
                _ if self.line.len() < MAX_LINE => self.line.push(byte),
                _ => {}
            }
        }
    }

    fn tell(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.second.elapsed() >= Duration::from_secs(1) {
            (self.second, self.count) = (Instant::now(), 0);
        }
        self.count = self.count.saturating_add(1);
        let library = &self.library;
        match self.count {
            ..=LINES_A_SECOND => tracing::warn!(%library, "{}", String::from_utf8_lossy(line.trim_ascii())),
            count if count == LINES_A_SECOND + 1 => {
                tracing::warn!(%library, "prints more than {LINES_A_SECOND} lines a second; the rest is left out");
            }
            _ => {}
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.tell();
        }
    }
}
