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

use super::control::{self, ChildReport};
use super::lock::lock;
use super::permits::{CallPermit, MAX_CALLS};
use super::program::{RUN_LIBRARY_ARGUMENT, program};
use crate::handler::controller::response_builder;

/// Connections kept for the next requests, each a thread of the process that waits: as many as there may be calls. With fewer,
/// those beyond make a connection and a thread for each request, which cost more than all the rest of it.
const MAX_IDLE: usize = MAX_CALLS;
/// Bytes of a line that the process writes to its outputs, and lines of each second: a library that prints for every
/// request is not to fill the disk.
const MAX_LOG_LINE: usize = 2 * 1024;
const MAX_LINES_PER_SECOND: u32 = 100;
/// What is read of its outputs at once.
const READ_SIZE: usize = 4 * 1024;
/// A process that has closed its side is gone a moment later, or is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// One that has lost a connection and lives on for so long has closed it for another reason.
const SUSPECT_TIMEOUT: Duration = Duration::from_millis(200);

/// What requests know of it.
pub struct ProcessHandle {
    control: FdChannel,
    idle: Mutex<Vec<UnixStream>>,
    /// Calls that nobody waits for any more, but which have not returned.
    abandoned: Mutex<Vec<AbandonedCall>>,
    /// It takes no more requests.
    is_closed: AtomicBool,
    /// A connection was lost: most likely it is about to end, and whoever asks next waits until that is known.
    is_suspect: AtomicBool,
}

/// A call that was given up.
pub struct AbandonedCall {
    pub connection: UnixStream,
    pub since: Instant,
    /// The thread is taken for as long as the call lasts.
    _permit: CallPermit,
}

impl ProcessHandle {
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
    pub fn abandon(&self, connection: UnixStream, permit: CallPermit) {
        // What it says when it returns finds nobody; that the process closes it then tells that it has.
        let _ = connection.shutdown(std::net::Shutdown::Read);
        // What it said just before that is lost as well, and then it waits for more to be wanted. It hears that more is, and
        // that nobody listens, whatever it waits for: no controller is asked twice, and no content seems to end.
        let mut frame = Vec::new();
        if ServerMessage::Give.write(&mut frame).is_ok() {
            let _ = (&connection).write(&frame);
        }
        let since = Instant::now();
        lock(&self.abandoned).push(AbandonedCall {
            connection,
            since,
            _permit: permit,
        });
    }

    pub fn abandoned(&self) -> &Mutex<Vec<AbandonedCall>> {
        &self.abandoned
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Acquire)
    }

    pub fn set_suspect(&self, is_suspect: bool) {
        self.is_suspect.store(is_suspect, Ordering::Release);
    }

    /// Takes no more requests; the process ends behind those that it has.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.control.shut_down();
        lock(&self.idle).clear();
    }
}

/// What its parent knows of it.
pub struct ChildProcess {
    child: Child,
    /// Its outputs, until they end.
    output: Option<PipeReader>,
    output_log: OutputLog,
    pub since: Instant,
    pub process: Arc<ProcessHandle>,
}

impl ChildProcess {
    /// To be called on a thread that lives longer than the process, which ends with it.
    pub fn start(library: impl AsFd, name: &Path) -> io::Result<ChildProcess> {
        let program =
            program().ok_or_else(|| io::Error::new(ErrorKind::NotFound, "this program cannot run libraries"))?;
        let (control, input) = FdChannel::pair()?;
        let (output, writer) = io::pipe()?;
        let mut command = Command::new(program);
        // The last word is for whoever looks at a list of processes.
        command.arg0("rocknet").arg(RUN_LIBRARY_ARGUMENT).arg(name);
        command
            .stdin(input)
            .stdout(writer.try_clone()?)
            .stderr(OwnedFd::from(writer));
        bind_to_thread(&mut command, None, Signal::KILL);
        let child = command.spawn()?;
        // With it go the ends that are the child's.
        drop(command);
        let running = ChildProcess {
            child,
            output: Some(output),
            output_log: OutputLog::new(name),
            since: Instant::now(),
            process: Arc::new(ProcessHandle {
                control,
                idle: Mutex::default(),
                abandoned: Mutex::default(),
                is_closed: AtomicBool::new(false),
                is_suspect: AtomicBool::new(false),
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
    pub fn next_event(&mut self) -> Option<ProcessEvent> {
        match ChildReport::recv(&self.process.control) {
            Ok(Some(ChildReport::Log(level, line))) => {
                response_builder::log(level, &line);
                Some(ProcessEvent::Logged)
            }
            Ok(Some(report)) => Some(ProcessEvent::Report(report)),
            Ok(None) => None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(ProcessEvent::Idle),
            Err(_) => None,
        }
    }

    /// Passes on what it has written to its outputs, which is not waited for: something is there, or the end.
    pub fn forward_output(&mut self) {
        let mut buffer = [0; READ_SIZE];
        match self.output.as_mut().map(|output| output.read(&mut buffer)) {
            Some(Ok(read)) if read > 0 => self.output_log.add(&buffer[..read]),
            Some(_) => self.output = None,
            None => {}
        }
    }

    /// Whether it still lives after a moment.
    pub fn stays_alive(&mut self) -> bool {
        self.wait_for_exit(SUSPECT_TIMEOUT);
        self.is_alive()
    }

    fn wait_for_exit(&mut self, timeout: Duration) {
        let until = Instant::now() + timeout;
        while self.is_alive() && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether it lives.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Has it end now, if it does not within a moment, and tells how it did. What it started ends with it.
    pub fn end(&mut self, timeout: Duration) -> ExitStatus {
        self.wait_for_exit(timeout);
        let _ = signal_group(self.child.id(), Signal::KILL);
        let status = self.child.wait();
        self.process.close();
        lock(&self.process.abandoned).clear();
        self.forward_rest();
        status.unwrap_or_default()
    }

    /// How it ended, of one that has closed its side.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        self.end(EXIT_TIMEOUT)
    }

    /// What is left in the pipe. Somebody else may still hold its other end, so nothing is waited for.
    fn forward_rest(&mut self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        const MAX_READS: usize = 16;
        for _ in 0..MAX_READS {
            let Some(output) = &self.output else { return };
            let mut look = [PollFd::new(output, PollFlags::IN)];
            if !matches!(poll(&mut look, Some(&Timespec::default())), Ok(ready) if ready > 0) {
                return;
            }
            self.forward_output();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.is_alive() {
            self.end(Duration::ZERO);
        }
        self.process.close();
    }
}

/// What was heard.
pub enum ProcessEvent {
    Idle,
    /// It is in the log already.
    Logged,
    Report(ChildReport),
}

/// The outputs of the process, line by line in the log.
struct OutputLog {
    library: String,
    line: Vec<u8>,
    second: Instant,
    count: u32,
}

impl OutputLog {
    fn new(name: &Path) -> OutputLog {
        OutputLog {
            library: name.display().to_string(),
            line: Vec::new(),
            second: Instant::now(),
            count: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.log_line(),
                _ if self.line.len() < MAX_LOG_LINE => self.line.push(byte),
                _ => {}
            }
        }
    }

    fn log_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.second.elapsed() >= Duration::from_secs(1) {
            (self.second, self.count) = (Instant::now(), 0);
        }
        self.count = self.count.saturating_add(1);
        let library = &self.library;
        match self.count {
            ..=MAX_LINES_PER_SECOND => tracing::warn!(%library, "{}", String::from_utf8_lossy(line.trim_ascii())),
            count if count == MAX_LINES_PER_SECOND + 1 => {
                tracing::warn!(%library, "prints more than {MAX_LINES_PER_SECOND} lines a second; the rest is left out");
            }
            _ => {}
        }
    }
}

impl Drop for OutputLog {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.log_line();
        }
    }
}
